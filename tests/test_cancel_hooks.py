"""B23: cancelling a run that waits for a person or for a hook."""

from __future__ import annotations

import asyncio
import threading

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
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


@pytest.fixture
def gate() -> Gate:
    return Gate()


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


# B23 B29
def test_a_cancel_in_a_question_starts_no_tool_and_records_no_answer(store: Store) -> None:
    ran: list[int] = []

    @nb.tool(confirm=True)
    def pay() -> str:
        ran.append(1)
        return "paid"

    run = live(opened(store, ScriptedModel(calls(("pay", {}))), tools=[pay]))
    with run._changed:  # a reader would answer, so none is used
        assert run._changed.wait_for(run._has_question, WAIT_S)
    run.cancel()
    with run._changed:
        assert run._changed.wait_for(lambda: run.is_done, WAIT_S)

    assert (ran, results(run)) == (
        [],
        [("call_1_0", True, "not started: the run was cancelled")],
    )
    assert store.load_annotations("s") == []
    assert_aborted(store, run)


def hanging(name: str, gate: Gate, *, is_async: bool) -> object:
    """Return hooks of which `name` hangs."""

    class Hanging:
        pass

    def hold(self: object, *args: object) -> None:
        gate.hold()

    async def hold_async(self: object, *args: object) -> None:
        gate.reached.set()
        await asyncio.Event().wait()

    setattr(Hanging, name, hold_async if is_async else hold)
    return Hanging()


HOOKS = ["before_model", "before_tool", "after_tool", "after_step", "before_stop"]


# B23 B32
@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_cancel_does_not_wait_for_a_hook(
    store: Store, gate: Gate, name: str, is_async: bool
) -> None:
    ran: list[int] = []

    def note() -> str:
        ran.append(1)
        return "noted"

    model = ScriptedModel("Done." if name == "before_stop" else calls(("note", {})))
    hooks = hanging(name, gate, is_async=is_async)
    run = live(opened(store, model, tools=[note], hooks=hooks))
    gate.reached.wait(WAIT_S)

    run.cancel()
    ended(run)
    gate.go.set()

    assert (len(ran), model.call_count) == (
        int(name in ("after_tool", "after_step")),
        int(name != "before_model"),
    )
    assert_aborted(store, run)


# B23 B32
def test_a_result_that_a_cancelled_hook_did_not_pass_is_not_stored(
    store: Store, gate: Gate
) -> None:
    def read() -> str:
        return "the secret"

    hooks = hanging("after_tool", gate, is_async=True)
    run = live(opened(store, ScriptedModel(calls(("read", {}))), tools=[read], hooks=hooks))
    gate.reached.wait(WAIT_S)

    run.cancel()

    assert "the outcome is unknown" in results(ended(run))[0][2]
    assert "secret" not in store.load_entries("s")[-1].payload
