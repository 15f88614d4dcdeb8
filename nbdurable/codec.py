"""Entries to their stored form and back.

Owns payload version 1 and the columns derived from an entry. The one idea: decoding never fails; a
payload this version cannot read becomes an opaque entry, and forks copy payload text unparsed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from nbdurable.blocks import Blob, Block, Json, Message, Usage, blobs_of
from nbdurable.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    custom_class,
    kind_of,
    own_fields,
)
from nbdurable.errors import EntryError, shown
from nbdurable.frozen import maker
from nbdurable.ids import as_datetime
from nbdurable.stored import StoredEntry
from nbdurable.wire import (
    block_from_dict,
    block_to_dict,
    clean,
    dumps,
    finite,
    is_repaired,
    reply_from_dict,
    reply_to_dict,
)

PAYLOAD_VERSION = 1
PREVIEW_CHARS = 120

Fetch = Callable[[str], bytes]

_raw_decode = json.JSONDecoder().raw_decode
_make_message, _make_message_entry = maker(Message), maker(MessageEntry)


def encode(
    entry: Entry,
    *,
    id: str,
    session_id: str,
    parent_id: str | None,
    created_at: int,
    run_id: str | None = None,
    moves_leaf: bool | None = True,
    source_id: str | None = None,
    as_json: Callable[[Json], str] = dumps,
) -> StoredEntry:
    """Return the stored form of `entry` under a header given by the caller (B20).

    `as_json` writes a message's payload; it returns what `dumps` does.

    Raises
    ------
    BadPayload
        A value in the entry is not JSON; the text names the key path.
    EntryError
        The entry is of no kind that can be stored, or ephemeral.
    """
    payload, columns = _payload(entry, as_json)
    return StoredEntry(
        id=id,
        session_id=session_id,
        parent_id=parent_id,
        kind=kind_of(entry),
        payload=payload,
        created_at=created_at,
        run_id=run_id,
        moves_leaf=moves_leaf,
        source_id=source_id,
        preview=preview_of(entry),
        **columns,  # type: ignore[arg-type]
    )


def _payload(entry: Entry, as_json: Callable[[Json], str]) -> tuple[str, dict[str, object]]:
    if isinstance(entry, MessageEntry) and not entry.ephemeral:
        return _message_payload(entry, as_json)
    if isinstance(entry, CompactionEntry):
        wire: dict[str, Json] = {"v": PAYLOAD_VERSION, "summary": entry.summary}
        wire["first_kept_id"] = entry.first_kept_id
        wire["tokens_before"] = entry.tokens_before
        return dumps(wire), {
            "model": entry.model,
            "cost_usd": finite(entry.cost_usd),
            **_usage_columns(entry.usage),
        }
    if isinstance(entry, OpaqueEntry):
        return entry.raw, {}
    if isinstance(entry, CustomEntry) and kind_of(entry):
        return dumps({"v": PAYLOAD_VERSION, "fields": entry.fields}), {}
    raise EntryError(
        f"entry of type {type(entry).__name__} cannot be stored; "
        "give a message, or a CustomEntry subclass with a kind"
    )


def _message_payload(
    entry: MessageEntry, as_json: Callable[[Json], str]
) -> tuple[str, dict[str, object]]:
    message, reply = entry.message, entry.message.reply
    wire: dict[str, Json] = {"v": PAYLOAD_VERSION, "role": message.role}
    wire["blocks"] = [block_to_dict(block) for block in message.blocks]
    optional = {"null_content": message.null_content, "meta": entry.meta, "author": entry.author}
    wire.update({name: value for name, value in optional.items() if value})
    columns: dict[str, object] = {"role": message.role, "meta": entry.meta}
    if reply is not None:
        wire["reply"] = reply_to_dict(reply)
        columns |= {
            "model": clean(reply.model or reply.answered_by),
            "stop_reason": reply.stop_reason,
            "cost_usd": finite(reply.cost_usd),
            "seconds": finite(reply.seconds),
            "ttft_s": finite(reply.ttft_s),
            **_usage_columns(reply.usage),
        }
    payload = as_json(wire)
    if entry.is_repaired or ("\ufffd" in payload and _holds_surrogate(wire)):
        payload = dumps({**wire, "repaired": True})
    return payload, columns


def _holds_surrogate(wire: Mapping[str, Json]) -> bool:
    return is_repaired(json.dumps(wire, ensure_ascii=False))


def _usage_columns(usage: Usage | None) -> dict[str, object]:
    return dict(usage.to_dict()) if usage else {}


def decode(stored: StoredEntry, fetch: Fetch | None = None) -> Entry:
    """Return the entry of a stored form; what cannot be read becomes opaque (B37).

    Parameters
    ----------
    stored : StoredEntry
        As loaded.
    fetch : callable, optional
        Returns the bytes of a blob's hash; blocks call it when their data is read.
    """
    try:
        wire = _parsed(stored.payload)
        if not isinstance(wire, dict) or wire.get("v") != PAYLOAD_VERSION:
            raise ValueError("version")
        if stored.kind == "message":
            return _message(wire, stored, fetch)
        if stored.kind == "compaction":
            return _compaction(wire, _header(stored), stored)
        return _custom(wire, _header(stored), stored.kind)
    except (ValueError, KeyError, TypeError, RecursionError):
        return OpaqueEntry(**_header(stored), raw=stored.payload, stored_kind=stored.kind)  # type: ignore[arg-type]


def _parsed(payload: str) -> Json:
    """Return what `json.loads` does, at half the cost where no white space is around it."""
    try:
        value, end = _raw_decode(payload)
    except ValueError:
        return json.loads(payload)
    return value if end == len(payload) else json.loads(payload)


def _header(stored: StoredEntry) -> dict[str, object]:
    return {
        "id": stored.id,
        "parent_id": stored.parent_id,
        "seq": stored.seq,
        "n": stored.n,
        "created_at": as_datetime(stored.created_at),
        "run_id": stored.run_id,
        "source_id": stored.source_id,
    }


def _message(wire: Mapping[str, Json], stored: StoredEntry, fetch: Fetch | None) -> MessageEntry:
    role, blocks, reply = wire["role"], wire["blocks"], wire.get("reply")
    if role not in ("user", "assistant", "tool") or not isinstance(blocks, list):
        raise ValueError("role")
    author = wire.get("author")
    return _make_message_entry(
        stored.id,
        stored.parent_id,
        stored.seq,
        stored.n,
        as_datetime(stored.created_at),
        stored.run_id,
        stored.source_id,
        _make_message(
            role,
            tuple([block_from_dict(block, fetch) for block in blocks]),
            reply_from_dict(reply) if isinstance(reply, dict) else None,
            wire.get("null_content") is True,
        ),
        wire.get("meta") is True,
        False,  # ephemeral
        author if isinstance(author, str) else None,
        wire.get("repaired") is True,
    )


def _compaction(
    wire: Mapping[str, Json], header: Mapping[str, object], stored: StoredEntry
) -> CompactionEntry:
    counts = {name: getattr(stored, name) for name in Usage().to_dict()}
    known = stored.input_tokens is not None
    return CompactionEntry(
        **header,  # type: ignore[arg-type]
        summary=str(wire["summary"]),
        first_kept_id=wire.get("first_kept_id"),  # type: ignore[arg-type]
        tokens_before=wire.get("tokens_before"),  # type: ignore[arg-type]
        model=stored.model,
        usage=Usage(**{name: count or 0 for name, count in counts.items()}) if known else None,
        cost_usd=stored.cost_usd,
    )


def _custom(wire: Mapping[str, Json], header: Mapping[str, object], kind: str) -> CustomEntry:
    values = wire["fields"]
    if not isinstance(values, dict):
        raise ValueError("fields")
    header = {**header, "stored_kind": kind, "fields_json": dumps(values)}
    cls = custom_class(kind)
    if cls is None:
        return CustomEntry(**header)  # type: ignore[arg-type]
    known = {name: value for name, value in values.items() if name in own_fields(cls)}
    try:
        return cls(**header, **known)  # type: ignore[arg-type]
    except Exception:  # the class is the application's: whatever it raises, its data stays readable
        return CustomEntry(**header)  # type: ignore[arg-type]


def blobs_in(entry: Entry) -> tuple[Blob, ...]:
    """Return the blobs of an entry that a store must keep beside its payload."""
    return tuple(blobs_of(entry.blocks)) if isinstance(entry, MessageEntry) else ()


# -- previews ----------------------------------------------------------------------------------


def preview_of(entry: Entry) -> str:
    """Return one line of at most 120 code points that tells the entry from its neighbours."""
    if isinstance(entry, MessageEntry):
        return one_line(" ".join(_glimpse(block) for block in entry.blocks))
    if isinstance(entry, CompactionEntry):
        return one_line(entry.summary)
    if isinstance(entry, CustomEntry):
        return one_line(
            " ".join(f"{name}={shown(value, 40)}" for name, value in entry.fields.items())
        )
    return ""


def _glimpse(block: Block) -> str:
    match block.type:
        case "text":
            return block.text[: 4 * PREVIEW_CHARS]
        case "tool_call":
            arguments = block.arguments
            if arguments is None:
                return f"{block.name}({block.raw[:PREVIEW_CHARS]}"
            inner = ", ".join(f"{name}={shown(value, 40)}" for name, value in arguments.items())
            return f"{block.name}({inner})"
        case "tool_result":
            return " ".join(_glimpse(part) for part in block.content)
        case "image" | "file":
            return f"[{block.name or block.type} {block.media_type}, {block.blob.size_bytes} bytes]"
    return ""


def one_line(text: str, limit: int = PREVIEW_CHARS) -> str:
    """Return `text` with white space folded and control characters dropped, cut to `limit`."""
    plain = " ".join(text[: 8 * limit].split())
    if not plain.isprintable():  # half a character is not either
        plain = "".join(char for char in plain if char.isprintable() or char in "\u200d\ufe0f")
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
