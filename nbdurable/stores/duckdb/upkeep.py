"""When the log of a shared file is worth a checkpoint, from what replays and checkpoints took.

Each attach replays the whole log, in every process that uses the file; a checkpoint takes as long
as many replays of one commit. The one idea: neither is known beforehand, so both are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_BARE_ATTACH_S, _CHECKPOINT_S = 0.001, 0.005  # as long as none was timed
_MOST_LOG_BYTES = 1_000_000  # worth a checkpoint, whatever was replayed


class Upkeep:
    """What attaching and checkpoints of one file took this process."""

    def __init__(self) -> None:
        self._bare_s, self._replayed_s, self._checkpoint_s = _BARE_ATTACH_S, 0.0, _CHECKPOINT_S
        self._log_bytes = 0  # when the file was last let go

    def attached(self, took_s: float, *, has_log: bool) -> None:
        """Count an attach."""
        if has_log:
            self._replayed_s += max(0.0, took_s - self._bare_s)
        else:
            self._bare_s = took_s

    def shorten(self, log_bytes: int, checkpoint: Callable[[], None]) -> None:
        """Make a checkpoint when replays took half as long as one does: others replay too."""
        if log_bytes < self._log_bytes:
            self._replayed_s = 0.0  # another process did it
        self._log_bytes = log_bytes
        if log_bytes > _MOST_LOG_BYTES or self._replayed_s > self._checkpoint_s / 2:
            began = time.monotonic()
            checkpoint()
            self._checkpoint_s = time.monotonic() - began
            self._replayed_s, self._log_bytes = 0.0, 0
