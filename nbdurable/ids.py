"""Ids and the clock: UUIDv7 text that sorts by time, and microseconds since the epoch.

Ids only look ordered; order is always ``seq`` (B4).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], int]
"""A function that returns microseconds since the epoch, UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_us() -> int:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() // 1000


def as_datetime(us: int) -> datetime:
    """Return microseconds since the epoch as an aware UTC datetime."""
    return _EPOCH + timedelta(0, 0, us)


def as_us(when: datetime) -> int:
    """Return an aware datetime in microseconds since the epoch.

    Raises
    ------
    ValueError
        `when` has no time zone (B64).
    """
    if when.tzinfo is None:
        raise ValueError(f"datetime {when!r} has no time zone; add one, such as datetime.UTC")
    delta = when - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def derived_id(at_us: int, *parts: str) -> str:
    """Return UUIDv8 text that is always the same for the same instant and parts.

    Like UUIDv7 it begins with milliseconds; the rest is a hash of `parts`.
    """
    told = "\0".join(f"{len(part)}:{part}" for part in parts)
    tail = hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()
    return _uuid(at_us // 1000, 8, int.from_bytes(tail[:2], "big") & 0xFFF, tail[2:10])


def _uuid(ms: int, version: int, count: int, tail: bytes) -> str:
    rest = int.from_bytes(tail, "big") & (1 << 62) - 1
    bits = (ms & (1 << 48) - 1) << 80 | version << 76 | count << 64 | 2 << 62 | rest
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class IdMaker:
    """Make UUIDv7 text, strictly increasing within one maker; safe from many threads.

    The first 48 bits are milliseconds; the next 12 count within one millisecond (RFC 9562,
    method 1), so that ids of one process sort in the order they were made.
    """

    def __init__(self, clock: Clock = now_us) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = (0, 0)

    def __call__(self) -> str:
        """Return the next id."""
        with self._lock:
            ms, count = self._clock() // 1000, 0
            last_ms, last_count = self._last
            if ms <= last_ms:
                ms, count = last_ms, last_count + 1
                if count > 0xFFF:
                    ms, count = ms + 1, 0
            self._last = (ms, count)
        return _uuid(ms, 7, count, os.urandom(8))
