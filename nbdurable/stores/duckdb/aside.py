"""Work done where no interrupt can reach it.

Ctrl-C raises in the main thread, between any two steps, also between the attaching of a file and
the note that it is attached. The one idea: the main thread waits, and what it waits for is stopped
by asking DuckDB.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_SLICE_S = 0.2  # of a wait, between which an interrupt gets through
_STOP_AGAIN_S = 0.05  # what is not running yet does not notice that it is stopped
_MOST_STOP_S = 1.0


class Job(Generic[T]):
    """One piece of work, which an interrupt of who waits for it ends early."""

    def __init__(self, work: Callable[[Job[T]], T]) -> None:
        self._work = work
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._result: list[T] = []
        self._is_stopped = False
        self._lock = threading.Lock()
        self._stopper: Callable[[], None] | None = None

    def run(self) -> None:
        """Do the work, and keep what comes of it."""
        try:
            self._result.append(self._work(self))
        except BaseException as exc:
            self._error = exc
        finally:
            self._done.set()

    @contextlib.contextmanager
    def stoppable(self, stopper: Callable[[], None]) -> Iterator[None]:
        """Have `stopper` called, from another thread, when the work is not wanted any more."""
        with self._lock:
            if self._is_stopped:
                raise KeyboardInterrupt
            self._stopper = stopper
        try:
            yield
        finally:
            with self._lock:
                self._stopper = None

    def _stop(self) -> None:
        self._is_stopped = True
        while not self._done.wait(_STOP_AGAIN_S):
            with self._lock:
                if self._stopper is not None:
                    self._stopper()

    def wait(self) -> T:
        """Return the result or raise the error; an interrupt stops the work and passes on."""
        try:
            while not self._done.wait(_SLICE_S):
                pass
        except KeyboardInterrupt:
            threading.Thread(target=self._stop, name="nbdurable-stop", daemon=True).start()
            self._done.wait(_MOST_STOP_S)
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
