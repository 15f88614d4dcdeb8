"""What the forms that people read have in common: heading, parts and links of each entry.

Owns the words. Does not own Markdown or HTML. The one idea: both tell the same of an entry, so it
is decided once, as values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nbdurable.blocks import Block
from nbdurable.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    kind_of,
)
from nbdurable.formats.outgoing import Outgoing, file_text
from nbdurable.outline import Line, outline
from nbdurable.reprs import duration, joined, model_name, money
from nbdurable.wire import dumps

PartKind = Literal["text", "thinking", "code", "note", "image"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an entry; ``title`` says what a ``code`` part is of."""

    kind: PartKind
    text: str
    title: str = ""
    block: Block | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One entry: its line in the tree, heading, parts, and the ordinals it stands between."""

    line: Line
    heading: str
    facts: str
    parts: tuple[Part, ...]
    parent: int | None
    children: tuple[int, ...]


def told(out: Outgoing) -> list[Told]:
    """Return the entries of a session in the order in which its tree is shown."""
    entries = {entry.id: entry for entry in out.entries}
    return [
        _told(out, line, entries[line.row.id])
        for line in outline(out.entries, out.leaf_id, out.marks)
    ]


def _told(out: Outgoing, line: Line, entry: Entry) -> Told:
    parent = out.tree.get(entry.parent_id)
    row = line.row
    facts = joined(
        (
            f"answer {line.sibling} of {line.siblings}" if line.siblings > 1 else None,
            "meta" if row.is_meta else None,
            model_name(row.model) if row.model else None,
            None if row.tokens is None else f"{row.tokens:,} tokens",
            None if row.cost_usd is None else money(row.cost_usd),
            None if row.seconds is None else duration(row.seconds),
            row.stop_reason if row.stop_reason in ("error", "aborted", "length") else None,
            f"{entry.created_at:%Y-%m-%d %H:%M:%S} UTC" if entry.created_at else None,
            *(f"[{tag}]" for tag in line.tags),
        )
    )
    return Told(
        line=line,
        heading=f"#{entry.n} {row.role}",
        facts=facts,
        parts=tuple(_parts(entry)),
        parent=None if parent is None else parent.n,
        children=tuple(child.n or 0 for child in out.tree.children(entry.id)),
    )


def _parts(entry: Entry) -> Iterator[Part]:
    if isinstance(entry, MessageEntry):
        for block in entry.blocks:
            yield from _block_parts(block)
        reply = entry.message.reply
        if reply is not None and reply.error:
            yield Part("note", reply.error, "error")
    elif isinstance(entry, CompactionEntry):
        yield Part("note", "A summary of what stands above.")
        yield Part("text", entry.summary)
    elif isinstance(entry, OpaqueEntry):
        yield Part("code", entry.raw, "json")
    elif isinstance(entry, CustomEntry):
        yield Part("code", dumps(entry.fields), "json")
    else:
        yield Part("note", kind_of(entry))


def _block_parts(block: Block) -> Iterator[Part]:
    match block.type:
        case "text":
            yield Part("text", block.text)
        case "thinking":
            yield Part("thinking", block.text or "(not readable)")
        case "image":
            size = f"{block.blob.size_bytes:,} bytes"
            yield Part("image", f"{block.name or 'image'}, {block.media_type}, {size}", "", block)
        case "file":
            yield Part("code", file_text(block), block.name or "file")
        case "tool_call":
            cut = "" if block.complete else " (cut)"
            yield Part("code", block.raw, f"call of {block.name}{cut}")
        case "tool_result":
            failed = " (failed)" if block.is_error else ""
            title = f"result of {block.name or block.call_id}{failed}"
            for part in block.content:
                if part.type == "text":
                    yield Part("code", part.text, title)
                else:
                    yield from _block_parts(part)
            if not block.content:
                yield Part("code", "", title)
        case "opaque":
            yield Part("code", block.raw, "not known here")
