"""What a model yields, made such that it can be stored.

Owns the boundary to models that are not ours. The one idea: text that was paid for is kept whatever
stands beside it, so a report that makes no sense becomes unknown, never an error (B64).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

from nbdurable.blocks import ImageBlock, StopReason, Usage
from nbdurable.errors import shown
from nbdurable.models.base import (
    CallDelta,
    Delta,
    Finish,
    ImageDelta,
    RetryNotice,
    TextDelta,
    ThinkingDelta,
)
from nbdurable.wire import clean, dumps

_STOP_REASONS = frozenset(get_args(StopReason))
_MOST = 2**63 - 1  # of a column of counts


def sound(delta: Delta) -> Delta:
    """Return a delta whose values are of the types that it promises.

    Raises
    ------
    TypeError
        It is none of the deltas.
    """
    match delta:
        case TextDelta():
            return delta if type(delta.text) is str else TextDelta(_text(delta.text))
        case ThinkingDelta():
            return ThinkingDelta(
                _text(delta.text), _optional(delta.signature), _optional(delta.data)
            )
        case CallDelta():
            return replace(
                delta,
                id=_text(delta.id),
                name=_text(delta.name),
                arguments=_arguments(delta.arguments),
                provider_run=bool(delta.provider_run),
            )
        case ImageDelta():
            return delta if isinstance(delta.image, ImageBlock) else TextDelta("")
        case RetryNotice():
            return RetryNotice(
                _whole(delta.attempt) or 0, _amount(delta.delay_s) or 0.0, _text(delta.error)
            )
        case Finish():
            return _finish(delta)
    raise TypeError(f"{shown(delta)} is no delta; yield TextDelta, CallDelta, … and one Finish")


def _finish(finish: Finish) -> Finish:
    known = isinstance(finish.stop_reason, str) and finish.stop_reason in _STOP_REASONS
    return Finish(
        stop_reason=finish.stop_reason if known else "stop",
        usage=_usage(finish.usage),
        cost_usd=_amount(finish.cost_usd),
        answered_by=_optional(finish.answered_by),
        provider=_optional(finish.provider),
        fingerprint=_optional(finish.fingerprint),
        error=_optional(finish.error),
    )


def _usage(usage: object) -> Usage | None:
    """Return counts that can be summed; one that makes no sense leaves all unknown."""
    if not isinstance(usage, Usage):
        return None
    counts = {name: _whole(value) for name, value in usage.to_dict().items()}
    known = {name: count for name, count in counts.items() if count is not None}
    return Usage(**known) if len(known) == len(counts) else None


def _whole(value: object) -> int | None:
    number = _amount(value)
    return None if number is None or number > _MOST else int(value)  # type: ignore[call-overload]


def _amount(value: object) -> float | None:
    """Return a number that is finite and not negative, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _arguments(value: object) -> str:
    return dumps(value) if isinstance(value, dict | list) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _optional(value: object) -> str | None:
    return None if value is None else clean(_text(value))
