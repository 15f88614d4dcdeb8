"""The local model without its weights: it gives the answers that were recorded, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from streamed import assemble

import nbdurable as nb
from nbdurable.blocks import Message, TextBlock, ToolCallBlock, Usage
from nbdurable.errors import ModelError
from nbdurable.models.base import Finish, ModelRequest, ToolSpec
from nbdurable.models.local import LocalModel
from nbdurable.models.local_answers import keep_answer
from nbdurable.models.local_prompt import request_body

pytestmark = pytest.mark.filterwarnings("ignore:no weights of model 'local'")

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide the weights, and name a file of answers that is still to be made."""
    monkeypatch.setenv("NBDURABLE_GGUF", str(tmp_path / "hidden.gguf"))
    path = tmp_path / "answers.jsonl"
    monkeypatch.setenv("NBDURABLE_ANSWERS", str(path))
    return path


def asking(text: str, *tools: ToolSpec, **params: object) -> ModelRequest:
    return ModelRequest(messages=(Message("user", (TextBlock(text),)),), tools=tools, params=params)


def chunks_of(*pieces: str, reason: str | None = "stop") -> list[dict[str, Any]]:
    """Return an answer as the engine gives it."""
    said = [{"choices": [{"delta": {"content": p}, "finish_reason": None}]} for p in pieces]
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    return [*said, {"choices": [{"delta": {}, "finish_reason": reason}], "usage": usage}]


def keep(path: Path, request: ModelRequest, *pieces: str, reason: str | None = "stop") -> None:
    chunks = chunks_of(*pieces, reason=reason)
    keep_answer(path, request_body(request), chunks, answered_by="small", fingerprint="engine 1")


def text_of(model: LocalModel, request: ModelRequest) -> str:
    (block,) = asyncio.run(assemble(model, request)).blocks()
    assert isinstance(block, TextBlock)
    return block.text


def test_a_request_gets_the_answer_that_was_recorded_for_it(answers: Path) -> None:
    keep(answers, asking("Hello?"), " Good", " day,\n\n  friend. ")
    keep(answers, asking("Bye?"), "So long.", reason="length")

    assembly = asyncio.run(assemble(LocalModel(), asking("Hello?")))

    assert assembly.blocks() == (TextBlock(" Good day,\n\n  friend. "),)
    assert assembly.finish == Finish(
        stop_reason="stop",
        usage=Usage(12, 3),
        cost_usd=0.0,
        answered_by="small",
        provider="recording",
        fingerprint="engine 1",
    )


def test_several_answers_to_one_request_are_given_in_turn(answers: Path) -> None:
    for text in ("One.", "Two."):
        keep(answers, asking("Again?"), text)
    model = LocalModel()

    told = [text_of(model, asking("Again?")) for _ in range(3)]

    assert told == ["One.", "Two.", "One."]


def test_the_order_of_parameters_does_not_count_and_their_values_do(answers: Path) -> None:
    keep(answers, asking("Hello?", seed=7, temperature=1.0), "Good day.")
    model = LocalModel()

    assert text_of(model, asking("Hello?", temperature=1.0, seed=7)) == "Good day."
    with pytest.raises(ModelError, match="no answer of model 'local' is recorded"):
        text_of(model, asking("Hello?", temperature=1.0, seed=8))


def test_a_recorded_call_is_a_call_again(answers: Path) -> None:
    request = asking("Add 1.", ADD, tool_choice="required")
    keep(answers, request, '{"name": "add", ', '"arguments": {"a": 1}}')

    assembly = asyncio.run(assemble(LocalModel(), request))

    (call,) = assembly.blocks()
    assert isinstance(call, ToolCallBlock)
    assert (call.name, call.raw) == ("add", '{"a": 1}')
    assert assembly.finish is not None and assembly.finish.stop_reason == "tool_calls"


# B7 B22
def test_a_request_without_a_recorded_answer_fails_and_keeps_the_input(answers: Path) -> None:
    keep(answers, asking("Hello?"), "Good day.")
    chat = nb.open("talk", store=":memory:", model=LocalModel())

    with pytest.raises(
        ModelError,
        match=r"no answer .* for the request that ends in 'And now\?', and its weights are not "
        r"here; run: nbdurable local fetch$",
    ):
        chat.run("And now?", show=None)

    assert [entry.text for entry in chat.entries(nb.MessageEntry)] == ["And now?"]
    chat.close()


@pytest.mark.filterwarnings("always:no weights of model 'local'")
def test_the_caller_is_told_once_that_answers_are_recorded_ones(answers: Path) -> None:
    keep(answers, asking("Hello?"), "Good day.")
    chat = nb.open("talk", store=":memory:", model=LocalModel())

    with pytest.warns(UserWarning, match=r"repeats recorded .*; run: nbdurable local fetch$") as e:
        chat.run("Hello?", show=None)
        chat.rerun(show=None)

    assert [warning.filename for warning in e] == [__file__]
    chat.close()


# B7
def test_weights_that_are_there_are_used_whatever_is_recorded(
    answers: Path, tmp_path: Path
) -> None:
    keep(answers, asking("Hello?"), "Good day.")
    (tmp_path / "hidden.gguf").write_bytes(b"not a model")

    with pytest.raises(ModelError, match="cannot be loaded"):
        LocalModel().check()


# B7
def test_a_model_of_ones_own_is_never_answered_for(answers: Path, tmp_path: Path) -> None:
    keep(answers, asking("Hello?"), "Good day.")

    with pytest.raises(ModelError, match=r"weights .* are not at '.*mine\.gguf'"):
        LocalModel(tmp_path / "mine.gguf").check()


# B7
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, r"answers\.jsonl' cannot be read: No such file or directory; correct NBD"),
        (b"\xff\xfe", r"answers\.jsonl' cannot be read: it is no text; correct NBDURABLE_ANS"),
        (b'{"text": "Hi."}\n', r"line 1 of recorded answers '.*' is no answer; restore the file"),
    ],
)
def test_a_file_that_holds_no_answers_is_named(
    answers: Path, content: bytes | None, text: str
) -> None:
    if content is not None:
        answers.write_bytes(content)

    with pytest.raises(ModelError, match=text) as caught:
        LocalModel().check()

    assert caught.value.reason == "unavailable"


def test_an_answer_that_was_cut_is_not_recorded(answers: Path) -> None:
    keep(answers, asking("Hello?"), "Good", reason=None)

    assert not answers.exists()


def test_the_endpoint_gives_recorded_answers_too(answers: Path) -> None:
    keep(answers, asking("Hello?"), "Good day.")

    base_url, key = LocalModel().endpoint()

    assert base_url.startswith("http://127.0.0.1:") and key
