"""The format ``chatgpt``: the export of ChatGPT, ``conversations.json``.

Owns the meaning of its nodes. A conversation is a ``mapping`` of nodes with a parent each; lists
of children are not looked at, since parents say all and they are wrong at times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from nbdurable.blocks import (
    Blob,
    Block,
    ImageBlock,
    OpaqueBlock,
    Reply,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import shown
from nbdurable.formats.drafts import (
    Conversation,
    Draft,
    Said,
    each,
    message,
    opaque,
    opaque_entry,
)
from nbdurable.formats.picking import as_id, as_list, as_map, as_text, instant, leftover
from nbdurable.formats.source import READ_ERRORS, Assets
from nbdurable.formats.values import Damage, Found, read_values
from nbdurable.media import IMAGE_TYPES, sniff
from nbdurable.wire import dumps

TIMES = (
    "create_time, in seconds since 1970 UTC; an entry without one has that of its parent, "
    "or of its conversation"
)
HAS_IDS = True

_FEEDBACK = "message_feedback.json"
_USED = frozenset({"id", "author", "role", "create_time", "content"})
_USED_OF_TALK = frozenset("id conversation_id title create_time mapping current_node".split())
_PLAIN = {"status": "finished_successfully", "weight": 1.0, "recipient": "all"}
_STOPS: dict[str, StopReason] = {"interrupted": "aborted", "max_tokens": "length"}
_UNFINISHED = ("finished_partial_completion", "in_progress")


def is_record(value: Any) -> bool:
    """Whether a value is a conversation of an export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield the conversations of one file."""
    ratings = _ratings(assets)

    def make(value: Any, at: Found) -> Conversation:
        made = _conversation(value, at, assets)
        made.said += ratings.get(made.id, ())
        return made

    return each(found, make, is_record)


def _conversation(value: dict[str, Any], at: Found, assets: Assets) -> Conversation:
    mapping = as_map(value["mapping"])
    id = as_id(value.get("conversation_id")) or as_id(value.get("id")) or f"record {at.at}"
    talk = _Talk(mapping, assets)
    return Conversation(
        id=id,
        drafts=[talk.draft(key, node) for key, node in mapping.items()],
        at=instant(value.get("create_time")),
        leaf=as_id(value.get("current_node")),
        title=as_text(value.get("title")),
        source=leftover(value, _USED_OF_TALK),
        line=at.at if at.in_line else None,
        odd=talk.odd,
    )


class _Talk:
    """The nodes of one conversation."""

    def __init__(self, mapping: dict[str, Any], assets: Assets) -> None:
        self._mapping = mapping
        self._assets = assets
        self.odd: list[tuple[str | None, str]] = []

    def draft(self, key: str, node: Any) -> Draft:
        """Return a node as a draft."""
        if not isinstance(node, dict):
            self.odd.append((key, "it is no node, and left out"))
            return Draft(key, None, None)
        parent, said = as_id(node.get("parent")), node.get("message")
        if not isinstance(said, dict):
            if said:
                self.odd.append((key, f"its message is none, and left out: {shown(said)}"))
            return Draft(key, parent, None)
        author, content = _author(said), _content_of(said)
        metadata = as_map(said.get("metadata"))
        role = author.get("role")
        source = _source(said, author)
        is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
        entry = self._entry(key, said, content)
        if entry.kind == "opaque":
            self.odd.append((key, f"the role {role!r} is not known; it is kept and never sent"))
        elif role in _SYSTEM:
            source["role"] = role
        more = _left_of_content(content, entry)
        if more:
            source["content"] = {"content_type": content.get("content_type"), **more}
        return Draft(
            key,
            parent,
            entry,
            at=instant(said.get("create_time")),
            source=source,
            is_hidden=is_hidden or role in _SYSTEM,
        )

    def _entry(self, key: str, said: dict[str, Any], content: dict[str, Any]) -> Entry:
        author = _author(said)
        match author.get("role"):
            case "user" | "system" | "developer":
                return message("user", self._blocks(content))
            case "tool":
                name = as_text(author.get("name")) or None
                is_error = content.get("content_type") == "system_error"
                call_id = self._call_id(key, name)
                blocks = tuple(self._blocks(content))
                return message("tool", [ToolResultBlock(call_id, blocks, is_error, name)])
            case "assistant":
                recipient = _recipient(said)
                blocks = tuple(self._blocks(content))
                if recipient is not None:
                    blocks = (_call(key, recipient, blocks),)
                return message("assistant", blocks, _reply(said, calls=recipient is not None))
        return opaque_entry("chatgpt:message", said)

    def _call_id(self, key: str, name: str | None) -> str:
        """Return the id of the call that a result answers: the nearest above to that tool."""
        seen, above, first = {key}, self._parent(key), None
        while above is not None and above not in seen:
            seen.add(above)
            said = as_map(as_map(self._mapping.get(above)).get("message"))
            role = _author(said).get("role")
            recipient = _recipient(said) if role == "assistant" else None
            if recipient is not None and recipient == name:
                return f"call-{above}"
            first = first or (f"call-{above}" if recipient is not None else None)
            if role == "user":
                break
            above = self._parent(above)
        return first or f"call-of-{key}"

    def _parent(self, key: str) -> str | None:
        return as_id(as_map(self._mapping.get(key)).get("parent"))

    # -- content -------------------------------------------------------------------------------

    def _blocks(self, content: dict[str, Any]) -> list[Block]:
        text = as_text(content.get("text"))
        match content.get("content_type"):
            case "text" | "multimodal_text":
                return [self._part(part) for part in _parts_of(content)]
            case "code" | "execution_output" | "tether_quote" | "system_error":
                return [TextBlock(text)]
            case "tether_browsing_display":
                return [TextBlock(as_text(content.get("result")))]
            case "thoughts":
                return [_thought(part) for part in _parts_of(content)]
            case "user_editable_context":
                told = (content.get("user_profile"), content.get("user_instructions"))
                return [TextBlock(part) for part in map(as_text, told) if part]
            case "model_editable_context":
                return [TextBlock(as_text(content.get("model_set_context")))]
        return [opaque(content)] if content else []

    def _part(self, part: Any) -> Block:
        if isinstance(part, str):
            return TextBlock(part)
        part_type = as_map(part).get("content_type")
        if part_type == "audio_transcription" and isinstance(part.get("text"), str):
            return TextBlock(part["text"])
        if part_type == "image_asset_pointer":
            return self._image(part) or opaque(part)
        return opaque(part)

    def _image(self, part: dict[str, Any]) -> ImageBlock | None:
        """Return the picture that lies beside the conversations, if it does."""
        name = as_text(part.get("asset_pointer")).rpartition("/")[2]
        found = self._assets.starting(name)
        media_type = sniff(found[1]) if found else None
        if found is None or media_type not in IMAGE_TYPES:
            return None
        return ImageBlock(Blob.of(found[1]), media_type or "", found[0])


def _author(said: dict[str, Any]) -> dict[str, Any]:
    """Return who said it; the oldest exports name the role alone."""
    author = said.get("author")
    return author if isinstance(author, dict) else {"role": author or said.get("role")}


def _content_of(said: dict[str, Any]) -> dict[str, Any]:
    content = said.get("content")
    if isinstance(content, dict):
        return content
    return {"content_type": "text", "parts": content} if content else {}


def _parts_of(content: dict[str, Any]) -> list[Any]:
    """Return the parts of a content that has some, be it one alone; null says nothing."""
    listed = content.get("thoughts" if content.get("content_type") == "thoughts" else "parts")
    if listed is None:
        listed = content.get("text")
    return [part for part in (listed if isinstance(listed, list) else [listed]) if part is not None]


def _left_of_content(content: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """Return what of a content has no place in its entry, that of its parts in their order."""
    used = _CONTENT_USED.get(as_text(content.get("content_type")), frozenset(content))
    if "parts" in used and content.get("parts") is None:
        used |= {"text"}
    more = leftover(content, used | {"content_type"})
    if not used.isdisjoint(("parts", "thoughts")) and isinstance(entry, MessageEntry):
        parts, blocks = _parts_of(content), entry.blocks
        if blocks and isinstance(blocks[0], ToolResultBlock):
            blocks = blocks[0].content
        left = [_left_of_part(*pair) for pair in zip_longest(parts, blocks[: len(parts)])]
        if any(left):
            more["parts"] = left
    return more


def _left_of_part(part: Any, block: Block | None) -> dict[str, Any]:
    if not isinstance(part, dict) or isinstance(block, OpaqueBlock):
        return {}
    if not isinstance(block, ThinkingBlock):
        return leftover(part, ("content_type", "text"))
    more = leftover(part, ("summary", "content"))
    if as_list(more.get("chunks")) and "".join(map(as_text, more["chunks"])) in block.text:
        del more["chunks"]  # the same text again
    return more


_SYSTEM = ("system", "developer")
_CONTENT_USED = {
    "text": frozenset({"parts"}),
    "multimodal_text": frozenset({"parts"}),
    "code": frozenset({"text"}),
    "execution_output": frozenset({"text"}),
    "tether_quote": frozenset({"text"}),
    "system_error": frozenset({"text"}),
    "tether_browsing_display": frozenset({"result"}),
    "thoughts": frozenset({"thoughts"}),
    "user_editable_context": frozenset({"user_profile", "user_instructions"}),
    "model_editable_context": frozenset({"model_set_context"}),
}


def _source(said: dict[str, Any], author: dict[str, Any]) -> dict[str, Any]:
    kept = leftover(said, _USED)
    for key, usual in _PLAIN.items():
        if kept.get(key) == usual:
            del kept[key]
    more = leftover(author, ("role",))
    return {**kept, "author": more} if more else kept


def _thought(part: Any) -> Block:
    if not isinstance(part, dict):
        return opaque(part)
    told = [part.get("summary"), part.get("content")]
    return ThinkingBlock("\n\n".join(text for text in map(as_text, told) if text))


def _recipient(said: dict[str, Any]) -> str | None:
    recipient = as_text(said.get("recipient"))
    return recipient if recipient not in ("", "all") else None


def _call(key: str, name: str, blocks: tuple[Block, ...]) -> ToolCallBlock:
    text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
    return ToolCallBlock(f"call-{key}", name, _arguments(text))


def _arguments(text: str) -> str:
    """Return what was sent to a tool as an object: as it is, or as its ``code``."""
    try:
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    return dumps({"code": text})


def _reply(said: dict[str, Any], *, calls: bool) -> Reply:
    metadata = as_map(said.get("metadata"))
    model = as_text(metadata.get("model_slug")) or None
    finish = as_text(as_map(metadata.get("finish_details")).get("type"))
    stop: StopReason = _STOPS.get(finish, "tool_calls" if calls else "stop")
    error: str | None = None
    if said.get("status") in _UNFINISHED and stop != "length":
        stop, error = "aborted", "the answer was not finished"
    return Reply(model=model, stop_reason=stop, error=error)


# -- ratings -----------------------------------------------------------------------------------


def _ratings(assets: Assets) -> dict[str, list[Said]]:
    """Return what lies beside the conversations in a file of its own, by conversation."""
    file = assets.named(_FEEDBACK)
    ratings: dict[str, list[Said]] = {}
    if file is None:
        return ratings
    try:
        with file.open() as opened:
            for item in read_values(opened, lambda value: isinstance(value, dict)):
                value = as_map(item.value) if isinstance(item, Found) else {}
                talk, key = as_id(value.get("conversation_id")), _rated(value)
                word = as_text(value.get("rating")).lower().replace("_", "")
                if talk and key and word in ("thumbsup", "thumbsdown"):
                    score = 1 if word == "thumbsup" else -1
                    at = instant(value.get("create_time"))
                    note = as_text(as_map(_content(value)).get("text")) or None
                    ratings.setdefault(talk, []).append(
                        Said(key, "rating", score, note=note, at=at)
                    )
    except READ_ERRORS:
        return ratings
    return ratings


def _rated(value: dict[str, Any]) -> str | None:
    return as_id(value.get("message_id")) or as_id(value.get("id"))


def _content(value: dict[str, Any]) -> Any:
    content = value.get("content")
    if not isinstance(content, str):
        return content
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
