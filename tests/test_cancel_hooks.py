"""B23: cancelling a run that waits for a person or for a hook."""

from __future__ import annotations

import asyncio

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from tests.cancelling import WAIT_S, Gate, assert_aborted, ended, live, opened, results


@pytest.fixture
def gate() -> Gate:
    return Gate()


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
