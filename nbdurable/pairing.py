"""Pairing: which stored tool result answers which stored tool call.

Owns the pairs and what is left over. Does not own what is sent (`views`) or where a path may be
cut (`compaction`); both ask here. The one idea: call ids may repeat across steps, so a result goes
to the nearest message before it that has an open call of that id (B44).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from nbdurable.blocks import ToolCallBlock, ToolResultBlock
from nbdurable.entries import MessageEntry

Stray = Literal["orphan_result", "duplicate_result"]

_NOTHING: Mapping[str, int] = {}


@dataclass(slots=True)
class Slot:
    """One call of one message and the result that answers it.

    ``at`` and ``answer_at`` are indices of messages, ``place`` that of the call's block.
    ``is_sent`` is False for a call that is never sent: cut in mid-stream, or in a failed answer.
    """

    call: ToolCallBlock
    at: int
    place: int
    is_sent: bool
    answer: ToolResultBlock | None = None
    answer_at: int = -1


@dataclass(slots=True)
class Pairing:
    """The calls of a sequence of messages with their results.

    ``slots`` holds, by message index and call id, every call that we must answer, in call order.
    ``strays`` are results that answer nothing: message index, kind, call id. ``open`` counts the
    calls without a result by call id, 0 for an id whose calls all have one. ``reaches_back`` tells
    that a result answers a call of before, where there is one.
    """

    slots: dict[int, dict[str, Slot]] = field(default_factory=dict)
    strays: list[tuple[int, Stray, str]] = field(default_factory=list)
    open: dict[str, int] = field(default_factory=dict)
    reaches_back: bool = False


def is_failed(entry: MessageEntry) -> bool:
    """Whether the entry is an answer that ended in an error or was cancelled."""
    return entry.message.stop_reason in ("error", "aborted")


def pair(entries: Sequence[MessageEntry], before: Mapping[str, int] = _NOTHING) -> Pairing:
    """Return the pairing of the messages of a path, oldest first; linear in their blocks.

    `before` is the ``open`` of what precedes the messages on the path.
    """
    pairing = Pairing()
    open_slots: dict[str, list[Slot]] = {}
    for at, entry in enumerate(entries):
        blocks = entry.message.blocks
        if entry.message.role == "assistant":
            slots = _slots(at, entry)
            if slots:
                pairing.slots[at] = slots
                for slot in slots.values():
                    open_slots.setdefault(slot.call.id, []).append(slot)
        for block in blocks:
            if block.type == "tool_result" and not is_provider_result(entry, block):
                if before.get(block.call_id) and not open_slots.get(block.call_id):
                    pairing.reaches_back = True
                _give(pairing, open_slots, at, block, before)
    pairing.open = {call_id: len(slots) for call_id, slots in open_slots.items()}
    return pairing


def is_provider_result(entry: MessageEntry, result: ToolResultBlock) -> bool:
    """Whether a result stands beside the provider-run call that it answers (B30)."""
    return entry.message.role == "assistant" and any(
        block.type == "tool_call" and block.provider_run and block.id == result.call_id
        for block in entry.message.blocks
    )


def _slots(at: int, entry: MessageEntry) -> dict[str, Slot]:
    slots: dict[str, Slot] = {}
    failed = is_failed(entry)
    for place, block in enumerate(entry.message.blocks):
        if block.type != "tool_call" or block.provider_run:
            continue
        known = slots.get(block.id)
        is_sent = block.complete and not failed
        if known is None or (is_sent and not known.is_sent):
            slots.pop(block.id, None)
            slots[block.id] = Slot(block, at, place, is_sent)
    return slots


def _give(
    pairing: Pairing,
    open_slots: dict[str, list[Slot]],
    at: int,
    result: ToolResultBlock,
    before: Mapping[str, int],
) -> None:
    waiting = open_slots.get(result.call_id)
    if not waiting:
        is_known = waiting is not None or result.call_id in before
        kind: Stray = "duplicate_result" if is_known else "orphan_result"
        pairing.strays.append((at, kind, result.call_id))
        return
    slot = waiting.pop()
    slot.answer, slot.answer_at = result, at
    if not slot.is_sent:
        pairing.strays.append((at, "orphan_result", result.call_id))
