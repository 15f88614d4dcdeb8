"""Rows as records, as every store of SQL tables reads them: columns stand in the fields' order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from nbdurable.errors import StoreError, shown
from nbdurable.frozen import maker
from nbdurable.stored import (
    Annotation,
    Context,
    ExperimentRecord,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    SessionSummary,
    StoredEntry,
)
from nbdurable.stores.duckdb.schema import FIELDS
from nbdurable.stores.together import HeldEntry, Outline

T = TypeVar("T")
Row = Sequence[Any]


def _by_row(record: type[T]) -> Callable[[Row], T]:
    make = maker(record)
    return lambda row: make(*row)


as_entry = partial(tuple.__new__, StoredEntry)  # `_make`, without a call of Python per row
as_session = _by_row(SessionRecord)
as_move = _by_row(Move)
as_context = _by_row(Context)
as_annotation = _by_row(Annotation)
as_experiment = _by_row(ExperimentRecord)
_as_end = _by_row(RunEnd)


def as_summaries(found: Iterable[Row], named: Iterable[Row]) -> list[SessionSummary]:
    """Return summaries of rows of a session and its sums, and of pairs of session and model."""
    models: dict[str, list[str]] = {}
    for session_id, model in named:
        models.setdefault(session_id, []).append(model)
    width = len(FIELDS["sessions"])
    return [
        SessionSummary(
            session=as_session(row[:width]),
            title=row[width],
            entries=row[width + 1],
            leaves=row[width + 2],
            last_at=row[width + 3],
            models=tuple(models.get(row[0], ())),
            cost_usd=row[width + 4],
        )
        for row in found
    ]


def as_runs(runs: Iterable[Row], ended: Iterable[Row]) -> list[tuple[RunRecord, RunEnd | None]]:
    """Return runs in the order given, with their ends."""
    ends = {row[0]: _as_end(row) for row in ended}
    return [(run, ends.get(run.id)) for run in map(_as_run, runs)]


def _as_run(row: Row) -> RunRecord:
    values = dict(zip(FIELDS["runs"], row, strict=True))
    return RunRecord(**{**values, "input_ids": tuple(values["input_ids"])})


def as_outlines(
    entries: Iterable[Row], moves: Iterable[Row], notes: Iterable[Row]
) -> dict[str, Outline]:
    """Return the outlines of sessions of rows of their entries, moves by ``seq``, and notes' ids.

    A session without an entry has none.
    """
    held: dict[str, dict[str, HeldEntry]] = {}
    for row in entries:
        held.setdefault(row[0], {})[row[1]] = HeldEntry._make(row)
    last = {move.session_id: move for move in map(as_move, moves)}
    note_ids: dict[str, set[str]] = {}
    for session_id, id in notes:
        note_ids.setdefault(session_id, set()).add(id)
    return {
        id: Outline(entries=held[id], move=last.get(id), note_ids=frozenset(note_ids.get(id, ())))
        for id in held
    }


def no_blob(sha256: str, store: str) -> StoreError:
    """Return the error for a blob that is not there."""
    return StoreError(
        f"blob {shown(sha256)} is not in store {store!r}; put_blob(sha256, data) keeps one"
    )


def no_context(digest: str, store: str) -> StoreError:
    """Return the error for a context that is not there."""
    return StoreError(
        f"context {shown(digest)} is not in store {store!r}; save_context(context) keeps one"
    )
