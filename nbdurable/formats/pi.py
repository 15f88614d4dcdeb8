"""The format ``pi``: a session file of the pi agent, versions 1 to 3; in and out.

Owns the meaning of its lines. A file is one session: a header, then entries with an id and a
parent (version 1: one after the other). Its settings, labels and records of extensions stand in
the tree too; they are opaque entries here, and labels and the name are said beside it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from nbdurable.blocks import (
    Blob,
    Block,
    ImageBlock,
    Reply,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import CompactionEntry, Entry
from nbdurable.formats.drafts import (
    UNREADABLE,
    Conversation,
    Draft,
    Said,
    message,
    opaque,
    opaque_entry,
    unread,
    usage_or_none,
)
from nbdurable.formats.picking import (
    as_count,
    as_id,
    as_list,
    as_map,
    as_number,
    as_text,
    bytes_of,
    instant,
    leftover,
)
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.wire import dumps, finite

TIMES = "the line's timestamp, ISO text in UTC"
HAS_IDS = True

KIND = "pi:"  # before the types of lines that are opaque here

_HEADER = frozenset({"type", "id", "timestamp"})
_LINE = frozenset({"type", "id", "parentId", "timestamp"})
_TYPES = frozenset(
    "session message model_change thinking_level_change compaction branch_summary custom "
    "custom_message label session_info".split()
)
_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_calls",
    "error": "error",
    "aborted": "aborted",
}
_REPLY = frozenset("provider model stopReason errorMessage".split())
_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cacheRead",
    "cache_write_tokens": "cacheWrite",
}


def is_record(value: Any) -> bool:
    """Whether a value is a line of a session file."""
    if not isinstance(value, dict) or value.get("type") not in _TYPES:
        return False
    return isinstance(value.get("timestamp"), str) and (
        value["type"] != "message" or isinstance(value.get("message"), dict)
    )


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield the session of one file; of files that were joined, one for each header."""
    session: _Session | None = None
    for item in found:
        if isinstance(item, Damage):
            yield item
            continue
        value = item.value
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            yield unread(item, "is no line of this format")
            continue
        if value["type"] == "session":
            if session is not None:
                yield session.done()
            session = _Session(value, item.at)
            continue
        if session is None:
            yield unread(item, "comes before any header; a session without one is made of it")
            session = _Session({}, item.at)
        try:
            session.take(value, item.at)
        except UNREADABLE as exc:
            yield unread(item, f"cannot be read: {exc}")
    if session is not None:
        yield session.done()


class _Session:
    """A session whose lines are being read."""

    def __init__(self, header: dict[str, Any], line: int) -> None:
        self._made = Conversation(
            id=as_id(header.get("id")) or "without header",
            at=instant(header.get("timestamp")),
            source=leftover(header, _HEADER),
            by_time=False,
            line=line,
        )
        self._keys = [""]  # by line, the header first: version 1 counts them
        self._places: list[tuple[Draft, int]] = []  # compactions that name a place

    def done(self) -> Conversation:
        """Return the session; its position is the last line."""
        made = self._made
        for draft, place in self._places:
            draft.kept_key = self._keys[place] if 0 < place < len(self._keys) else None
        if made.drafts:
            made.leaf = made.drafts[-1].key
        return made

    def take(self, value: dict[str, Any], line: int) -> None:
        """Take one line."""
        id, is_linear = as_id(value.get("id")), "parentId" not in value
        key = id or f"line {len(self._keys)}"
        before = self._made.drafts[-1].key if self._made.drafts else None
        draft = Draft(
            key,
            before if is_linear else as_id(value["parentId"]),
            None,
            at=instant(value.get("timestamp")),
            is_named=id is not None,
            line=line,
        )
        self._fill(draft, value)
        self._keys.append(key)
        self._made.drafts.append(draft)

    def _fill(self, draft: Draft, value: dict[str, Any]) -> None:
        match value["type"]:
            case "message" if isinstance(value.get("message"), dict):
                draft.source.update(leftover(value, (*_LINE, "message")))
                draft.entry = self._message(draft, value["message"])
                if draft.entry is not None:
                    return
            case "compaction":
                draft.entry = CompactionEntry(
                    summary=as_text(value.get("summary")),
                    tokens_before=as_count(value.get("tokensBefore")) or None,
                )
                draft.kept_key = as_id(value.get("firstKeptEntryId"))
                place = value.get("firstKeptEntryIndex")
                if isinstance(place, int):
                    self._places.append((draft, place))
                used = ("summary", "tokensBefore", "firstKeptEntryId", "firstKeptEntryIndex")
                draft.source.update(leftover(value, (*_LINE, *used)))
                return
            case "branch_summary":
                draft.entry = message("user", _summary(value), is_meta=True)
                draft.source.update(leftover(value, (*_LINE, "summary")), type="branch_summary")
                return
            case "custom_message":
                blocks = _content(value.get("content"))
                draft.is_hidden = value.get("display") is False
                draft.entry = message("user", blocks, is_meta=draft.is_hidden)
                draft.source.update(leftover(value, (*_LINE, "content")), type="custom_message")
                return
            case "label":
                self._say(draft, as_id(value.get("targetId")), "label", value.get("label"))
            case "session_info":
                self._made.title = as_text(value.get("name"))
        draft.entry = opaque_entry(KIND + value["type"], value)

    def _say(self, draft: Draft, target: str | None, name: str, value: Any) -> None:
        if target is not None:
            text = value if isinstance(value, str) and value else None
            self._made.said.append(Said(target, name, text, at=draft.at))

    # -- messages ------------------------------------------------------------------------------

    def _message(self, draft: Draft, said: dict[str, Any]) -> Entry | None:
        """Return what was said, with what has no place in `draft`; None for what is never sent."""
        content = said.get("content")
        used = {"role", "content"}
        entry: Entry
        match said.get("role"):
            case "user":
                entry = message("user", _content(content))
            case "assistant":
                entry = message("assistant", _content(content), _reply(said))
                used |= _REPLY
            case "toolResult":
                result = ToolResultBlock(
                    as_id(said.get("toolCallId")) or "",
                    tuple(_content(content)),
                    said.get("isError") is True,
                    as_text(said.get("toolName")) or None,
                )
                entry = message("tool", [result])
                used |= {"toolCallId", "isError", "toolName"}
            case "bashExecution" if said.get("excludeFromContext") is not True:
                entry = message("user", [TextBlock(_shell_text(said))])
                used = set()
            case "custom" | "hookMessage":
                draft.is_hidden = said.get("display") is False
                entry = message("user", _content(content), is_meta=draft.is_hidden)
                used = {"content"}
            case "branchSummary" | "compactionSummary":
                entry = message("user", _summary(said), is_meta=True)
                used = {"summary"}
            case role:
                if role != "bashExecution":
                    told = f"the role {role!r} is not known; it is kept, never sent"
                    self._made.odd.append((draft.key, told))
                return None
        more = leftover(said, used)
        parts = [leftover(part, _used(part)) for part in as_list(content) if isinstance(part, dict)]
        if any(parts):
            more["content"] = parts
        if more:
            draft.source["message"] = more
        return entry


