"""One entry in full, as data for a pane: its words, its calls with their results, its record.

Owns what is shown of an entry and how much of it. Does not own how it is sent (`bridge`, in
pieces). The one idea: a call and its result are one unit, wherever one looks from; and what is cut
is counted.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from typing import Any

from nbdurable.blocks import (
    FileBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    text_of,
)
from nbdurable.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    words_of,
)
from nbdurable.errors import NbDurableError, StoreError, told
from nbdurable.loaded import Loaded
from nbdurable.notebook.markdown.nodes import markdown_nodes
from nbdurable.notebook.tree.marks import marks_of
from nbdurable.reprs import count
from nbdurable.reruns import find_runs
from nbdurable.stored import StoredEntry
from nbdurable.wire import dumps

log = logging.getLogger("nbdurable")

MOST_CHARS = 1_000_000  # of all texts of an entry, unless the whole is asked for
MARKDOWN_CHARS = 200_000  # a longer text is shown as it is
JSON_CHARS = 200_000
IMAGE_BYTES = 10_000_000
# what a page shows as a picture and cannot run
PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))

Data = dict[str, Any]


class Room:
    """How many characters may still be shown, and how many were not."""

    def __init__(self, chars: float) -> None:
        self.left = chars
        self.hidden = 0

    def cut(self, text: str) -> str:
        """Return as much of a text as there is room for."""
        if len(text) > self.left:
            self.hidden += len(text) - int(self.left)
            text = text[: int(self.left)]
        self.left -= len(text)
        return text


def detail(image: Loaded, leaf_id: str | None, entry_id: str, *, whole: bool = False) -> Data:
    """Return all that is shown of an entry; `leaf_id` tells which results are looked at first."""
    stored, entry = image.stored(entry_id), image.entry(entry_id)
    room = Room(float("inf") if whole else MOST_CHARS)
    reply = entry.message.reply if isinstance(entry, MessageEntry) else None
    marks = marks_of(image).get(str(stored.n), {})
    parent = image.tree.get(stored.parent_id)
    blocks = list(_blocks(image, leaf_id, entry, room))
    raw, words = _json(stored), words_of(entry)
    shown_json = raw if whole else cut_text(raw, JSON_CHARS)
    return {
        "n": stored.n,
        "id": stored.id,
        "role": stored.role or stored.kind,
        "model": stored.model,
        "answered_by": reply.answered_by if reply else None,
        "params": reply.params if reply else {},
        "run": stored.run_id,
        "parent": parent.n if parent else 0,
        "created_at": entry.created_at.isoformat() if entry.created_at else None,
        "tokens": _tokens(stored),
        "cost_usd": stored.cost_usd,
        "seconds": stored.seconds,
        "ttft": stored.ttft_s,
        "stop_reason": stored.stop_reason,
        "error": reply.error if reply else None,
        "system": _system(image, stored.run_id),
        "author": entry.author if isinstance(entry, MessageEntry) else None,
        "meta": stored.meta,
        "labels": marks.get("labels", []),
        "ratings": marks.get("ratings", []),
        "hidden": f"… {count(room.hidden, 'character')} more" if room.hidden else None,
        "text": words if whole or len(words) <= MOST_CHARS else None,
        "blocks": blocks,
        "json": shown_json,
    }


def _tokens(stored: StoredEntry) -> dict[str, int]:
    kinds = {
        "input": stored.input_tokens,
        "output": stored.output_tokens,
        "cache_read": stored.cache_read_tokens,
        "cache_write": stored.cache_write_tokens,
        "reasoning": stored.reasoning_tokens,
    }
    return {name: number for name, number in kinds.items() if number is not None}


def _system(image: Loaded, run_id: str | None) -> str | None:
    try:
        for record, _ in find_runs(image, run_id):
            if record.context_digest is not None:
                return image.store.load_context(record.context_digest).system
    except StoreError:
        log.debug("the system text of run %s cannot be read", run_id, exc_info=True)
    return None


def _json(stored: StoredEntry) -> str:
    """Return an entry as it is stored, its payload as JSON where it is."""
    fields = stored._asdict()
    try:
        fields["payload"] = json.loads(stored.payload)
        return json.dumps(fields, ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        # of another version, damaged, or deep: it is shown as the text it is
        return json.dumps(stored._asdict(), ensure_ascii=False, indent=2)


def cut_text(text: str, limit: int) -> str:
    """Return the start of a text, and how much of it is left out."""
    hidden = len(text) - limit
    return text if hidden <= 0 else f"{text[:limit]}\n… {count(hidden, 'character')} more"


# -- blocks ------------------------------------------------------------------------------------


def _blocks(image: Loaded, leaf_id: str | None, entry: Entry, room: Room) -> Iterator[Data]:
    if isinstance(entry, MessageEntry) and entry.role == "tool":
        yield from _of_tool(image, entry, room)
    elif isinstance(entry, MessageEntry):
        yield from _of_message(image, leaf_id, entry, room)
    elif isinstance(entry, CompactionEntry):
        yield _text(room.cut(entry.summary), is_markdown=True)
    elif isinstance(entry, OpaqueEntry):
        yield {"type": "json", "text": room.cut(entry.raw)}
    elif isinstance(entry, CustomEntry):
        yield {"type": "json", "text": room.cut(_pretty(dumps(entry.fields)))}


def _of_message(
    image: Loaded, leaf_id: str | None, entry: MessageEntry, room: Room
) -> Iterator[Data]:
    results: dict[str, tuple[MessageEntry, ToolResultBlock, float | None]] = {}
    if entry.message.tool_calls:
        results = _results_below(image, leaf_id, entry)
    own = {block.call_id: block for block in entry.message.tool_results}
    reply = entry.message.reply
    for block in entry.blocks:
        match block:
            case TextBlock():
                yield _text(room.cut(block.text), is_markdown=entry.role == "assistant")
            case ThinkingBlock():
                tokens = reply.usage.reasoning_tokens if reply and reply.usage else None
                yield {"type": "thinking", "text": room.cut(block.text), "tokens": tokens or None}
            case ToolCallBlock() if block.id in own:
                yield _call(block, _result(own[block.id], None, None, room), room)
            case ToolCallBlock():
                at = results.get(block.id)
                answer = None if at is None else _result(at[1], at[0].n, at[2], room)
                yield _call(block, answer, room)
            case ToolResultBlock():
                continue  # beside the call that it answers
            case ImageBlock() | FileBlock():
                yield _bytes(block)
            case OpaqueBlock():
                yield {"type": "json", "text": room.cut(_pretty(block.raw))}


def _of_tool(image: Loaded, entry: MessageEntry, room: Room) -> Iterator[Data]:
    """Yield each result of a tool entry with the call that it answers."""
    above = image.path(entry.id)[:-1]
    parent = above[-1] if above else None
    for block in entry.blocks:
        if not isinstance(block, ToolResultBlock):
            yield from [_text(room.cut(block.text))] if isinstance(block, TextBlock) else []
            continue
        call = _call_above(above, block.call_id)
        result = _result(block, entry.n, _seconds(parent, entry), room)
        orphan = ToolCallBlock(block.call_id, block.name or "(call not found)", "")
        yield _call(call or orphan, result, room)


def _call_above(above: list[Entry], call_id: str) -> ToolCallBlock | None:
    for entry in reversed(above):
        if isinstance(entry, MessageEntry) and entry.role == "assistant":
            for call in entry.message.tool_calls:
                if call.id == call_id:
                    return call
    return None


def _results_below(
    image: Loaded, leaf_id: str | None, entry: MessageEntry
) -> dict[str, tuple[MessageEntry, ToolResultBlock, float | None]]:
    """Return the results to an answer's calls, those on the path to the leaf before others."""
    on_path = {node.id for node in image.tree.path(leaf_id)} if leaf_id in image.tree else set()
    found: dict[str, tuple[MessageEntry, ToolResultBlock, float | None]] = {}
    above: MessageEntry = entry
    while True:
        below = [node for node in image.tree.children(above.id) if node.role == "tool"]
        if not below:
            return found
        made = image.entry(max(below, key=lambda node: (node.id in on_path, -node.seq)).id)
        if not isinstance(made, MessageEntry):
            return found
        for result in made.message.tool_results:
            found.setdefault(result.call_id, (made, result, _seconds(above, made)))
        above = made


