"""Preferences out: pairs of a better and a worse answer, one per line, to tune a model on.

Owns what makes a pair and the form of its line, OpenAI's: ``input.messages``,
``preferred_output``, ``non_preferred_output``. The one idea: a pair is two answers to the same
prompt, so what both share is the prompt and what each has alone is its output.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from nbdurable.annotations import Score
from nbdurable.blocks import Json, Message
from nbdurable.codec import decode
from nbdurable.entries import Entry
from nbdurable.errors import StoreError, shown
from nbdurable.formats.redaction import Redact, Redactor
from nbdurable.loaded import Loaded
from nbdurable.models.chat_format import to_chat
from nbdurable.reprs import count
from nbdurable.reruns import find_runs
from nbdurable.stored import Beside, Context, RunRecord
from nbdurable.stores.jsonl import Section, replacing
from nbdurable.views import model_view
from nbdurable.wire import dumps

Pair = tuple[str, str]
"""The ids of the last entry of a better answer and of a worse one."""

_KEYS = {"input", "preferred_output", "non_preferred_output"}


@dataclass(frozen=True, slots=True)
class Pairs:
    """The lines of an export, and how many pairs were no two answers to one prompt."""

    lines: tuple[str, ...]
    left_out: int


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write a session's pairs, or those with an answer on the path to one of its entries.

    Warns when there is nothing to write, and of pairs that are left out.
    """
    pairs = preference_pairs(image, leaf_id=leaf_id, redact=redact)
    with replacing(path) as file:
        file.writelines(line.encode("utf-8") + b"\n" for line in pairs.lines)
    if pairs.left_out:
        warnings.warn(
            f"{count(pairs.left_out, 'pair')} of session {shown(image.session_id)} left out of "
            f"{path.name!r}: prefer and rate need two different answers to one prompt",
            stacklevel=4,
        )
    elif not pairs.lines:
        warnings.warn(
            f"session {shown(image.session_id)} has no answer that is preferred to another, or "
            f"rated higher, so {path.name!r} is empty; see prefer() and rate()",
            stacklevel=4,
        )


def is_ours(path: Path) -> bool:
    """Whether a file's first line is a pair."""
    with path.open("rb") as file:
        try:
            first = json.loads(file.readline())
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict) and first.keys() >= _KEYS


def preference_pairs(
    image: Loaded, *, leaf_id: str | None = None, redact: Redact | None = None
) -> Pairs:
    """Return the lines of all pairs that preferences and ratings of a session give.

    A pair is left out whose entries are not two different answers to one prompt: one lies above
    the other, the questions differ, or nothing of an answer can be sent. Equal lines come once.
    """
    source = _Source(image, redact)
    on_path = None if leaf_id is None else {node.id for node in image.tree.path(leaf_id)}
    lines: dict[str, None] = {}
    left_out = 0
    for better, worse in dict.fromkeys([*_preferred(image), *_rated(image)]):
        if on_path is not None and on_path.isdisjoint((better, worse)):
            continue
        line = _line(source, better, worse)
        if line is None:
            left_out += 1
        else:
            lines[line] = None
    return Pairs(tuple(lines), left_out)


# -- pairs -------------------------------------------------------------------------------------


def _preferred(image: Loaded) -> Iterator[Pair]:
    for said in image.annotations().preferences():
        if said.winner_id in image.tree and said.loser_id in image.tree:
            yield said.winner_id, said.loser_id


def _rated(image: Loaded) -> Iterator[Pair]:
    """Yield what is rated higher with what is rated lower, by one author under one name."""
    groups: dict[tuple[str, str, str | None], list[tuple[str, Score]]] = {}
    for entry_id, marks in image.annotations().marks().items():
        question_id = _question(image, entry_id)
        if question_id is not None:
            for rating in marks.ratings:
                key = (question_id, rating.name, rating.by)
                groups.setdefault(key, []).append((entry_id, rating.score))
    for rated in groups.values():
        rated.sort(key=lambda pair: image.stored(pair[0]).n)
        for (one, score), (other, other_score) in combinations(rated, 2):
            if score != other_score:
                yield (one, other) if score > other_score else (other, one)