def _reply(said: dict[str, Any]) -> Reply:
    usage = as_map(said.get("usage"))
    counts = {ours: as_count(usage.get(theirs)) for ours, theirs in _COUNTS.items()}
    provider, model = as_text(said.get("provider")), as_text(said.get("model"))
    return Reply(
        model=f"{provider}/{model}" if provider and model else model or None,
        answered_by=model or None,
        provider=provider or None,
        stop_reason=_STOPS.get(as_text(said.get("stopReason")), "stop"),
        error=as_text(said.get("errorMessage")) or None,
        usage=usage_or_none(**counts),
        cost_usd=finite(as_number(as_map(usage.get("cost")).get("total"))),
    )


def _content(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [TextBlock(content)]
    return [_block(part) for part in as_list(content)]


_BLOCK_USED = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "thinkingSignature"),
    "image": ("type", "data", "mimeType"),
    "toolCall": ("type", "id", "name", "arguments"),
}


def _used(part: dict[str, Any]) -> Any:
    return _BLOCK_USED.get(as_text(part.get("type")), part)


def _block(part: Any) -> Block:
    match as_map(part).get("type"):
        case "text" if isinstance(part.get("text"), str):
            return TextBlock(part["text"])
        case "thinking":
            signature = as_text(part.get("thinkingSignature")) or None
            return ThinkingBlock(as_text(part.get("thinking")), signature)
        case "image":
            data = bytes_of(part.get("data"))
            if data is not None:
                return ImageBlock(Blob.of(data), as_text(part.get("mimeType")) or "image/png")
        case "toolCall":
            arguments = part.get("arguments")
            is_text = isinstance(arguments, str)
            call = ToolCallBlock(
                as_id(part.get("id")) or "",
                as_text(part.get("name")),
                arguments if is_text else dumps(arguments if arguments is not None else {}),
            )
            return call if call.args_valid else replace(call, complete=False)
    return opaque(part)


_BRANCH_SUMMARY = "[Summary of a branch that was left. These are not the user's words.]"


def _summary(value: dict[str, Any]) -> list[Block]:
    return [TextBlock(_BRANCH_SUMMARY), TextBlock(as_text(value.get("summary")))]


def _shell_text(said: dict[str, Any]) -> str:
    """Return what the user ran in a shell as the model is told of it."""
    text = f"Ran `{as_text(said.get('command'))}`\n```\n{as_text(said.get('output'))}\n```"
    if said.get("cancelled") is True:
        return f"{text}\n\n(command cancelled)"
    code = said.get("exitCode")
    return f"{text}\n\nCommand exited with code {code}" if code else text
