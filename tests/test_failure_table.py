"""The 33 ways in which a call goes, as whole sessions: LiteLLM, a real server, a real file.

Each kind is played once: a first run, the file read anew after everything was closed, then what a
user does next. The tests look at that from one side each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.stored import RunEnd, StoredEntry
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.testing import FakeOpenAI, steps
from tests.failure_table import FAILURES, Failure

KEY = "sk-proj-SECRETsecret1234"
FAILED = [case for case in FAILURES if case.expected_reason is not None]
WENT_WELL = [case for case in FAILURES if case.expected_reason is None]
CALLING = [case for case in FAILURES if case.calls]
ANSWERED = "Answered at last."

each = pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.name)
each_failed = pytest.mark.parametrize("case", FAILED, ids=lambda case: case.name)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def w(city: str) -> str:
    """Tell the weather, briefly."""
    return city.lower()


@dataclass
class Played:
    """All that came of one kind."""

    run: nb.Run
    raised: nb.errors.ModelError | None
    requests: int
    rows: list[StoredEntry]  # after the first run, as a fresh opening of the file reads them
    end: RunEnd | None
    entries: list[Any]
    again: nb.Run | None = None  # run() without input, after a failure
    later: nb.Run | None = None  # what was said after the first run's end
    bodies: list[dict[str, Any]] = field(default_factory=list)  # what both sent
    messages_later: list[dict[str, Any]] = field(default_factory=list)  # what `later` sent
    path_again: list[Any] = field(default_factory=list)
    kept: list[StoredEntry] = field(default_factory=list)  # at the very end


class Player:
    """Plays a kind once, whichever test asks for it first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._played: dict[str, Played] = {}
        self._files = itertools.count(1)

    def __call__(self, case: Failure) -> Played:
        if case.name not in self._played:
            path = self._folder / f"{next(self._files)}.duckdb"
            with FakeOpenAI() as server:
                self._played[case.name] = self._play(case, path, server)
        return self._played[case.name]

    def _open(self, path: Path, server: FakeOpenAI, **params: object) -> nb.Session:
        return nb.open(
            "s",
            store=path,
            model="openai/fake",
            tools=[add, weather, w],
            api_base=server.base_url,
            api_key=KEY,
            **params,  # type: ignore[arg-type]
        )

    def _play(self, case: Failure, path: Path, server: FakeOpenAI) -> Played:
        server.script(*case.steps, *([steps.text("Done.")] if case.calls else []))
        raised = None
        with self._open(path, server, **case.params) as chat:
            try:
                run = chat.run("Hello", show=None)
            except nb.errors.ModelError as error:
                raised, run = error, error.run  # type: ignore[assignment]
            entries = chat.entries()
        played = Played(run, raised, len(server.requests), *_read(path), entries)
        with self._open(path, server, max_retries=0) as chat:
            self._go_on(played, chat, server)
        played.kept = _read(path)[0]
        return played

    def _go_on(self, played: Played, chat: nb.Session, server: FakeOpenAI) -> None:
        server.script(steps.text(ANSWERED))
        leaf = chat.leaf_id
        if played.raised is not None:
            played.again = chat.run(show=None)
            played.path_again = chat.path()
            chat.branch(leaf)
        played.later = chat.run("And now?", show=None)
        played.bodies = [request.body for request in server.requests]
        played.messages_later = played.bodies[-1]["messages"]


def _read(path: Path) -> tuple[list[StoredEntry], RunEnd | None]:
    store = DuckDBStore(path)
    try:
        return store.load_entries("s"), store.load_runs("s")[0][1]
    finally:
        store.close()


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Failure], Played]]:
    yield Player(tmp_path_factory.mktemp("failures"))


def text_of(entry: Any) -> str:
    return "".join(block.text for block in entry.blocks if block.type == "text")


def came_through(case: Failure, played: Played) -> bool:
    """Whether an answer, if only its beginning, is to be in the file."""
    if case.text_kept is None:  # that depends on timing: what was told is what must be there
        return any(event.text for event in played.run.events)
    return bool(case.text_kept or case.calls)


# -- what is stored --------------------------------------------------------------------------------


