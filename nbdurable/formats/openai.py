"""The format ``openai``: chat messages and fine-tuning examples, one to a line or in a list.

Owns the meaning of a record: ``messages``, or for preferences ``input`` with ``preferred_output``
and ``non_preferred_output``, which are two branches. A record has no id and no times: it is known
by its content, so that its place in the file does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from nbdurable.blocks import Block, Message, Reply, ToolCallBlock, ToolResultBlock
from nbdurable.entries import Entry, MessageEntry
from nbdurable.formats.drafts import (
    Conversation,
    Draft,
    Said,
    each,
    message,
    opaque_entry,
)
from nbdurable.formats.picking import as_list, as_map, as_text, leftover
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.models.chat_format import message_from_openai
from nbdurable.wire import digest, dumps

TIMES = "there are none; an entry has that of its import"
HAS_IDS = False

PREFERRED, OTHER = "preferred_output", "non_preferred_output"

_USED = frozenset("role content tool_calls tool_call_id thinking_blocks reasoning_content".split())
_ID_CHARS = 16


def is_record(value: Any) -> bool:
    """Whether a value holds chat messages."""
    if not isinstance(value, dict):
        return False
    if PREFERRED in value:
        return isinstance(as_map(value.get("input")).get("messages"), list)
    listed = value.get("messages")
    return isinstance(listed, list) and (
        any(isinstance(m, dict) and isinstance(m.get("role"), str) for m in listed)
        or (not listed and len(value) == 1)
    )


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield a conversation for each record."""
    return each(found, _conversation, is_record)


def _conversation(value: dict[str, Any], at: Found) -> Conversation:
    is_pair = PREFERRED in value
    given = as_map(value["input"]) if is_pair else value
    source = leftover(value, ("input", PREFERRED, OTHER)) if is_pair else {}
    source |= leftover(given, ("messages",))
    made = Conversation(
        id=digest(value)[:_ID_CHARS],
        source=source,
        by_time=False,
        line=at.at if at.in_line else None,
    )
    chat = Chat(made)
    end = chat.add(as_list(given.get("messages")), None)
    if is_pair:
        good = chat.add(as_list(value[PREFERRED]), end)
        bad = chat.add(as_list(value.get(OTHER)), end)
        made.leaf = good
        if good != end and bad != end and good is not None and bad is not None:
            made.said.append(Said(good, "prefer", None, over=(bad,)))
    return made


class Chat:
    """Adds chat messages to a conversation, each under the one before it."""

    def __init__(self, made: Conversation) -> None:
        self._made = made
        self._calls: list[str] = []  # ids made up for calls that have none, not answered yet

    def add(self, messages: Iterable[Any], parent: str | None) -> str | None:
        """Add messages under an entry; return the key of the last."""
        for said in messages:
            key = f"message {len(self._made.drafts) + 1}"
            if not isinstance(said, dict):
                self._made.odd.append((key, "it is no message, and left out"))
                continue
            parent = self.add_one(said, key, parent)
        return parent

    def add_one(self, said: dict[str, Any], key: str, parent: str | None) -> str:
        """Add one message; return its key."""
        line = self._made.line
        draft = Draft(key, parent, None, is_named=False, line=line, source=leftover(said, _USED))
        draft.entry = self._entry(said, draft)
        self._made.drafts.append(draft)
        return key

    def _entry(self, said: dict[str, Any], draft: Draft) -> Entry:
        said = _sound(said)
        match said.get("role"):
            case "system" | "developer" as role:
                draft.source["role"] = role
                draft.is_hidden = True
                draft.entry = _of({**said, "role": "user"})
                return replace(draft.entry, meta=True)
            case "user":
                draft.source.pop("role", None)
                return _of(said)
            case "assistant":
                return self._answer(said, draft)
            case "tool":
                return _of(said)
            case "function":
                name = as_text(said.get("name"))
                call_id = self._calls.pop(0) if self._calls else f"call-of-{draft.key}"
                draft.source["role"] = "function"
                return _of({**said, "role": "tool", "tool_call_id": call_id, "name": name})
            case role:
                told = f"the role {role!r} is not known; it is kept, never sent"
                self._made.odd.append((draft.key, told))
                return opaque_entry("openai:message", said)

    def _answer(self, said: dict[str, Any], draft: Draft) -> Entry:
        found = message_from_openai(said)
        blocks: list[Block] = [_checked(block) for block in found.blocks]
        old = said.get("function_call")
        if isinstance(old, dict):
            raw = old.get("arguments")
            call_id = f"call-{draft.key.removeprefix('message ')}"
            raw_text = raw if isinstance(raw, str) else dumps(raw if raw is not None else {})
            blocks.append(_checked(ToolCallBlock(call_id, as_text(old.get("name")), raw_text)))
            self._calls.append(call_id)
            draft.source["function_call"] = True
        has_calls = any(block.type == "tool_call" for block in blocks)
        reply = Reply(
            model=as_text(said.get("model")) or None,
            stop_reason="tool_calls" if has_calls else "stop",
        )
        return message("assistant", blocks, reply, null_content=found.null_content)


def _of(said: Mapping[str, Any]) -> MessageEntry:
    found: Message = message_from_openai(said)
    return MessageEntry(message=found)


def _sound(said: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose content is text, a list or nothing; other values are text."""
    content = said.get("content")
    if content is None or isinstance(content, str | list):
        return said
    return {**said, "content": dumps(content)}


def _checked(block: Block) -> Block:
    """Return a call that was cut in its arguments as such, so that it is never sent."""
    if isinstance(block, ToolCallBlock) and not block.args_valid:
        return replace(block, complete=False)
    return block


def result(call_id: str, blocks: Iterable[Block], name: str | None = None) -> Entry:
    """Return the answer to a call as an entry."""
    return message("tool", [ToolResultBlock(call_id, tuple(blocks), name=name)])
