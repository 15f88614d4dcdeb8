"""Out as ``pi``: a session file of the pi agent, version 3.

Owns the lines. What came from pi goes back as it came: ids, settings and labels in the tree; what
was labelled or moved here since stands as entries of pi's at the end.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from nbdurable.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    kind_of,
)
from nbdurable.formats.outgoing import Outgoing, file_text, outgoing
from nbdurable.formats.pi import KIND
from nbdurable.formats.redaction import Redact
from nbdurable.ids import as_datetime, as_us
from nbdurable.loaded import Loaded
from nbdurable.stores.jsonl import replacing
from nbdurable.wire import dumps

VERSION = 3

_STOPS = {"tool_calls": "toolUse"}
_PREFIX = KIND


def is_ours(path: Path) -> bool:
    """Whether a file's first line is the header of a session of pi."""
    with path.open("rb") as file:
        try:
            first = json.loads(file.readline(1 << 16))
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict) and first.get("type") == "session" and "version" in first


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write a session, or the path to one of its entries."""
    lines = [dumps(line) for line in _Lines(outgoing(image, leaf_id, redact)).all()]
    with replacing(path) as file:
        file.writelines(line.encode("utf-8") + b"\n" for line in lines)


class _Lines:
    """The lines of one session."""

    def __init__(self, out: Outgoing) -> None:
        self._out = out
        self._ids = _short_ids(out)
        self._last: str | None = None

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield the header and the entries; the last one is where pi goes on."""
        out = self._out
        source = {key: value for key, value in out.source.items() if key != "version"}
        id = out.id.removeprefix(_PREFIX)
        at = _time(as_datetime(out.section.session.created_at))
        header = {"type": "session", "version": VERSION, "id": id, "timestamp": at}
        yield {**header, "cwd": ".", **source}
        for entry in out.entries:
            yield self._line(entry)
        last = self._ids[out.entries[-1].id] if out.entries else None
        leaf = self._ids.get(out.leaf_id or "", last)
        self._last = leaf
        said = list(self._names_and_labels())
        if not said and leaf != last:
            said.append(self._own("custom", customType="position", data={}))
        yield from said

    def _line(self, entry: Entry) -> dict[str, Any]:
        source = dict(self._out.source_of(entry))
        source.pop("missing_parent", None)
        if isinstance(entry, OpaqueEntry) and entry.stored_kind.startswith(KIND):
            return {**json.loads(entry.raw), **self._header(entry)}
        if isinstance(entry, CompactionEntry):
            kept = self._ids.get(entry.first_kept_id or "") or self._ids[entry.id]
            line = {"summary": entry.summary, "firstKeptEntryId": kept}
            head = {"type": "compaction", **self._header(entry), **line}
            return {**head, "tokensBefore": entry.tokens_before or 0, **source}
        if isinstance(entry, MessageEntry):
            return self._said(entry, source)
        fields = entry.fields if isinstance(entry, CustomEntry) else _opaque(entry)
        head = {"type": "custom", **self._header(entry), "customType": kind_of(entry)}
        return {**head, "data": fields}

    def _header(self, entry: Entry) -> dict[str, Any]:
        parent = self._ids.get(entry.parent_id or "")
        at = _time(entry.created_at)
        return {"id": self._ids[entry.id], "parentId": parent, "timestamp": at}

    def _said(self, entry: MessageEntry, source: dict[str, Any]) -> dict[str, Any]:
        header, message = self._header(entry), source.pop("message", {})
        kind = source.pop("type", None)
        if kind == "branch_summary":
            summary = entry.blocks[-1] if entry.blocks else TextBlock("")
            return {"type": kind, **header, "summary": getattr(summary, "text", ""), **source}
        if entry.meta or kind == "custom_message":
            line = {"customType": "meta", "content": _parts(entry.blocks), "display": False}
            return {"type": "custom_message", **header, **line, **source}
        more = message if isinstance(message, dict) else {}
        if more.get("role") in ("bashExecution", "branchSummary", "compactionSummary"):
            return {"type": "message", **header, "message": more, **source}
        more.pop("content", None)
        said = {**_message(entry), **more}
        said.setdefault("timestamp", _ms(entry.created_at))
        return {"type": "message", **header, "message": said}

    # -- what was said and done here -------------------------------------------------------------

    def _names_and_labels(self) -> Iterator[dict[str, Any]]:
        """Yield labels and the title that no entry of pi's says already."""
        known = self._known_labels()
        now: dict[str, str] = {}
        for target_id, marks in self._out.marks.items():
            if marks.labels:  # pi has one to an entry
                now[target_id] = marks.labels[-1]
        for target, text in now.items():
            if known.get(self._ids[target]) != text:
                yield self._own("label", targetId=self._ids[target], label=text)
        for target in known.keys() - {self._ids[target] for target in now}:
            yield self._own("label", targetId=target)
        if self._out.title and not any(e.kind == f"{KIND}session_info" for e in self._out.stored):
            yield self._own("session_info", name=self._out.title)

    def _known_labels(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for entry in self._out.entries:
            if isinstance(entry, OpaqueEntry) and entry.stored_kind == f"{KIND}label":
                line = json.loads(entry.raw)
                known.pop(line.get("targetId"), None)
                if line.get("label"):
                    known[line["targetId"]] = line["label"]
        return known

    def _own(self, kind: str, **values: Any) -> dict[str, Any]:
        """Return an entry that pi would have added under the last one."""
        taken = {*self._ids.values()}
        id = next(i for n in count(0xE0000000) if (i := f"{n:08x}") not in taken)
        self._ids[f"own {id}"] = id
        parent, self._last = self._last, id
        at = max((entry.created_at for entry in self._out.stored), default=0)
        head = {"type": kind, "id": id, "parentId": parent, "timestamp": _time(as_datetime(at))}
        return {**head, **values}


def _short_ids(out: Outgoing) -> dict[str, str]:
    """Return pi's ids: those it had, else eight digits of ours, told apart where they are equal."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    is_from_pi = out.id.startswith(_PREFIX)
    for entry in out.stored:
        if is_from_pi and entry.source_id and entry.source_id not in taken:
            ids[entry.id] = entry.source_id
            taken.add(entry.source_id)
    for entry in out.stored:
        if entry.id not in ids:
            start = int(entry.id.replace("-", "")[-8:], 16)
            id = next(i for n in count(start) if (i := f"{n % (1 << 32):08x}") not in taken)
            ids[entry.id] = id
            taken.add(id)
    return ids


def _message(entry: MessageEntry) -> dict[str, Any]:
    message = entry.message
    if message.role == "user":
        return {"role": "user", "content": _parts(entry.blocks)}
    if message.role == "tool":
        result = next(iter(message.tool_results), ToolResultBlock(""))
        return {
            "role": "toolResult",
            "toolCallId": result.call_id,
            "toolName": result.name or "",
            "content": _parts(result.content),
            "isError": result.is_error,
        }
    reply = message.reply
    name = (reply.model or reply.answered_by or "unknown") if reply else "unknown"
    provider, slash, model = name.partition("/")
    said: dict[str, Any] = {
        "role": "assistant",
        "content": _parts(entry.blocks),
        "api": "openai-completions",
        "provider": provider if slash else "unknown",
        "model": model if slash else name,
        "usage": _usage(entry),
        "stopReason": _STOPS.get(stop := reply.stop_reason if reply else "stop", stop),
    }
    if reply and reply.error:
        said["errorMessage"] = reply.error
    return said


def _usage(entry: MessageEntry) -> dict[str, Any]:
    reply = entry.message.reply
    usage = (reply.usage if reply else None) or Usage()
    cost = (reply.cost_usd if reply else None) or 0
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens + usage.reasoning_tokens,
        "cacheRead": usage.cache_read_tokens,
        "cacheWrite": usage.cache_write_tokens,
        "totalTokens": usage.total_tokens,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost},
    }


def _parts(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Return blocks as parts; results inside an answer, and what is unknown to pi, are text."""
    return [part for block in blocks for part in _part(block)]


def _part(block: Block) -> list[dict[str, Any]]:
    match block:
        case TextBlock():
            return [{"type": "text", "text": block.text}]
        case ThinkingBlock():
            signed = {"thinkingSignature": block.signature} if block.signature else {}
            return [{"type": "thinking", "thinking": block.text, **signed}]
        case ImageBlock():
            data = base64.b64encode(block.data).decode("ascii")
            return [{"type": "image", "data": data, "mimeType": block.media_type}]
        case ToolCallBlock() if not block.provider_run:
            arguments = block.arguments
            raw: Any = block.raw if arguments is None else arguments
            return [{"type": "toolCall", "id": block.id, "name": block.name, "arguments": raw}]
        case FileBlock():
            return [{"type": "text", "text": file_text(block)}]
        case ToolResultBlock():
            return _parts(block.content)
        case OpaqueBlock():
            kept = json.loads(block.raw)
            return [kept] if isinstance(kept, dict) and "type" in kept else []
    return []


def _opaque(entry: Entry) -> Any:
    if not isinstance(entry, OpaqueEntry):
        return {}
    try:
        value = json.loads(entry.raw)
        dumps(value)
    except (ValueError, RecursionError):
        return entry.raw  # no JSON, or with a number that JSON has not
    return value


def _time(when: datetime | None) -> str:
    at = (when or datetime.fromtimestamp(0, UTC)).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")


def _ms(when: datetime | None) -> int:
    return as_us(when) // 1000 if when else 0
