"""Blocking code beside an event loop: each call in a daemon thread of its own.

The one idea: code of the user may hang for ever, so it gets no place in a pool that others wait
for and that the interpreter joins at its exit.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(fn: Callable[[], T], name: str = "nbdurable-call") -> T:
    """Call `fn` in its own daemon thread, in a copy of this context, and return its value.

    Cancelling the waiting task leaves the thread behind; what it still gives is dropped.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[list[T], BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: list[T], error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((value, error))

    def work() -> None:
        value: list[T] = []
        error: BaseException | None = None
        try:
            value.append(context.run(fn))
        except BaseException as exc:  # an exit asked for here is the caller's to judge
            error = exc
        call_soon(loop, settle, value, error)

    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError as exc:
        if "shutdown" not in str(exc):
            raise
        work()  # Python 3.12 starts no thread at its exit, when the last answers are stored
    value, error = await outcome
    if error is not None:
        raise error
    return value[0]


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
