"""The format ``langsmith``: runs exported from LangSmith, one to a line or in a list.

Owns how a conversation is found in runs. A run of a model holds all that was said before it, so
runs of one thread are laid over one another: what is equal from the start is one path, and where
they differ is a branch. Threads are mixed, so the runs of a file are put aside until its end, in a
file without a name: no more than one of them is in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from nbdurable.blocks import Reply
from nbdurable.entries import MessageEntry
from nbdurable.formats.drafts import (
    UNREADABLE,
    Conversation,
    Draft,
    Said,
    unread,
    usage_or_none,
)
from nbdurable.formats.langchain import answers_of, inputs_of
from nbdurable.formats.picking import (
    as_count,
    as_id,
    as_map,
    as_number,
    as_text,
    instant,
    leftover,
)
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Damage, Found
from nbdurable.models.chat_format import message_from_openai
from nbdurable.reprs import count
from nbdurable.wire import digest

TIMES = (
    "start_time for what was asked and end_time for what was answered, ISO text in UTC; what came "
    "from an earlier run has the time of the first that holds it"
)
HAS_IDS = True

_MODEL_RUNS = frozenset({"llm", "chat_model"})
_THREAD_KEYS = ("thread_id", "session_id", "conversation_id")
_USED = frozenset(
    "id inputs outputs run_type start_time end_time trace_id error session_id feedback_stats "
    "parent_run_id parent_run_ids child_runs child_run_ids dotted_order serialized".split()
)
_NESTED = frozenset({"child_runs", "serialized"})  # runs of their own, and code
_KEY_CHARS = 16


def is_record(value: Any) -> bool:
    """Whether a value is a run."""
    return isinstance(value, dict) and isinstance(value.get("run_type"), str) and "inputs" in value


def read(found: Iterable[Found | Damage], assets: Assets) -> Iterator[Conversation | Damage]:
    """Yield the threads of one file."""
    threads: dict[str, list[_Aside]] = {}
    with TemporaryFile() as aside:
        for item in found:
            if isinstance(item, Damage):
                yield item
                continue
            if not is_record(item.value):
                yield unread(item, "is no run")
                continue
            try:
                for run in _with_children(item.value):
                    threads.setdefault(_thread_of(run), []).append(_put_aside(run, aside))
            except UNREADABLE as exc:
                yield unread(item, f"cannot be read: {exc}")
        for id, runs in threads.items():
            try:
                yield _thread(id, runs, aside)
            except UNREADABLE as exc:
                yield Damage(f"thread {id!r} cannot be read: {exc}")


class _Aside(NamedTuple):
    """Where a run was put, after what decides its place in its thread."""

    started: int
    id: str
    run_type: str
    is_child: bool
    start: int
    size_bytes: int


def _put_aside(run: dict[str, Any], aside: IO[bytes]) -> _Aside:
    held = {key: value for key, value in run.items() if key not in _NESTED}
    data = json.dumps(held).encode()
    start = aside.tell()
    aside.write(data)
    return _Aside(
        instant(run.get("start_time")) or 0,
        str(run.get("id")),
        run["run_type"],
        as_id(run.get("parent_run_id")) is not None,
        start,
        len(data),
    )


def _taken_up(run: _Aside, aside: IO[bytes]) -> dict[str, Any]:
    aside.seek(run.start)
    held: dict[str, Any] = json.loads(aside.read(run.size_bytes))
    return held


def _with_children(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [run]
    while waiting:
        one = waiting.pop()
        yield one
        children = one.get("child_runs")
        if isinstance(children, list):
            waiting += [child for child in reversed(children) if is_record(child)]


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    return as_map(as_map(run.get("extra")).get("metadata"))


def _thread_of(run: dict[str, Any]) -> str:
    metadata = _metadata(run)
    named = (as_id(metadata.get(key)) for key in _THREAD_KEYS)
    found = next((name for name in named if name), None)
    return found or as_id(run.get("trace_id")) or as_id(run.get("id")) or "without id"


def _thread(id: str, runs: list[_Aside], aside: IO[bytes]) -> Conversation:
    ordered = sorted(runs)
    asked = [run for run in ordered if run.run_type in _MODEL_RUNS]
    others = [run for run in ordered if run.run_type not in _MODEL_RUNS]
    if not asked:  # what was traced is a chain alone
        asked = [run for run in others if not run.is_child] or others[:1]
        taken = set(asked)
        others = [run for run in others if run not in taken]
    laid = _Laid(id)
    for run in asked:
        laid.take(_taken_up(run, aside))
    if others:
        counts = sorted(Counter(run.run_type for run in others).items())
        kinds = ", ".join(f"{number} {kind}" for kind, number in counts)
        told = f"{count(len(others), 'run')} that called no model ({kinds}) left out"
        laid.made.odd.append((None, told))
    return laid.made


@dataclass(slots=True)
class _Laid:
    """Runs laid over one another."""

    id: str
    made: Conversation = field(init=False)
    _keys: dict[tuple[str | None, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.made = Conversation(id=self.id)

    def take(self, run: dict[str, Any]) -> None:
        """Lay one run over those before it."""
        started = instant(run.get("start_time"))
        ended = instant(run.get("end_time")) or started
        self.made.at = self.made.at or started
        parent: str | None = None
        for chat in inputs_of(run.get("inputs")):
            parent = self._put(chat, parent, started)
        answers = answers_of(run.get("outputs"))
        error = as_text(run.get("error")) or None
        if not answers and error is not None:
            answers = [{"role": "assistant", "content": None}]
        if not answers:
            told = "the run holds no answer that can be read"
            self.made.odd.append((as_id(run.get("id")), told))
        for place, chat in enumerate(answers):
            self._answer(run, chat, parent, ended, place, error)

    def _put(self, chat: dict[str, Any], parent: str | None, at: int | None) -> str:
        same = (parent, digest(chat))
        known = self._keys.get(same)
        if known is not None:
            return known
        key = digest([parent, chat])[:_KEY_CHARS]
        self._keys[same] = key
        self.made.drafts.append(_draft(key, parent, chat, at))
        return key

    def _answer(
        self,
        run: dict[str, Any],
        chat: dict[str, Any],
        parent: str | None,
        at: int | None,
        place: int,
        error: str | None,
    ) -> None:
        id = as_id(run.get("id")) or digest([parent, chat])[:_KEY_CHARS]
        key = f"{id}-{place + 1}" if place else id
        self._keys.setdefault((parent, digest(chat)), key)
        draft = _draft(key, parent, chat, at)
        entry = draft.entry
        if isinstance(entry, MessageEntry) and entry.role == "assistant":
            reply = _reply(run, error, has_calls=bool(entry.message.tool_calls))
            draft.entry = replace(entry, message=replace(entry.message, reply=reply))
        if not place:
            draft.source |= leftover(run, _USED)
        self.made.drafts.append(draft)
        self.made.leaf = key
        for name, stats in as_map(run.get("feedback_stats")).items():
            score = as_number(as_map(stats).get("avg"))
            if score is not None and not place:
                self.made.said.append(Said(key, name, score, by="langsmith"))


def _draft(key: str, parent: str | None, chat: dict[str, Any], at: int | None) -> Draft:
    is_system = chat["role"] == "system"
    found = message_from_openai({**chat, "role": "user"} if is_system else chat)
    entry = MessageEntry(message=found, meta=is_system)
    source = {"role": "system"} if is_system else {}
    return Draft(key, parent, entry, at=at, source=source, is_hidden=is_system)


def _reply(run: dict[str, Any], error: str | None, *, has_calls: bool) -> Reply:
    metadata = _metadata(run)
    params = as_map(as_map(run.get("extra")).get("invocation_params"))
    names = (metadata.get("ls_model_name"), params.get("model"), params.get("model_name"))
    model = next((name for name in names if isinstance(name, str) and name), None)
    started, ended = instant(run.get("start_time")), instant(run.get("end_time"))
    first = instant(run.get("first_token_time"))
    return Reply(
        model=model,
        provider=as_text(metadata.get("ls_provider")) or None,
        stop_reason="error" if error else "tool_calls" if has_calls else "stop",
        error=error,
        usage=usage_or_none(
            input_tokens=as_count(run.get("prompt_tokens")),
            output_tokens=as_count(run.get("completion_tokens")),
        ),
        cost_usd=as_number(run.get("total_cost")),
        seconds=(ended - started) / 1e6 if started and ended and ended >= started else None,
        ttft_s=(first - started) / 1e6 if started and first and first >= started else None,
    )
