"""The format ``claude``: the export of claude.ai, ``conversations.json``.

Owns the meaning of its messages. They stand in a list, but parents make the tree; exports from
before there were parents are one branch in the order of the list. Blocks win over the ``text``
beside them, which has placeholders where blocks could not be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nbdurable.blocks import (
    Blob,
    Block,
    FileBlock,
    Reply,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import Entry
from nbdurable.formats.drafts import Conversation, Draft, each, message, opaque, opaque_entry
from nbdurable.formats.picking import (
    as_id,
    as_list,
    as_map,
    as_text,
    instant,
    is_root_id,
    leftover,
)
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.wire import dumps

TIMES = (
    "created_at, ISO text in UTC; a message without one has that of its parent, "
    "or of its conversation"
)
HAS_IDS = True

_USED_OF_TALK = frozenset("uuid name created_at chat_messages current_leaf_message_uuid".split())
_USED = frozenset("uuid text content sender created_at attachments parent_message_uuid".split())
_STOPS: dict[str, StopReason] = {
    "max_tokens": "length",
    "user_canceled": "aborted",
    "refusal": "stop",
}
_BLOCK_USED = {
    "text": frozenset({"type", "text"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "tool_use": frozenset({"type", "id", "name", "input"}),
    "tool_result": frozenset({"type", "tool_use_id", "name", "content", "is_error"}),
}


def is_record(value: Any) -> bool:
    """Whether a value is a conversation of an export."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield the conversations of one file."""
    return each(found, _conversation, is_record)


def _conversation(value: dict[str, Any], at: Found) -> Conversation:
    made = Conversation(
        id=as_id(value.get("uuid")) or f"record {at.at}",
        at=instant(value.get("created_at")),
        leaf=as_id(value.get("current_leaf_message_uuid")),
        title=as_text(value.get("name")),
        source=leftover(value, _USED_OF_TALK),
        line=at.at if at.in_line else None,
    )
    messages = []
    for place, said in enumerate(value["chat_messages"], 1):
        if isinstance(said, dict):
            messages.append((as_id(said.get("uuid")) or f"message {place}", said))
        else:
            made.odd.append((f"message {place}", "it is no message, and left out"))
    is_flat = not any("parent_message_uuid" in said for _, said in messages)
    made.by_time = not is_flat
    before: str | None = None
    for key, said in messages:
        parent = before if is_flat else as_id(said.get("parent_message_uuid"))
        made.drafts.append(_draft(made, key, None if is_root_id(parent) else parent, said))
        before = key
    return made


def _draft(made: Conversation, key: str, parent: str | None, said: dict[str, Any]) -> Draft:
    blocks, more = _blocks(said)
    source = leftover(said, (*_USED, "files"))
    if any(more):
        source["content"] = more
    text = as_text(said.get("text"))
    if text and text != "\n".join(b.text for b in blocks if isinstance(b, TextBlock)):
        source["text"] = text
    entry: Entry
    match said.get("sender"):
        case "human" | "user":
            entry = message("user", blocks)
        case "assistant":
            entry = message("assistant", blocks, _reply(said, blocks))
        case sender:
            made.odd.append((key, f"the sender {sender!r} is not known; it is kept, never sent"))
            entry = opaque_entry("claude:message", said)
    return Draft(key, parent, entry, at=instant(said.get("created_at")), source=source)


def _reply(said: dict[str, Any], blocks: list[Block]) -> Reply:
    stop = _STOPS.get(as_text(said.get("stop_reason")), "stop")
    if said.get("truncated") is True:
        stop = "length"
    if any(b.type == "tool_call" and not b.provider_run for b in blocks) and stop == "stop":
        stop = "tool_calls"
    return Reply(model=as_text(said.get("model")) or None, stop_reason=stop)


def _blocks(said: dict[str, Any]) -> tuple[list[Block], list[dict[str, Any]]]:
    """Return a message's blocks, and of each of its parts what has no place."""
    parts = as_list(said.get("content"))
    answered = {as_map(part).get("tool_use_id") for part in parts}
    blocks = [_block(part, answered) for part in parts]
    text = as_text(said.get("text"))
    if not parts and text:
        blocks.append(TextBlock(text))
    blocks += [_attachment(part) for part in as_list(said.get("attachments"))]
    blocks += [opaque(_as_file(part)) for part in as_list(said.get("files"))]
    more = [
        leftover(part, _BLOCK_USED.get(as_text(part.get("type")), part))
        for part in map(as_map, parts)
    ]
    return blocks, more


def _block(part: Any, answered: set[Any]) -> Block:
    kind = as_map(part).get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return TextBlock(part["text"])
    if kind == "thinking":
        return ThinkingBlock(as_text(part.get("thinking")), as_text(part.get("signature")) or None)
    if kind == "tool_use":
        arguments = part.get("input")
        return ToolCallBlock(
            as_id(part.get("id")) or f"call-{as_text(part.get('name'))}",
            as_text(part.get("name")),
            arguments if isinstance(arguments, str) else dumps(arguments or {}),
            provider_run=part.get("id") in answered,  # they ran it: the result stands beside it
        )
    if kind == "tool_result":
        content = part.get("content")
        inside = [content] if isinstance(content, str) else as_list(content)
        return ToolResultBlock(
            as_id(part.get("tool_use_id")) or "",
            tuple(TextBlock(p) if isinstance(p, str) else _block(p, set()) for p in inside),
            part.get("is_error") is True,
            as_text(part.get("name")) or None,
        )
    return opaque(part)


def _attachment(part: Any) -> Block:
    """Return a file of which the export has the text as a file of that text."""
    text = as_map(part).get("extracted_content")
    if not isinstance(text, str) or not text:
        return opaque(_as_file(part))
    name = as_text(part.get("file_name")) or None
    return FileBlock(Blob.of(text.encode("utf-8", "replace")), "text/plain", name)


def _as_file(part: Any) -> Any:
    return {"type": "file_without_content", **part} if isinstance(part, dict) else part
