"""The one background thread with one event loop.

Owns where runs are executed: never on the kernel's own loop, which stands still while a cell
computes. The thread is a daemon, so that it never holds up the end of a process; what must last is
already in the store.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from nbdurable.errors import RunError
from nbdurable.threads import interruptible

log = logging.getLogger("nbdurable")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid: int | None = None
_keep: set[asyncio.Task[None]] = set()


def background_loop() -> asyncio.AbstractEventLoop:
    """Return this process's background event loop, started at the first call.

    A forked child has no thread of its parent's: it gets a loop of its own.
    """
    global _loop, _pid
    with _lock:
        if _loop is None or _pid != os.getpid():
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            thread = threading.Thread(
                target=_serve, args=(_loop,), name="nbdurable-loop", daemon=True
            )
            thread.start()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop whatever ends it: an exit asked for in a task of a tool, or a stop."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException as exc:  # asyncio lets these out of the loop, past all other runs
            log.warning("a task on the background loop asked for an end: %r", exc)


def is_on_loop() -> bool:
    """Whether this code runs on the background loop, as async tools and hooks do."""
    return _loop is not None and asyncio._get_running_loop() is _loop


def check_may_wait(what: str) -> None:
    """Raise `RunError` on the background loop, where a wait for a run would have no end."""
    if is_on_loop():
        raise RunError(
            f"{what} cannot be waited for on the event loop that runs it, where async tools and "
            "hooks are; await session.run(..., wait=False) there, or call from asyncio.to_thread"
        )


@contextmanager
def waiting_for(run_id: str, *, is_done: bool) -> Iterator[None]:
    """Let Ctrl-C through while blocking for a run; refuse where that would have no end."""
    if not is_done:
        check_may_wait(f"run {run_id}")
        if _loop is not None and _pid != os.getpid():
            raise RunError(
                f"run {run_id} is one of process {_pid} and this is its fork {os.getpid()}, which "
                "has no part in it; wait for it there"
            )
    with interruptible():
        yield


def submit(work: Coroutine[Any, Any, None]) -> None:
    """Start `work` on the background loop, with the caller's context variables.

    The copy carries ipykernel's output parent, so that what a tool prints lands in the cell that
    started the run.
    """
    loop = background_loop()
    context = contextvars.copy_context()

    def start() -> None:
        task = loop.create_task(work)
        _keep.add(task)  # the loop itself holds tasks only weakly
        task.add_done_callback(_keep.discard)

    loop.call_soon_threadsafe(start, context=context)
