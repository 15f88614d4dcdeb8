"""The format ``open_webui``: chats exported from Open WebUI.

Owns the meaning of its messages. They stand under ``history`` by their ids; lists of children are
not looked at, since they are wrong at times, and what has no role is a fragment of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nbdurable.blocks import Blob, Block, FileBlock, Reply, TextBlock
from nbdurable.entries import Entry
from nbdurable.formats.drafts import (
    Conversation,
    Draft,
    Said,
    each,
    message,
    opaque,
    opaque_entry,
    usage_or_none,
)
from nbdurable.formats.picking import (
    as_count,
    as_id,
    as_list,
    as_map,
    as_number,
    as_text,
    instant,
    leftover,
)
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.models.chat_format import image_from_url, message_from_openai

TIMES = (
    "timestamp, in seconds or milliseconds since 1970 UTC; a message without one has that of its "
    "parent, or of its chat"
)
HAS_IDS = True

_USED = frozenset("id parentId childrenIds role content timestamp model files".split())
_USED_OF_ITEM = frozenset("id title created_at chat".split())
_USED_OF_CHAT = frozenset("id title history messages timestamp".split())


def is_record(value: Any) -> bool:
    """Whether a value is a chat, bare or as it stands in an export."""
    return isinstance(_messages_of(value), dict)


def _chat_of(value: Any) -> dict[str, Any]:
    chat = as_map(value).get("chat")
    return chat if isinstance(chat, dict) else as_map(value)


def _messages_of(value: Any) -> Any:
    return as_map(_chat_of(value).get("history")).get("messages")


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield the chats of one file."""
    return each(found, _conversation, is_record)


def _conversation(value: dict[str, Any], at: Found) -> Conversation:
    chat = _chat_of(value)
    history = as_map(chat.get("history"))
    is_bare = chat is value
    source = {} if is_bare else leftover(value, _USED_OF_ITEM)
    more = leftover(chat, _USED_OF_CHAT)
    if more:
        source["chat"] = more
    made = Conversation(
        id=as_id(value.get("id")) or as_id(chat.get("id")) or f"record {at.at}",
        at=instant(value.get("created_at")) or instant(chat.get("timestamp")),
        leaf=as_id(history.get("currentId")),
        title=as_text(value.get("title")) or as_text(chat.get("title")),
        source=source,
        line=at.at if at.in_line else None,
    )
    messages = as_map(history.get("messages"))
    fragments = {}
    for key, said in messages.items():
        if isinstance(said, dict) and isinstance(said.get("role"), str):
            made.drafts.append(_draft(made, key, said))
            continue
        parent = as_id(as_map(said).get("parentId"))
        made.drafts.append(Draft(key, parent, None))
        made.odd.append((key, "it has no role: a fragment of a message, kept beside the session"))
        fragments[key] = said
    if fragments:
        made.source["fragments"] = fragments
    if not messages:
        _chain(made, as_list(chat.get("messages")))
    return made


def _chain(made: Conversation, messages: list[Any]) -> None:
    """Take the messages of a chat from before there were trees."""
    before: str | None = None
    made.by_time = False
    for place, said in enumerate(messages, 1):
        if not isinstance(said, dict):
            made.odd.append((None, f"message {place} is none, and left out"))
            continue
        draft = _draft(made, as_id(said.get("id")) or f"message {place}", said)
        draft.parent, draft.is_named = before, as_id(said.get("id")) is not None
        made.drafts.append(draft)
        before = draft.key


def _draft(made: Conversation, key: str, said: dict[str, Any]) -> Draft:
    blocks = [*_content(said.get("content")), *map(_file, as_list(said.get("files")))]
    source = leftover(said, _USED)
    entry: Entry
    match said.get("role"):
        case "user":
            entry = message("user", blocks)
        case "system":
            entry = message("user", blocks, is_meta=True)
            source["role"] = "system"
        case "assistant":
            entry = message("assistant", blocks, _reply(said))
        case "tool":
            called = {"role": "tool", **said}
            entry = message("tool", message_from_openai(called).blocks)
        case role:
            made.odd.append((key, f"the role {role!r} is not known; it is kept, never sent"))
            entry = opaque_entry("open_webui:message", said)
    rating = as_number(as_map(said.get("annotation")).get("rating"))
    if rating is not None:
        note = as_text(as_map(said.get("annotation")).get("comment")) or None
        made.said.append(Said(key, "rating", rating, note=note))
    return Draft(
        key,
        as_id(said.get("parentId")),
        entry,
        at=instant(said.get("timestamp")),
        source=source,
        is_hidden=said.get("role") == "system",
    )


def _content(content: Any) -> tuple[Block, ...]:
    if isinstance(content, list):
        return message_from_openai({"role": "user", "content": content}).blocks
    return (TextBlock(content),) if isinstance(content, str) else ()


def _file(part: Any) -> Block:
    """Return a picture, or a file of which the text is there, as such; another as it is."""
    part_map = as_map(part)
    if part_map.get("type") == "image":
        image = image_from_url(as_text(part_map.get("url")))
        if image is not None:
            return image
    file = as_map(part_map.get("file"))
    text = as_map(file.get("data")).get("content")
    if isinstance(text, str) and text:
        name = as_text(part_map.get("name")) or as_text(file.get("filename")) or None
        return FileBlock(Blob.of(text.encode("utf-8", "replace")), "text/plain", name)
    return opaque({**part, "type": f"open_webui:{part.get('type')}"} if part_map else part)


def _reply(said: dict[str, Any]) -> Reply:
    usage = as_map(said.get("usage")) or as_map(said.get("info"))
    counts = usage_or_none(
        input_tokens=as_count(usage.get("prompt_tokens")) or as_count(usage.get("input_tokens")),
        output_tokens=as_count(usage.get("completion_tokens"))
        or as_count(usage.get("output_tokens")),
    )
    model = as_text(said.get("model")) or None
    if said.get("error"):
        error = said["error"]
        text = error if isinstance(error, str) else as_text(as_map(error).get("content"))
        told = text or "the answer failed"
        return Reply(model=model, stop_reason="error", error=told, usage=counts)
    if said.get("done") is False:
        told = "the answer was not finished"
        return Reply(model=model, stop_reason="aborted", error=told, usage=counts)
    return Reply(model=model, usage=counts)
