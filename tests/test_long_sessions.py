"""Long linear sessions: nothing recurses, and no verb's cost grows faster than the session."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore

T = TypeVar("T")

SHORT, LONG = 10_000, 100_000
MOST = 4 * LONG / SHORT  # linear is 10, quadratic 100; the collector's work comes and goes
LEAST_S = 0.02  # below it a verb's time is that of its surroundings


def open_at(store: Store | Path) -> nb.Session:
    return nb.open("long", store=store, model=ScriptedModel("Answered."))


def fill(store: Store | Path, count: int) -> None:
    """Store a session of so many entries, each under the one before."""
    turns = [(nb.user(f"Q{n}"), nb.assistant(f"A{n}")) for n in range(count // 2)]
    with open_at(store) as chat:
        chat.append(*(entry for turn in turns for entry in turn))


class Timed:
    """The processor time that each verb took in a session of so many entries."""

    def __init__(self, store: Store | Path, count: int) -> None:
        self.seconds: dict[str, float] = {}
        self._time("append", lambda: fill(store, count))
        chat = self._time("open", lambda: open_at(store))
        for verb in ("path", "messages", "transcript", "tree", "leaves", "entries", "context"):
            self._time(verb, getattr(chat, verb))
        self._time("preview", lambda: chat.preview("Next?"))
        self._time("append one", lambda: chat.append(nb.user("Next?")))
        self._time("run", lambda: chat.run("Well?", show=None))
        self._time("rerun", lambda: chat.rerun(show=None))
        self._time("branch", lambda: chat.branch(5))
        self._time("branch back", lambda: chat.branch(count))
        self._time("show", chat._repr_html_)
        self._time("compact", chat.compact)
        with self._time("fork", lambda: chat.fork("child", at=count)) as child:
            self._time("the fork's messages", child.messages)
        chat.close()

    def _time(self, verb: str, action: Callable[[], T]) -> T:
        began = time.process_time()
        result = action()
        self.seconds[verb] = time.process_time() - began
        return result


# B39 B41
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["memory", "duckdb"])
def test_no_verb_costs_more_than_in_proportion_to_the_session(kind: str, tmp_path: Path) -> None:
    def timed(count: int) -> dict[str, float]:
        store = MemoryStore() if kind == "memory" else tmp_path / f"{count}.duckdb"
        return Timed(store, count).seconds

    timed(100)  # what is done once, such as imports
    short, long = timed(SHORT), timed(LONG)

    grown = {verb: long[verb] / max(short[verb], LEAST_S) for verb in long}
    assert {verb: ratio for verb, ratio in grown.items() if ratio > MOST} == {}


def whole(chat: nb.Session) -> dict[str, Any]:
    """Return how much of a session each view shows."""
    return {
        "path": len(chat.path()),
        "messages": len(chat.messages()),
        "transcript": len(chat.transcript()),
        "tree": len(chat.tree()),
        "entries": len(chat.entries()),
        "leaves": len(chat.leaves()),
        "depth": chat.tree().depth(chat.leaf_id),
    }


# B41
@pytest.mark.parametrize(
    "count",
    [SHORT, pytest.param(LONG, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_a_long_session_is_whole_in_every_view(store: Store, count: int) -> None:
    fill(store, count)

    with open_at(store) as chat:
        shown = whole(chat)

    assert shown == {**dict.fromkeys(shown, count), "leaves": 1}


# B13 B41
def test_a_run_in_a_long_session_sends_all_of_it(store: Store) -> None:
    fill(store, SHORT)
    model = ScriptedModel("Answered.")

    with nb.open("long", store=store, model=model) as chat:
        run = chat.run("Well?", show=None)

    sent = model.requests[0].messages
    assert (len(sent), sent[0].text, sent[-1].text) == (SHORT + 1, "Q0", "Well?")
    assert [entry.n for entry in run.entries] == [SHORT + 1, SHORT + 2]


# B48 B41
def test_a_fork_of_a_long_session_is_equal_to_it(store: Store) -> None:
    fill(store, SHORT)

    with open_at(store) as chat, chat.fork("child") as child:
        assert child.messages() == chat.messages()
        assert whole(child) == whole(chat)


# B39 B41
def test_branching_and_showing_a_long_session_reach_its_ends(store: Store) -> None:
    fill(store, SHORT)

    with open_at(store) as chat:
        chat.branch(1)
        at_first = len(chat.path())
        chat.branch(SHORT)
        html = chat._repr_html_()

    assert (at_first, f"A{SHORT // 2 - 1}" in html) == (1, True)
