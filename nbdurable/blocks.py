"""Blocks and messages: what people, models and tools say to each other, as immutable values.

Owns the shapes; `wire` owns their JSON. Does not own storage, ids or order. The one idea: a value
is what was said, to the byte. Whatever could be changed by a reader (arguments, parameters) is
kept as JSON text and parsed afresh at each access.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

INLINE_BYTES = 32_768  # larger bytes are stored once per content, beside the entries (B61)

Role = Literal["user", "assistant", "tool"]
StopReason = Literal["stop", "length", "tool_calls", "error", "aborted"]
Json = object  # a value of the JSON kind: None, bool, int, float, str, list, dict


class Blob:
    """Bytes with their SHA-256; read from the store only when asked for (B61).

    Two blobs of equal content are equal. `repr` shows hash and size, never data.
    """

    __slots__ = ("_data", "_fetch", "sha256", "size_bytes")

    def __init__(
        self,
        sha256: str,
        size_bytes: int,
        *,
        data: bytes | None = None,
        fetch: Callable[[str], bytes] | None = None,
    ) -> None:
        self.sha256 = sha256
        self.size_bytes = size_bytes
        self._data = data
        self._fetch = fetch

    @classmethod
    def of(cls, data: bytes) -> Blob:
        """Return the blob of `data`."""
        data = bytes(data)
        return cls(hashlib.sha256(data).hexdigest(), len(data), data=data)

    def read(self) -> bytes:
        """Return the bytes, from the store when they are not at hand.

        Raises
        ------
        LookupError
            The bytes are neither at hand nor in a store.
        """
        if self._data is not None:
            return self._data
        if self._fetch is None:
            raise LookupError(f"blob {self.sha256[:12]} ({self.size_bytes} bytes) has no store")
        return self._fetch(self.sha256)

    @property
    def is_inline(self) -> bool:
        """Whether the bytes travel inside the entry's payload."""
        return self.size_bytes <= INLINE_BYTES

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and other.sha256 == self.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"Blob({self.sha256[:12]}…, {self.size_bytes} bytes)"

    def to_dict(self) -> dict[str, Json]:
        """Return the wire form: base64 up to `INLINE_BYTES`, else hash and size."""
        if self.is_inline:
            return {"base64": base64.b64encode(self.read()).decode("ascii")}
        return {"sha256": self.sha256, "size": self.size_bytes}

    @classmethod
    def from_dict(cls, wire: Mapping[str, Json], fetch: Callable[[str], bytes] | None) -> Blob:
        """Return the blob of a wire form."""
        if "base64" in wire:
            return cls.of(base64.b64decode(str(wire["base64"])))
        return cls(str(wire["sha256"]), int(str(wire["size"])), fetch=fetch)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Plain text."""

    text: str
    type: Literal["text"] = field(default="text", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What a model thought aloud; a signed one goes back only to its signer (B46).

    ``data`` holds a provider's redacted thinking, opaque to us.
    """

    text: str
    signature: str | None = None
    data: str | None = None
    type: Literal["thinking"] = field(default="thinking", init=False, repr=False)


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image; `data` reads its bytes."""

    blob: Blob
    media_type: str = "image/png"
    name: str | None = None
    type: Literal["image"] = field(default="image", init=False, repr=False)

    @property
    def data(self) -> bytes:
        """The image's bytes."""
        return self.blob.read()


@dataclass(frozen=True, slots=True)
class FileBlock:
    """A file of any kind; `data` reads its bytes."""

    blob: Blob
    media_type: str = "application/octet-stream"
    name: str | None = None
    type: Literal["file"] = field(default="file", init=False, repr=False)

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.blob.read()


@dataclass(frozen=True, slots=True)
class ToolCallBlock:
    """A model's call of a tool; ``raw`` is the arguments' text exactly as it was streamed.

    ``complete`` is False for a call cut in mid-stream: it is kept, never run, never sent (B22).
    ``provider_run`` marks a call that the provider itself answered (B30).
    """

    id: str
    name: str
    raw: str = "{}"
    complete: bool = True
    provider_run: bool = False
    type: Literal["tool_call"] = field(default="tool_call", init=False, repr=False)

    @property
    def arguments(self) -> dict[str, Json] | None:
        """The arguments as a fresh dict, or None when the text is no JSON object."""
        try:
            value = json.loads(self.raw or "{}")
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    @property
    def args_valid(self) -> bool:
        """Whether the arguments are a complete JSON object."""
        return self.complete and self.arguments is not None


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The answer to one tool call."""

    call_id: str
    content: tuple[Block, ...] = ()
    is_error: bool = False
    name: str | None = None
    type: Literal["tool_result"] = field(default="tool_result", init=False, repr=False)

    @property
    def text(self) -> str:
        """The text of the result's text blocks, joined by line ends."""
        return text_of(self.content)


@dataclass(frozen=True, slots=True)
class OpaqueBlock:
    """A block of a kind unknown to this version; kept, never sent (B37)."""

    raw: str
    type: Literal["opaque"] = field(default="opaque", init=False, repr=False)


Block = (
    TextBlock
    | ThinkingBlock
    | ImageBlock
    | FileBlock
    | ToolCallBlock
    | ToolResultBlock
    | OpaqueBlock
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls, in disjoint kinds: the total is their sum."""

    input_tokens: int = 0  # uncached
    output_tokens: int = 0  # without reasoning
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens."""
        return sum(self.to_dict().values())

    def __add__(self, other: Usage) -> Usage:
        mine, theirs = self.to_dict(), other.to_dict()
        return Usage(**{name: mine[name] + theirs[name] for name in mine})

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is recorded beside an assistant's blocks: who answered, how, at what cost.

    ``model`` is the requested name, ``answered_by`` the one the provider reported. ``cost_usd``,
    ``usage``, ``ttft_s`` (time to first token) and ``seconds`` are None when unknown.
    ``params_json`` holds the recorded parameters (B69).
    """

    model: str | None = None
    answered_by: str | None = None
    provider: str | None = None
    fingerprint: str | None = None
    params_json: str = "{}"
    stop_reason: StopReason = "stop"
    error: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    ttft_s: float | None = None
    seconds: float | None = None

    @property
    def params(self) -> dict[str, Json]:
        """The recorded parameters as a fresh dict."""
        return dict(json.loads(self.params_json))


@dataclass(frozen=True, slots=True)
class Message:
    """What one role said: blocks, and for an assistant the record of the reply.

    ``null_content`` tells a content of None from an empty list (case 21).
    """

    role: Role
    blocks: tuple[Block, ...] = ()
    reply: Reply | None = None
    null_content: bool = False

    @property
    def text(self) -> str:
        """The text of the text blocks and tool results, joined by line ends."""
        return text_of(self.blocks)

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The tool calls, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCallBlock))

    @property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        """The tool results, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolResultBlock))

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the assistant stopped; None for other roles."""
        return self.reply.stop_reason if self.reply else None


def text_of(blocks: tuple[Block, ...]) -> str:
    """Return the text in `blocks`, results included, joined by line ends."""
    return "\n".join(
        block.text for block in blocks if isinstance(block, TextBlock | ToolResultBlock)
    )


def blobs_of(blocks: tuple[Block, ...]) -> Iterator[Blob]:
    """Yield the blobs in `blocks` that do not travel inline, results included."""
    for block in blocks:
        if isinstance(block, ImageBlock | FileBlock) and not block.blob.is_inline:
            yield block.blob
        elif isinstance(block, ToolResultBlock):
            yield from blobs_of(block.content)
