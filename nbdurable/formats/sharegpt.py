"""The format ``sharegpt``: conversations of ``from`` and ``value``, to train models on.

Owns the words for roles, of which there are many. Records with chat keys among them are read as
such. Ids come twice in real files and mean nothing; each record is a session of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from nbdurable.blocks import Reply, TextBlock, ToolCallBlock
from nbdurable.entries import Entry
from nbdurable.formats.drafts import Conversation, Draft, each, message, opaque_entry
from nbdurable.formats.openai import Chat, result
from nbdurable.formats.picking import as_id, as_map, as_text, leftover
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.wire import digest, dumps

TIMES = "there are none; an entry has that of its import"
HAS_IDS = False

_LISTS = ("conversations", "conversation", "items", "messages")
_USERS = frozenset("human user prompter".split())
_SYSTEMS = frozenset("system context developer".split())
_ASSISTANTS = frozenset("gpt assistant chatgpt model bot bard claude".split())
_CALLS = frozenset("function_call tool_call".split())
_RESULTS = frozenset("observation tool function_response tool_response function ipython".split())
_USED = frozenset({"from", "value"})
_ID_CHARS = 16


def is_record(value: Any) -> bool:
    """Whether a value holds turns of ``from`` and ``value``."""
    if not isinstance(value, dict):
        return False
    listed = _turns(value)
    if listed is None:
        return False
    if not listed:
        return "messages" not in value or "id" in value
    return any(isinstance(turn, dict) and ("from" in turn or "role" in turn) for turn in listed)


def _turns(value: dict[str, Any]) -> list[Any] | None:
    return next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield a conversation for each record."""
    return each(found, _conversation, is_record)


def _conversation(value: dict[str, Any], at: Found) -> Conversation:
    made = Conversation(
        id=as_id(value.get("id")) or digest(value)[:_ID_CHARS],
        source=leftover(value, ("id", *_LISTS)),
        by_time=False,
        line=at.at if at.in_line else None,
    )
    chat, turns = Chat(made), _Turns(made)
    parent: str | None = None
    for place, turn in enumerate(_turns(value) or (), 1):
        key = f"message {place}"
        if not isinstance(turn, dict):
            made.odd.append((key, "it is no turn, and left out"))
        elif "from" in turn:
            parent = turns.add(turn, key, parent)
        else:
            parent = chat.add_one(turn, key, parent)
    return made


class _Turns:
    """Adds turns to a conversation; those of tools are paired in their order."""

    def __init__(self, made: Conversation) -> None:
        self._made = made
        self._open: list[tuple[str, str]] = []  # ids and names of calls, not answered yet

    def add(self, turn: dict[str, Any], key: str, parent: str | None) -> str:
        """Add one turn; return its key."""
        draft = Draft(key, parent, None, is_named=False, source=leftover(turn, _USED))
        draft.line = self._made.line
        word = as_text(turn.get("from"))
        draft.entry = self._entry(draft, word, turn.get("value"))
        if word not in ("human", "gpt", "user", "assistant"):
            draft.source["from"] = word
        self._made.drafts.append(draft)
        return key

    def _entry(self, draft: Draft, word: str, value: Any) -> Entry:
        text = value if isinstance(value, str) else "" if value is None else dumps(value)
        blocks = () if value is None else (TextBlock(text),)
        role = word.lower()
        if role in _USERS:
            return message("user", blocks, null_content=value is None)
        if role in _SYSTEMS:
            draft.is_hidden, draft.source["role"] = True, "system"
            return message("user", blocks, is_meta=True, null_content=value is None)
        if role in _CALLS:
            return self._call(draft, text)
        if role in _RESULTS:
            call_id, name = self._open.pop(0) if self._open else (f"call-of-{draft.key}", "")
            return result(call_id, blocks, name or None)
        if not role:
            self._made.odd.append((draft.key, "the turn says not whose it is; it is never sent"))
            return opaque_entry("sharegpt:turn", {"from": word, "value": value})
        if role not in _ASSISTANTS:
            told = f"the role {word!r} is not known; it is taken for the assistant's"
            self._made.odd.append((draft.key, told))
        return message("assistant", blocks, Reply(), null_content=value is None)

    def _call(self, draft: Draft, text: str) -> Entry:
        """Return one call or several as a message; text that is none stays as it is."""
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        listed = [as_map(item) for item in (parsed if isinstance(parsed, list) else [parsed])]
        if not all(isinstance(item.get("name"), str) for item in listed):
            self._made.odd.append((draft.key, "the call of a tool cannot be read; it is text here"))
            return message("assistant", [TextBlock(text)], Reply())
        calls = []
        place = draft.key.removeprefix("message ")
        for nth, item in enumerate(listed, 1):
            arguments = item.get("arguments", item.get("parameters"))
            raw = arguments if isinstance(arguments, str) else dumps(arguments or {})
            id = f"call-{place}" if len(listed) == 1 else f"call-{place}-{nth}"
            call = ToolCallBlock(id, item["name"], raw)
            calls.append(call if call.args_valid else ToolCallBlock(id, item["name"], raw, False))
            self._open.append((id, item["name"]))
        return message("assistant", calls, Reply(stop_reason="tool_calls"))
