"""Whose turn it is on a file that several processes use: a queue of two locks beside it.

Owns the locks, not the file: DuckDB's own lock is what keeps two processes apart, so that a queue
that is lost or cannot be made costs fairness and nothing else. The one idea: whoever waits holds
the door, so that a process that has just had its turn waits behind it.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from filelock import FileLock, Timeout

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.0003, 0.005


class Turns:
    """The place of this process in the queue for one file.

    Parameters
    ----------
    folder : Path
        Where the locks are; it is there as long as this process has the store open.
    """

    NAMES = ("turn.lock", "door.lock")

    def __init__(self, folder: Path) -> None:
        self._turn, self._door = (new_lock(folder / name) for name in self.NAMES)

    def enter(self, deadline: float) -> bool:
        """Wait for the turn until a time of the monotonic clock; whether it came."""
        if self._turn.is_locked:
            return True
        if not _taken(self._door, deadline):
            return False
        try:
            return _taken(self._turn, deadline)
        finally:
            self._door.release()

    def leave(self) -> None:
        """Let the next one in."""
        self._turn.release()

    def close(self, *, is_last: bool) -> None:
        """Leave for good; the last process takes the locks' files away."""
        if is_last and self.enter(0.0):
            for lock in (self._turn, self._door):
                with contextlib.suppress(OSError):  # Windows keeps a file that is open
                    Path(lock.lock_file).unlink(missing_ok=True)
        self._turn.release()


def new_lock(path: Path) -> FileLock:
    """Return a lock that one thread may take and another give back."""
    return FileLock(path, mode=0o600, thread_local=False)


def _taken(lock: FileLock, deadline: float) -> bool:
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            lock.acquire(blocking=False)
            return True
        except Timeout:
            if time.monotonic() + pause_s > deadline:
                return False
        except OSError:
            return False  # a full disk, or the folder was removed: go without
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _LAST_PAUSE_S)
