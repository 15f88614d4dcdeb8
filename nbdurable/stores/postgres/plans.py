"""What each verb checks and stages, in a transaction that holds the rows of its sessions.

The one idea: who holds a session's row is alone with the session, so that ordinals have no holes,
and in every session the order of numbers is the order in which others come to see them (B4): a
reader who asks for what came after the last number it knows misses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from nbdurable.errors import EntryError, EntryNotFound, SessionExists, shown
from nbdurable.stored import (
    Annotation,
    Beside,
    Context,
    ExperimentRecord,
    Move,
    SessionRecord,
    StoredEntry,
)
from nbdurable.stores.beside import check_beside, runs_named
from nbdurable.stores.duckdb.state import check_entry_id, no_session
from nbdurable.stores.memory_session import check_session_id
from nbdurable.stores.postgres.line import Asked, Rows, Transaction
from nbdurable.stores.postgres.numbering import Standing, checked, numbered

Counted = TypeVar("Counted", Annotation, ExperimentRecord)

_MOST_ID_BYTES = 2_000  # of a session's id, which stands in indexes

_IS_SESSION = "select 1 from nbd.sessions where id = $1"
_NEWEST_SEQ = """
    select greatest((select coalesce(max(seq), 0) from nbd.entries),
        (select coalesce(max(seq), 0) from nbd.moves))
"""
_LAST = """
    select coalesce(max(n), 0), greatest(coalesce(max(seq), 0),
        (select coalesce(max(seq), 0) from nbd.moves where session_id = $1))
    from nbd.entries where session_id = $1
"""
_POSITION = """
    select place from (
        (select id::text as place, seq from nbd.entries where session_id = $1 and moves_leaf
            order by seq desc limit 1)
        union all
        (select entry_id::text, seq from nbd.moves where session_id = $1 order by seq desc limit 1)
    ) placed order by seq desc limit 1
"""
_ENTRIES = "select id::text, session_id, depth from nbd.entries where id = any($1::uuid[])"
_RUNS = "select id, session_id from nbd.runs where id = any($1::text[])"
_ENDED = "select run_id from nbd.run_ends where run_id = any($1::text[])"
_DRAW = """
    select nextval(('nbd.' || name)::regclass)
    from unnest($1::text[]) with ordinality as wanted (name, place) order by place
