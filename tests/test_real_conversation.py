"""A conversation with a real model: over HTTP through LiteLLM, and inside the process.

Held once a way of reaching the model: an answer, a named tool call, an answer cancelled in its
middle, and its resumption by another process. What the model says is never asserted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.models.local import local_endpoint
from nbdurable.stored import StoredEntry
from nbdurable.stores.duckdb import DuckDBStore
from tests.new_process import in_new_process

pytestmark = pytest.mark.local_model

NAMED = {"type": "function", "function": {"name": "add"}}
ENDLESS: Any = {"max_tokens": 3000, "logit_bias": {"2": -100}}  # 2 would end it: only a cancel does

RESUME = """
import json, sys
import nbdurable as nb
from nbdurable.models.local import local_endpoint

path, how = sys.argv[1:]
base_url, key = local_endpoint()
reached = {"model": "openai/local", "api_base": base_url, "api_key": key}
with nb.open("talk", store=path, **(reached if how == "http" else {})) as chat:
    found = [entry.id for entry in chat.path()]
    run = chat.run(max_tokens=12, temperature=0, show=None)
    print(json.dumps({
        "found": found, "model": run.model, "outcome": run.outcome, "text": run.text,
        "key": key, "path": [entry.id for entry in chat.path()],
    }))
"""


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass
class Talk:
    """All that one conversation left."""

    how: str
    folder: Path
    keys: tuple[str, str]
    first: nb.Run
    called: nb.Run
    after_call: nb.Run
    cut: nb.Run
    pieces: list[str]
    resumed: dict[str, Any]
    rows: list[StoredEntry]

    def row(self, entry_id: str | None) -> StoredEntry:
        return next(row for row in self.rows if row.id == entry_id)


def hold(how: str, folder: Path) -> Talk:
    path = folder / "talk.duckdb"
    base_url, key = local_endpoint()
    reached = {"model": "openai/local", "api_base": base_url, "api_key": key}
    with nb.open("talk", store=path, **(reached if how == "http" else {"model": "local"})) as chat:  # type: ignore[arg-type]
        first = chat.run("Greet me.", max_tokens=12, temperature=0, show=None)
        called = chat.run("Add 2 and 3.", tools=[add], tool_choice=NAMED, max_tokens=60, show=None)
        after_call = chat.run("Thank you.", tools=[add], max_tokens=12, show=None)
        cut = chat.run("Tell me a long story.", wait=False, **ENDLESS)
        pieces = cancelled_in_its_middle(cut)
    resumed: Any = in_new_process(RESUME, str(path), how)
    store = DuckDBStore(path)
    rows = store.load_entries("talk")
    store.close()
    keys = (key, resumed["key"])
    return Talk(how, folder, keys, first, called, after_call, cut, pieces, resumed, rows)


def cancelled_in_its_middle(run: nb.Run) -> list[str]:
    """Read some of an answer, cancel it, and return the pieces that were told of it."""
    for read, _ in enumerate(run.stream(), 1):
        if read == 3:
            run.cancel()
    run.wait()
    return [event.text for event in run.events if event.text]


@pytest.fixture(scope="module", params=["http", "local"])
def talk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    yield hold(request.param, tmp_path_factory.mktemp(request.param))


# B13 B15
def test_a_real_answer_is_streamed_and_stored(talk: Talk) -> None:
    updates = [event.text for event in talk.first.events if event.type == "message_update"]

    assert len(updates) > 1
    assert "".join(updates) == talk.first.text == talk.first.entries[-1].text  # type: ignore[attr-defined]
    assert talk.row(talk.first.leaf_id).stop_reason in ("stop", "length")


# B13
def test_a_real_answer_reports_who_gave_it_and_its_tokens(talk: Talk) -> None:
    reply = talk.first.messages[-1].reply

    assert reply is not None and reply.usage is not None
    assert reply.model == ("openai/local" if talk.how == "http" else "local")
    assert reply.answered_by and reply.provider
    assert reply.usage.input_tokens > 0 and reply.usage.output_tokens > 1
    assert reply.ttft_s is not None and reply.seconds is not None
    assert 0 < reply.ttft_s <= reply.seconds


# B27 B44
def test_a_named_tool_is_called_by_the_model_and_its_result_stored(talk: Talk) -> None:
    _, asked, result, answer = talk.called.messages

    (call,) = asked.tool_calls
    assert (call.name, sorted(call.arguments or {})) == ("add", ["a", "b"])
    (given,) = result.tool_results
    assert (given.call_id, given.is_error) == (call.id, False)
    assert answer.text.strip()
    assert talk.called.outcome == "done"


# B44
def test_a_history_of_calls_and_results_is_taken_by_the_real_server(talk: Talk) -> None:
    assert (talk.after_call.outcome, talk.after_call.error) == ("done", None)
    assert talk.after_call.text.strip()


# B22 B23
def test_an_answer_cancelled_in_its_middle_is_kept_as_aborted(talk: Talk) -> None:
    answer = talk.cut.messages[-1]

    assert talk.cut.outcome == "aborted"
    assert answer.text == "".join(talk.pieces) and len(talk.pieces) >= 3
    assert answer.reply is not None
    assert (answer.reply.stop_reason, answer.reply.error) == ("aborted", "the run was cancelled")
    assert talk.row(talk.cut.leaf_id).stop_reason == "aborted"


# B2 B24
def test_another_process_finds_the_same_entries(talk: Talk) -> None:
    told = [
        entry.id
        for run in (talk.first, talk.called, talk.after_call, talk.cut)
        for event in run.events
        for entry in event.entries
    ]

    assert talk.resumed["found"] == told == [row.id for row in talk.rows[: len(told)]]


# B2 B22
def test_another_process_answers_again_beside_what_was_cancelled(talk: Talk) -> None:
    new_id, aborted_id = talk.resumed["path"][-1], talk.cut.leaf_id

    assert talk.resumed["outcome"] == "done" and talk.resumed["text"].strip()
    assert talk.resumed["model"] == talk.cut.model
    assert talk.row(new_id).parent_id == talk.row(aborted_id).parent_id == talk.cut.input_ids[-1]
    assert aborted_id not in talk.resumed["path"]


# B69
def test_no_key_of_the_endpoint_is_in_any_file(talk: Talk) -> None:
    files = [Path(at, name) for at, _, names in os.walk(talk.folder) for name in names]

    assert any(b"Greet me." in file.read_bytes() for file in files)
    for file in files:
        assert not any(key.encode() in file.read_bytes() for key in talk.keys), file.name


# B22
def test_a_prompt_too_long_for_the_endpoint_is_an_error_of_the_context() -> None:
    base_url, key = local_endpoint()
    reached: Any = {"model": "openai/local", "api_base": base_url, "api_key": key}

    with (
        nb.open("long", store=":memory:", **reached) as chat,
        pytest.raises(nb.errors.ModelError, match=r"prompt of \d+ tokens is too long") as caught,
    ):
        chat.run("word and then " * 3000, show=None)

    assert (caught.value.reason, caught.value.status) == ("context", 400)
