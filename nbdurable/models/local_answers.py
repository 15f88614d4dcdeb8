"""Recorded answers of the local model, for where its weights cannot be.

Owns a JSONL file of answers, one a line, each under the digest of what the engine was sent. Does
not own sessions: a store records those, and `replay` repeats them. The one idea: equal requests
get equal answers, so a notebook that asks what it asked when it was recorded needs no weights; of
several answers to one request each is given in turn.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbdurable.blocks import Json
from nbdurable.errors import ModelError, shown
from nbdurable.wire import digest, dumps

VARIABLE = "NBDURABLE_ANSWERS"
_HINT = "run: nbdurable local fetch"
_SAID_CHARS = 60
_SOME_WORDS = re.compile(r"\s*\S+\s*")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the engine gave it; ``question`` is the end of the request, for people."""

    request: str
    question: str
    text: str
    finish_reason: str
    usage: Mapping[str, int]
    answered_by: str
    fingerprint: str

    async def chunks(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the answer in pieces, in the engine's form."""
        for piece in _SOME_WORDS.findall(self.text) or [self.text]:
            await asyncio.sleep(0)  # a cancel gets in between
            yield {"choices": [{"delta": {"content": piece}, "finish_reason": None}]}
        yield {
            "choices": [{"delta": {}, "finish_reason": self.finish_reason}],
            "usage": self.usage,
        }


class RecordedAnswers:
    """The answers in a file.

    Parameters
    ----------
    path : Path
        A file that `keep_answer` wrote.

    Raises
    ------
    ModelError
        It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        by_request: dict[str, list[Answer]] = {}
        for answer in _read(path):
            by_request.setdefault(answer.request, []).append(answer)
        self._turns: dict[str, Iterator[Answer]] = {
            request: itertools.cycle(answers) for request, answers in by_request.items()
        }

    def answer(self, body: Mapping[str, Json]) -> Answer:
        """Return the next answer to a request.

        Raises
        ------
        ModelError
            None is recorded.
        """
        turns = self._turns.get(_digest(body))
        if turns is None:
            raise ModelError(
                f"no answer of model 'local' is recorded for the request that ends in "
                f"{shown(_end(body))}, and its weights are not here; {_HINT}",
                reason="unavailable",
            )
        return next(turns)


def answers_path() -> Path | None:
    """Return the file that ``$NBDURABLE_ANSWERS`` names, or None where it is not set."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else None


def keep_answer(
    path: Path,
    body: Mapping[str, Json],
    chunks: Iterable[Mapping[str, Any]],
    *,
    answered_by: str,
    fingerprint: str,
) -> None:
    """Append an answer, given as the engine's chunks, to a file; one that was cut is left out."""
    usage: Mapping[str, int] = {}
    text, reason = "", None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices", ()):
            text += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
    if reason is None:
        return
    counts = {name: usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")}
    answer = Answer(_digest(body), _end(body), text, reason, counts, answered_by, fingerprint)
    with path.open("a", encoding="utf-8") as file:
        file.write(dumps(asdict(answer)) + "\n")


def _digest(body: Mapping[str, Json]) -> str:
    """Return the digest of a request in whatever order its keys stand."""
    return digest(
        json.loads(dumps(dict(body)), object_pairs_hook=lambda pairs: dict(sorted(pairs)))
    )


def _end(body: Mapping[str, Json]) -> str:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    said = " ".join(str(last["content"]).split()) if isinstance(last, dict) else ""
    return said[-_SAID_CHARS:]


def _read(path: Path) -> Iterator[Answer]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        told = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise ModelError(
            f"recorded answers {shown(str(path), 500)} cannot be read: {told}; correct {VARIABLE}, "
            f"or {_HINT}",
            reason="unavailable",
        ) from exc
    for n, line in enumerate(lines, 1):
        try:
            yield Answer(**json.loads(line))
        except (ValueError, TypeError) as exc:
            raise ModelError(
                f"line {n} of recorded answers {shown(str(path), 500)} is no answer; restore the "
                f"file, or {_HINT}",
                reason="unavailable",
            ) from exc
