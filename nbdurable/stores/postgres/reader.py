"""What is read: queries in, records out.

Owns the select statements and the order of their rows. The one idea: a read is one statement, or
several that belong together in one pipeline, over any line; nothing lazy leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

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
from nbdurable.stores.duckdb.schema import FIELDS
from nbdurable.stores.duckdb.state import no_session
from nbdurable.stores.postgres.line import Asked, Rows
from nbdurable.stores.postgres.workers import Workers
from nbdurable.stores.together import HeldEntry, Outline

T = TypeVar("T")


def _select(table: str, where: str, order: str = "") -> str:
    names = ", ".join(f'"{name}"' for name in FIELDS[table])
    tail = f" order by {order}" if order else ""
    return f"select {names} from nbd.{table} where {where}{tail}"


_SESSION = _select("sessions", "id = $1")
_ENTRIES = _select("entries", "session_id = $1 and n > $2", "seq")
_MOVES = _select("moves", "session_id = $1 and seq > $2", "seq")
_ANNOTATIONS = _select("annotations", "session_id = $1 and counter > $2", "counter")
_EXPERIMENTS = _select("experiments", "session_id = $1 and counter > $2", "counter")
_RUNS = _select("runs", "session_id = $1", "counter")
_RUN_ENDS = _select("run_ends", "session_id = $1")
_CONTEXT = _select("contexts", "digest = $1")
_OF_SOME = "session_id = any($1::text[])"
_OUTLINES = (
    f"select {', '.join(HeldEntry._fields)} from nbd.entries where {_OF_SOME} order by seq",
    _select("moves", _OF_SOME, "seq"),
    f"select session_id, id from nbd.annotations where {_OF_SOME}",
)
_BLOB = "select data from nbd.blobs where sha256 = $1"

# Each count grows with a commit of the session, and with nothing else.
_CHANGES = """
    select (select coalesce(max(n), 0) from nbd.entries where session_id = s.id)
        + (select count(*) from nbd.moves where session_id = s.id)
        + (select count(*) from nbd.annotations where session_id = s.id)
        + (select count(*) from nbd.experiments where session_id = s.id)
    from nbd.sessions s where s.id = $1
"""

# Reads no payload. Parents are always stored, so that an entry which is nobody's parent is a leaf.
_SUMMARIES = f"""
    with used as (
        select session_id, count(*) as entries,
            count(*) - count(distinct parent_id) as leaves, max(seq) as last_seq,
            min(seq) filter (where role = 'user' and not meta) as first_seq,
            sum(cost_usd order by seq) as cost_usd
        from nbd.entries group by session_id),
    moved as (select session_id, max(seq) as last_seq from nbd.moves group by session_id)
    select {", ".join(f"s.{name}" for name in FIELDS["sessions"])},
        coalesce(f.preview, ''), coalesce(used.entries, 0), coalesce(used.leaves, 0),
        coalesce(l.created_at, s.created_at), coalesce(used.cost_usd, 0)
    from nbd.sessions s
    left join used on used.session_id = s.id
    left join moved on moved.session_id = s.id
    left join nbd.entries l on l.seq = used.last_seq
    left join nbd.entries f on f.seq = used.first_seq
    order by greatest(used.last_seq, moved.last_seq, s.created_after) desc, s.counter desc
"""
_MODELS = """
    select session_id, model from nbd.entries
    where model is not null group by session_id, model order by min(seq)
"""


class Reader:
    """The reads of one store, from any thread."""

    def __init__(self, name: str, workers: Workers) -> None:
        self._name = name
        self._workers = workers

    # -- sessions and entries ------------------------------------------------------------------

    def session(self, session_id: str) -> SessionRecord:
        """Return a session's record."""
        [rows] = self._ask((_SESSION, [session_id]))
        if not rows:
            raise no_session(session_id, self._name)
        return as_session(rows[0])

    def summaries(self) -> list[SessionSummary]:
        """Return one summary per session, the most recently used first."""
        found, named = self._ask((_SUMMARIES, ()), (_MODELS, ()))
        return as_summaries(found, named)

    def entries(self, session_id: str, after_n: int) -> list[StoredEntry]:
        """Return entries by ``seq``."""
        return self._of_session(as_entry, _ENTRIES, session_id, after_n)

    def moves(self, session_id: str, after_seq: int) -> list[Move]:
        """Return moves by ``seq``."""
        return self._of_session(as_move, _MOVES, session_id, after_seq)

    def outlines(self, session_ids: Sequence[str]) -> dict[str, Outline]:
        """Return what sessions hold, without what their entries say."""
        return as_outlines(*self._ask(*((query, [list(session_ids)]) for query in _OUTLINES)))

    def changes(self, session_id: str) -> int:
        """Return how many rows of the session an image of it reads."""
        [rows] = self._ask((_CHANGES, [session_id]))
        if not rows:
            raise no_session(session_id, self._name)
        return int(rows[0][0])

    # -- beside the tree -----------------------------------------------------------------------

    def blob(self, sha256: str) -> bytes:
        """Return the bytes of a hash."""
        [rows] = self._ask((_BLOB, [sha256]))
        if not rows:
            raise no_blob(sha256, self._name)
        return bytes(rows[0][0])

    def context(self, digest: str) -> Context:
        """Return a context."""
        [rows] = self._ask((_CONTEXT, [digest]))
        if not rows:
            raise no_context(digest, self._name)
        return as_context(rows[0])

    def annotations(self, session_id: str, after: int) -> list[Annotation]:
        """Return annotations by counter."""
        return self._of_session(as_annotation, _ANNOTATIONS, session_id, after)

    def experiments(self, session_id: str, after: int) -> list[ExperimentRecord]:
        """Return plans by counter."""
        return self._of_session(as_experiment, _EXPERIMENTS, session_id, after)

    def runs(self, session_id: str) -> list[tuple[RunRecord, RunEnd | None]]:
        """Return runs in the order they started, with their ends."""
        # In this order: an end that comes in between finds no run, not the other way round.
        runs, ended = self._ask((_RUNS, [session_id]), (_RUN_ENDS, [session_id]))
        if not runs:
            self.session(session_id)
        return as_runs(runs, ended)

    def _of_session(
        self, make: Callable[[Sequence[Any]], T], query: str, session_id: str, after: int
    ) -> list[T]:
        [rows] = self._ask((query, [session_id, after]))
        if not rows:
            self.session(session_id)  # raises where the session is not known
        return list(map(make, rows))

    def _ask(self, *questions: Asked) -> list[Rows]:
        return self._workers.run(lambda line: line.ask(*questions))
