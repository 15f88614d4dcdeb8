"""Parts of values that may be anything: a foreign file promises nothing.

The one idea: each function takes any value and returns one of the kind that is wanted, so that a
reader says what it expects and never fails over what it finds.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Container
from datetime import UTC, datetime
from typing import Any

from nbdurable.ids import as_us

_LAST_US = 253_402_300_799_999_999  # the end of the year 9999
_MILLISECONDS_FROM = 100_000_000_000  # as seconds that is the year 5138

_ROOT_ID = re.compile("0{8}-0{4}-[04]0{3}-[08]0{3}-0{12}")


def as_text(value: Any) -> str:
    """Return text, or nothing for what is none."""
    return value if isinstance(value, str) else ""


def as_map(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one for what is none."""
    return value if isinstance(value, list) else []


def as_id(value: Any) -> str | None:
    """Return an id as text, or None for what is none; numbers count."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def is_root_id(id: str | None) -> bool:
    """Whether an id is one of zeros, which some programs call the parent of a root."""
    return id is not None and _ROOT_ID.fullmatch(id) is not None


def as_count(value: Any) -> int:
    """Return a number of tokens, or 0 for what is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value < 1 << 53 else 0


def bytes_of(value: Any) -> bytes | None:
    """Return the bytes of base64 text, or None for what is none."""
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def as_number(value: Any) -> float | None:
    """Return a finite number, or None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None


def instant(value: Any) -> int | None:
    """Return microseconds since 1970 of seconds, milliseconds or ISO text; None for what is none.

    ISO text without a zone is UTC.
    """
    if isinstance(value, str):
        return _of_text(value)
    number = as_number(value)
    if number is None:
        return None
    seconds = number / 1000 if abs(number) >= _MILLISECONDS_FROM else number
    return _in_range(round(seconds * 1e6))


def _of_text(value: str) -> int | None:
    try:
        when = datetime.fromisoformat(value)
        return _in_range(as_us(when if when.tzinfo else when.replace(tzinfo=UTC)))
    except (ValueError, OverflowError):
        return None


def _in_range(us: int) -> int | None:
    return us if 0 < us <= _LAST_US else None


def leftover(record: dict[str, Any], used: Container[str]) -> dict[str, Any]:
    """Return what of an object says something and is not used."""
    return {
        key: value for key, value in record.items() if key not in used and not is_nothing(value)
    }


def is_nothing(value: Any) -> bool:
    """Whether a value is null or empty; False and 0 are something."""
    return value is None or (isinstance(value, str | list | dict) and not value)
