"""What a session has on record that may answer a call again, and what differs when nothing does.

Owns the index of recorded runs and the comparison of two requests. Does not own which of several
equal ones is next (`replay`), nor what a verb does with one (`verbs`).
"""

from __future__ import annotations

import difflib
import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nbdurable.blocks import Json
from nbdurable.entries import Entry, MessageEntry, kind_of
from nbdurable.errors import StoreError, shown
from nbdurable.inputs import input_digest
from nbdurable.loaded import Loaded
from nbdurable.origin import is_alive
from nbdurable.stored import RunEnd, RunRecord
from nbdurable.wire import dumps

Key = tuple[str, str | None, str, str | None]

FINISHED = ("done", "max_steps")  # outcomes of runs that are not made again
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run as it is stored."""

    record: RunRecord
    end: RunEnd | None

    @property
    def is_finished(self) -> bool:
        """Whether it can answer an equal call."""
        return self.end is not None and self.end.outcome in FINISHED

    @property
    def is_running(self) -> bool:
        """Whether it has not ended and its process lives."""
        return self.end is None and is_alive(self.record.owner)


def key_of(
    kind: str, start_leaf_id: str | None, request_digest: str, rerun_of: str | None = None
) -> Key:
    """Return what equal runs have in common: verb, start leaf, request; a rerun's target too."""
    return kind, start_leaf_id, request_digest, rerun_of if kind == "rerun" else None


class RecordedRuns:
    """The runs of one session by `key_of`, in stored order, without those of experiments.

    They are read anew only when there may be more: reading all of them at each call would take
    time that grows with the square of their number.
    """

    def __init__(self) -> None:
        self._all: list[Recorded] = []
        self._by_key: dict[Key, list[Recorded]] = {}
        self._own: set[str] = set()  # runs that this handle has started since they were read
        self._own_keys: set[Key] = set()
        self._seen_n = -1
        self._lock = threading.Lock()

    def began(self, run_id: str, key: Key) -> None:
        """Note a run that this handle has started, which is known without reading it."""
        with self._lock:
            self._own.add(run_id)
            self._own_keys.add(key)

    def expire(self) -> None:
        """Have the runs read anew at the next look, also those that this handle has started."""
        with self._lock:
            self._seen_n = -1

    def refresh(self, image: Loaded, keys: Sequence[Key]) -> bool:
        """Read the runs anew, if there may be more that matter to `keys`; return whether."""
        with self._lock:
            is_known = (
                self._seen_n >= 0
                and not any(key in self._own_keys for key in keys)
                and all(run.end for key in keys for run in self._by_key.get(key, ()))
                and not self._has_others(image)
            )
        if not is_known:
            self._read(image)
        return not is_known

    def _has_others(self, image: Loaded) -> bool:
        """Whether entries have come from runs that are not this handle's own."""
        while self._seen_n < image.count:
            entry = image.stored(image.id_of(self._seen_n + 1) or "")
            if entry.run_id is not None and entry.run_id not in self._own:
                return True
            self._seen_n += 1
        return False

    def _read(self, image: Loaded) -> None:
        with self._lock:
            self._own, self._own_keys, self._seen_n = set(), set(), image.count
        pairs = image.store.load_runs(image.session_id)
        found = [Recorded(*pair) for pair in pairs if pair[0].experiment_id is None]
        by_key: dict[Key, list[Recorded]] = {}
        for run in found:
            made = run.record
            key = key_of(made.kind, made.start_leaf_id, made.request_digest, made.rerun_of)
            by_key.setdefault(key, []).append(run)
        with self._lock:
            self._all, self._by_key = found, by_key

    def equal(self, key: Key) -> list[Recorded]:
        """Return the runs of a key as last read."""
        with self._lock:
            return list(self._by_key.get(key, ()))

    def of_kind(self, kind: str) -> list[Recorded]:
        """Return the runs of a verb as last read."""
        with self._lock:
            return [run for run in self._all if run.record.kind == kind]


