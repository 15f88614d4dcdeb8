"""Work done where no interrupt can reach it.

Ctrl-C raises in the main thread, between any two steps, also between the attaching of a file and
the note that it is attached. The one idea: the main thread waits, and what it waits for is stopped
by asking DuckDB.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_SLICE_S = 0.2  # of a wait, between which an interrupt gets through


class Job(Generic[T]):
    """One piece of work; `stop` ends it early, once it can."""

    def __init__(self, work: Callable[[Job[T]], T]) -> None:
        self._work = work
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._result: list[T] = []
        self._is_stopped = False
        self.stopper: Callable[[], None] | None = None

    def run(self) -> None:
        """Do the work, and keep what comes of it."""
        try:
            self._result.append(self._work(self))
        except BaseException as exc:
            self._error = exc
        finally:
            self._done.set()

    def stop(self) -> None:
        """Have the work end early."""
        self._is_stopped = True
        if self.stopper is not None:
            self.stopper()

    def check(self) -> None:
        """Raise `KeyboardInterrupt` when the work is not wanted any more."""
        if self._is_stopped:
            raise KeyboardInterrupt

    def wait(self) -> T:
        """Return the result or raise the error; an interrupt stops the work and passes on."""
        try:
            while not self._done.wait(_SLICE_S):
                pass
        except KeyboardInterrupt:
            self.stop()
            self._done.wait(_SLICE_S)
            raise
        if self._error is not None:
            raise self._error
        return self._result[0]


def run(work: Callable[[Job[T]], T]) -> T:
    """Return what `work` does, in a thread of its own where this one can be interrupted."""
    job = Job(work)
    if threading.current_thread() is not threading.main_thread():
        job.run()
        return job.wait()
    try:
        threading.Thread(target=job.run, name="nbdurable-read", daemon=True).start()
    except RuntimeError:
        job.run()  # no thread starts once the interpreter ends
    return job.wait()
