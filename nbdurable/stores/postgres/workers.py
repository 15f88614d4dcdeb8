"""The threads that talk to the server, each over a line of its own.

Owns the queue and the threads. The one idea: a caller waits for a thread of ours, so that an
interrupt of the caller passes on at once and never tears what is being stored.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from nbdurable.errors import StoreClosed
from nbdurable.stores.postgres.address import Address
from nbdurable.stores.postgres.line import Line

T = TypeVar("T")

MOST_LINES = 4  # of one process: a server takes a hundred, and there are many notebooks
_SLICE_S = 0.2  # of a caller's wait, between which an interrupt gets through


class _Job:
    """One call: what is to be done, then its result or its error."""

    __slots__ = ("_done", "_error", "_result", "_work")

    def __init__(self, work: Callable[[Line], Any]) -> None:
        self._work = work
        self._result: Any = None
        self._error: BaseException | None = None
        self._done = threading.Event()

    def run(self, line: Line) -> None:
        try:
            self._result = self._work(line)
        except BaseException as exc:
            self._error = exc
        finally:
            self._done.set()

    def wait(self) -> Any:
        while not self._done.wait(_SLICE_S):
            pass
        if self._error is not None:
            raise self._error
        return self._result


class Workers:
    """Do work over lines, in threads that are started at need."""

    def __init__(self, address: Address, *, patience_s: float) -> None:
        self._address = address
        self._patience_s = patience_s
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._free = 0  # threads without a job, less the jobs that wait for one
        self._is_closed = False

    def run(self, work: Callable[[Line], T]) -> T:
        """Return what `work` returns; an interrupt of the wait passes on, the work is done."""
        job = _Job(work)
        if self._put(job):
            result: T = job.wait()
            return result
        line = self._line()  # no thread starts once the interpreter ends
        try:
            return work(line)
        finally:
            line.close()

    def close(self) -> None:
        """Do what is queued, hang up and end the threads."""
        with self._lock:
            self._is_closed = True
            threads, self._threads = self._threads, []
            for _ in threads:
                self._jobs.put(None)
        for thread in threads:
            thread.join()

    def _put(self, job: _Job) -> bool:
        """Queue a job; whether there is a thread to do it."""
        with self._lock:
            if self._is_closed:
                raise StoreClosed(f"store {self._address.name!r} is closed; open it again")
            if self._free < 1 and len(self._threads) < MOST_LINES:
                self._start()
            if not self._threads:
                return False
            self._free -= 1
            self._jobs.put(job)
            return True

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="nbdurable-postgres", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        self._threads.append(thread)
        self._free += 1

    def _line(self) -> Line:
        return Line(self._address, patience_s=self._patience_s)

    def _serve(self) -> None:
        line = self._line()
        while (job := self._jobs.get()) is not None:
            job.run(line)
            job = None  # nobody's result is held while this waits
            with self._lock:
                self._free += 1
        line.close()
