"""Whose turn it is on a file that several processes use: a lock beside it, with a queue.

Owns the lock, not the file: DuckDB's own lock is what keeps two processes apart, so that a queue
that is lost or cannot be made costs fairness and nothing else. The one idea: the system wakes the
next one at once, where to ask again and again would cost each turn some milliseconds; since that
wait has no end of its own, a thread does it, that gives back what comes too late.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

_PAUSE_S = 0.002  # between two attempts, where the system does not wake who waits


class Purpose(Protocol):
    """What a turn is for, which another process may do meanwhile."""

    def post(self) -> None:
        """Let others know."""

    def is_done(self) -> bool:
        """Whether another has done it; from any thread."""


def new_lock(path: Path) -> FileLock:
    """Return a lock that one thread may take and another give back."""
    return FileLock(path, mode=0o600, thread_local=False)


class Turns:
    """The place of this process in the queue for one file.

    Parameters
    ----------
    folder : Path
        Where the lock is; it is there as long as this process has the store open.
    """

    NAME = "turn.lock"

    def __init__(self, folder: Path) -> None:
        self._path = folder / self.NAME
        self._lock = _Flock(self._path)

    def enter(self, deadline: float, purpose: Purpose | None = None) -> bool:
        """Wait for the turn until a time of the monotonic clock; whether it came.

        Where the system wakes who waits, `purpose` is told of a wait, and when it has served
        meanwhile the turn is passed on at once.
        """
        try:
            return self._lock.take(deadline, purpose)
        except OSError:
            return False  # a full disk, or the folder was removed: go without

    def leave(self) -> None:
        """Let the next one in."""
        self._lock.free()

    def close(self, *, is_last: bool) -> None:
        """Leave for good; the last process takes the lock's file away."""
        if is_last and self.enter(0.0):
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                self._path.unlink(missing_ok=True)
        self.leave()


if sys.platform == "win32":

    class _Flock:
        """A lock for which its waiters ask again and again."""

        def __init__(self, path: Path) -> None:
            self._lock = new_lock(path)

        def take(self, deadline: float, purpose: Purpose | None = None) -> bool:
            """Wait for the lock; whether it came."""
            if self._lock.is_locked:
                return True
            timeout_s = max(0.0, deadline - time.monotonic())
            try:
                self._lock.acquire(timeout=timeout_s, poll_interval=_PAUSE_S)
            except Timeout:
                return False
            return True

        def free(self) -> None:
            """Give the lock back, if it is taken."""
            self._lock.release()

else:
    import fcntl

    class _Flock:
        """A lock whose waiters the system wakes; one thread may take it and another free it."""

        def __init__(self, path: Path) -> None:
            self._path = path
            self._descriptor = -1
            _locks.add(self)

        def take(self, deadline: float, purpose: Purpose | None = None) -> bool:
            """Wait for the lock; whether it came, and is needed still."""
            while self._descriptor < 0:
                descriptor = _opened(self._path)
                if not _is_free(descriptor):
                    if purpose is not None:
                        purpose.post()
                    if not _Wait(descriptor, purpose).came(deadline):
                        return False
                self._descriptor = descriptor
                if os.fstat(descriptor).st_nlink == 0:
                    self.free()  # the last process took it away; the next one made another
            return True

        def free(self) -> None:
            """Give the lock back, if it is taken."""
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                _close(descriptor)

        def forget(self) -> None:
            """Hold nothing, in a fork; what its parent holds is not given back."""
            self._descriptor = -1

    class _Wait:
        """One wait for a lock; what comes too late, or for nothing, is given back."""

        def __init__(self, descriptor: int, purpose: Purpose | None) -> None:
            self._descriptor = descriptor
            self._purpose = purpose
            self._change = threading.Lock()
            self._has_come = threading.Event()
            self._is_over = False

        def came(self, deadline: float) -> bool:
            """Whether the lock came in time; else its descriptor is closed, when it comes."""
            rest_s = deadline - time.monotonic()
            if rest_s <= 0:
                _close(self._descriptor)
                return False
            threading.Thread(target=self._wait, name="nbdurable-turn", daemon=True).start()
            self._has_come.wait(rest_s)
            with self._change:
                is_ours = self._has_come.is_set() and not self._is_over
                self._is_over = True
                return is_ours

        def _wait(self) -> None:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            with self._change:
                # Here, as to wake another thread first would keep the next process waiting.
                if not self._is_over and self._purpose is not None:
                    self._is_over = self._purpose.is_done()
                if self._is_over:
                    _close(self._descriptor)
                self._has_come.set()

    def _opened(path: Path) -> int:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        _open.add(descriptor)
        return descriptor

    def _close(descriptor: int) -> None:
        _open.discard(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a fork of this moment has it open too
        os.close(descriptor)

    def _is_free(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    _locks: weakref.WeakSet[_Flock] = weakref.WeakSet()
    _open: set[int] = set()  # also those of waits, of which each fork gets a share

    def _forget_all() -> None:
        for lock in list(_locks):
            lock.forget()
        while _open:
            os.close(_open.pop())

    os.register_at_fork(after_in_child=_forget_all)
