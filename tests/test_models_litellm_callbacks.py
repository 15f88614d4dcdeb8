"""LiteLLM's own callbacks, which users register: they are told, and cost nothing without."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nbdurable.models.litellm import load
from nbdurable.testing import FakeOpenAI, steps
from tests.litellm_calls import Loop, call, running_loop


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


class Told:
    """What a callback of LiteLLM's was told, and how often it put an answer together."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.has_come = threading.Event()
        self.built = 0

    async def __call__(self, kwargs: dict[str, Any], answer: Any, *_: object) -> None:
        """Note an answer, as LiteLLM calls it."""
        self.texts.append(answer.choices[0].message.content)
        self.has_come.set()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    litellm, told = load(), Told()
    build = litellm.stream_chunk_builder

    def counted(*args: Any, **kwargs: Any) -> Any:
        told.built += 1
        return build(*args, **kwargs)

    monkeypatch.setattr(litellm, "stream_chunk_builder", counted)
    for kept in ("success_callback", "_async_success_callback"):  # it moves some to the other
        monkeypatch.setattr(litellm, kept, [])
    return told


@pytest.mark.parametrize("of_call", [False, True], ids=["of the process", "of the call"])
def test_a_callback_is_told_of_the_whole_answer(
    loop: Loop, fake: FakeOpenAI, told: Told, monkeypatch: pytest.MonkeyPatch, of_call: bool
) -> None:
    params = {"success_callback": [told]} if of_call else {}
    if not of_call:
        monkeypatch.setattr(load(), "success_callback", [told])

    call(loop, fake, steps.text("The whole answer."), **params)

    assert told.has_come.wait(10)
    assert told.texts == ["The whole answer."]


def test_without_a_callback_an_answer_is_put_together_once(
    loop: Loop, fake: FakeOpenAI, told: Told
) -> None:
    answer = call(loop, fake, steps.text("The whole answer."))

    assert (answer.text, answer.finish.usage is not None, told.built) == (
        "The whole answer.",
        True,
        1,
    )
