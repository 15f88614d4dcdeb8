"""The memory store: the reference implementation of the `Store` protocol.

Owns nothing outside its process and dies with it. The one idea: everything of an append is checked
before anything changes, and what is kept and handed out are frozen values, so a refused call
leaves no trace and no caller can reach in.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter

from nbdurable.errors import (
    EntryNotFound,
    SessionExists,
    SessionNotFound,
    StoreClosed,
    StoreError,
    shown,
)
from nbdurable.stored import (
    NOTHING,
    Annotation,
    Beside,
    Context,
    ExperimentRecord,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    SessionSummary,
    SpoolDraft,
    StoredEntry,
)
from nbdurable.stores.beside import check_beside, in_order, runs_named, with_run
from nbdurable.stores.memory_session import SessionRows, check_session_id

_seq_of = attrgetter("seq")
_counter_of = attrgetter("counter")


class MemoryStore:
    """Keep sessions in this process's memory; for tests and for what may be lost.

    Safe from many threads: one lock, under which no code of a caller runs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._is_closed = False
        self._seq = 0
        self._annotation_count = 0
        self._experiment_count = 0
        self._sessions: dict[str, SessionRows] = {}
        self._home: dict[str, str] = {}  # entry id -> session id
        self._runs: dict[str, RunRecord] = {}
        self._ends: dict[str, RunEnd] = {}
        self._contexts: dict[str, Context] = {}
        self._blobs: dict[str, bytes] = {}

    @property
    def name(self) -> str:
        """Always ``:memory:``."""
        return ":memory:"

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._sessions)} sessions)"

    # -- sessions ------------------------------------------------------------------------------

    def create_session(
        self,
        session: SessionRecord,
        entries: Sequence[StoredEntry] = (),
        *,
        beside: Beside = NOTHING,
    ) -> tuple[StoredEntry, ...]:
        """Create a session with what it holds, all or nothing."""
        with self._open():
            check_session_id(session.id)
            if session.id in self._sessions:
                raise SessionExists(
                    f"session {shown(session.id)} exists in store {self.name!r}; "
                    "open it by its id, or choose another id"
                )
            made = SessionRows(session, created_after=self._seq, ordinal=len(self._sessions))
            completed = self._add(made, entries, beside)
            self._sessions[session.id] = made
            return completed

    def load_session(self, session_id: str) -> SessionRecord:
        """Return a session's record."""
        with self._open():
            return self._session(session_id).record

    def list_sessions(self) -> list[SessionSummary]:
        """Return one summary per session, the most recently used first."""
        with self._open():
            newest_first = sorted(self._sessions.values(), key=SessionRows.recency, reverse=True)
            return [session.summary() for session in newest_first]

    # -- entries -------------------------------------------------------------------------------

    def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry] = (),
        *,
        start: RunRecord | None = None,
        end: RunEnd | None = None,
        beside: Beside = NOTHING,
    ) -> tuple[StoredEntry, ...]:
        """Store entries, a run's start and end, and more, all or nothing."""
        with self._open():
            session = self._session(session_id)
            return self._add(session, entries, with_run(beside, start, end))

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        """Return the session's entries with ``n`` above `after_n`, by ``seq``."""
        with self._open():
            return self._session(session_id).entries[max(after_n, 0) :]

    def changes(self, session_id: str) -> int:
        """Return a number that grows with every row of the session that its image reads."""
        with self._open():
            return self._session(session_id).changes

    # -- position ------------------------------------------------------------------------------

    def move(self, session_id: str, entry_id: str | None, created_at: int) -> Move:
        """Store a move of the position to an entry of the session, or to the root."""
        with self._open():
            session = self._session(session_id)
            if entry_id is not None and entry_id not in session.depths:
                raise EntryNotFound(
                    f"entry {shown(entry_id)} is not in session {shown(session_id)} "
                    f"({len(session.entries)} entries); see session.entries()",
                    entry_id=entry_id,
                )
            self._seq += 1
            move = Move(
                session_id=session_id, entry_id=entry_id, seq=self._seq, created_at=created_at
            )
            session.keep_move(move)
            return move

    def load_moves(self, session_id: str, after_seq: int = 0) -> list[Move]:
        """Return the session's moves with ``seq`` above `after_seq`, by ``seq``."""
        with self._open():
            moves = self._session(session_id).moves
            return moves[bisect_right(moves, after_seq, key=_seq_of) :]

    # -- bytes ---------------------------------------------------------------------------------

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Keep bytes under their hash, once."""
        with self._open():
            self._blobs.setdefault(sha256, bytes(data))

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a hash."""
        with self._open():
            if sha256 not in self._blobs:
                raise StoreError(
                    f"blob {shown(sha256)} is not in store {self.name!r}; "
                    "put_blob(sha256, data) keeps one"
                )
            return self._blobs[sha256]

    # -- annotations ---------------------------------------------------------------------------

    def annotate(self, annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
        """Store annotations, all or nothing; return them with their counters."""
        with self._open():
            sessions = [self._session(annotation.session_id) for annotation in annotations]
            return tuple(map(self._keep_annotation, sessions, annotations))

    def load_annotations(self, session_id: str, after: int = 0) -> list[Annotation]:
        """Return the session's annotations with a counter above `after`, in order."""
        with self._open():
            kept = self._session(session_id).annotations
            return kept[bisect_right(kept, after, key=_counter_of) :]

    # -- runs and experiments ------------------------------------------------------------------

    def start_run(self, run: RunRecord, context: Context | None = None) -> None:
        """Store a run's start alone, with its context when that is new."""
        with self._open():
            session = self._session(run.session_id)
            self._add(session, (), with_run(NOTHING, run, context=context))

    def end_run(self, end: RunEnd) -> None:
        """Store a run's end alone; a run that has one keeps the first."""
        with self._open():
            self._add(self._session(end.session_id), (), with_run(NOTHING, end=end))

    def load_runs(self, session_id: str) -> list[tuple[RunRecord, RunEnd | None]]:
        """Return the session's runs in the order they started, each with its end if any."""
        with self._open():
            runs = self._session(session_id).runs
            return [(run, self._ends.get(run.id)) for run in runs]

    def save_context(self, context: Context) -> None:
        """Keep a context under its digest, once."""
        with self._open():
            self._contexts.setdefault(context.digest, context)

    def load_context(self, digest: str) -> Context:
        """Return the context of a digest."""
        with self._open():
            if digest not in self._contexts:
                raise StoreError(
                    f"context {shown(digest)} is not in store {self.name!r}; "
                    "save_context(context) keeps one"
                )
            return self._contexts[digest]

    def save_experiment(self, experiment: ExperimentRecord) -> ExperimentRecord:
        """Store a plan; return it with its counter."""
        with self._open():
            return self._keep_experiment(self._session(experiment.session_id), experiment)

    def load_experiments(self, session_id: str, after: int = 0) -> list[ExperimentRecord]:
        """Return the session's plans with a counter above `after`, in order."""
        with self._open():
            kept = self._session(session_id).experiments
            return kept[bisect_right(kept, after, key=_counter_of) :]

    # -- answers in flight ---------------------------------------------------------------------

    def spool(self, draft: SpoolDraft) -> None:
        """Do nothing: no process can outlive this store to recover the draft."""
        with self._open():
            pass

    def unspool(self, entry_id: str) -> None:
        """Do nothing, as `spool` does."""
        with self._open():
            pass

    def recover(self) -> tuple[StoredEntry, ...]:
        """Return nothing: a memory store has no dead processes."""
        with self._open():
            return ()

    def close(self) -> None:
        """Forget everything; calling again does nothing."""
        if os.getpid() != self._pid:
            return  # the lock may be held by a thread that the fork left behind
        with self._lock:
            self._is_closed = True
            for kept in (self._sessions, self._home, self._runs, self._ends):
                kept.clear()
            self._contexts.clear()
            self._blobs.clear()

    # -- checks, and what follows them ---------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[None]:
        # Before the lock: in a forked child it may be held for ever by a thread that is not there.
        if os.getpid() != self._pid:
            raise StoreError(
                f"store {self.name!r} was opened by process {self._pid} and this is its fork "
                f"{os.getpid()}, whose writes would be lost; open a store in this process"
            )
        with self._lock:
            if self._is_closed:
                raise StoreClosed(f"store {self.name!r} is closed; open a new one")
            yield

    def _session(self, session_id: str) -> SessionRows:
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionNotFound(
                f"session {shown(session_id)} is not in store {self.name!r} "
                f"({len(self._sessions)} sessions); see list_sessions()"
            )
        return session

    def _add(
        self, session: SessionRows, entries: Sequence[StoredEntry], beside: Beside
    ) -> tuple[StoredEntry, ...]:
        """Check entries and what goes with them, then keep it all; return the entries."""
        completed, moves = session.completed(entries, self._seq, self._home, beside.moves)
        fresh = {entry.id for entry in completed} if beside.annotations else ()
        check_beside(
            beside,
            session.record.id,
            lambda entry_id: entry_id in fresh or entry_id in session.depths,
            {id: self._runs[id].session_id for id in runs_named(beside) if id in self._runs},
        )
        for context in beside.contexts:
            self._contexts.setdefault(context.digest, context)
        for run in beside.runs:
            self._runs[run.id] = run
            session.runs.append(run)
        for row in in_order(completed, moves):
            if isinstance(row, Move):
                session.keep_move(row)
            else:
                self._home[row.id] = row.session_id
                session.keep(row)
        self._seq += len(completed) + len(moves)
        for end in beside.ends:
            self._ends.setdefault(end.run_id, end)
        for annotation in beside.annotations:
            self._keep_annotation(session, annotation)
        for experiment in beside.experiments:
            self._keep_experiment(session, experiment)
        return completed

    def _keep_annotation(self, session: SessionRows, annotation: Annotation) -> Annotation:
        self._annotation_count += 1
        counted = replace(annotation, counter=self._annotation_count)
        session.annotations.append(counted)
        return counted

    def _keep_experiment(
        self, session: SessionRows, experiment: ExperimentRecord
    ) -> ExperimentRecord:
        self._experiment_count += 1
        counted = replace(experiment, counter=self._experiment_count)
        session.experiments.append(counted)
        return counted