def _seconds(before: Entry | None, after: Entry) -> float | None:
    if before is None or before.created_at is None or after.created_at is None:
        return None
    return max(0.0, (after.created_at - before.created_at).total_seconds())


def _call(call: ToolCallBlock, result: Data | None, room: Room) -> Data:
    return {
        "type": "call",
        "name": call.name,
        "arguments": room.cut(_pretty(call.raw)),
        "id": call.id,
        "result": result,
    }


def _result(block: ToolResultBlock, n: int | None, seconds: float | None, room: Room) -> Data:
    pictures = [part for part in block.content if isinstance(part, ImageBlock | FileBlock)]
    return {
        "text": room.cut(text_of(block.content)),
        "is_error": block.is_error,
        "seconds": seconds,
        "n": n,
        "images": [_bytes(part) for part in pictures],
    }


def _text(text: str, *, is_markdown: bool = False) -> Data:
    if is_markdown and len(text) <= MARKDOWN_CHARS:
        return {"type": "markdown", "nodes": markdown_nodes(text)}
    return {"type": "text", "text": text}


def _bytes(block: ImageBlock | FileBlock) -> Data:
    """Return a picture with its bytes, or a file by name; a vector image could hold a script."""
    size = block.blob.size_bytes
    name = block.name or ""
    if isinstance(block, ImageBlock) and block.media_type in PICTURES and size <= IMAGE_BYTES:
        try:
            data = base64.b64encode(block.data).decode("ascii")
        except (NbDurableError, LookupError) as error:
            return {"type": "text", "text": f"the image cannot be read: {told(error)}"}
        return {"type": "image", "media_type": block.media_type, "data": data, "alt": name}
    return {"type": "file", "name": name, "media_type": block.media_type, "size": size}


def _pretty(text: str) -> str:
    """Return JSON text with line ends and indents; else the text."""
    try:
        value = json.loads(text)
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    except (ValueError, RecursionError):
        return text
