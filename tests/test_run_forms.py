"""B15, B17: the forms in which a run is followed, or not followed at all."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import aclosing

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


def opened(store: Store, *steps: object, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*steps), **options)  # type: ignore[arg-type]


def live(chat: nb.Session, text: str = "Hello", **options: object) -> nb.Run:
    return chat.run(text, wait=False, show=None, **options)  # type: ignore[arg-type]


# -- B15: every form gives the same ----------------------------------------------------------------


async def read_async(run: nb.Run) -> list[str]:
    return [event.type async for event in run]


async def stream_async(run: nb.Run) -> str:
    return "".join([piece async for piece in run.stream()])


async def await_run(run: nb.Run) -> nb.Run:
    return await run


FORMS: dict[str, Callable[[nb.Run], object]] = {
    "for": lambda run: [event.type for event in run],
    "stream": lambda run: "".join(run.stream()),
    "wait": lambda run: run.wait(),
    "async for": lambda run: asyncio.run(read_async(run)),
    "async stream": lambda run: asyncio.run(stream_async(run)),
    "await": lambda run: asyncio.run(await_run(run)),
}


def expected(form: str, run: nb.Run) -> object:
    if "for" in form:
        return [event.type for event in run.events]
    return run.text if "stream" in form else run


# B15
@pytest.mark.parametrize("form", FORMS)
def test_each_form_follows_a_live_run_to_its_end(store: Store, form: str) -> None:
    run = live(opened(store, "A few words."))

    seen = FORMS[form](run)

    assert run.outcome == "done"
    assert seen == expected(form, run)


# B15
@pytest.mark.parametrize("form", FORMS)
def test_each_form_works_again_after_the_end(form: str) -> None:
    run = opened(MemoryStore(), "A few words.").run("Hello", show=None)

    assert FORMS[form](run) == FORMS[form](run) == expected(form, run)


# B15 B22
@pytest.mark.parametrize("form", FORMS)
def test_each_form_raises_what_ended_a_run_and_carries_it(form: str) -> None:
    run = live(opened(MemoryStore(), ["Half", nb.errors.ModelError("the line broke")]))

    with pytest.raises(nb.errors.ModelError, match="the line broke") as caught:
        FORMS[form](run)

    assert caught.value.run is run


# B15
def test_run_blocks_and_returns_the_finished_run(store: Store) -> None:
    run = opened(store, "Yes.").run("Is it?", show=None)

    assert (run.is_done, run.outcome, run.text, run.error) == (True, "done", "Yes.", None)
    assert (run.model, len(run.messages), len(run.entries)) == ("scripted", 2, 2)
    assert run.seconds is not None
    assert run.seconds >= 0


# B15
def test_a_live_run_is_returned_before_the_model_has_answered(store: Store) -> None:
    go = threading.Event()

    run = live(opened(store, [go, "Yes."]))

    assert (run.is_done, run.outcome) == (False, None)
    go.set()
    assert run.wait().text == "Yes."


# B15
def test_text_is_read_while_the_answer_goes_on(store: Store) -> None:
    go = threading.Event()
    pieces = iter(live(opened(store, ["Hel", go, "lo"])).stream())

    first = next(pieces)
    go.set()

    assert (first, list(pieces)) == ("Hel", ["lo"])


# B15
def test_a_blocking_run_works_under_a_running_event_loop(store: Store) -> None:
    chat = opened(store, "one", "two")

    async def cell() -> list[str]:
        return [chat.run(question, show=None).text for question in ("1", "2")]

    assert asyncio.run(cell()) == ["one", "two"]


# B15
def test_a_live_run_goes_on_while_the_callers_loop_stands_still(store: Store) -> None:
    chat = opened(store, "one")

    async def cell() -> str:
        return live(chat).wait().text

    assert asyncio.run(cell()) == "one"


# B15
def test_one_run_is_followed_from_two_event_loops_and_a_thread() -> None:
    go = threading.Event()
    run = live(opened(MemoryStore(), ["Hel", go, "lo"]))
    texts: list[str] = []
    readers = [
        threading.Thread(target=lambda: texts.append(asyncio.run(stream_async(run)))),
        threading.Thread(target=lambda: texts.append(asyncio.run(stream_async(run)))),
        threading.Thread(target=lambda: texts.append("".join(run.stream()))),
    ]
    for reader in readers:
        reader.start()

    go.set()
    for reader in readers:
        reader.join()

    assert texts == ["Hello"] * 3


# B15
def test_a_loop_over_questions_just_works(store: Store) -> None:
    chat = opened(store, "a", "b", "c")

    answers = [chat.run(question, show=None).text for question in ("1", "2", "3")]

    assert answers == ["a", "b", "c"]
    assert len(chat.path()) == 6


# B15
def test_waiting_with_a_deadline_leaves_the_run_alone() -> None:
    go = threading.Event()
    run = live(opened(MemoryStore(), [go, "Yes."]))

    with pytest.raises(TimeoutError, match="still goes on after"):
        run.wait(timeout_s=0.01)

    go.set()
    assert run.wait().outcome == "done"


# -- B17: no reader is needed ----------------------------------------------------------------------


# B17
def test_an_unread_run_is_stored_to_its_end(store: Store) -> None:
    after = threading.Event()

    class Tell:
        def after_step(self, message: object, results: object) -> None:
            after.set()

    live(opened(store, ["word "] * 2000, hooks=Tell()))

    assert after.wait(20)
    assert [entry.role for entry in store.load_entries("s")] == ["user", "assistant"]


# B17
def test_an_unread_run_is_freed_when_it_is_dropped() -> None:
    chat = opened(MemoryStore(), "Yes.")
    dropped = weakref.ref(live(chat))
    while (run := dropped()) is not None and not run.is_done:
        run.wait()
    del run

    chat.run("And now?", show=None)  # the thread has let go of the first run by now
    gc.collect()

    assert dropped() is None


# B17
def test_breaking_out_of_the_iteration_does_not_stop_the_run(store: Store) -> None:
    go = threading.Event()
    run = live(opened(store, ["Hel", go, "lo"]))

    for event in run:
        if event.type == "message_update":
            break
    go.set()

    assert (run.wait().text, run.outcome) == ("Hello", "done")


# B17
def test_breaking_out_of_an_async_iteration_does_not_stop_the_run(store: Store) -> None:
    go = threading.Event()
    run = live(opened(store, ["Hel", go, "lo"]))

    async def cell() -> None:
        async with aclosing(run.__aiter__()) as events:
            async for event in events:
                if event.type == "message_update":
                    return

    asyncio.run(cell())
    go.set()

    assert (run.wait().text, run.outcome) == ("Hello", "done")


# B17
def test_a_reader_that_fails_does_not_stop_the_run(store: Store) -> None:
    go = threading.Event()
    run = live(opened(store, ["Hel", go, "lo"]))

    with pytest.raises(ZeroDivisionError):
        for event in run:
            if event.type == "message_update":
                _ = 1 / 0
    go.set()

    assert run.wait().text == "Hello"


# B17
def test_a_reader_that_left_with_its_loop_does_not_hold_up_the_run() -> None:
    go = threading.Event()
    run = live(opened(MemoryStore(), ["Hel", go, "lo"]))
    loop = asyncio.new_event_loop()
    events = run.__aiter__()
    loop.run_until_complete(anext(events))  # type: ignore[arg-type]
    loop.close()  # as when a script's loop ends under an iteration

    go.set()

    assert run.wait().text == "Hello"
    assert [event.type for event in run][-1] == "agent_end"