def _question(image: Loaded, entry_id: str) -> str | None:
    """Return the user's message that an entry is part of the answer to."""
    seen: set[str] = set()
    node = image.tree.get(entry_id)
    while node is not None and node.id not in seen:
        seen.add(node.id)
        node = image.tree.get(node.parent_id)
        if node is not None and node.role == "user" and not node.meta:
            return node.id
    return None


# -- lines -------------------------------------------------------------------------------------


def _line(source: _Source, better: str, worse: str) -> str | None:
    paths = [source.path(entry_id) for entry_id in (better, worse)]
    shared = {entry.id for entry in paths[0]} & {entry.id for entry in paths[1]}
    answers = [_answer(path, shared) for path in paths]
    if answers[0] is None or answers[1] is None:
        return None
    (prompt, chosen), (other_prompt, rejected) = answers[0], answers[1]
    if prompt != other_prompt or not prompt or prompt[-1].role == "assistant":
        return None
    outputs = [_output(messages) for messages in (chosen, rejected)]
    if not outputs[0] or not outputs[1] or outputs[0] == outputs[1]:
        return None
    system, tools = source.context(better, worse)
    asked: dict[str, Json] = {"messages": to_chat(prompt, system)}
    if tools:
        asked["tools"] = tools
    return dumps(
        {"input": asked, "preferred_output": outputs[0], "non_preferred_output": outputs[1]}
    )


def _answer(
    path: list[Entry], shared: set[str]
) -> tuple[tuple[Message, ...], tuple[Message, ...]] | None:
    """Return what the model read before an answer and the answer, or None where there is none."""
    view = model_view(path)
    own = [at for at, id in enumerate(view.entry_ids) if id is not None and id not in shared]
    if not own or view.entry_ids[own[-1]] != path[-1].id:
        return None
    return view.messages[: own[0]], view.messages[own[0] : own[-1] + 1]


def _output(messages: Iterable[Message]) -> list[Json]:
    """Return an answer in chat form; nothing when it is none that a model could have given."""
    chat = to_chat(messages)
    roles = [message["role"] for message in chat]
    if not roles or roles[-1] != "assistant" or not set(roles) <= {"assistant", "tool"}:
        return []
    return list(chat)


class _Source:
    """Where lines come from: entries and contexts of a session, each read and redacted once."""

    def __init__(self, image: Loaded, redact: Redact | None) -> None:
        self._image = image
        self._redactor = None if redact is None else Redactor(redact, image.store.get_blob)
        own = image.store.load_runs(image.session_id)
        self._runs: dict[str | None, RunRecord | None] = {run.id: run for run, _ in own}
        self._entry = lru_cache(maxsize=None)(self._read_entry)
        self._context = lru_cache(maxsize=None)(self._read_context)

    def path(self, entry_id: str) -> list[Entry]:
        """Return the entries from the root to an entry."""
        return [self._entry(node.id) for node in self._image.tree.path(entry_id)]

    def context(self, *entry_ids: str) -> tuple[str | None, list[Json]]:
        """Return system text and tools, each only where the answers do not differ in it."""
        digests = [self._digest(entry_id) for entry_id in entry_ids]
        known = [context for digest in digests if digest and (context := self._context(digest))]
        systems = {context.system for context in known}
        tools = {context.tools_json for context in known}
        return (
            systems.pop() if len(systems) == 1 else None,
            _tools(tools.pop()) if len(tools) == 1 else [],
        )

    def _digest(self, entry_id: str) -> str | None:
        run_id = self._image.stored(entry_id).run_id
        if run_id not in self._runs:  # of a session that this one was forked from, or a person's
            found = find_runs(self._image, run_id)
            self._runs[run_id] = found[0][0] if found else None
        run = self._runs[run_id]
        return run.context_digest if run else None

    def _read_entry(self, entry_id: str) -> Entry:
        if self._redactor is None:
            return self._image.entry(entry_id)
        section = Section(session=self._image.record, entries=(self._image.stored(entry_id),))
        return decode(self._redactor.section(section).entries[0], self._redactor.fetch)

    def _read_context(self, digest: str) -> Context | None:
        try:
            context = self._image.store.load_context(digest)
        except StoreError:
            return None
        if self._redactor is None:
            return context
        section = Section(session=self._image.record, beside=Beside(contexts=(context,)))
        return self._redactor.section(section).beside.contexts[0]


def _tools(tools_json: str) -> list[Json]:
    return [{"type": "function", "function": spec} for spec in json.loads(tools_json)]
