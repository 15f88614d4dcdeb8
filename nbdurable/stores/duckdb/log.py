"""The write-ahead log as bytes: where it breaks off although it goes on behind.

Owns what must be known of DuckDB's log: its head, its frames and the frame that ends a transaction.
The one idea: DuckDB takes a frame that reaches beyond the end for one that was not written whole,
and a head that it does not know for no log at all, and passes over the rest in silence. A kill cuts
within the last transaction, so that one which ended behind the break tells of damage.
"""

from __future__ import annotations

import re
from pathlib import Path

# A frame is its length and its checksum, 8 bytes each, then what it says.
_FRAME_HEAD = 16
_COMMIT = bytes.fromhex("0500000000000000e7fe7d722fed3d5e640064ffff")
# Kind and version, then the database's identity and its checkpoint, as numbers of any length.
_HEAD = re.compile(
    rb"d\x00be\x00.f\x00\x10(?:[\x80-\xff]*[\x00-\x7f]){16}g\x00[\x80-\xff]*[\x00-\x7f]\xff\xff",
    re.DOTALL,
)


def read_log(path: str) -> bytes:
    """Return the log of the store at `path`, empty where it has none."""
    try:
        return Path(f"{path}.wal").read_bytes()
    except FileNotFoundError:
        return b""


def head_of(log: bytes) -> int:
    """Return the length of a log's head, 0 where it is none that is known."""
    found = _HEAD.match(log)
    return found.end() if found else 0


def silent_break(log: bytes) -> int | None:
    """Return where DuckDB would stop in silence before the last transaction, None if nowhere.

    The position is that of a frame; 0 is the head.
    """
    position = head_of(log)
    while position:
        end = position + _FRAME_HEAD + int.from_bytes(log[position : position + 8], "little")
        if end > len(log) or position + _FRAME_HEAD > len(log):
            break
        position = end
    return position if log.find(_COMMIT, position + 1) > 0 else None


def commits_from(log: bytes, position: int) -> int:
    """Return how many transactions ended from a position on."""
    return log.count(_COMMIT, position)