"""


class Plans:
    """The verbs that write, for one store."""

    def __init__(self, name: str) -> None:
        self._name = name

    # -- sessions and entries ------------------------------------------------------------------

    def create_session(
        self,
        transaction: Transaction,
        session: SessionRecord,
        entries: Sequence[StoredEntry],
        beside: Beside,
    ) -> tuple[StoredEntry, ...]:
        """Stage a session with what it holds."""
        check_session_id(session.id)
        _check_length(session.id)
        taken, newest, *found = transaction.ask(
            (_IS_SESSION, [session.id]), (_NEWEST_SEQ, ()), *_named(entries, beside)
        )
        if taken:
            raise SessionExists(
                f"session {shown(session.id)} exists in store {self._name!r}; "
                "open it by its id, or choose another id"
            )
        made = Standing(session.id)
        rows = self._checked(made, entries, beside, found)
        [counter] = _draw(transaction, ["session_counter"])
        transaction.batch.stage("sessions", session, counter=counter, created_after=newest[0][0])
        return self._keep(transaction, made, rows, beside, found[2])

    def append(
        self,
        transaction: Transaction,
        session_id: str,
        entries: Sequence[StoredEntry],
        beside: Beside,
    ) -> tuple[StoredEntry, ...]:
        """Stage entries and what goes with them."""
        there, last, position, *found = transaction.lock(
            [session_id],
            (_LAST, [session_id]),
            (_POSITION, [session_id]),
            *_named(entries, beside),
        )
        if not there:
            raise no_session(session_id, self._name)
        last_n, last_seq = last[0]
        standing = Standing(session_id, last_n, last_seq, position[0][0] if position else None)
        rows = self._checked(standing, entries, beside, found)
        return self._keep(transaction, standing, rows, beside, found[2])

    def move(
        self, transaction: Transaction, session_id: str, entry_id: str | None, created_at: int
    ) -> Move:
        """Stage a move of the position."""
        there, last, found = transaction.lock(
            [session_id], (_LAST, [session_id]), (_ENTRIES, [_plain_ids([entry_id])])
        )
        if not there:
            raise no_session(session_id, self._name)
        if entry_id is not None and not any(home == session_id for _, home, _ in found):
            raise EntryNotFound(
                f"entry {shown(entry_id)} is not in session {shown(session_id)} "
                f"({last[0][0]} entries); see session.entries()",
                entry_id=entry_id,
            )
        [seq] = _draw(transaction, ["seq"], above=last[0][1])
        move = Move(session_id=session_id, entry_id=entry_id, seq=seq, created_at=created_at)
        transaction.batch.stage("moves", move)
        return move

    # -- beside the tree -----------------------------------------------------------------------

    def put_blob(self, transaction: Transaction, sha256: str, data: bytes) -> None:
        """Stage bytes, which are stored unless they are kept already."""
        question = "select 1 from nbd.blobs where sha256 = $1", [sha256]
        if not transaction.ask(question)[0]:
            transaction.batch.stage("blobs", None, sha256=sha256, size_bytes=len(data), data=data)

    def save_context(self, transaction: Transaction, context: Context) -> None:
        """Stage a context, which is stored unless it is kept already."""
        transaction.batch.stage("contexts", context)

    def annotate(
        self, transaction: Transaction, annotations: Sequence[Annotation]
    ) -> tuple[Annotation, ...]:
        """Stage annotations, all or nothing."""
        self._lock(transaction, [annotation.session_id for annotation in annotations])
        numbers = _draw(transaction, ["annotation_counter"] * len(annotations))
        return _stage_counted(transaction, "annotations", annotations, numbers)

    def save_experiment(
        self, transaction: Transaction, experiment: ExperimentRecord
    ) -> ExperimentRecord:
        """Stage a plan of runs."""
        self._lock(transaction, [experiment.session_id])
        numbers = _draw(transaction, ["experiment_counter"])
        return _stage_counted(transaction, "experiments", [experiment], numbers)[0]

    # -- checks; nothing is drawn --------------------------------------------------------------

    def _lock(self, transaction: Transaction, session_ids: Sequence[str]) -> None:
        there = {row[0] for row in transaction.lock(session_ids)[0]}
        for session_id in session_ids:
            if session_id not in there:
                raise no_session(session_id, self._name)

    def _checked(
        self,
        standing: Standing,
        entries: Sequence[StoredEntry],
        beside: Beside,
        found: Sequence[Rows],
    ) -> list[StoredEntry | Move]:
        """Return entries and moves, complete but for their numbers, or raise (B60)."""
        known, runs, _ = found
        for entry in entries:
            check_entry_id(entry.id)
        for entry_id, home, depth in known:
            standing.homes[entry_id] = home
            if home == standing.id:
                standing.depths[entry_id] = depth
        rows = checked(standing, entries, beside.moves)
        check_beside(beside, standing.id, lambda id: id in standing.depths, dict(runs))
        return rows

    # -- staging; nothing is refused -----------------------------------------------------------

    def _keep(
        self,
        transaction: Transaction,
        standing: Standing,
        rows: Sequence[StoredEntry | Move],
        beside: Beside,
        ended: Rows,
    ) -> tuple[StoredEntry, ...]:
        counts = (len(rows), len(beside.runs), len(beside.annotations), len(beside.experiments))
        names = ("seq", "run_counter", "annotation_counter", "experiment_counter")
        wanted = [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
        numbers = iter(_draw(transaction, wanted, above=standing.last_seq))
        seqs, runs, notes, plans = ([next(numbers) for _ in range(count)] for count in counts)
        kept, moves = numbered(rows, seqs)
        batch = transaction.batch
        for context in sorted(beside.contexts, key=lambda one: one.digest):  # no two wait crosswise
            batch.stage("contexts", context)
        for run, counter in zip(beside.runs, runs, strict=True):
            batch.stage("runs", run, counter=counter)
        batch.stage_entries(kept)
        for move in moves:
            batch.stage("moves", move)
        known = {run_id for (run_id,) in ended}
        for end in beside.ends:
            if end.run_id not in known:
                known.add(end.run_id)
                batch.stage("run_ends", end)
        _stage_counted(transaction, "annotations", beside.annotations, notes)
        _stage_counted(transaction, "experiments", beside.experiments, plans)
        return kept


def _named(entries: Sequence[StoredEntry], beside: Beside) -> tuple[Asked, Asked, Asked]:
    """Return what asks for the entries, runs and ends that a call names."""
    ids = [given for entry in entries for given in (entry.id, entry.parent_id)]
    ids += [move.entry_id for move in beside.moves]
    ids += [annotation.target_id for annotation in beside.annotations]
    runs = sorted(runs_named(beside))
    return (_ENTRIES, [_plain_ids(ids)]), (_RUNS, [runs]), (_ENDED, [runs])


def _plain_ids(ids: Iterable[str | None]) -> list[str]:
    """Return those that an entry can have, each once."""
    found = []
    for given in dict.fromkeys(ids):
        try:
            check_entry_id(given or "")
        except EntryError:
            continue
        found.append(given or "")
    return found


def _draw(transaction: Transaction, sequences: Sequence[str], *, above: int = 0) -> list[int]:
    """Return one new number of each sequence named, in order; the first is above a number.

    A sequence may deal its numbers in lots to the servers of a cluster, so that the next one here
    is below the last one there.
    """
    if not sequences:
        return []
    while True:
        numbers = [number for (number,) in transaction.ask((_DRAW, [list(sequences)]))[0]]
        if sequences[0] != "seq" or numbers[0] > above:
            return numbers


def _stage_counted(
    transaction: Transaction, table: str, records: Sequence[Counted], numbers: Sequence[int]
) -> tuple[Counted, ...]:
    counted = tuple(
        replace(record, counter=number) for record, number in zip(records, numbers, strict=True)
    )
    for record in counted:
        transaction.batch.stage(table, record)
    return counted


def _check_length(session_id: str) -> None:
    size = len(session_id.encode(errors="replace"))
    if size > _MOST_ID_BYTES:
        raise EntryError(
            f"session id {shown(session_id)} has {size:,} bytes, and a PostgreSQL store takes up "
            f"to {_MOST_ID_BYTES:,}; choose a shorter one"
        )
