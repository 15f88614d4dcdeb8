"""Chunks and answers of LiteLLM as deltas: the edge where each provider's quirks end.

Owns reading; reads by attribute, so that nothing here imports LiteLLM. The one idea: LiteLLM fills
gaps (an invented finish, a guessed usage, the requested model's name), and what it made up is told
from what the provider said.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

from nbdurable.blocks import StopReason, Usage
from nbdurable.models.base import (
    CallDelta,
    Delta,
    Finish,
    ImageDelta,
    TextDelta,
    ThinkingDelta,
)
from nbdurable.models.chat_format import image_from_url

_LENGTH = frozenset({"length", "max_tokens", "model_length", "pause_turn", "compaction"})
_FILTERED = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "image_safety",
        "language",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "sensitive",
        "spii",
    }
)
_BROKEN = frozenset(
    {
        "error",
        "malformed_function_call",
        "malformed_response",
        "network_error",
        "unexpected_tool_call",
    }
)
_GEMINI = frozenset({"gemini", "vertex_ai", "vertex_ai_beta"})


class Watch:
    """What the provider itself said, noted before LiteLLM changes it.

    Attributes
    ----------
    model : str or None
        The answering model, which LiteLLM overwrites by the requested one.
    """

    def __init__(self, answer: Any) -> None:
        self.model: str | None = None
        self._answer = answer
        self._is_gemini = answer.custom_llm_provider in _GEMINI
        self._gemini_reason: str | None = None
        if answer.completion_stream is None and answer.make_call is not None:
            self._make = answer.make_call  # some providers connect at the first chunk only
            answer.make_call = self._connect
        elif hasattr(answer.completion_stream, "__aiter__"):
            answer.completion_stream = self._over(answer.completion_stream)

    async def _connect(self, *args: Any, **kwargs: Any) -> Any:
        return self._over(await self._make(*args, **kwargs))

    def _over(self, chunks: Any) -> Any:
        if self._is_gemini and hasattr(chunks, "chunk_parser"):
            self._parse = chunks.chunk_parser
            chunks.chunk_parser = self._parse_gemini
        return _Watched(chunks, self)

    def _parse_gemini(self, chunk: Any) -> Any:
        for candidate in chunk.get("candidates") or ():
            self._gemini_reason = candidate.get("finishReason") or self._gemini_reason
        if (chunk.get("promptFeedback") or {}).get("blockReason"):
            self._gemini_reason = "content_filter"
        return self._parse(chunk)

    def note(self, chunk: Any) -> None:
        """Note the model that a chunk names."""
        model = getattr(chunk, "model", None)
        if isinstance(model, str) and model:
            self.model = model

    @property
    def reason(self) -> str | None:
        """The provider's finish reason; None when the answer was cut.

        LiteLLM ends a cut answer with "stop" or "tool_calls" of its own. For Gemini it puts "stop"
        into every chunk, so that only the wire tells.
        """
        if self._is_gemini:
            return self._gemini_reason
        answer = self._answer
        said = answer.received_finish_reason or answer.intermittent_finish_reason
        return said or ("stop" if answer.is_mock else None)


class _Watched:
    """A provider's chunks, passed on as they are."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch
        self._chunks: AsyncIterator[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self  # LiteLLM asks for each chunk: one generator less to make and close

    async def __anext__(self) -> Any:
        if self._chunks is None:
            self._chunks = aiter(self._inner)
        chunk = await anext(self._chunks)
        self._watch.note(chunk)
        return chunk


class Reader:
    """Reads one answer, chunk by chunk or whole.

    Attributes
    ----------
    has_output : bool
        Whether a delta was made; after that nothing is tried again (B25).
    """

    def __init__(self) -> None:
        self.has_output = False
        self._open_calls: dict[int, tuple[int, str]] = {}  # wire index -> our key, id
        self._keys = 0
        self._has_own_calls = False
        self._refused = False
        self._fingerprint: str | None = None
        self._last_usage: Any = None
        self._last_cost: object = None

    # -- chunks ------------------------------------------------------------------------------

    def deltas(self, chunk: Any) -> Iterator[Delta]:
        """Yield what one chunk brings."""
        self._note(chunk)
        for choice in getattr(chunk, "choices", None) or ():
            if getattr(choice, "index", 0):
                continue  # of n answers only the first is kept
            body = getattr(choice, "delta", None) or getattr(choice, "message", None)
            for delta in self._body(body):
                self.has_output = True
                yield delta

    def _note(self, chunk: Any) -> None:
        self._fingerprint = getattr(chunk, "system_fingerprint", None) or self._fingerprint
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self._last_usage = usage
            hidden = getattr(chunk, "_hidden_params", None) or {}
            self._last_cost = _field(usage, "cost")
            if self._last_cost is None:
                self._last_cost = hidden.get("response_cost")

    def _body(self, body: Any) -> Iterator[Delta]:
        yield from self._thinking(body)
        if content := getattr(body, "content", None):
            yield TextDelta(str(content))
        if refusal := getattr(body, "refusal", None):
            self._refused = True
            yield TextDelta(str(refusal))
        for image in getattr(body, "images", None) or ():
            yield _image(image)
        for call in getattr(body, "tool_calls", None) or ():
            yield self._call(call)
        fields = getattr(body, "provider_specific_fields", None) or {}
        for call in fields.get("server_tool_calls") or ():
            yield self._provider_call(call)

    def _thinking(self, body: Any) -> Iterator[Delta]:
        blocks = getattr(body, "thinking_blocks", None) or ()
        for block in blocks:
            yield ThinkingDelta(
                _field(block, "thinking") or "",
                _field(block, "signature") or None,
                _field(block, "data") or None,
            )
        if not blocks and (text := getattr(body, "reasoning_content", None)):
            yield ThinkingDelta(str(text))

    def _call(self, call: Any) -> CallDelta:
        """Tell calls apart by id as well as index: local servers give all of them index 0."""
        index, call_id = getattr(call, "index", None), getattr(call, "id", None) or ""
        if index is None:
            index = -1 - self._keys if call_id else max(self._open_calls, default=0)
        key, known_id = self._open_calls.get(index, (-1, ""))
        if key < 0 or (call_id and known_id and call_id != known_id):
            key = self._next_key()
        self._open_calls[index] = (key, call_id or known_id)
        self._has_own_calls = True
        function = getattr(call, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        return CallDelta(key, call_id, name or "", arguments or "")

    def _provider_call(self, call: Any) -> CallDelta:
        function = _field(call, "function")
        name, arguments = _field(function, "name"), _field(function, "arguments")
        call_id = str(_field(call, "id") or "")
        return CallDelta(self._next_key(), call_id, name or "", arguments or "{}", True)

    def _next_key(self) -> int:
        self._keys += 1
        return self._keys - 1

    # -- the end -----------------------------------------------------------------------------

    def finish(
        self, reason: str, *, has_usage: bool, answered_by: str | None, provider: str | None
    ) -> Finish:
        """Return the end of an answer that really ended.

        Parameters
        ----------
        reason : str
            The finish reason as LiteLLM had it from the provider.
        has_usage : bool
            Whether the provider reported usage. Otherwise LiteLLM's is a guess, and so is the
            cost made from it: both are unknown.
        answered_by, provider : str or None
            As reported.
        """
        stop_reason, error = self._stop_reason(reason)
        return Finish(
            stop_reason=stop_reason,
            usage=usage_of(self._last_usage) if has_usage else None,
            cost_usd=finite(self._last_cost) if has_usage else None,
            answered_by=answered_by,
            provider=provider,
            fingerprint=self._fingerprint,
            error=error,
        )

    def _stop_reason(self, reason: str) -> tuple[StopReason, str | None]:
        word = reason.lower()
        if self._refused or word in _FILTERED:
            found = "refusal" if self._refused else word
            return "error", f"the provider withheld the answer ({found}); change the input"
        if word in _BROKEN:
            return "error", f"the provider broke the answer off ({word}); run again"
        if word in _LENGTH:
            return "length", None
        return ("tool_calls" if self._has_own_calls else "stop"), None


# -- numbers -----------------------------------------------------------------------------------


def usage_of(usage: Any) -> Usage | None:
    """Return OpenAI-style usage in disjoint kinds.

    There the prompt includes what was cached, and the completion includes reasoning.
    """
    if usage is None:
        return None
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    details = _field(usage, "prompt_tokens_details")
    read = min(prompt, _count(details, "cached_tokens"))
    write = min(prompt - read, _count(details, "cache_creation_tokens"))
    reasoning = _count(_field(usage, "completion_tokens_details"), "reasoning_tokens")
    reasoning = min(completion, reasoning)
    return Usage(prompt - read - write, completion - reasoning, read, write, reasoning)


def finite(value: object) -> float | None:
    """Return a number that JSON can hold, else None (B64)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _count(holder: Any, name: str) -> int:
    number = finite(_field(holder, name))
    return max(0, int(number)) if number is not None else 0


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _image(part: Any) -> Delta:
    url = str(_field(_field(part, "image_url"), "url") or "")
    image = image_from_url(url)
    return ImageDelta(image) if image is not None else TextDelta(f"![image]({url})")
