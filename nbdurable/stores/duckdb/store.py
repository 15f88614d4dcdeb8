"""`DuckDBStore`: the durable store, one DuckDB file.

A handle on the process's `core` of the file; each verb is one line to `plans` or `reader`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nbdurable.errors import EntryError, NbDurableError, StoreClosed, StoreError
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
from nbdurable.stores.beside import with_run
from nbdurable.stores.duckdb.batch import Batch
from nbdurable.stores.duckdb.copying import back_up
from nbdurable.stores.duckdb.core import Core, acquire, release
from nbdurable.stores.duckdb.errands import Append
from nbdurable.stores.duckdb.place import real_path
from nbdurable.stores.duckdb.plans import Plans
from nbdurable.stores.duckdb.repair import RepairNotice
from nbdurable.stores.duckdb.writer import Plan, Writer
from nbdurable.stores.together import NewSession, Outline

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


class DuckDBStore:
    """Keep sessions in a DuckDB file; what a call returned from survives a kill.

    Safe from many threads, and many processes of one machine: each has the file for the time of an
    operation, in turn, and sees what the others wrote (B68).

    Parameters
    ----------
    path : str or Path
        The file, created when missing; its folder must exist.
    exclusive : bool
        Keep the file until `close`, so that no other process can use it.
    read_only : bool
        Only read, also what cannot be written. Ignored where this process writes to the file.
    timeout_s : float
        How long to wait for another process that holds the file.

    Raises
    ------
    StoreLocked
        Another process holds the file, or another DuckDB connection of this one; so of every
        verb that reads or writes.
    StoreTooNew
        A newer nbdurable or DuckDB wrote the file.
    StoreError
        The file cannot be read and written, is damaged, or is no store.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        exclusive: bool = False,
        read_only: bool = False,
        timeout_s: float = 10.0,
    ) -> None:
        self._name = real_path(path)
        self._is_closed = False
        self._is_exclusive = exclusive
        self._closing = threading.Lock()
        self._core = acquire(
            self._name, exclusive=exclusive, read_only=read_only, timeout_s=timeout_s
        )
        self._tell_of_repairs()

    def _tell_of_repairs(self) -> None:
        repairs = self._core.lease.repairs
        try:
            while repairs:
                warnings.warn(repairs.pop(0), RepairNotice, stacklevel=3)
        except BaseException:
            self.close()  # where warnings are errors
            raise

    @property
    def name(self) -> str:
        """The file's path, without symbolic links."""
        return self._name

    @property
    def medium(self) -> object:
        """What all stores of this process on the file share."""
        return self._core

    def check_place(self) -> None:
        """Raise `StoreError` when the file was removed or replaced since it was opened (B63)."""
        self._core.check_place()

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"DuckDBStore({self._name!r}{state})"

    # -- sessions ------------------------------------------------------------------------------

    def create_session(
        self,
        session: SessionRecord,
        entries: Sequence[StoredEntry] = (),
        *,
        beside: Beside = NOTHING,
    ) -> tuple[StoredEntry, ...]:
        """Create a session with what it holds, in one transaction."""
        given = tuple(entries)
        return self._writer().run(
            lambda plans, batch: plans.create_session(batch, session, given, beside)
        )

    def create_sessions(self, sessions: Sequence[NewSession]) -> list[NbDurableError | None]:
        """Create many sessions in one transaction; see `nbdurable.stores.together`."""
        given = tuple(sessions)

        def expect(plans: Plans, batch: Batch) -> None:
            plans.expect(given)

        def create(one: NewSession) -> Plan[None]:
            return lambda plans, batch: plans.create_whole(batch, one)

        done = self._writer().run_all([expect, *map(create, given)])
        return [result if isinstance(result, NbDurableError) else None for result in done[1:]]

    def outlines(self, session_ids: Sequence[str]) -> dict[str, Outline]:
        """Return the outlines of those of the sessions that are there, in three queries."""
        return self._held().reader.outlines(list(session_ids))

    def load_session(self, session_id: str) -> SessionRecord:
        """Return a session's record."""
        return self._held().reader.session(session_id)

    def list_sessions(self) -> list[SessionSummary]:
        """Return one summary per session, the most recently used first; reads no payload."""
        return self._held().reader.summaries()

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
        given = tuple(entries)
        beside = with_run(beside, start, end)
        stored = self._writer().run(Append(session_id, given, beside))
        with contextlib.suppress(StoreError):
            # The entries are stored; a draft that stays is passed over by `recover`.
            self._core.spool.drop(entry.id for entry in stored)
        return stored

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        """Return the session's entries with ``n`` above `after_n`, by ``seq``."""
        return self._held().reader.entries(session_id, after_n)

    def load_news(
        self, session_id: str, after_n: int, after_seq: int
    ) -> tuple[list[StoredEntry], list[Move]]:
        """Return entries and moves in one hold of the file; see `nbdurable.stores.together`."""
        return self._held().reader.news(session_id, after_n, after_seq)

    def changes(self, session_id: str) -> int:
        """Return a number that grows with every row of the session that its image reads."""
        core = self._held()
        return core.writer.changes[session_id] + (core.lease.changed() << 32)

    # -- position ------------------------------------------------------------------------------

    def move(self, session_id: str, entry_id: str | None, created_at: int) -> Move:
        """Store a move of the position to an entry of the session, or to the root."""
        return self._writer().run(
            lambda plans, batch: plans.move(batch, session_id, entry_id, created_at)
        )

    def load_moves(self, session_id: str, after_seq: int = 0) -> list[Move]:
        """Return the session's moves with ``seq`` above `after_seq`, by ``seq``."""
        return self._held().reader.moves(session_id, after_seq)

    # -- bytes ---------------------------------------------------------------------------------

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Keep bytes under their hash, once."""
        kept = bytes(data)
        self._writer().run(lambda plans, batch: plans.put_blob(batch, sha256, kept))

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a hash."""
        return self._held().reader.blob(sha256)

    # -- annotations ---------------------------------------------------------------------------

    def annotate(self, annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
        """Store annotations in one transaction; return them with their counters."""
        given = tuple(annotations)
        return self._writer().run(lambda plans, batch: plans.annotate(batch, given))

    def load_annotations(self, session_id: str, after: int = 0) -> list[Annotation]:
        """Return the session's annotations with a counter above `after`, in order."""
        return self._held().reader.annotations(session_id, after)

    # -- runs and experiments ------------------------------------------------------------------

    def start_run(self, run: RunRecord, context: Context | None = None) -> None:
        """Store a run's start alone, with its context when that is new."""
        beside = with_run(NOTHING, run, context=context)
        self._writer().run(lambda plans, batch: plans.append(batch, run.session_id, (), beside))

    def end_run(self, end: RunEnd) -> None:
        """Store a run's end alone; a run that has one keeps the first."""
        beside = with_run(NOTHING, end=end)
        self._writer().run(lambda plans, batch: plans.append(batch, end.session_id, (), beside))

    def load_runs(self, session_id: str) -> list[tuple[RunRecord, RunEnd | None]]:
        """Return the session's runs in the order they started, each with its end if any."""
        return self._held().reader.runs(session_id)

    def save_context(self, context: Context) -> None:
        """Keep a context under its digest, once."""
        self._writer().run(lambda plans, batch: plans.save_context(batch, context))

    def load_context(self, digest: str) -> Context:
        """Return the context of a digest."""
        return self._held().reader.context(digest)

    def save_experiment(self, experiment: ExperimentRecord) -> ExperimentRecord:
        """Store a plan; return it with its counter."""
        return self._writer().run(lambda plans, batch: plans.save_experiment(batch, experiment))

    def load_experiments(self, session_id: str, after: int = 0) -> list[ExperimentRecord]:
        """Return the session's plans with a counter above `after`, in order."""
        return self._held().reader.experiments(session_id, after)

    # -- questions in SQL ----------------------------------------------------------------------

    def read(self, work: Callable[[DuckDBPyConnection], T]) -> T:
        """Return what `work` makes of a cursor on the file, all of it before the hold ends.

        Not of the `Store` protocol; see `nbdurable.stores.duckdb.query`.
        """
        return self._held().reader.read(work)

    # -- copies --------------------------------------------------------------------------------

    def backup(self, path: str | Path) -> Path:
        """Copy the store to a new file while it is in use; return its path.

        The copy holds everything stored before the call, in a file of its own without a log;
        answers in flight are not in it.

        Raises
        ------
        StoreError
            There is a file already, or it cannot be written; this store is unharmed.
        """
        to = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._held().reader.read(lambda cursor: back_up(cursor, self._name, to))
        return Path(to)

    # -- answers in flight ---------------------------------------------------------------------

    def spool(self, draft: SpoolDraft) -> None:
        """Remember an answer in flight beside the file, until its entry is appended."""
        self._writer()
        self._held().spool.put(draft)

    def unspool(self, entry_id: str) -> None:
        """Forget the answer in flight of that entry id; unknown ids are passed over."""
        self._held().spool.drop([entry_id])

    def recover(self) -> tuple[StoredEntry, ...]:
        """Append what dead processes left in their spools, each exactly once; return it."""
        if self._held().read_only:
            return ()
        with self._held().spool.left_behind() as drafts:
            return tuple(entry for draft in drafts for entry in self._recover(draft))

    def _recover(self, draft: SpoolDraft) -> tuple[StoredEntry, ...]:
        entry = draft.entry
        for end in (draft.end, None):  # a paid-for answer is kept even if its run is not known
            with contextlib.suppress(EntryError, LookupError):
                return self.append(entry.session_id, [entry], end=end)
        return ()  # stored before the kill, or its parent never was

    # -- the handle ----------------------------------------------------------------------------

    def close(self) -> None:
        """Give up this handle, the last of the process frees the file; again does nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                release(self._core, exclusive=self._is_exclusive)

    def _held(self) -> Core:
        self._core.check_process()
        if self._is_closed:
            raise StoreClosed(f"store {self._name!r} is closed; open it again")
        return self._core

    def _writer(self) -> Writer:
        core = self._held()
        if core.read_only:
            raise StoreError(
                f"store {self._name!r} is open for reading only; nothing was written; "
                "open it without read_only, or work on a copy"
            )
        return core.writer
