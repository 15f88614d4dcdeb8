"""What the tests of cancelling share: a gate to hold code at, and what a cancelled run leaves."""

from __future__ import annotations

import threading

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store

WAIT_S = 20  # no scripted wait outlives a test that failed


class Gate:
    """A place in code of the test that says when it is reached, and waits to be let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()

    def hold(self) -> None:
        self.reached.set()
        self.go.wait(WAIT_S)


def opened(store: Store, model: ScriptedModel, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=model, **options)  # type: ignore[arg-type]


def live(chat: nb.Session, text: str = "Hello") -> nb.Run:
    return chat.run(text, wait=False, show=None)


def ended(run: nb.Run) -> nb.Run:
    """Wait for the end of a cancelled run, which is no failure."""
    return run.wait(timeout_s=WAIT_S)


def results(run: nb.Run) -> list[tuple[str, bool, str]]:
    return [(r.call_id, r.is_error, r.text) for m in run.messages for r in m.tool_results]


def assert_aborted(store: Store, run: nb.Run) -> None:
    """Check that run, record and entries agree, and that the session can go on."""
    assert run.outcome == "aborted"
    assert [entry.id for entry in run.entries] == [entry.id for entry in store.load_entries("s")]
    assert [end.outcome for _, end in store.load_runs("s") if end] == ["aborted"]
    last = run.events[-1]
    assert (last.type, last.outcome) == ("agent_error", "aborted")
    model = ScriptedModel("Going on.")
    again = nb.open("s", store=store, model=model)
    assert again.leaf_id == run.leaf_id
    assert again.run("Go on.", show=None).text == "Going on."
    seen = [m.role for m in model.requests[0].messages]
    called = [c.id for m in model.requests[0].messages for c in m.tool_calls]
    answered = [r.call_id for m in model.requests[0].messages for r in m.tool_results]
    assert (called, seen[-1]) == (answered, "user")
