"""`LocalModel`: a small language model inside this process, for work without a key or a network.

Owns the model protocol over the engine (`local_engine`): what a request becomes, what an answer's
chunks mean. Does not own weights (`weights`) or prompts (`local_prompt`). The one idea: one model
per process, loaded at its first use and shared by all sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import secrets
import sys
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbdurable.blocks import Json, Message, StopReason, ToolCallBlock, Usage
from nbdurable.errors import ModelError, shown
from nbdurable.models.base import CallDelta, Delta, Finish, ModelRequest, TextDelta
from nbdurable.models.local_answers import RecordedAnswers, answers_path
from nbdurable.models.local_engine import Chunk, Engine, decoded, load_engine, loading
from nbdurable.models.local_http import LocalEndpoint
from nbdurable.models.local_prompt import forced_tools, left_out, parse_call, request_body
from nbdurable.models.params import RECORDED
from nbdurable.models.weights import weights_path

STREAMED = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}


class LocalModel:
    """A model that runs in this process; several calls at once take turns.

    Parameters
    ----------
    path : str, Path or None
        A file of weights in GGUF form with a chat template; `weights_path` when None.
    n_ctx : int
        How many tokens of prompt and answer it keeps in mind.

    Notes
    -----
    Decoding repeats itself exactly at temperature 0 or with a seed, on one machine and one version
    of the engine. A template that knows no tools is assumed: a call is made only when
    ``tool_choice`` forces one.
    """

    name = "local"
    calls_at_once = 1

    def __init__(self, path: str | Path | None = None, *, n_ctx: int = 4096) -> None:
        self._path = Path(path) if path is not None else None
        self._n_ctx = n_ctx
        self._engine: Engine | None = None
        self._endpoint: LocalEndpoint | None = None
        self._answers: RecordedAnswers | None = None
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"LocalModel({str(self._path or weights_path())!r}, n_ctx={self._n_ctx})"

    # -- the engine ----------------------------------------------------------------------------

    def check(self, params: Mapping[str, object] | None = None) -> None:
        """Load the model if it is not loaded.

        Raises
        ------
        ModelError
            The engine or the weights are missing or cannot be loaded; says what to run.
        """
        if self._recorded() is None:
            self._ready()

    def endpoint(self) -> tuple[str, str]:
        """Return base URL and key of the same model as an OpenAI-like server on loopback.

        It serves ``/chat/completions``, streamed or not, with what the model does in the process:
        forced calls of tools, answers by a schema, calls and results of earlier turns as words.
        """
        self.check()
        with loading():
            if self._endpoint is None or not self._endpoint.is_ours:
                self._endpoint = LocalEndpoint(self)
            return self._endpoint.base_url, self._endpoint.key

    def _ready(self) -> Engine:
        with loading():
            if self._engine is None or not self._engine.is_ours:
                self._engine = load_engine(self._path or weights_path(), self._n_ctx)
            return self._engine

    def _recorded(self) -> RecordedAnswers | None:
        """Return what answers in place of weights that are not there, if anything does."""
        weights, path = weights_path(), answers_path()
        if path is None or self._path or self._engine is not None or weights.is_file():
            return None
        with loading():
            if self._answers is None or self._answers.path != path:
                self._answers = RecordedAnswers(path)
        self._warn_once(
            f"answers {path}",
            "no weights of model 'local' are here: it repeats recorded answers, and has none to "
            "new questions; run: nbdurable local fetch",
        )
        return self._answers

    # -- the model protocol --------------------------------------------------------------------

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Yield the answer's deltas; cancelling ends the decoding at its next token."""
        self._warn_left_out(request.params)
        body = request_body(request)
        answers = self._recorded()
        if answers is not None:
            answer = answers.answer(body)
            origin = _Origin(answer.answered_by, "recording", answer.fingerprint)
            stream = answer.chunks()
        else:
            engine = await asyncio.to_thread(self._ready)
            origin = _Origin(engine.answered_by, "local", fingerprint())
            stream = decoded(engine, {**body, **STREAMED})
        reader = _Reader(origin, is_call=bool(forced_tools(request)))
        async with contextlib.aclosing(stream) as chunks:
            async for chunk in chunks:
                for delta in reader.read(chunk):
                    yield delta
        for delta in reader.end():
            yield delta

    def _warn_left_out(self, params: Mapping[str, object]) -> None:
        for name in left_out(params):
            text = f"parameter {name!r} changes nothing in model 'local'; it is left out"
            self._warn_once(name, text)

    def _warn_once(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(text, stacklevel=_level_outside())

    def describe(self, request: ModelRequest) -> dict[str, Json]:
        """Return the body that is handed to the engine, unrecorded parameters as ``***``."""
        hidden = set(request.params) - RECORDED - {"messages", "json_schema"}
        return {
            name: "***" if name in hidden else value
            for name, value in {"model": self.name, **request_body(request)}.items()
        }

    def count_tokens(self, request: ModelRequest) -> int:
        """Return an estimate: 3.5 characters and 5 tokens a message, without loading anything."""
        texts = [request.system or "", *map(_read_text, request.messages)]
        return 20 + sum(5 + int(len(text) / 3.5) for text in texts)

    def context_limit(self) -> int:
        """Return the size of the context that is loaded."""
        return self._n_ctx

    def max_cost_usd(self, request: ModelRequest) -> float:
        """Return zero: nothing is paid."""
        return 0.0


def _read_text(message: Message) -> str:
    called = (
        block.name + block.raw for block in message.blocks if isinstance(block, ToolCallBlock)
    )
    return message.text + "".join(called)


def _level_outside() -> int:
    """Return the stack level of the nearest code that is not ours, for a warning of the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("nbdurable."):
        frame, level = frame.f_back, level + 1
    return level


def fingerprint() -> str:
    """Return the version of the engine, as answers record it."""
    return f"xllamacpp {importlib.metadata.version('xllamacpp')}"


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where an answer comes from, as it is recorded."""

    answered_by: str
    provider: str
    fingerprint: str


class _Reader:
    """Chunks of one answer on their way to deltas."""

    def __init__(self, origin: _Origin, *, is_call: bool) -> None:
        self._origin = origin
        self._is_call = is_call
        self._written: list[str] = []  # a forced call, read when it is whole
        self._reason: StopReason | None = None
        self._usage: Usage | None = None

    def read(self, chunk: Chunk) -> Iterator[Delta]:
        """Yield the deltas of one chunk."""
        if "error" in chunk:
            raise _error(chunk["error"])
        if usage := chunk.get("usage"):
            self._usage = Usage(usage["prompt_tokens"], usage["completion_tokens"])
        for choice in chunk.get("choices", ()):
            text = choice["delta"].get("content")
            if text and self._is_call:
                self._written.append(text)
            elif text:
                yield TextDelta(text)
            if choice["finish_reason"] is not None:
                self._reason = "length" if choice["finish_reason"] == "length" else "stop"

    def end(self) -> Iterator[Delta]:
        """Yield what is left at the end of the stream, and its finish."""
        reason = self._reason
        if reason is None:
            raise ModelError(
                "the answer of model 'local' broke off before its end; run again",
                reason="interrupted",
            )
        if self._is_call:
            text = "".join(self._written)
            if call := parse_call(text):
                name, arguments = call
                yield CallDelta(0, f"call_{secrets.token_hex(8)}", name, arguments)
                reason = "tool_calls"
            elif text:
                yield TextDelta(text)
        yield Finish(
            stop_reason=reason,
            usage=self._usage,
            cost_usd=0.0,
            answered_by=self._origin.answered_by,
            provider=self._origin.provider,
            fingerprint=self._origin.fingerprint,
        )


def _error(error: Mapping[str, Any]) -> ModelError:
    status = error.get("code")
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            f"prompt of {error.get('n_prompt_tokens')} tokens is too long for model 'local', "
            f"which reads {error.get('n_ctx')}; compact the session or branch to an earlier entry",
            reason="context",
            status=status,
        )
    return ModelError(
        f"model 'local' refused the request: {shown(error.get('message'), 200)}",
        reason="server" if isinstance(status, int) and status >= 500 else "other",
        status=status,
    )


_shared = LocalModel()


def shared() -> LocalModel:
    """Return the one model of this process that ``"local"`` names."""
    return _shared


def local_endpoint() -> tuple[str, str]:
    """Return base URL and key of ``"local"`` as a server on loopback, loading it if need be."""
    return _shared.endpoint()
