"""Drafts: what a reader makes of a foreign conversation, before it is checked.

Owns the shapes between readers and the store. The one idea: a reader only says what it found, in
the words of its source (keys, parents, times); whether that is a tree is decided in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from nbdurable.blocks import Block, Json, Message, OpaqueBlock, Reply, Role, Usage
from nbdurable.entries import Entry, MessageEntry, OpaqueEntry
from nbdurable.errors import shown
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.wire import dumps

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What a value of a shape that nobody thought of may raise in a reader."""


@dataclass(slots=True)
class Draft:
    """One node of a conversation.

    ``entry`` None is a node that says nothing: its children hang under its parent. ``key`` is the
    source's id, or where it has none (``is_named`` False) the place. ``at`` is in microseconds
    UTC, None where the source says nothing. ``source`` is what has no place in the entry.
    ``kept_key`` is the first entry that a compaction keeps.
    """

    key: str
    parent: str | None
    entry: Entry | None
    at: int | None = None
    source: dict[str, Any] = field(default_factory=dict)
    is_hidden: bool = False
    is_named: bool = True
    line: int | None = None
    kept_key: str | None = None


@dataclass(slots=True)
class Said:
    """Something said of an entry: a label, a rating, a title; ``over`` are keys put below it."""

    key: str
    name: str
    value: Json
    by: str | None = None
    note: str | None = None
    at: int | None = None
    over: tuple[str, ...] = ()


@dataclass(slots=True)
class Conversation:
    """A conversation as its reader found it.

    ``leaf`` is the key of its position, None where the source says nothing. ``by_time`` orders by
    time, else as it stands in the file. ``title`` and ``source`` are said of its first entry.
    ``odd`` are pairs of a key, or None, and what is odd.
    """

    id: str
    drafts: list[Draft] = field(default_factory=list)
    at: int | None = None
    leaf: str | None = None
    title: str = ""
    source: dict[str, Any] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    by_time: bool = True
    line: int | None = None
    odd: list[tuple[str | None, str]] = field(default_factory=list)


class Reader(Protocol):
    """A module that reads one format.

    ``TIMES`` is its rule for times, in words. ``HAS_IDS`` tells whether an id names one
    conversation in the world, so that a second one of the same id is that one grown.
    """

    TIMES: str
    HAS_IDS: bool

    def is_record(self, value: Any) -> bool:
        """Whether a value of a file is of this format."""

    def read(
        self, found: Iterable[Found | Damage], assets: Assets
    ) -> Iterator[Conversation | Damage]:
        """Yield the conversations of one file, and what could not be read."""


def each(
    found: Iterable[Found | Damage],
    make: Callable[[Any, Found], Conversation],
    is_record: Callable[[Any], bool],
) -> Iterator[Conversation | Damage]:
    """Yield a conversation for each record; one that cannot be read does not stop the others."""
    for item in found:
        if isinstance(item, Damage):
            yield item
            continue
        if not is_record(item.value):
            yield unread(item, "is no conversation of this format")
            continue
        try:
            yield make(item.value, item)
        except UNREADABLE as exc:
            yield unread(item, f"cannot be read: {shown(str(exc))}")


def unread(item: Found, what: str) -> Damage:
    """Return that a value of a file was passed over."""
    if item.in_line:
        return Damage(f"the line {what}", item.at)
    return Damage(f"record {item.at} {what}")


def message(
    role: Role,
    blocks: Iterable[Block],
    reply: Reply | None = None,
    *,
    is_meta: bool = False,
    null_content: bool = False,
) -> MessageEntry:
    """Return a message as an entry."""
    return MessageEntry(
        message=Message(role, tuple(blocks), reply, null_content=null_content), meta=is_meta
    )


def opaque(value: Json) -> OpaqueBlock:
    """Return a part of a kind unknown here as a block that is kept and never sent."""
    return OpaqueBlock(dumps(value))


def opaque_entry(kind: str, record: dict[str, Any]) -> OpaqueEntry:
    """Return a record of the source's own as an entry that is kept and never sent."""
    return OpaqueEntry(raw=dumps(record), stored_kind=kind)


def usage_or_none(**counts: int) -> Usage | None:
    """Return token counts, or None where all are 0."""
    return Usage(**counts) if any(counts.values()) else None
