"""The `Model` protocol: what the loop asks of a language model, and the deltas it answers with.

Owns the request, the deltas of a stream and their assembly into a message. Does not own retries,
wire formats or keys: those are each model's own. The one idea: whatever arrived is a message at
every moment, so that a cut stream still gives the part that was paid for (B22).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol, runtime_checkable

from nbdurable.blocks import (
    Block,
    ImageBlock,
    Json,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; ``parameters`` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Json]

    def to_dict(self) -> dict[str, Json]:
        """Return name, description and parameters."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call. ``params`` may hold keys, so neither it nor anything in it is shown."""

    messages: tuple[Message, ...] = field(repr=False)
    system: str | None = field(default=None, repr=False)
    tools: tuple[ToolSpec, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More thinking; a signature or redacted data closes the block."""

    text: str = ""
    signature: str | None = None
    data: str | None = None


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a tool call. Pieces of one ``key`` belong together; a new key is a new call."""

    key: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    provider_run: bool = False


@dataclass(frozen=True, slots=True)
class ImageDelta:
    """A whole image that the model made."""

    image: ImageBlock


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """The call failed before any output and is made again after ``delay_s`` seconds (B25)."""

    attempt: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The stream's proper end; a stream without one was cut.

    ``usage`` and ``cost_usd`` are None when unknown. ``error`` goes with a ``stop_reason`` of
    ``error``, such as a provider's content filter.
    """

    stop_reason: StopReason = "stop"
    usage: Usage | None = None
    cost_usd: float | None = None
    answered_by: str | None = None
    provider: str | None = None
    fingerprint: str | None = None
    error: str | None = None


Delta = TextDelta | ThinkingDelta | CallDelta | ImageDelta | RetryNotice | Finish


@runtime_checkable
class Model(Protocol):
    """A language model; an implementation is shared by all runs of a handle.

    One that answers only so many calls at a time may say so by an attribute ``calls_at_once``: an
    experiment makes no more, so that waiting for the others does not count as an answer's time.
    """

    @property
    def name(self) -> str:
        """The requested model name, as recorded; never holds a secret."""

    def check(self, params: Mapping[str, object] | None = None) -> None:
        """Raise `ModelError` (reason ``unavailable``) saying what is missing, if anything (B7).

        ``params`` are those of the call, which may hold the key. May block for seconds at the first
        call (imports, weights); called off the event loop.
        """

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield deltas and one `Finish`; make retries itself, before any output only.

        Raises
        ------
        ModelError
            The call failed for good, or its stream ended without a finish (``interrupted``).
            Cancelling the task that iterates closes the connection.
        """

    def describe(self, request: ModelRequest) -> dict[str, Json]:
        """Return the exact request that `stream` would send, secrets shown as ``***`` (B47)."""

    def count_tokens(self, request: ModelRequest) -> int:
        """Return the request's size in tokens, estimated where the model tells no better."""

    def context_limit(self) -> int | None:
        """Return how many tokens the model reads at most, or None when unknown."""

    def max_cost_usd(self, request: ModelRequest) -> float | None:
        """Return the most the call can cost, or None: no price or output limit known (B26)."""


# -- assembly ----------------------------------------------------------------------------------


def _both(first: Finish, last: Finish) -> Finish:
    """Return the last finish, completed by what only the first reported."""
    told = {field.name: getattr(first, field.name) for field in fields(Finish)}
    again = {name: getattr(last, name) for name in told if getattr(last, name) is not None}
    return Finish(**{**told, **again})


@dataclass(slots=True)
class _Piece:
    kind: Literal["text", "thinking", "call", "image"]
    parts: list[str] = field(default_factory=list)
    key: int = -1
    id: str = ""
    name: str = ""
    provider_run: bool = False
    signature: str | None = None
    data: str | None = None
    image: ImageBlock | None = None


class Assembly:
    """Deltas on their way to a message; `blocks` is the answer so far, at any moment."""

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self._calls: dict[int, _Piece] = {}
        self.finish: Finish | None = None

    def add(self, delta: Delta) -> None:
        """Take one delta."""
        match delta:
            case TextDelta() if delta.text:
                self._open("text").parts.append(delta.text)
            case ThinkingDelta() if delta.text or delta.signature or delta.data:
                piece = self._open("thinking")
                piece.parts.append(delta.text)
                piece.signature = delta.signature or piece.signature
                piece.data = delta.data or piece.data
            case CallDelta():
                self._add_call(delta)
            case ImageDelta():
                self._pieces.append(_Piece("image", image=delta.image))
            case Finish():
                self.finish = delta if self.finish is None else _both(self.finish, delta)

    def _open(self, kind: Literal["text", "thinking"]) -> _Piece:
        last = self._pieces[-1] if self._pieces else None
        closed = last is not None and (last.signature is not None or last.data is not None)
        if last is None or last.kind != kind or closed:
            last = _Piece(kind)
            self._pieces.append(last)
        return last

    def _add_call(self, delta: CallDelta) -> None:
        piece = self._calls.get(delta.key)
        if piece is None:
            piece = self._calls[delta.key] = _Piece("call", key=delta.key)
            self._pieces.append(piece)
        piece.id = piece.id or delta.id
        piece.name = piece.name or delta.name
        piece.parts.append(delta.arguments)
        piece.provider_run = piece.provider_run or delta.provider_run

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived that is worth keeping."""
        return not self._pieces

    @property
    def has_calls(self) -> bool:
        """Whether a tool call has begun."""
        return bool(self._calls)

    def blocks(self) -> tuple[Block, ...]:
        """Return the answer so far; calls count as complete only after the finish."""
        return tuple(self._block(piece) for piece in self._pieces)

    def _block(self, piece: _Piece) -> Block:
        text = "".join(piece.parts)
        piece.parts = [text]
        if piece.kind == "text":
            return TextBlock(text)
        if piece.kind == "thinking":
            return ThinkingBlock(text, piece.signature, piece.data)
        if piece.image is not None:
            return piece.image
        call = ToolCallBlock(
            piece.id or f"call_{piece.key}", piece.name, text, self.finish is not None
        )
        return replace(call, provider_run=True) if piece.provider_run else call
