"""B24: SIGKILL at any moment of a run: what was told is stored, and the next prompt is valid."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore

# Runs turns for ever, or until it kills itself; says each event on its output, from the very
# thread that stored what the event tells of, before any reader is woken.
CHILD = """
import json, os, signal, sys
import nbdurable as nb
from nbdurable.models.base import RetryNotice
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.run import Run

path, kind, nth = sys.argv[1], sys.argv[2], int(sys.argv[3])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def say(run, event, emit=Run._emit):
    global nth
    emit(run, event)
    line = {"type": event.type, "ids": [entry.id for entry in event.entries]}
    os.write(1, json.dumps(line).encode() + b"\\n")
    nth -= event.type == kind
    if event.type == kind and nth == 0:
        die()

Run._emit = say

def add(a: int, b: int) -> int:
    "Add."
    return a + b

def slow(report) -> str:
    "Work."
    report("half way")
    if kind == "in_tool":
        die()
    return "worked"

@nb.tool(parallel=True)
def look(n: int) -> int:
    "Look."
    if kind == "in_parallel" and n == 2:
        die()
    return n

def call_steps():
    yield (RetryNotice(1, 0.0, "429"), *calls(("add", {"a": 1, "b": 2}), ("slow", {})))
    yield calls(("look", {"n": 1}), ("look", {"n": 2}), ("look", {"n": 3}))
    yield "This is the answer in several words."

steps = list(call_steps())

class Script(ScriptedModel):
    def _step(self, number, request):
        from nbdurable.models.scripted import _script
        return _script(steps[(number - 1) % 3])

chat = nb.open("s", store=path, model=Script(), tools=[add, slow, look])
while True:
    chat.run(nb.meta("Be brief."), "Work on it.", show=None)
"""

KINDS = [
    "agent_start",
    "step_start",
    "message_start",
    "retry",
    "message_update",
    "message_end",
    "tool_start",
    "tool_update",
    "tool_end",
    "step_end",
    "agent_end",
]
DEATHS = [*((kind, 1) for kind in KINDS), *((kind, 2) for kind in ("message_end", "tool_end"))]


def child(path: Path, kind: str = "never", nth: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), kind, str(nth)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(lines: list[str]) -> list[str]:
    """Return the ids of all whole lines, in order."""
    return [
        entry_id for line in lines if line.endswith("\n") for entry_id in json.loads(line)["ids"]
    ]


def died(path: Path, kind: str, nth: int = 1) -> list[str]:
    """Let a child kill itself; return the ids that it told of."""
    with child(path, kind, nth) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines, errors = process.stdout.readlines(), process.stderr.read()
    assert process.returncode == -signal.SIGKILL, errors
    return told(lines)


def reopened(path: Path, model: ScriptedModel) -> nb.Session:
    """Open the session again; what it says of a cut answer is no matter here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "an answer in session 's' was cut")
        return nb.open("s", store=path, model=model)


def assert_whole(path: Path, ids: list[str]) -> None:
    """Check what is in the file: all that was told, and no append that is half there."""
    store = DuckDBStore(path)
    entries, runs = store.load_entries("s"), store.load_runs("s")
    store.close()
    stored = [entry.id for entry in entries]
    assert [entry_id for entry_id in stored if entry_id in set(ids)] == ids
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    parents = [entry.parent_id for entry in entries]
    assert parents == [None, *stored[:-1]][: len(stored)]
    assert all(len(run.input_ids) == 2 and set(run.input_ids) <= set(stored) for run, _ in runs)
    assert {entry.run_id for entry in entries} <= {run.id for run, _ in runs}


def assert_goes_on(path: Path) -> None:
    """Check that the session runs on without retyping, and that its prompt is valid."""
    model = ScriptedModel("Going on.")
    with reopened(path, model) as chat:
        before = chat.path()
        last = before[-1] if before else None
        is_answered = (
            isinstance(last, nb.MessageEntry)
            and last.role == "assistant"
            and last.message.stop_reason == "stop"
        )
        run = chat.run(*(["Go on."] if is_answered or not before else []), show=None)
        assert run.text == "Going on."
    messages = model.requests[0].messages
    assert messages[-1].role in ("user", "tool")
    if before:
        assert [m.text for m in messages][:2] == ["Be brief.", "Work on it."]
    for at, message in enumerate(messages):
        called = [call.id for call in message.tool_calls]
        answers = messages[at + 1 : at + 1 + len(called)]
        assert [r.call_id for answer in answers for r in answer.tool_results] == called


# B24
@pytest.mark.parametrize(("kind", "nth"), DEATHS)
def test_a_kill_at_an_event_keeps_what_was_told(tmp_path: Path, kind: str, nth: int) -> None:
    path = tmp_path / "killed.duckdb"

    ids = died(path, kind, nth)

    assert ids
    assert_whole(path, ids)
    assert_goes_on(path)


# B24 B23
@pytest.mark.parametrize(("kind", "answered"), [("in_tool", 1), ("in_parallel", 2)])
def test_a_kill_in_a_tool_keeps_its_call_and_answers_it_in_the_next_prompt(
    tmp_path: Path, kind: str, answered: int
) -> None:
    path = tmp_path / "killed.duckdb"

    ids = died(path, kind)

    assert_whole(path, ids)
    model = ScriptedModel("Going on.")
    with reopened(path, model) as chat:
        assert chat.run(show=None).text == "Going on."
    results = [r for m in model.requests[0].messages for r in m.tool_results]
    assert [r.is_error for r in results][:answered] == [False] * answered
    assert results[-1].is_error


# B24
def test_a_killed_run_is_interrupted_and_can_be_continued(tmp_path: Path) -> None:
    path = tmp_path / "killed.duckdb"
    died(path, "tool_end")

    with reopened(path, ScriptedModel("Going on.")) as chat:
        (killed,) = chat.runs()
        run = chat.run(show=None)

        assert (killed.outcome, killed.is_done) == ("interrupted", True)
        assert run.start_leaf_id == killed.leaf_id
        assert [each.outcome for each in chat.runs()] == ["interrupted", "done"]


# B24
def test_a_run_whose_end_was_told_is_done_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "killed.duckdb"
    died(path, "agent_end")

    with reopened(path, ScriptedModel("x")) as chat:
        assert [run.outcome for run in chat.runs()] == ["done"]


# B24
def test_kills_at_random_moments_lose_nothing_that_was_told(tmp_path: Path) -> None:
    path = tmp_path / "killed.duckdb"
    chance = random.Random(24)
    ids: list[str] = []

    for _ in range(8):
        with child(path) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randint(1, 120))]
            assert all(lines), process.stderr.read() if process.stderr else ""
            process.kill()
            lines += process.stdout.readlines()
        ids += told(lines)
        with reopened(path, ScriptedModel("x")) as chat:
            stored = [entry.id for entry in chat.entries()]
            assert [entry_id for entry_id in stored if entry_id in set(ids)] == ids

    assert_whole(path, ids)
    assert_goes_on(path)
