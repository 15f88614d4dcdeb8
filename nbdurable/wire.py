"""The wire form of blocks and replies, and the one rule for JSON.

Owns how values become JSON text and come back. The one idea: text is always re-serialised by us
(B33), never NaN (B64), always valid UTF-8, and what a newer version wrote is kept opaque (B37).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping

from nbdurable.blocks import (
    Blob,
    Block,
    FileBlock,
    ImageBlock,
    Json,
    OpaqueBlock,
    Reply,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.errors import BadPayload

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumps(value: Json) -> str:
    """Return `value` as compact JSON text, keys in their order.

    A lone surrogate becomes U+FFFD (see `is_repaired`); two halves of a character that a stream
    brought apart become that character.

    Raises
    ------
    BadPayload
        A NaN or infinity, or a value that JSON does not have; the text names the key path.
    """
    try:
        text = _encode(value)
    except (ValueError, TypeError, RecursionError) as exc:
        path, found = _bad_value(value)
        raise BadPayload(
            f"value at {path or 'the top'!r} of the payload is {found}, which JSON cannot hold; "
            "use None, text or a finite number",
            path=path,
        ) from exc
    return _whole(text) if is_repaired(text) else text


def digest(value: Json) -> str:
    """Return the SHA-256 of a value's JSON text, as 64 hex digits."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def as_python(value: object) -> object:
    """Return a number or array of NumPy's, or of its like, as Python's own; else the value."""
    to_python = getattr(value, "tolist", None)
    return to_python() if callable(to_python) else value


def is_repaired(text: str) -> bool:
    """Whether `text` holds a lone surrogate, which `dumps` replaces by U+FFFD (B64)."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def clean(text: str | None) -> str | None:
    """Return `text` with lone surrogates replaced by U+FFFD; None stays None."""
    return _whole(text) if text and is_repaired(text) else text


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _bad_value(value: Json) -> tuple[str, str]:
    """Find the first value that is not JSON: its key path and what it is. Iterative."""
    stack: list[tuple[str, Json]] = [("", value)]
    seen: set[int] = set()  # a ring of values ends here
    while stack:
        path, item = stack.pop()
        if isinstance(item, dict | list | tuple):
            if id(item) in seen:
                continue
            seen.add(id(item))
        if isinstance(item, dict):
            for key in item:
                if not isinstance(key, str):
                    return f"{path}.{key!r}".lstrip("."), f"under a key of type {_kind(key)}"
            pairs = [(f"{path}.{key}".lstrip("."), part) for key, part in item.items()]
            stack.extend(reversed(pairs))
        elif isinstance(item, list | tuple):
            stack.extend((f"{path}[{i}]", item[i]) for i in reversed(range(len(item))))
        elif isinstance(item, float) and item - item != 0:
            return path, str(item)
        elif not (item is None or isinstance(item, bool | int | float | str)):
            return path, f"of type {_kind(item)}"
    return "", "nested too deep or in a ring"


def _kind(value: object) -> str:
    return type(value).__name__


def block_to_dict(block: Block) -> dict[str, Json]:
    """Return the wire form of a block."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ThinkingBlock():
            signed = _present({"signature": block.signature, "data": block.data})
            return {"type": "thinking", "text": block.text, **signed}
        case ImageBlock() | FileBlock():
            held = {**_present({"name": block.name}), **block.blob.to_dict()}
            return {"type": block.type, "media_type": block.media_type, **held}
        case ToolCallBlock():
            wire: dict[str, Json] = {"type": "tool_call", "id": block.id, "name": block.name}
            wire["arguments"] = block.raw
            if not block.complete:
                wire["complete"] = False
            if block.provider_run:
                wire["provider_run"] = True
            return wire
        case ToolResultBlock():
            content = [block_to_dict(part) for part in block.content]
            error = True if block.is_error else None
            extra = _present({"is_error": error, "name": block.name})
            return {"type": "tool_result", "call_id": block.call_id, "content": content, **extra}
        case OpaqueBlock():
            kept: dict[str, Json] = json.loads(block.raw)  # as it was, be it an object or not
            return kept


