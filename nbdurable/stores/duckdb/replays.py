"""When a checkpoint pays: what replaying a log costs, against what making it short costs.

Each attach replays the log, 0.2 ms per commit in it, and a checkpoint takes as long as 20 to 60.
"""

from __future__ import annotations

_MOST_LOG_BYTES = 1_000_000  # worth a checkpoint before the next attach, whatever was replayed
_BARE_ATTACH_S, _CHECKPOINT_S = 0.001, 0.005  # as long as none was timed


class Replays:
    """What one process knows of the replays of one file's log."""

    def __init__(self) -> None:
        self._bare_s, self._replayed_s, self._checkpoint_s = _BARE_ATTACH_S, 0.0, _CHECKPOINT_S
        self._log_bytes = 0  # of the log when the file was last let go

    def attached(self, took_s: float, *, has_log: bool) -> None:
        """Count an attach."""
        if has_log:
            self._replayed_s += max(0.0, took_s - self._bare_s)
        else:
            self._bare_s = took_s

    def is_checkpoint_due(self, log_bytes: int) -> bool:
        """Whether replays took half as long as a checkpoint does, as others replay it too."""
        if log_bytes < self._log_bytes:
            self._replayed_s = 0.0  # another process made one
        self._log_bytes = log_bytes
        return log_bytes > _MOST_LOG_BYTES or self._replayed_s > self._checkpoint_s / 2

    def checkpointed(self, took_s: float) -> None:
        """Count a checkpoint."""
        self._checkpoint_s, self._replayed_s, self._log_bytes = took_s, 0.0, 0
