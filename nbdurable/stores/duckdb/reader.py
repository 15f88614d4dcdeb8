"""What is read: queries in, records out, fully materialised.

Owns the select statements and the order of their rows. The one idea: a read is a function of a
cursor that is good for one hold of the file, so nothing lazy leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import duckdb

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
from nbdurable.stores.duckdb import aside, faults, repair
from nbdurable.stores.duckdb.lease import Lease
from nbdurable.stores.duckdb.rows import (
    as_annotation,
    as_context,
    as_entry,
    as_experiment,
    as_move,
    as_outlines,
    as_runs,
    as_session,
    as_summaries,
    no_blob,
    no_context,
)
from nbdurable.stores.duckdb.schema import ALIAS, FIELDS
from nbdurable.stores.duckdb.state import no_session
from nbdurable.stores.together import HeldEntry, Outline

T = TypeVar("T")
Rows = list[tuple[Any, ...]]

_MANY_ROWS = 1_000  # above which entries come by column: half the time, but it loads NumPy

_UUIDS = {("entries", "id"), ("entries", "parent_id"), ("moves", "entry_id")}


def _select(table: str, where: str, order: str = "") -> str:
    names = ", ".join(
        f"{name}::varchar" if (table, name) in _UUIDS else f'"{name}"' for name in FIELDS[table]
    )
    tail = f" order by {order}" if order else ""
    return f"select {names} from {ALIAS}.nbd.{table} where {where}{tail}"


_SESSION = _select("sessions", "id = ?")
# Sorted in Python: rows come in the order of their seq already, and DuckDB's sort takes a third.
_ENTRIES = _select("entries", "session_id = ? and n > ?")
_MOVES = _select("moves", "session_id = ? and seq > ?", "seq")
_ANNOTATIONS = _select("annotations", "session_id = ? and counter > ?", "counter")
_EXPERIMENTS = _select("experiments", "session_id = ? and counter > ?", "counter")
_RUNS = _select("runs", "session_id = ?", "counter")
_RUN_ENDS = _select("run_ends", "session_id = ?")
_CONTEXT = _select("contexts", "digest = ?")
_OF_SOME = "session_id in (select unnest(?::varchar[]))"
_HELD = ", ".join("id::varchar" if name == "id" else name for name in HeldEntry._fields)
_OUTLINES = (
    f"select {_HELD} from {ALIAS}.nbd.entries where {_OF_SOME}",
    _select("moves", _OF_SOME, "seq"),
    f"select session_id, id from {ALIAS}.nbd.annotations where {_OF_SOME}",
)
_COUNT = f"select count(*) from {ALIAS}.nbd.entries where session_id = ? and n > ?"
_BLOB = f"select data from {ALIAS}.nbd.blobs where sha256 = ? limit 1"

# Reads no payload. Parents are always stored, so that an entry which is nobody's parent is a leaf.
_SUMMARIES = f"""
    with used as (
        select session_id, count(*) as entries,
            count(*) - count(distinct parent_id) as leaves,
            arg_max(created_at, seq) as last_at, max(seq) as last_seq,
            arg_min(preview, seq) filter (role = 'user' and not meta) as title,
            sum(cost_usd) as cost_usd
        from {ALIAS}.nbd.entries group by session_id),
    moved as (select session_id, max(seq) as last_seq from {ALIAS}.nbd.moves group by session_id)
    select {", ".join(f"s.{name}" for name in FIELDS["sessions"])},
        coalesce(title, ''), coalesce(entries, 0), coalesce(leaves, 0),
        coalesce(last_at, s.created_at), coalesce(cost_usd, 0)
    from {ALIAS}.nbd.sessions s
    left join used on used.session_id = s.id
    left join moved on moved.session_id = s.id
    order by greatest(coalesce(used.last_seq, 0), coalesce(moved.last_seq, 0), s.created_after)
        desc, s.counter desc
"""
_MODELS = f"""
    select session_id, model from {ALIAS}.nbd.entries
    where model is not null group by session_id, model order by min(seq)
