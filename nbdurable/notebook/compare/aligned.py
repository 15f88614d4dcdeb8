"""Paths laid beside each other, turn by turn, as texts.

Owns what several paths share, where their turns stand, and how an entry reads as text. The one
idea: a turn has three places, what was asked, the steps, and the answer, so that last answers
stand on one line however many tools were called before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nbdurable.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.codec import preview_of
from nbdurable.entries import CompactionEntry, CustomEntry, Entry, MessageEntry, kind_of, words_of
from nbdurable.errors import shown
from nbdurable.reprs import visible

PARTS = ("user", "steps", "assistant")

Same = Callable[[Entry, Entry], bool]


@dataclass(slots=True)
class Turn:
    """One turn of one path: the entries of each part."""

    user: list[Entry] = field(default_factory=list)
    steps: list[Entry] = field(default_factory=list)
    assistant: list[Entry] = field(default_factory=list)

    def part(self, name: str) -> list[Entry]:
        """Return the entries of a part."""
        found: list[Entry] = getattr(self, name)
        return found


@dataclass(frozen=True, slots=True)
class Place:
    """One place of one turn over all columns: a text each, or None where a column has nothing."""

    turn: int
    role: str
    texts: tuple[str | None, ...]
    entries: tuple[tuple[Entry, ...], ...]


def shared_length(paths: Sequence[Sequence[Entry]], same: Same) -> int:
    """Return how many entries all paths begin with; each keeps one of its own at least."""
    limit = min((len(path) for path in paths), default=0) - 1
    at = 0
    while at < limit and all(same(paths[0][at], path[at]) for path in paths[1:]):
        at += 1
    return max(at, 0)


def alike(one: Entry, other: Entry) -> bool:
    """Whether two entries of different sessions say the same, as what a fork copied does."""
    if one.id == other.id:
        return True
    if isinstance(one, MessageEntry) and isinstance(other, MessageEntry):
        return (one.role, one.meta, one.blocks) == (other.role, other.meta, other.blocks)
    return kind_of(one) == kind_of(other) and text_of(one) == text_of(other)


def turns_of(entries: Sequence[Entry]) -> list[Turn]:
    """Return the turns of a stretch of a path; what is meta is in none."""
    turns: list[Turn] = []
    for entry in entries:
        is_message = isinstance(entry, MessageEntry)
        if is_message and entry.meta:  # type: ignore[attr-defined]
            continue
        is_user = is_message and entry.role == "user"  # type: ignore[attr-defined]
        is_more = bool(turns) and not turns[-1].steps and bool(turns[-1].user)
        if not turns or (is_user and not is_more):
            turns.append(Turn())
        (turns[-1].user if is_user else turns[-1].steps).append(entry)
    for turn in turns:
        last = turn.steps[-1] if turn.steps else None
        is_answer = isinstance(last, MessageEntry) and last.role == "assistant"
        if is_answer or isinstance(last, CompactionEntry):
            turn.assistant = [turn.steps.pop()]
    return turns


def places(tails: Sequence[Sequence[Entry]]) -> list[Place]:
    """Return what stands beside what, in order; places that no column fills are left out."""
    columns = [turns_of(tail) for tail in tails]
    found: list[Place] = []
    for at in range(max(map(len, columns), default=0)):
        for role in PARTS:
            entries = tuple(
                tuple(turns[at].part(role)) if at < len(turns) else () for turns in columns
            )
            if any(entries):
                texts = tuple("\n\n".join(map(text_of, one)) if one else None for one in entries)
                found.append(Place(at, role, texts, entries))
    return found


# -- texts -------------------------------------------------------------------------------------


def text_of(entry: Entry) -> str:
    """Return what an entry says, as text that can be shown."""
    if isinstance(entry, MessageEntry):
        said = [text for block in entry.blocks if (text := _block_text(block)).strip()]
        reply = entry.message.reply
        if reply is not None and reply.stop_reason in ("error", "aborted"):
            said.append(f"[{reply.stop_reason}{f': {reply.error}' if reply.error else ''}]")
        return visible("\n".join(said))
    if isinstance(entry, CustomEntry):
        return visible(f"{kind_of(entry)}: {preview_of(entry)}")
    return visible(words_of(entry) or f"[{kind_of(entry)}]")


def _block_text(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolCallBlock):
        given = block.arguments
        inside = (
            block.raw
            if given is None
            else ", ".join(f"{name}={shown(value, 200)}" for name, value in given.items())
        )
        return f"{block.name}({inside})"
    if isinstance(block, ToolResultBlock):
        mark = "✕" if block.is_error else "→"
        return f"{mark} " + "\n".join(map(_block_text, block.content))
    if isinstance(block, ImageBlock | FileBlock):
        return f"[{block.type}: {block.name or block.media_type}]"
    return ""
