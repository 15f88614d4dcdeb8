"""What a model reports beside its words may make no sense; the words are kept all the same."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.blocks import Usage
from nbdurable.models.base import (
    CallDelta,
    Delta,
    Finish,
    ImageDelta,
    ModelRequest,
    RetryNotice,
    TextDelta,
    ThinkingDelta,
)
from nbdurable.models.scripted import ScriptedModel
from nbdurable.models.sound import sound
from nbdurable.stores.base import Store

USAGE = Usage(3, 4)


class _Plain(ScriptedModel):
    """A model that yields plain text in place of deltas."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:  # type: ignore[override]
        yield TextDelta("paid ")
        yield "a plain word"


# B22 B64
@pytest.mark.parametrize("cost", ["0.5", "much", math.nan, math.inf, -1.0, 10**400, [1], True])
def test_a_cost_that_makes_no_sense_is_unknown_and_the_answer_kept(store: Store, cost: Any) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel(["paid", Finish(cost_usd=cost)]))

    run = chat.run("q")

    assert (run.outcome, run.text, run.cost) == ("done", "paid", None)


# B22 B64
@pytest.mark.parametrize(
    "usage",
    [
        "many",
        {"input_tokens": 3},
        5,
        Usage("3", 4),  # type: ignore[arg-type]
        Usage(math.nan, 4),  # type: ignore[arg-type]
        Usage(None, 4),  # type: ignore[arg-type]
        Usage(-3, 4),
        Usage(2**70, 4),
    ],
)
def test_usage_that_makes_no_sense_is_unknown_and_the_answer_kept(store: Store, usage: Any) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel(["paid", Finish(usage=usage)]))

    run = chat.run("q")

    assert (run.outcome, run.text, run.usage) == ("done", "paid", Usage())
    assert run.messages[-1].reply is not None and run.messages[-1].reply.usage is None


# B22
@pytest.mark.parametrize("name", ["answered_by", "provider", "fingerprint", "error"])
@pytest.mark.parametrize("value", [5, b"x", object(), {"a": 1}, "\ud800", "\0"])
def test_names_that_are_no_text_do_not_cost_the_answer(store: Store, name: str, value: Any) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel(["paid", Finish(**{name: value})]))

    run = chat.run("q")

    assert (run.outcome, run.text) == ("done", "paid")


# B22
@pytest.mark.parametrize("reason", ["odd", None, 5, ["stop"]])
def test_a_reason_to_stop_that_is_not_known_is_a_stop(reason: Any) -> None:
    assert sound(Finish(stop_reason=reason, usage=USAGE)) == Finish(usage=USAGE)


# B22
@pytest.mark.parametrize(
    ("delta", "wanted"),
    [
        (TextDelta(None), TextDelta("")),  # type: ignore[arg-type]
        (TextDelta(5), TextDelta("5")),  # type: ignore[arg-type]
        (TextDelta(b"caf\xc3\xa9"), TextDelta("café")),  # type: ignore[arg-type]
        (ThinkingDelta(None, 5), ThinkingDelta("", "5")),  # type: ignore[arg-type]
        (CallDelta(0, None, None, None), CallDelta(0)),  # type: ignore[arg-type]
        (CallDelta(0, "c", "f", {"a": 1}), CallDelta(0, "c", "f", '{"a":1}')),  # type: ignore[arg-type]
        (ImageDelta(None), TextDelta("")),  # type: ignore[arg-type]
        (RetryNotice(None, None, None), RetryNotice(0, 0.0, "")),  # type: ignore[arg-type]
    ],
)
def test_values_of_another_type_become_what_the_delta_promises(delta: Delta, wanted: Delta) -> None:
    assert sound(delta) == wanted


# B22
def test_what_is_no_delta_is_named_and_the_words_before_it_kept(store: Store) -> None:
    chat = nb.open("s", store=store, model=_Plain())

    with pytest.raises(nb.errors.ModelError, match="'a plain word' is no delta; yield TextDelta"):
        chat.run("q")

    assert chat.transcript()[-1].message.text == "paid "  # type: ignore[attr-defined]


# B22
def test_a_failure_after_the_finish_does_not_cost_the_answer(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(["paid", Finish(usage=USAGE), ConnectionResetError("late")])
    chat = nb.open("s", store=store, model=model)

    run = chat.run("q")

    assert (run.outcome, run.text, run.usage) == ("done", "paid", USAGE)
    assert "failed after its answer was whole" in caplog.text


# B22
def test_what_comes_after_the_finish_is_kept_with_it(store: Store) -> None:
    steps = ["one ", Finish(usage=USAGE, cost_usd=0.5), "two", Finish(stop_reason="length")]
    chat = nb.open("s", store=store, model=ScriptedModel(steps))

    run = chat.run("q")

    assert (run.text, run.usage, run.cost) == ("one two", USAGE, 0.5)
    assert run.messages[-1].stop_reason == "length"


# B64
def test_halves_of_a_character_in_two_deltas_become_that_character(store: Store) -> None:
    chat = nb.open(
        "s", store=store, model=ScriptedModel([TextDelta("\ud83d"), TextDelta("\ude00!")])
    )

    run = chat.run("q")

    assert run.text == "😀!"
    assert not run.entries[-1].is_repaired  # type: ignore[attr-defined]


# B7 B64
def test_a_model_name_with_half_a_character_is_refused_at_the_call(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    with pytest.raises(ValueError, match=r"model name '\\ud800' holds half a character; correct"):
        chat.run("q", model="\ud800")
    with pytest.raises(ValueError, match="holds half a character"):
        chat.run("q", model=ScriptedModel(name="x\udfff"))

    assert chat.entries() == [] and chat.runs() == []
