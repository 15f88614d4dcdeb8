"""Blocking code beside an event loop: the user's in threads of its own, ours in ones that stay.

The one idea: code may hang for ever, so it gets no place in a pool that others wait for and that
the interpreter joins at its exit. To start a thread makes the loop wait until that one has its
turn; what comes several times in a run goes to one that has nothing to do, if there is any.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[], Callable[[], None]]  # what it returns tells who waits for it

_IDLE_S = 10.0  # after which a worker without work ends
_idle: list[queue.SimpleQueue[Work]] = []  # one per worker that waits for work


async def in_thread(fn: Callable[[], T], name: str = "nbdurable-call") -> T:
    """Call `fn` in its own daemon thread, in a copy of this context, and return its value.

    Cancelling the waiting task leaves the thread behind; what it still gives is dropped.
    """
    return await _outcome(fn, partial(_start, name=name))


async def in_worker(fn: Callable[[], T]) -> T:
    """Call `fn` as `in_thread` does, in a thread that is used again.

    Not for code of the user, which may leave something behind in its thread.
    """
    return await _outcome(fn, _hand_over)


async def _outcome(fn: Callable[[], T], begin: Callable[[Work], None]) -> T:
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[list[T], BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: list[T], error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((value, error))

    def work() -> Callable[[], None]:
        value: list[T] = []
        error: BaseException | None = None
        try:
            value.append(context.run(fn))
        except BaseException as exc:  # an exit asked for here is the caller's to judge
            error = exc
        return partial(call_soon, loop, settle, value, error)

    begin(work)
    value, error = await outcome
    if error is not None:
        raise error
    return value[0]


def _start(work: Work, name: str) -> None:
    def run() -> None:
        work()()

    if not _is_started(threading.Thread(target=run, name=name, daemon=True)):
        run()


def _hand_over(work: Work) -> None:
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = queue.SimpleQueue()
        worker = threading.Thread(
            target=_serve, args=(inbox,), name="nbdurable-worker", daemon=True
        )
        if not _is_started(worker):
            work()()
            return
    inbox.put(work)


def _is_started(thread: threading.Thread) -> bool:
    """Start a thread; return False at the exit of Python 3.12, when the last answers are stored."""
    try:
        thread.start()
    except RuntimeError as exc:
        if "shutdown" not in str(exc):
            raise
        return False
    return True


def _serve(inbox: queue.SimpleQueue[Work]) -> None:
    while True:
        try:
            work = inbox.get(timeout=_IDLE_S)
        except queue.Empty:
            if _is_removed(inbox):
                return
            continue  # work for it is on its way
        tell = work()
        _idle.append(inbox)  # so that who is told finds it
        tell()
        del work, tell  # what they hold is not kept until there is more


def _is_removed(inbox: queue.SimpleQueue[Work]) -> bool:
    try:
        _idle.remove(inbox)
    except ValueError:
        return False
    return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # the workers are not there


def call_soon(loop: asyncio.AbstractEventLoop, fn: Callable[..., None], *args: object) -> None:
    """Call `fn` on `loop` from any thread; a closed loop has nobody left to tell."""
    try:
        loop.call_soon_threadsafe(fn, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise in a thread that blocks under its own running event loop.

    The handlers of asyncio and of ipykernel's awaiting cells only leave word to the loop, which
    stands still meanwhile.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or asyncio._get_running_loop() is None:
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or before is signal.default_int_handler:
        yield  # it raises already, or was put aside on purpose
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class RunCancelled(Exception):
    """The run was cancelled before, or while, what was awaited was done."""


async def unless_set(cancelled: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Await `work` and return its value, but wait no longer than until `cancelled` is set.

    Raises
    ------
    RunCancelled
        It is set; `work` was not begun, or is cancelled and what it still gives is dropped.
    """
    if cancelled.is_set():
        work.close()
        raise RunCancelled
    task = asyncio.create_task(work)
    stop = asyncio.create_task(cancelled.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.add_done_callback(_drop)
            raise RunCancelled
        return task.result()
    finally:
        task.cancel()
        stop.cancel()


def _drop(task: asyncio.Task[Any]) -> None:
    """Look at how a task ended, which else would be logged as forgotten."""
    if not task.cancelled():
        task.exception()


def is_being_cancelled() -> bool:
    """Whether the current task was asked to stop, unlike code that raises `CancelledError`."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