def content_key(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the content of entries as texts that are equal when the entries say the same."""
    return tuple(
        json.dumps([json.loads(dumps(content)), _author(entry)], sort_keys=True)
        for entry in entries
        for content in input_digest((entry,))
    )


def _author(entry: Entry) -> str | None:
    return entry.author if isinstance(entry, MessageEntry) else None


# -- what differs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a caller asked for, in the terms in which requests are compared (B56).

    ``start`` names the start leaf for people; ``ephemeral`` holds digests, ``detail`` what else
    the verb was given.
    """

    kind: str
    start: str
    input: tuple[str, ...] = ()
    preview: str = ""
    ephemeral: tuple[str, ...] = ()
    model: str | None = None
    system: str | None = None
    tools: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    rerun_of: str | None = None


def difference(asked: Request, recorded: Request) -> str:
    """Return in words what `asked` has in another way than `recorded`; empty when nothing."""
    return ", ".join(_differences(asked, recorded))


def _differences(asked: Request, recorded: Request) -> list[str]:
    found = []
    if asked.start != recorded.start:
        found.append(f"start {recorded.start} → {asked.start}")
    if asked.input != recorded.input:
        found.append(_changed("input", recorded.preview, asked.preview))
    if asked.ephemeral != recorded.ephemeral:
        found.append("ephemeral input")
    if asked.model != recorded.model:
        found.append(f"model {shown(recorded.model)} → {shown(asked.model)}")
    if asked.system != recorded.system:
        found.append("system text")
    found += _tool_differences(dict(recorded.tools), dict(asked.tools))
    found += _param_differences(dict(recorded.params), dict(asked.params))
    if asked.rerun_of != recorded.rerun_of:
        found.append("the answer that is made again")
    return found


def _changed(what: str, before: str, after: str) -> str:
    if before == after:
        return what
    return f"{what} {shown(before, _SHOWN_CHARS)} → {shown(after, _SHOWN_CHARS)}"


def _tool_differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    if list(before) != list(after):
        names = [", ".join(names) or "none" for names in (before, after)]
        return [f"tools {names[0]} → {names[1]}"]
    changed = [name for name in after if after[name] != before[name]]
    return [f"description or schema of tool {name!r}" for name in changed]


def _param_differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    names = sorted({*before, *after})
    return [
        f"{name} {_cut(before.get(name, 'unset'))} → {_cut(after.get(name, 'unset'))}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def distance(asked: Request, recorded: Request) -> float:
    """Return how far two requests are apart: 0 when equal; the input weighs most."""
    other = len(_differences(asked, recorded))
    if asked.input == recorded.input:
        return other
    likeness = difflib.SequenceMatcher(None, asked.preview, recorded.preview).ratio()
    return other + 3 * (1 - likeness)


def place(image: Loaded, entry_id: str | None) -> str:
    """Return how people call an entry: its ordinal, or the root."""
    if entry_id is None:
        return "the root"
    found = image.tree.get(entry_id)
    return f"#{found.n}" if found else shown(entry_id)


def preview_of(input: Sequence[Entry]) -> str:
    """Return the start of what an input says, for a line."""
    said = [e.text if isinstance(e, MessageEntry) else f"[{kind_of(e)}]" for e in input]
    return " ".join(" ".join(said).split())[:200]


def tool_texts(tools_json: str) -> tuple[tuple[str, str], ...]:
    """Return each tool's name with all that a model is told of it."""
    return tuple((spec["name"], dumps(spec)) for spec in json.loads(tools_json))


def param_texts(params: dict[str, Json]) -> tuple[tuple[str, str], ...]:
    """Return each parameter's name with its value as text."""
    return tuple((name, dumps(value)) for name, value in params.items())


def recorded_request(image: Loaded, record: RunRecord) -> Request:
    """Return what a recorded run was asked for, as far as it is stored."""
    ids = [entry_id for entry_id in record.input_ids if entry_id in image.tree]
    input = [image.entry(entry_id) for entry_id in ids]
    system: str | None = None
    tools: tuple[tuple[str, str], ...] = ()
    if record.context_digest is not None:
        try:
            context = image.store.load_context(record.context_digest)
        except StoreError:  # an import may lack it; then the request is known in part
            context = None
        if context is not None:
            system, tools = context.system, tool_texts(context.tools_json)
    return Request(
        kind=record.kind,
        start=place(image, record.start_leaf_id),
        input=content_key(input),
        preview=preview_of(input),
        ephemeral=tuple(json.loads(record.ephemeral_json)),
        model=record.model,
        system=system,
        tools=tools,
        params=param_texts(json.loads(record.params_json)),
        rerun_of=record.rerun_of,
    )