def block_from_dict(wire: Mapping[str, Json], fetch: Callable[[str], bytes] | None = None) -> Block:
    """Return the block of a wire form; one of an unknown shape becomes opaque (B37)."""
    try:
        return _block(wire, fetch)
    except (KeyError, TypeError, ValueError):
        return OpaqueBlock(json.dumps(wire, ensure_ascii=False, separators=(",", ":")))


def _block(wire: Mapping[str, Json], fetch: Callable[[str], bytes] | None) -> Block:
    kind = wire["type"]
    if kind == "text" and len(wire) == 2:  # nearly all there are
        return TextBlock(_text(wire["text"]))
    known = _KEYS.get(str(kind))
    if known is None or not known.issuperset(wire):
        raise ValueError(kind)
    name = _optional(wire.get("name"))
    if kind == "thinking":
        return ThinkingBlock(
            _text(wire["text"]), _optional(wire.get("signature")), _optional(wire.get("data"))
        )
    if kind == "image":
        return ImageBlock(Blob.from_dict(wire, fetch), _text(wire["media_type"]), name)
    if kind == "file":
        return FileBlock(Blob.from_dict(wire, fetch), _text(wire["media_type"]), name)
    if kind == "tool_call":
        return ToolCallBlock(
            _text(wire["id"]),
            _text(wire["name"]),
            _text(wire["arguments"]),
            wire.get("complete", True) is True,
            wire.get("provider_run", False) is True,
        )
    parts = wire["content"]
    if not isinstance(parts, list):
        raise ValueError("content")
    content = tuple(block_from_dict(part, fetch) for part in parts)
    return ToolResultBlock(_text(wire["call_id"]), content, wire.get("is_error") is True, name)


_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "text"}),
    "thinking": frozenset({"type", "text", "signature", "data"}),
    "image": frozenset({"type", "media_type", "name", "base64", "sha256", "size"}),
    "file": frozenset({"type", "media_type", "name", "base64", "sha256", "size"}),
    "tool_call": frozenset({"type", "id", "name", "arguments", "complete", "provider_run"}),
    "tool_result": frozenset({"type", "call_id", "content", "is_error", "name"}),
}


def finite(number: float | None) -> float | None:
    """Return a provider's number, or None where JSON cannot hold it (B64)."""
    return number if number is not None and math.isfinite(number) else None


def reply_to_dict(reply: Reply) -> dict[str, Json]:
    """Return the wire form of a reply record; unknown values are left out."""
    named = {name: getattr(reply, name) for name in _REPLY_PLAIN}
    named |= {name: finite(named[name]) for name in _REPLY_NUMBERS}
    wire = _present({**named, "usage": reply.usage.to_dict() if reply.usage else None})
    return {**wire, "params": json.loads(reply.params_json) if reply.params_json != "{}" else {}}


def reply_from_dict(wire: Mapping[str, Json]) -> Reply:
    """Return the reply record of a wire form; keys of newer versions are passed over."""
    plain = {name: wire[name] for name in _REPLY_PLAIN if name in wire}
    usage = wire.get("usage")
    params = json.dumps(wire.get("params") or {}, ensure_ascii=False, separators=(",", ":"))
    return Reply(
        **plain,  # type: ignore[arg-type]
        usage=usage_from_dict(usage) if isinstance(usage, dict) else None,
        params_json=params,
    )


def usage_from_dict(wire: Mapping[str, int]) -> Usage:
    """Return token counts from their wire form; kinds unknown here are left out."""
    return Usage(**{name: wire[name] for name in Usage().to_dict() if name in wire})


_REPLY_NUMBERS = ("cost_usd", "ttft_s", "seconds")
_REPLY_PLAIN = (
    "model",
    "answered_by",
    "provider",
    "fingerprint",
    "stop_reason",
    "error",
    *_REPLY_NUMBERS,
)


def _present(values: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value is not None}


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value


def _optional(value: Json) -> str | None:
    return None if value is None else _text(value)
