"""What each verb checks and stages: functions that the writer runs, one after the other.

The one idea: a plan checks everything before it stages or counts anything, so that a refused
call leaves no trace and its neighbours in the batch go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nbdurable.errors import EntryError, EntryNotFound, SessionExists, shown
from nbdurable.stored import (
    Annotation,
    Context,
    ExperimentRecord,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
    digest_of,
)
from nbdurable.stores.duckdb.batch import Batch
from nbdurable.stores.duckdb.state import SessionState, State, check_entry_id
from nbdurable.stores.memory_session import check_session_id


class Plans:
    """The verbs that write, for one store."""

    def __init__(self, name: str, state: State) -> None:
        self._name = name
        self._state = state

    # -- sessions and entries ------------------------------------------------------------------

    def create_session(
        self, batch: Batch, session: SessionRecord, entries: Sequence[StoredEntry]
    ) -> tuple[StoredEntry, ...]:
        """Stage a session with its first entries."""
        check_session_id(session.id)
        if self._state.has_session(session.id):
            raise SessionExists(
                f"session {shown(session.id)} exists in store {self._name!r}; "
                "open it by its id, or choose another id"
            )
        made = SessionState(session.id)
        completed = self._completed(session.id, made, entries)
        created_after = self._state.last("seq")
        counter = self._state.advance("sessions")
        batch.stage("sessions", session, counter=counter, created_after=created_after)
        self._state.add_session(session.id, made)
        self._keep(batch, made, completed)
        return completed

    def append(
        self,
        batch: Batch,
        session_id: str,
        entries: Sequence[StoredEntry],
        start: RunRecord | None,
        end: RunEnd | None,
    ) -> tuple[StoredEntry, ...]:
        """Stage entries, a run's start and a run's end."""
        session = self._session(session_id)
        if start is not None:
            self._check_start(start, session_id)
        if end is not None:
            self._check_end(end, session_id, start)
        ends = end is not None and not self._has_end(end)
        completed = self._completed(session_id, session, entries)
        if start is not None:
            self._keep_start(batch, start)
        self._keep(batch, session, completed)
        if end is not None and ends:
            self._keep_end(batch, end)
        return completed

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
        first = self._state.last("annotations") + 1
        counted = tuple(
            replace(annotation, counter=counter)
            for counter, annotation in enumerate(annotations, first)
        )
        for annotation in counted:
            batch.stage("annotations", annotation)
        self._state.advance("annotations", len(counted))
        return counted

    def start_run(self, batch: Batch, run: RunRecord, context: Context | None) -> None:
        """Stage a run's start, with its context when that is new."""
        self._session(run.session_id)
        self._check_start(run, run.session_id)
        if context is not None:
            self.save_context(batch, context)
        self._keep_start(batch, run)

    def end_run(self, batch: Batch, end: RunEnd) -> None:
        """Stage a run's end unless it has one."""
        self._session(end.session_id)
        self._check_end(end, end.session_id, None)
        if not self._has_end(end):
            self._keep_end(batch, end)

    def save_context(self, batch: Batch, context: Context) -> None:
        """Stage a context unless it is kept already."""
        if self._state.value_of("contexts", "digest", context.digest) is None:
            batch.stage("contexts", context)
            self._state.learn("contexts", context.digest)

    def save_experiment(self, batch: Batch, experiment: ExperimentRecord) -> ExperimentRecord:
        """Stage a plan of runs."""
        self._session(experiment.session_id)
        counted = replace(experiment, counter=self._state.advance("experiments"))
        batch.stage("experiments", counted)
        return counted

    # -- checks; nothing is staged or counted --------------------------------------------------

    def _session(self, session_id: str) -> SessionState:
        return self._state.session(session_id, self._name)

    def _completed(
        self, session_id: str, session: SessionState, entries: Sequence[StoredEntry]
    ) -> tuple[StoredEntry, ...]:
        """Return `entries` with the columns a store assigns, or raise `EntryError` (B60)."""
        for entry in entries:
            check_entry_id(entry.id)
        homes = self._state.homes_of(entry.id for entry in entries)
        position, last_seq = session.position, self._state.last("seq")
        earlier: dict[str, int] = {}
        rows = []
        for i, entry in enumerate(entries, 1):
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
            n = session.last_n + i
            row = entry._replace(
                seq=last_seq + i,
                n=n,
                depth=depth,
                moves_leaf=moves_leaf,
                cost_usd=_real(entry.cost_usd),
                seconds=_real(entry.seconds),
                ttft_s=_real(entry.ttft_s),
            )
            rows.append(row._replace(digest=digest_of(row)))
        return tuple(rows)

    def _check_start(self, run: RunRecord, session_id: str) -> None:
        _check_run_session(run.id, run.session_id, session_id)
        home = self._run_home(run.id)
        if home is not None:
            raise EntryError(
                f"run {shown(run.id)} is already in session {shown(home)}; give it a new id"
            )

    def _check_end(self, end: RunEnd, session_id: str, start: RunRecord | None) -> None:
        _check_run_session(end.run_id, end.session_id, session_id)
        is_new = start is not None and start.id == end.run_id
        if not is_new and self._run_home(end.run_id) != session_id:
            raise EntryError(
                f"run {shown(end.run_id)} was not started in session {shown(session_id)}; "
                "store its start first"
            )

    def _run_home(self, run_id: str) -> object:
        return self._state.value_of("runs", "id", run_id, "session_id")

    def _has_end(self, end: RunEnd) -> bool:
        return self._state.value_of("run_ends", "run_id", end.run_id) is not None

    # -- staging; nothing is refused -----------------------------------------------------------

    def _keep(self, batch: Batch, session: SessionState, completed: Sequence[StoredEntry]) -> None:
        batch.stage_entries(completed)
        for entry in completed:
            self._state.add_home(entry.id, entry.session_id)
            session.depths[entry.id] = entry.depth
            if entry.moves_leaf:
                session.position = entry.id
        session.last_n += len(completed)
        self._state.advance("seq", len(completed))

    def _keep_start(self, batch: Batch, run: RunRecord) -> None:
        batch.stage("runs", run, counter=self._state.advance("runs"))
        self._state.learn("runs", run.id, run.session_id)

    def _keep_end(self, batch: Batch, end: RunEnd) -> None:
        batch.stage("run_ends", end)
        self._state.learn("run_ends", end.run_id)


def _real(number: float | None) -> float | None:
    # A whole number comes back from a column of reals as one, which a digest tells apart.
    return None if number is None else float(number)


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


def _check_run_session(run_id: str, given: str, session_id: str) -> None:
    if given != session_id:
        raise EntryError(
            f"run {shown(run_id)} is of session {shown(given)}, not of {shown(session_id)}; "
            "store it in its own session"
        )
