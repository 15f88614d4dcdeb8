"""Views: what a reader gets from a path; stored entries are never edited.

Owns the model view (what is sent) and the transcript (what is shown). Does not own tokens, wire
formats or where a path ends. The one idea: whatever was stored, torn or imported, the view is a
conversation that a provider accepts, and each repair is reported beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nbdurable.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.pairing import Pairing, Slot, is_failed, is_provider_result, pair

SUMMARY_HEADER = (
    "[Summary of the conversation so far, made because it had grown long. "
    "These are not the user's words.]"
)
NO_RESULT = "No result was recorded for this call."
OUTCOME_UNKNOWN = (
    "No result was recorded for this call, which may have had effects: "
    "outcome unknown, check before repeating."
)
NOT_EXECUTED = "This call was not executed: the reply that made it ended with {reason!r}."

RepairKind = Literal[
    "missing_result",
    "orphan_result",
    "duplicate_result",
    "duplicate_call",
    "incomplete_call",
    "unsigned_thinking",
    "foreign_thinking",
    "opaque_block",
    "misplaced_block",
    "blank",
]

_TEXTS: dict[RepairKind, str] = {
    "missing_result": "a tool call without a result is answered by an error",
    "orphan_result": "a tool result without its call is left out",
    "duplicate_result": "a second result of a tool call is left out",
    "duplicate_call": "a call id that comes twice in one message is sent once",
    "incomplete_call": "a tool call cut in mid-stream or in a failed answer is left out",
    "unsigned_thinking": "thinking without a signature is left out",
    "foreign_thinking": "thinking signed for another model is left out",
    "opaque_block": "a block of a kind unknown to this version is left out",
    "misplaced_block": "a block that its role cannot send is left out",
    "blank": "blank text, or a message without content, is left out",
}


@dataclass(frozen=True, slots=True)
class Repair:
    """One difference between what is stored and what is sent."""

    kind: RepairKind
    entry_id: str | None = None
    call_id: str | None = None

    @property
    def text(self) -> str:
        """What was done, in words."""
        return _TEXTS[self.kind]


@dataclass(frozen=True, slots=True)
class View:
    """Messages to send, and where each comes from.

    ``entry_ids`` has one id per message, None for a synthesised one; a summary has the id of its
    compaction entry.
    """

    messages: tuple[Message, ...] = ()
    entry_ids: tuple[str | None, ...] = ()
    repairs: tuple[Repair, ...] = ()


# -- what is on a path ---------------------------------------------------------------------------


def visible_entries(path: Sequence[Entry]) -> list[Entry]:
    """Return what the model reads of a path: the newest summary, if any, then the messages.

    What an earlier compaction hid stays hidden (B50). Custom and opaque entries are never read.
    """
    start, summary = 0, None
    places = {entry.id: i for i, entry in enumerate(path)}
    for i, entry in enumerate(path):
        if isinstance(entry, CompactionEntry):
            kept = -1 if entry.first_kept_id is None else places.get(entry.first_kept_id, -1)
            start, summary = (kept if start <= kept < i else i), entry
    messages = [entry for entry in path[start:] if isinstance(entry, MessageEntry)]
    return [*([summary] if summary else []), *messages]


def transcript_view(path: Sequence[Entry]) -> list[Entry]:
    """Return what people read of a path: all but meta and ephemeral messages."""
    return [
        entry
        for entry in path
        if not (isinstance(entry, MessageEntry) and (entry.meta or entry.ephemeral))
    ]


def ends_in_reply(path: Sequence[Entry]) -> bool:
    """Whether the path's last message is a finished reply, so that nothing is to be continued.

    Entries that are no messages, and failed answers at the end, are passed over (B22).
    """
    end = _unfailed_end(path)
    last = next((entry for entry in reversed(path[:end]) if isinstance(entry, MessageEntry)), None)
    if last is None or last.role != "assistant":
        return False
    reply = last.message.reply
    if reply is not None:
        return reply.stop_reason in ("stop", "length")
    return all(call.provider_run for call in last.message.tool_calls)


def continuation_leaf(path: Sequence[Entry]) -> str | None:
    """Return the id of the entry that a run without input continues from; None is the root.

    The leaf, or for a failed answer its parent, so that the new answer is its sibling (B22).
    """
    end = _unfailed_end(path)
    if end < len(path):
        return path[end].parent_id
    return path[-1].id if path else None


def _unfailed_end(path: Sequence[Entry]) -> int:
    """Return where the failed answers at the end of a path begin; its length if there are none."""
    end = len(path)
    for i in range(len(path) - 1, -1, -1):
        entry = path[i]
        if isinstance(entry, MessageEntry):
            if not is_failed(entry):
                break
            end = i
    return end


# -- the model view ------------------------------------------------------------------------------


def model_view(
    path: Sequence[Entry],
    *,
    model: str | None = None,
    effects: frozenset[str] = frozenset(),
) -> View:
    """Return the messages of a path as they are sent to a model; linear in the path.

    Parameters
    ----------
    path : sequence of Entry
        Oldest first; ephemeral messages among it are sent like any other.
    model : str, optional
        The requested model; signed thinking goes only to the model that signed it (B46).
    effects : frozenset of str
        Names of tools with effects, whose lost calls are answered "outcome unknown" (B29).
    """
    visible = visible_entries(path)
    pairing = pair([entry for entry in visible if isinstance(entry, MessageEntry)])
    return Projection(visible, model, effects, pairing).view()


class Projection:
    """One pass over visible entries, whose messages were paired before."""

    def __init__(
        self,
        visible: Sequence[Entry],
        model: str | None,
        effects: frozenset[str],
        pairing: Pairing,
    ) -> None:
        self._summary = next((e for e in visible if isinstance(e, CompactionEntry)), None)
        self._entries = [entry for entry in visible if isinstance(entry, MessageEntry)]
        self._pairing = pairing
        self._model = model
        self._effects = effects
        self._messages: list[Message] = []
        self._ids: list[str | None] = []
        self._repairs: list[Repair] = []

    def view(self) -> View:
        """Return the view; to be called once."""
        if self._summary is not None:
            text = TextBlock(f"{SUMMARY_HEADER}\n\n{self._summary.summary}")
            self._send(Message("user", (text,)), self._summary.id)
        strays = iter(self._pairing.strays)
        stray = next(strays, None)
        for at, entry in enumerate(self._entries):
            while stray is not None and stray[0] == at:
                self._repairs.append(Repair(stray[1], entry.id, stray[2]))
                stray = next(strays, None)
            if entry.message.role == "tool":
                self._note_misplaced(entry)
            else:
                self._add(at, entry)
        return View(tuple(self._messages), tuple(self._ids), tuple(self._repairs))

    def _send(self, message: Message, entry_id: str | None) -> None:
        self._messages.append(message)
        self._ids.append(entry_id)

    def _note(self, kind: RepairKind, entry: MessageEntry, call_id: str | None = None) -> None:
        self._repairs.append(Repair(kind, entry.id, call_id))

    def _note_misplaced(self, entry: MessageEntry) -> None:
        if not entry.message.blocks:
            self._note("blank", entry)
        for block in entry.message.blocks:
            if block.type != "tool_result":
                self._note("misplaced_block", entry)

    def _add(self, at: int, entry: MessageEntry) -> None:
        """Send a message of the user's or the assistant's, then the results of its calls."""
        message, slots = entry.message, self._pairing.slots.get(at, {})
        if _is_plain(message.blocks):  # nearly all there are
            self._send(message, entry.id)
            return
        blocks = [block for i, block in enumerate(message.blocks) if self._keeps(entry, i, slots)]
        if all(block.type == "thinking" for block in blocks):
            if blocks or not message.blocks:
                self._note("blank", entry)
            return
        whole = len(blocks) == len(message.blocks)
        self._send(message if whole else replace(message, blocks=tuple(blocks)), entry.id)
        for slot in slots.values():
            if slot.is_sent:
                self._answer(entry, slot)

    def _keeps(self, entry: MessageEntry, place: int, slots: dict[str, Slot]) -> bool:
        block = entry.message.blocks[place]
        match block.type:
            case "text":
                if not block.text.strip():
                    self._note("blank", entry)
                    return False
            case "thinking":
                return self._keeps_thinking(entry, block)
            case "opaque":
                self._note("opaque_block", entry)
                return False
            case "tool_call":
                return self._keeps_call(entry, block, place, slots)
            case "tool_result":
                return is_provider_result(entry, block) and not is_failed(entry)
        return True

    def _keeps_thinking(self, entry: MessageEntry, block: ThinkingBlock) -> bool:
        reply = entry.message.reply
        if entry.message.role != "assistant" or not (block.signature or block.data):
            self._note("unsigned_thinking", entry)
            return False
        if self._model is None or reply is None or reply.model != self._model:
            self._note("foreign_thinking", entry)
            return False
        return True

    def _keeps_call(
        self, entry: MessageEntry, block: ToolCallBlock, place: int, slots: dict[str, Slot]
    ) -> bool:
        if entry.message.role != "assistant":
            self._note("misplaced_block", entry, block.id)
            return False
        if not block.complete or is_failed(entry):
            self._note("incomplete_call", entry, block.id)
            return False
        if not block.provider_run and slots[block.id].place != place:
            self._note("duplicate_call", entry, block.id)
            return False
        return True

    def _answer(self, entry: MessageEntry, slot: Slot) -> None:
        if slot.answer is None:
            self._note("missing_result", entry, slot.call.id)
            text = TextBlock(self._excuse(entry, slot.call.name))
            result = ToolResultBlock(slot.call.id, (text,), is_error=True, name=slot.call.name)
            self._send(Message("tool", (result,)), None)
            return
        stored = self._entries[slot.answer_at]
        content = tuple(part for part in slot.answer.content if _is_sent_in_result(part))
        if len(content) < len(slot.answer.content):
            result = replace(slot.answer, content=content)
        elif stored.message.role == "tool" and len(stored.message.blocks) == 1:
            self._send(stored.message, stored.id)
            return
        else:
            result = slot.answer
        self._send(Message("tool", (result,)), stored.id)

    def _excuse(self, entry: MessageEntry, name: str) -> str:
        reason = entry.message.stop_reason
        if reason in ("stop", "length"):
            return NOT_EXECUTED.format(reason=reason)
        return OUTCOME_UNKNOWN if name in self._effects else NO_RESULT


def _is_sent_in_result(part: Block) -> bool:
    if part.type == "text":
        return bool(part.text.strip())
    return part.type in ("image", "file")


def _is_plain(blocks: Sequence[Block]) -> bool:
    """Whether the blocks are one text that says something."""
    if len(blocks) != 1 or blocks[0].type != "text":
        return False
    return blocks[0].text != "" and not blocks[0].text.isspace()
