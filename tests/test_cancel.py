"""B23: cancelling a run in the model, in its tools and by its readers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

import nbdurable as nb
from nbdurable.models.base import RetryNotice
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from tests.cancelling import WAIT_S, Gate, assert_aborted, ended, live, opened, results


@pytest.fixture
def gate() -> Gate:
    return Gate()


# -- in the model ----------------------------------------------------------------------------------


# B23 B22
def test_a_cancel_in_mid_text_keeps_the_part_as_aborted(store: Store) -> None:
    model = ScriptedModel(["Half an", threading.Event()])
    run = live(opened(store, model))
    next(iter(run.stream()))

    run.cancel()

    assert ended(run).text == "Half an"
    reply = run.messages[-1].reply
    assert reply is not None
    assert (reply.stop_reason, reply.error) == ("aborted", "the run was cancelled")
    model.wait_for_cancel()
    assert_aborted(store, run)


# B23 B22
def test_a_cancel_before_output_keeps_only_the_input(store: Store) -> None:
    model = ScriptedModel([threading.Event()])
    run = live(opened(store, model))
    model.wait_for_request()

    run.cancel()

    assert ended(run).error == "the run was cancelled"
    assert [message.role for message in run.messages] == ["user"]
    assert_aborted(store, run)


# B23 B25
def test_a_cancel_in_the_wait_for_a_retry_ends_it(store: Store) -> None:
    model = ScriptedModel([RetryNotice(1, 60.0, "429"), threading.Event(), "Never."])
    run = live(opened(store, model))
    next(event for event in run if event.type == "retry")

    run.cancel()

    assert [message.role for message in ended(run).messages] == ["user"]
    assert (model.call_count, model.cancelled) == (1, 1)
    assert_aborted(store, run)


# B23
def test_a_cancel_at_once_still_stores_the_input(store: Store) -> None:
    model = ScriptedModel([threading.Event()])
    run = live(opened(store, model))

    run.cancel()

    assert [message.text for message in ended(run).messages] == ["Hello"]
    assert_aborted(store, run)


# B23
def test_a_cancel_after_the_end_changes_nothing(store: Store) -> None:
    chat = opened(store, ScriptedModel("Yes."))
    run = chat.run("Is it?", show=None)

    run.cancel()

    assert (run.wait().outcome, run.events[-1].type) == ("done", "agent_end")
    assert chat.run("And now?", show=None).text == "Yes."


# B23
def test_a_cancel_while_a_message_is_being_stored_does_not_tear_it(
    store: Store, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.append
    model = ScriptedModel("Whole.")
    chat = opened(store, model)

    def slow(self: Store, *args: object, **given: object) -> object:
        if given.get("end") is not None:
            gate.hold()
        return real(*args, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store), "append", slow)
    run = live(chat)
    gate.reached.wait(WAIT_S)

    run.cancel()
    gate.go.set()

    assert (ended(run).outcome, run.text) == ("done", "Whole.")
    assert [end.outcome for _, end in store.load_runs("s") if end] == ["done"]


# case 24
# B22 B15
def test_an_interrupt_in_the_model_passes_on_and_keeps_the_part(store: Store) -> None:
    model = ScriptedModel(["one ", "two ", "three ", KeyboardInterrupt()], "Going on.")
    chat = opened(store, model)

    with pytest.raises(KeyboardInterrupt):
        chat.run("Count.", show=None)

    entries = store.load_entries("s")
    assert [(e.role, e.preview, e.stop_reason) for e in entries] == [
        ("user", "Count.", None),
        ("assistant", "one two three", "aborted"),
    ]
    assert chat.leaf_id == entries[-1].id
    assert chat.run("Go on.", show=None).text == "Going on."
    assert [m.text for m in model.requests[1].messages][1] == "one two three "


# -- in tools --------------------------------------------------------------------------------------


# B23
def test_a_cancel_in_a_sync_tool_starts_no_other_and_drops_its_result(
    store: Store, gate: Gate
) -> None:
    ran: list[str] = []

    def slow() -> str:
        ran.append("slow")
        gate.hold()
        return "too late"

    def other() -> str:
        ran.append("other")
        return "other"

    model = ScriptedModel(calls(("slow", {}), ("other", {}), ("other", {})))
    run = live(opened(store, model, tools=[slow, other]))
    gate.reached.wait(WAIT_S)

    run.cancel()
    ended(run)
    gate.go.set()

    (first, *rest) = results(run)
    assert (ran, first[:2]) == (["slow"], ("call_1_0", True))
    assert "the outcome is unknown" in first[2]
    assert rest == [
        (call, True, "not started: the run was cancelled") for call in ("call_1_1", "call_1_2")
    ]
    assert [event.call_id for event in run.events if event.type == "tool_start"] == ["call_1_0"]
    assert_aborted(store, run)


# B23
def test_a_cancel_in_an_async_tool_stops_it(store: Store, gate: Gate) -> None:
    stopped = threading.Event()

    async def slow() -> str:
        gate.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    run = live(opened(store, ScriptedModel(calls(("slow", {}))), tools=[slow]))
    gate.reached.wait(WAIT_S)

    run.cancel()

    assert stopped.wait(WAIT_S)
    assert "the outcome is unknown" in results(ended(run))[0][2]
    assert_aborted(store, run)


# B23
def test_an_async_tool_that_defies_its_cancel_is_not_believed(store: Store, gate: Gate) -> None:
    async def slow() -> str:
        gate.reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "I am done all the same"
        return "never"

    run = live(opened(store, ScriptedModel(calls(("slow", {}))), tools=[slow]))
    gate.reached.wait(WAIT_S)

    run.cancel()

    assert "the outcome is unknown" in results(ended(run))[0][2]


# B23 B28
def test_a_cancel_in_parallel_tools_answers_each_in_call_order(store: Store, gate: Gate) -> None:
    at_work = threading.Barrier(3)

    @nb.tool(parallel=True)
    def slow(n: int) -> int:
        at_work.wait(WAIT_S)
        gate.hold()
        return n

    @nb.tool(parallel=True)
    def quick() -> str:
        return "quick"

    model = ScriptedModel(calls(("quick", {}), ("slow", {"n": 1}), ("slow", {"n": 2})))
    run = live(opened(store, model, tools=[slow, quick]))
    at_work.wait(WAIT_S)
    next(event for event in run if event.type == "tool_end")

    run.cancel()
    ended(run)
    gate.go.set()

    assert [(call, is_error) for call, is_error, _ in results(run)] == [
        ("call_1_0", False),
        ("call_1_1", True),
        ("call_1_2", True),
    ]
    assert_aborted(store, run)


# B23
def test_a_tool_that_cancels_its_own_run_is_answered_too(store: Store) -> None:
    runs: list[nb.Run] = []
    begun = threading.Event()

    def stop() -> str:
        begun.wait(WAIT_S)
        runs[0].cancel()
        return "stopped"

    runs.append(live(opened(store, ScriptedModel(calls(("stop", {}))), tools=[stop])))
    begun.set()

    assert [call for call, _, _ in results(ended(runs[0]))] == ["call_1_0"]
    assert_aborted(store, runs[0])


# -- by its readers --------------------------------------------------------------------------------


# B17 B23
def test_a_cancelled_task_that_awaits_cancels_the_run_and_sees_it_stored(store: Store) -> None:
    chat = opened(store, ScriptedModel(["Half", threading.Event()], "Next."))
    run = live(chat)

    async def cell() -> str:
        async def wait() -> nb.Run:
            return await run

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)  # it waits by now
        async for event in run:
            if event.type == "message_update":
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return chat.run("Next?", show=None).text

    assert asyncio.run(cell()) == "Next."
    assert (run.outcome, run.text) == ("aborted", "Half")


# B17 B15
@pytest.mark.parametrize("form", ["run", "for"])
def test_an_interrupt_reaches_a_blocking_run_under_a_running_loop(store: Store, form: str) -> None:
    go = threading.Event()

    def interrupt(_: object) -> list[threading.Event]:
        while form == "for" and signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            threading.Event().wait(0.001)  # a loop's body is the task's own: wait for the reader
        os.kill(os.getpid(), signal.SIGINT)
        return [go]

    chat = opened(store, ScriptedModel(interrupt))

    async def cell() -> None:
        if form == "run":
            chat.run("Say.", show=None)
        else:
            for _ in live(chat):
                pass

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())

    assert [end.outcome for _, end in store.load_runs("s") if end] == ["aborted"]
    assert signal.getsignal(signal.SIGINT) is before


# B17 B51
def test_an_interrupt_of_a_compaction_under_a_running_loop_changes_nothing(store: Store) -> None:
    def interrupt(_: object) -> list[threading.Event]:
        os.kill(os.getpid(), signal.SIGINT)
        return [threading.Event()]

    chat = opened(store, ScriptedModel("Answer.", interrupt, "Next."))
    chat.run("Hello", show=None)

    async def cell() -> None:
        chat.compact()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())

    assert [entry.n for entry in chat.entries()] == [1, 2]
    assert chat.run("Go on.", show=None).text == "Next."


# B17 B22
def test_a_cancelled_reader_leaves_only_when_the_part_is_stored(
    store: Store, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.append
    run = live(opened(store, ScriptedModel(["Half", threading.Event()])))
    next(iter(run.stream()))

    def slow(self: Store, *args: object, **given: object) -> object:
        gate.hold()
        return real(*args, **given)  # type: ignore[arg-type]

    async def cell() -> bool:
        async def wait() -> nb.Run:
            return await run

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)  # it waits by now
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, gate.go.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        return run.is_done

    monkeypatch.setattr(type(store), "append", slow)

    assert asyncio.run(cell())
    assert run.text == "Half"