# B13 B16 B22
@each
def test_the_file_holds_the_input_and_what_came(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    roles = ["user", *(["assistant"] if came_through(case, played) else [])]
    roles += ["tool"] * len(case.calls) + (["assistant"] if case.calls else [])
    assert [row.role for row in played.rows] == roles
    parents = [row.parent_id for row in played.rows]
    assert parents == [None, *(row.id for row in played.rows)][:-1]


# B22
@each
def test_the_answer_holds_the_text_that_arrived_and_why_it_stopped(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)
    if not came_through(case, played):
        return

    answer = played.entries[1]
    told = "".join(event.text for event in played.run.events if event.step == 1)
    reply = answer.message.reply
    assert text_of(answer) == told
    assert case.text_kept in (None, told)
    if case.expected_reason is None:
        assert (reply.stop_reason, reply.error) == ("tool_calls" if case.calls else "stop", None)
    else:
        assert (reply.stop_reason, reply.error) == ("error", str(played.raised))
        assert played.rows[1].stop_reason == "error"


# B22
@pytest.mark.parametrize("case", WENT_WELL, ids=lambda case: case.name)
def test_thinking_calls_and_usage_are_stored_with_the_answer(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    answer = play(case).entries[1]

    thinking = "".join(block.text for block in answer.blocks if block.type == "thinking")
    assert thinking == case.thinking
    assert [(call.name, call.raw) for call in answer.message.tool_calls] == list(case.calls)
    usage = answer.message.reply.usage
    assert (usage.input_tokens, usage.output_tokens + usage.reasoning_tokens) == (11, 7)


# B14 B24
@each
def test_every_entry_that_was_told_is_in_the_file(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    told = [entry.id for event in played.run.events for entry in event.entries]
    stored = [row.id for row in played.rows]
    assert told == stored == [entry.id for entry in played.run.entries]
    assert [row.id for row in played.kept[: len(stored)]] == stored
    assert played.kept[: len(stored)] == played.rows


# B22
@each
def test_the_end_of_the_run_is_stored(case: Failure, play: Callable[[Failure], Played]) -> None:
    played = play(case)

    outcome = "done" if case.expected_reason is None else "error"
    error = None if played.raised is None else str(played.raised)
    assert played.end is not None
    assert (played.end.outcome, played.end.error) == (outcome, error)
    assert played.end.leaf_id == played.rows[-1].id


# -- what is raised and told -----------------------------------------------------------------------


# B15 B22
@each
def test_the_error_says_the_reason_and_carries_the_run(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    reason = None if played.raised is None else played.raised.reason
    status = None if played.raised is None else played.raised.status
    assert (reason, status) == (case.expected_reason, case.status)
    assert played.run.outcome == ("done" if played.raised is None else "error")
    assert played.run.error == (None if played.raised is None else str(played.raised))


# B22 B69
@each_failed
def test_the_error_is_one_line_that_names_the_model_and_no_key(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    text = str(play(case).raised)

    assert "openai/fake" in text
    assert "\n" not in text and KEY not in text


# B25
@each
def test_each_retry_is_an_event_and_the_provider_is_asked_so_often(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    retries = [event for event in played.run.events if event.type == "retry"]
    assert [event.attempt for event in retries] == list(range(1, case.requests))
    assert all(event.error and not event.entries for event in retries)
    assert played.requests == case.requests + bool(case.calls)


# B14
@each
def test_the_events_begin_with_the_receipt_and_end_with_the_end(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    events = [event.type for event in play(case).run.events]

    last = "agent_end" if case.expected_reason is None else "agent_error"
    assert events[:3] == ["agent_start", "step_start", "message_start"]
    assert events[-1] == last
    assert (events.count("agent_end"), events.count("agent_error")).count(0) == 1


# -- what comes next -------------------------------------------------------------------------------


def assert_valid(messages: list[dict[str, Any]]) -> None:
    """Check what every provider asks of a request."""
    assert messages[-1]["role"] in ("user", "tool")
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
        waiting += [call["id"] for call in message.get("tool_calls") or ()]
        assert message.get("tool_calls") or _is_said(message.get("content"))
    assert waiting == []


def _is_said(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(part.get("text", "x").strip() for part in content)


# B22 B44 B45
@each
def test_every_later_request_is_valid(case: Failure, play: Callable[[Failure], Played]) -> None:
    played = play(case)

    assert len(played.bodies) == (1 if played.raised is None else 2)
    for body in played.bodies:
        assert_valid(body["messages"])


# B22
@each_failed
def test_a_run_without_input_asks_again_beside_what_failed(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    assert played.again is not None
    assert (played.again.outcome, played.again.text) == ("done", ANSWERED)
    assert [message["role"] for message in played.bodies[0]["messages"]] == ["user"]
    assert [text_of(entry) for entry in played.path_again] == ["Hello", ANSWERED]


# B22
@each
def test_a_later_turn_is_answered_and_sees_what_came(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    assert played.later is not None
    assert (played.later.outcome, played.later.text) == ("done", ANSWERED)
    said = [m.get("content") for m in played.messages_later if m["role"] != "tool"]
    came = [text_of(entry) for entry in played.entries[1:] if entry.role == "assistant"]
    assert [text for text in said if text] == ["Hello", *filter(None, came), "And now?"]


# B27 B28
@pytest.mark.parametrize("case", CALLING, ids=lambda case: case.name)
def test_calls_are_run_once_each_and_answered_in_their_order(
    case: Failure, play: Callable[[Failure], Played]
) -> None:
    played = play(case)

    calls = [call.id for call in played.entries[1].message.tool_calls]
    results = [entry.message.tool_results[0] for entry in played.entries[2:-1]]
    assert [result.call_id for result in results] == calls
    assert not any(result.is_error for result in results)
    assert played.run.text == "Done."


def test_every_kind_is_played() -> None:
    assert (len(FAILED), len(WENT_WELL), len(CALLING)) == (25, 8, 2)
