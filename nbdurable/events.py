"""Events: what a run tells its readers, in order (B14).

An event with ``entries`` is a receipt: those entries are stored, and ``leaf_id`` is the leaf they
left. Only ``agent_start`` and ``message_end`` are receipts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nbdurable.blocks import Message, ToolResultBlock, Usage
from nbdurable.entries import Entry

EventType = Literal[
    "agent_start",
    "step_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_start",
    "tool_update",
    "tool_end",
    "step_end",
    "retry",
    "agent_end",
    "agent_error",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a run.

    ``step`` counts model calls from 1. ``text`` and ``thinking`` are what a ``message_update``
    adds; for ``tool_update`` ``text`` is what the tool reported. ``usage`` and ``cost_usd`` are
    those of the message (``message_end``) or summed over the run (``agent_end``, ``agent_error``).
    ``delay_s`` is in seconds. ``replayed`` marks what came from the store without a call (B55).
    """

    type: EventType
    run_id: str = ""
    leaf_id: str | None = None
    entries: tuple[Entry, ...] = ()
    step: int = 0
    text: str = ""
    thinking: str = ""
    message: Message | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    result: ToolResultBlock | None = None
    attempt: int = 0
    delay_s: float = 0.0
    error: str | None = None
    outcome: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    replayed: bool = False
