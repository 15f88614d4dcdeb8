"""What each verb checks and stages: functions that the writer runs, one after the other.

The one idea: a plan checks everything before it stages or counts anything, so that a refused
call leaves no trace and its neighbours in the batch go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nbdurable.errors import EntryError, EntryNotFound, SessionExists, shown
from nbdurable.stored import (
    Annotation,
    Beside,
    Context,
    ExperimentRecord,
    Move,
    SessionRecord,
    StoredEntry,
    digest_of,
)
from nbdurable.stores.beside import check_beside, in_order, no_target, runs_named
from nbdurable.stores.duckdb.batch import Batch
from nbdurable.stores.duckdb.state import SessionState, State, check_entry_id, is_entry_id
from nbdurable.stores.memory_session import check_session_id
from nbdurable.stores.together import NewSession


class Plans:
    """The verbs that write, for one store."""

    def __init__(self, name: str, state: State) -> None:
        self._name = name
        self._state = state

    # -- sessions and entries ------------------------------------------------------------------

    def create_session(
        self,
        batch: Batch,
        session: SessionRecord,
        entries: Sequence[StoredEntry],
        beside: Beside,
    ) -> tuple[StoredEntry, ...]:
        """Stage a session with what it holds."""
        check_session_id(session.id)
        if self._state.has_session(session.id):
            raise SessionExists(
                f"session {shown(session.id)} exists in store {self._name!r}; "
                "open it by its id, or choose another id"
            )
        made = SessionState(session.id)
        completed = self._completed(session.id, made, entries, beside)
        created_after = self._state.last("seq")
        counter = self._state.advance("sessions")
        batch.stage("sessions", session, counter=counter, created_after=created_after)
        self._state.add_session(session.id, made)
        self._keep(batch, made, *completed, beside)
        return completed[0]

    def expect(self, sessions: Sequence[NewSession]) -> None:
        """Look up at once what the creation of each of these sessions would ask for."""
        self._state.expect(
            [given.session.id for given in sessions],
            [entry.id for given in sessions for entry in given.entries if is_entry_id(entry.id)],
        )

    def create_whole(self, batch: Batch, given: NewSession) -> None:
        """Stage a session with what it holds, and the bytes that its entries name."""
        self.create_session(batch, given.session, given.entries, given.beside)
        for sha256, data in given.blobs:
            self.put_blob(batch, sha256, data)

    def append(
        self, batch: Batch, session_id: str, entries: Sequence[StoredEntry], beside: Beside
    ) -> tuple[StoredEntry, ...]:
        """Stage entries and what goes with them."""
        session = self._session(session_id)
        completed = self._completed(session_id, session, entries, beside)
        self._keep(batch, session, *completed, beside)
        return completed[0]

    def move(self, batch: Batch, session_id: str, entry_id: str | None, created_at: int) -> Move:
        """Stage a move of the position."""
        session = self._session(session_id)
        if entry_id is not None and self._state.depth_of(session, entry_id) is None:
            raise EntryNotFound(
                f"entry {shown(entry_id)} is not in session {shown(session_id)} "
                f"({session.last_n} entries); see session.entries()",
                entry_id=entry_id,
            )
        seq = self._state.advance("seq")
        move = Move(session_id=session_id, entry_id=entry_id, seq=seq, created_at=created_at)
        batch.stage("moves", move)
        session.position = entry_id
        return move

    # -- beside the tree -----------------------------------------------------------------------

    def put_blob(self, batch: Batch, sha256: str, data: bytes) -> None:
        """Stage bytes unless they are kept already."""
        if self._state.value_of("blobs", "sha256", sha256) is None:
            batch.stage("blobs", None, sha256=sha256, size_bytes=len(data), data=data)
            self._state.learn("blobs", sha256)

    def annotate(self, batch: Batch, annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
        """Stage annotations, all or nothing."""
        for annotation in annotations:
            self._session(annotation.session_id)
        return tuple(self._keep_annotation(batch, annotation) for annotation in annotations)

    def save_context(self, batch: Batch, context: Context) -> None:
        """Stage a context unless it is kept already."""
        if self._state.value_of("contexts", "digest", context.digest) is None:
            batch.stage("contexts", context)
            self._state.learn("contexts", context.digest)

    def save_experiment(self, batch: Batch, experiment: ExperimentRecord) -> ExperimentRecord:
        """Stage a plan of runs."""
        self._session(experiment.session_id)
        return self._keep_experiment(batch, experiment)

    # -- checks; nothing is staged or counted --------------------------------------------------

    def _session(self, session_id: str) -> SessionState:
        return self._state.session(session_id, self._name)

    def _completed(
        self,
        session_id: str,
        session: SessionState,
        entries: Sequence[StoredEntry],
        beside: Beside,
    ) -> tuple[tuple[StoredEntry, ...], tuple[Move, ...]]:
        """Return entries and moves with the columns a store assigns, or raise (B60)."""
        for given in entries:
            check_entry_id(given.id)
        homes = self._state.homes_of(given.id for given in entries)
        position, last_seq = session.position, self._state.last("seq")
        earlier: dict[str, int] = {}

        def is_known(entry_id: str) -> bool:
            return entry_id in earlier or self._state.depth_of(session, entry_id) is not None

        rows: list[StoredEntry] = []
        moved: list[Move] = []
        entry: StoredEntry | Move
        for seq, entry in enumerate(in_order(entries, beside.moves), last_seq + 1):
            if isinstance(entry, Move):
                position = entry.entry_id
                if not (position is None or is_known(position)):
                    raise no_target(f"entry {shown(position)} of a move", session_id)
                moved.append(replace(entry, seq=seq))
                continue
            if entry.id in earlier:
                homes[entry.id] = session_id
            _check_home(entry, session_id, homes)
            parent_id, moves_leaf = entry.parent_id, entry.moves_leaf
            depth = 1
            if parent_id is not None:
                above = earlier.get(parent_id) or self._state.depth_of(session, parent_id)
                if above is None:
                    raise _no_parent(entry, session_id, session.last_n)
                depth += above
            earlier[entry.id] = depth
            if moves_leaf is None:
                moves_leaf = parent_id == position
            if moves_leaf:
                position = entry.id
            n = session.last_n + len(rows) + 1
            rows.append(numbered(entry, seq, n, depth, moves_leaf))
        check_beside(
            beside,
            session_id,
            is_known,
            self._state.run_homes(runs_named(beside)),
        )
        return tuple(rows), tuple(moved)

    # -- staging; nothing is refused -----------------------------------------------------------

    def _keep(
        self,
        batch: Batch,
        session: SessionState,
        entries: Sequence[StoredEntry],
        moves: Sequence[Move],
        beside: Beside,
    ) -> None:
        for context in beside.contexts:
            self.save_context(batch, context)
        for run in beside.runs:
            batch.stage("runs", run, counter=self._state.advance("runs"))
            self._state.start_run(run.id, run.session_id)
        batch.stage_entries(entries)
        for move in moves:
            batch.stage("moves", move)
        for row in in_order(entries, moves):
            if isinstance(row, Move):
                session.position = row.entry_id
                continue
            self._state.add_home(row.id, row.session_id)
            session.depths[row.id] = row.depth
            if row.moves_leaf:
                session.position = row.id
        session.last_n += len(entries)
        self._state.advance("seq", len(entries) + len(moves))
        for end in beside.ends:
            if self._state.end_run(end.run_id):
                batch.stage("run_ends", end)
        for annotation in beside.annotations:
            self._keep_annotation(batch, annotation)
        for experiment in beside.experiments:
            self._keep_experiment(batch, experiment)

    def _keep_annotation(self, batch: Batch, annotation: Annotation) -> Annotation:
        counted = replace(annotation, counter=self._state.advance("annotations"))
        batch.stage("annotations", counted)
        return counted

    def _keep_experiment(self, batch: Batch, experiment: ExperimentRecord) -> ExperimentRecord:
        counted = replace(experiment, counter=self._state.advance("experiments"))
        batch.stage("experiments", counted)
        return counted


def numbered(entry: StoredEntry, seq: int, n: int, depth: int, moves_leaf: bool) -> StoredEntry:
    """Return an entry with the columns that a store assigns, as it is stored."""
    row: list[Any] = list(entry)
    row[_NUMBERS] = seq, n, depth
    row[_MOVES_LEAF] = moves_leaf
    # A whole number comes back from a column of reals as one, which a digest tells apart.
    row[_REALS] = [None if number is None else float(number) for number in row[_REALS]]
    row[-1] = digest_of(StoredEntry._make(row))
    return StoredEntry._make(row)


_place_of = StoredEntry._fields.index
_NUMBERS = slice(_place_of("seq"), _place_of("depth") + 1)
_REALS = slice(_place_of("cost_usd"), _place_of("ttft_s") + 1)
_MOVES_LEAF = _place_of("moves_leaf")


def _check_home(entry: StoredEntry, session_id: str, homes: dict[str, str]) -> None:
    if entry.session_id != session_id:
        raise EntryError(
            f"entry {shown(entry.id)} is of session {shown(entry.session_id)}, not of "
            f"{shown(session_id)}; append it to its own session"
        )
    if entry.id in homes:
        raise EntryError(
            f"entry {shown(entry.id)} is already in session {shown(homes[entry.id])}; "
            "give it a new id"
        )


def _no_parent(entry: StoredEntry, session_id: str, count: int) -> EntryError:
    return EntryError(
        f"parent {shown(entry.parent_id)} of entry {shown(entry.id)} is not in session "
        f"{shown(session_id)} ({count} entries); append the parent first"
    )
