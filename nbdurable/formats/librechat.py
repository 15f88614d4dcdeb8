"""The format ``librechat``: conversations exported from LibreChat as JSON.

Owns the meaning of its messages. They stand in a list, children before parents at times, or inside
one another; parents make the tree. Parts of a message win over its ``text`` where it has both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nbdurable.blocks import (
    Block,
    Reply,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.formats.drafts import Conversation, Draft, Said, each, message, opaque
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

TIMES = "createdAt, ISO text in UTC; a message without one has that of its parent"
HAS_IDS = True

_USED = frozenset(
    "messageId parentMessageId text content isCreatedByUser createdAt children files".split()
)
_USED_OF_TALK = frozenset("conversationId title messages messagesTree createdAt".split())
_SHOWN_PARTS = 20


def is_record(value: Any) -> bool:
    """Whether a value is an exported conversation."""
    if not isinstance(value, dict) or "conversationId" not in value:
        return False
    listed = _listed(value)
    return isinstance(listed, list) and (
        not listed or any(map(_is_message, listed[:_SHOWN_PARTS])) or "endpoint" in value
    )


def _listed(value: dict[str, Any]) -> Any:
    """Return the messages, which stand in a list, in a tree, or in both."""
    listed = value.get("messages")
    return listed if listed or not value.get("messagesTree") else value["messagesTree"]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "messageId" in value


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield the conversations of one file."""
    return each(found, _conversation, is_record)


def _conversation(value: dict[str, Any], at: Found) -> Conversation:
    made = Conversation(
        id=as_id(value.get("conversationId")) or f"record {at.at}",
        at=instant(value.get("createdAt")),
        title=as_text(value.get("title")),
        source=leftover(value, _USED_OF_TALK),
        line=at.at if at.in_line else None,
    )
    for said, above in _flat(_listed(value)):
        if not isinstance(said, dict):
            made.odd.append((None, "a message is none, and left out"))
            continue
        key = as_id(said.get("messageId")) or f"message {len(made.drafts) + 1}"
        parent = as_id(said.get("parentMessageId")) or above
        made.drafts.append(_draft(made, key, None if is_root_id(parent) else parent, said))
    return made


def _flat(listed: Any) -> Iterator[tuple[Any, str | None]]:
    """Yield the messages of a list and of the lists inside them, each with what it is inside of."""
    waiting: list[tuple[Any, str | None]] = [(said, None) for said in reversed(as_list(listed))]
    while waiting:
        said, above = waiting.pop()
        yield said, above
        inside = as_list(as_map(said).get("children"))
        key = as_id(as_map(said).get("messageId"))
        waiting += [(child, key) for child in reversed(inside)]


def _draft(made: Conversation, key: str, parent: str | None, said: dict[str, Any]) -> Draft:
    parts = as_list(said.get("content"))
    text = said.get("text")
    blocks = [block for part in parts for block in _blocks(part)]
    source = leftover(said, _USED)
    if not parts and isinstance(text, str):
        blocks = [TextBlock(text)]
    elif text and text != "\n".join(b.text for b in blocks if isinstance(b, TextBlock)):
        source["text"] = text
    blocks += [opaque(_as_file(part)) for part in as_list(said.get("files"))]
    is_user = said.get("isCreatedByUser") is True
    if "isCreatedByUser" not in said:
        is_user = as_text(said.get("sender")).lower() == "user"
    rating = as_text(as_map(said.get("feedback")).get("rating")).lower()
    if rating in ("thumbsup", "thumbsdown"):
        note = as_text(as_map(said.get("feedback")).get("text")) or None
        made.said.append(Said(key, "rating", 1 if rating == "thumbsup" else -1, note=note))
    entry = message("user", blocks) if is_user else message("assistant", blocks, _reply(said))
    return Draft(key, parent, entry, at=instant(said.get("createdAt")), source=source)


def _reply(said: dict[str, Any]) -> Reply:
    model, stop, error = as_text(said.get("model")) or None, "stop", None
    if said.get("finish_reason") == "length":
        stop = "length"
    if said.get("unfinished") is True:
        stop, error = "aborted", "the answer was not finished"
    if said.get("error") is True:
        stop, error = "error", as_text(said.get("text")) or "the answer failed"
    reason: StopReason = stop  # type: ignore[assignment]
    return Reply(model=model, stop_reason=reason, error=error)


def _blocks(part: Any) -> list[Block]:
    """Return a part as blocks; a call has its result with it, so the provider ran it."""
    kind = as_map(part).get("type")
    if kind in ("text", "think"):
        body = part.get(kind)
        text = body if isinstance(body, str) else as_map(body).get("value")
        if isinstance(text, str):
            return [TextBlock(text) if kind == "text" else ThinkingBlock(text)]
    call = as_map(as_map(part).get("tool_call"))
    if kind == "tool_call" and isinstance(call.get("name"), str):
        call_id, args = as_id(call.get("id")) or f"call-{call['name']}", call.get("args")
        raw = args if isinstance(args, str) else dumps(args or {})
        output = call.get("output")
        blocks: list[Block] = [
            ToolCallBlock(call_id, call["name"], raw or "{}", provider_run=output is not None)
        ]
        if output is not None:
            text = output if isinstance(output, str) else dumps(output)
            blocks.append(ToolResultBlock(call_id, (TextBlock(text),), name=call["name"]))
        return blocks
    return [opaque(part)]


def _as_file(part: Any) -> Any:
    return {**part, "type": f"librechat:{part.get('type')}"} if isinstance(part, dict) else part