"""


class Reader:
    """The reads of one store, from any thread."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    # -- sessions and entries ------------------------------------------------------------------

    def session(self, session_id: str) -> SessionRecord:
        """Return a session's record."""
        rows = self._rows(_SESSION, session_id)
        if not rows:
            raise no_session(session_id, self._lease.path)
        return as_session(rows[0])

    def summaries(self) -> list[SessionSummary]:
        """Return one summary per session, the most recently used first."""
        found, named = self.read(
            lambda cursor: (
                cursor.execute(_SUMMARIES).fetchall(),
                cursor.execute(_MODELS).fetchall(),
            )
        )
        return as_summaries(found, named)

    def entries(self, session_id: str, after_n: int) -> list[StoredEntry]:
        """Return entries by ``seq``."""
        rows = self.read(lambda cursor: _entry_rows(cursor, session_id, after_n))
        if not rows:
            self.session(session_id)  # raises where the session is not known
        return _by_seq(rows)

    def news(
        self, session_id: str, after_n: int, after_seq: int
    ) -> tuple[list[StoredEntry], list[Move]]:
        """Return entries and moves by ``seq``."""
        rows, moved = self.read(
            lambda cursor: (
                _entry_rows(cursor, session_id, after_n),
                cursor.execute(_MOVES, (session_id, after_seq)).fetchall(),
            )
        )
        if not rows and not moved:
            self.session(session_id)  # raises where the session is not known
        return _by_seq(rows), list(map(as_move, moved))

    def moves(self, session_id: str, after_seq: int) -> list[Move]:
        """Return moves by ``seq``."""
        return self._of_session(as_move, _MOVES, session_id, after_seq)

    def outlines(self, session_ids: list[str]) -> dict[str, Outline]:
        """Return what sessions hold, without what their entries say."""
        return as_outlines(
            *self.read(
                lambda cursor: [
                    cursor.execute(query, [session_ids]).fetchall() for query in _OUTLINES
                ]
            )
        )

    # -- beside the tree -----------------------------------------------------------------------

    def blob(self, sha256: str) -> bytes:
        """Return the bytes of a hash."""
        rows = self._rows(_BLOB, sha256)
        if not rows:
            raise no_blob(sha256, self._lease.path)
        return bytes(rows[0][0])

    def context(self, digest: str) -> Context:
        """Return a context."""
        rows = self._rows(_CONTEXT, digest)
        if not rows:
            raise no_context(digest, self._lease.path)
        return as_context(rows[0])

    def annotations(self, session_id: str, after: int) -> list[Annotation]:
        """Return annotations by counter."""
        return self._of_session(as_annotation, _ANNOTATIONS, session_id, after)

    def experiments(self, session_id: str, after: int) -> list[ExperimentRecord]:
        """Return plans by counter."""
        return self._of_session(as_experiment, _EXPERIMENTS, session_id, after)

    def runs(self, session_id: str) -> list[tuple[RunRecord, RunEnd | None]]:
        """Return runs in the order they started, with their ends."""
        runs, ended = self.read(
            lambda cursor: (
                cursor.execute(_RUNS, [session_id]).fetchall(),
                cursor.execute(_RUN_ENDS, [session_id]).fetchall(),
            )
        )
        if not runs:
            self.session(session_id)
        return as_runs(runs, ended)

    # -- the hold ------------------------------------------------------------------------------

    def _of_session(
        self, make: Callable[[Sequence[Any]], T], query: str, session_id: str, after: int
    ) -> list[T]:
        rows = self._rows(query, session_id, after)
        if not rows:
            self.session(session_id)  # raises where the session is not known
        return list(map(make, rows))

    def _rows(self, query: str, *params: object) -> Rows:
        return self.read(lambda cursor: cursor.execute(query, list(params)).fetchall())

    def read(self, query: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """Return what `query` makes of a cursor, once more when the file was attached anew."""

        def work(job: aside.Job[T]) -> T:
            return self._read(query, job)

        try:
            return aside.run(work)
        finally:
            repair.tell(self._lease.repairs)

    def _read(self, query: Callable[[duckdb.DuckDBPyConnection], T], job: aside.Job[T]) -> T:
        for is_last in (False, True):
            generation = 0
            try:
                with self._lease.held() as cursor:
                    generation = self._lease.generation
                    with job.stoppable(cursor.interrupt):
                        return query(cursor)
            except duckdb.Error as exc:
                if is_last or not faults.is_invalidated(exc):
                    raise faults.told_of_call(exc, self._lease.path) from exc
            self._lease.reattach(generation)
        raise AssertionError("unreachable")


def _entry_rows(
    cursor: duckdb.DuckDBPyConnection, session_id: str, after_n: int
) -> Iterable[tuple[Any, ...]]:
    params = (session_id, after_n)
    ((count,),) = cursor.execute(_COUNT, params).fetchall()
    answer = cursor.execute(_ENTRIES, params)
    if count <= _MANY_ROWS:
        return answer.fetchall()
    columns = answer.fetchnumpy().values()
    return zip(*(values.tolist() for values in columns), strict=True)  # masked ones as None


_seq = itemgetter(FIELDS["entries"].index("seq"))


def _by_seq(rows: Iterable[tuple[Any, ...]]) -> list[StoredEntry]:
    return sorted(map(as_entry, rows), key=_seq)
