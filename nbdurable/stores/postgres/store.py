"""`PostgresStore`: sessions that a team shares, in a PostgreSQL database.

Each verb is one line to `plans`, over a line to the server, or to `reader`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from nbdurable.errors import EntryError, StoreClosed, StoreError
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
from nbdurable.stores.duckdb.spool import Spool, check_in_flight
from nbdurable.stores.forgetting import Forgotten
from nbdurable.stores.postgres import schema
from nbdurable.stores.postgres.address import read_address
from nbdurable.stores.postgres.forgetting import forget_in_database
from nbdurable.stores.postgres.line import Line, Transaction
from nbdurable.stores.postgres.listening import TELL, Listener
from nbdurable.stores.postgres.plans import Plans
from nbdurable.stores.postgres.query import PostgresQuestion
from nbdurable.stores.postgres.reader import Reader
from nbdurable.stores.postgres.workers import Workers
from nbdurable.stores.together import Outline

T = TypeVar("T")


class PostgresStore:
    """Keep sessions in a PostgreSQL database; what a call returned from survives a kill.

    Safe from many threads, processes and machines: appends to one session take turns by a lock on
    its row, and a server that restarts is waited for. Answers in flight are kept in the user's
    data folder, and recovered by whoever opens the database next from there.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host:port/database``, with any option of libpq.
    must_exist : bool
        Refuse a database that holds no store; without, the tables are made.
    timeout_s : float
        How long a call waits for a server that went away, as one does that restarts.

    Raises
    ------
    StoreError
        There is no server, it refuses, or the database is none that can hold a store.
    StoreTooNew
        A newer nbdurable made the tables.
    """

    def __init__(self, url: str, *, must_exist: bool = False, timeout_s: float = 20.0) -> None:
        self._pid = os.getpid()
        self._is_closed = False
        self._closing = threading.Lock()
        address = read_address(url)
        self._name = address.name
        with contextlib.closing(Line(address, patience_s=0.0)) as line:
            store_id = schema.prepare(line, self._name, must_exist=must_exist)
        self._workers = Workers(address, patience_s=timeout_s)
        self._listener = Listener(address, _teller(self._workers))
        self._plans = Plans(self._name)
        self._reader = Reader(self._name, self._workers)
        self._spool = Spool(
            _spool_path(store_id, self._name), f"{self._pid}-{secrets.token_hex(4)}"
        )
        _open.add(self)

    @property
    def name(self) -> str:
        """The database's address, without user and password."""
        return self._name

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"PostgresStore({self._name!r}{state})"

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
        return self._write(
            lambda transaction: self._plans.create_session(transaction, session, given, beside)
        )

    def load_session(self, session_id: str) -> SessionRecord:
        """Return a session's record."""
        return self._held().session(session_id)

    def list_sessions(self) -> list[SessionSummary]:
        """Return one summary per session, the most recently used first; reads no payload."""
        return self._held().summaries()

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
        together = with_run(beside, start, end)
        stored = self._write(
            lambda transaction: self._plans.append(transaction, session_id, given, together)
        )
        with contextlib.suppress(StoreError):
            self._spool.drop(entry.id for entry in given)  # else recovery passes it over
        return stored

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        """Return the session's entries with ``n`` above `after_n`, by ``seq``."""
        return self._held().entries(session_id, after_n)

    def outlines(self, session_ids: Sequence[str]) -> dict[str, Outline]:
        """Return the outlines of those of the sessions that hold entries; see `together`."""
        return self._held().outlines(session_ids)

    def changes(self, session_id: str) -> int:
        """Return how many rows of the session its image reads, as of now, whoever wrote them."""
        return self._held().changes(session_id)

    def watch(self, session_id: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` now and soon after each change of a session; return what ends that.

        Not of the `Store` protocol. It is called in a thread of the store and must return at once.
        The server tells of changes over one connection, as long as anything is watched; where it
        does not, `wake` is called once a second.
        """
        self._held()
        return self._listener.watch(session_id, wake)

    # -- position ------------------------------------------------------------------------------

    def move(self, session_id: str, entry_id: str | None, created_at: int) -> Move:
        """Store a move of the position to an entry of the session, or to the root."""
        return self._write(
            lambda transaction: self._plans.move(transaction, session_id, entry_id, created_at)
        )

    def load_moves(self, session_id: str, after_seq: int = 0) -> list[Move]:
        """Return the session's moves with ``seq`` above `after_seq`, by ``seq``."""
        return self._held().moves(session_id, after_seq)

    # -- bytes ---------------------------------------------------------------------------------

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Keep bytes under their hash, once."""
        kept = bytes(data)
        self._write(lambda transaction: self._plans.put_blob(transaction, sha256, kept))

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a hash."""
        return self._held().blob(sha256)

    # -- annotations ---------------------------------------------------------------------------

    def annotate(self, annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
        """Store annotations in one transaction; return them with their counters."""
        given = tuple(annotations)
        return self._write(lambda transaction: self._plans.annotate(transaction, given))

    def load_annotations(self, session_id: str, after: int = 0) -> list[Annotation]:
        """Return the session's annotations with a counter above `after`, in order."""
        return self._held().annotations(session_id, after)

    # -- runs and experiments ------------------------------------------------------------------

    def start_run(self, run: RunRecord, context: Context | None = None) -> None:
        """Store a run's start alone, with its context when that is new."""
        beside = with_run(NOTHING, run, context=context)
        self._write(lambda transaction: self._plans.append(transaction, run.session_id, (), beside))

    def end_run(self, end: RunEnd) -> None:
        """Store a run's end alone; a run that has one keeps the first."""
        beside = with_run(NOTHING, end=end)
        self._write(lambda transaction: self._plans.append(transaction, end.session_id, (), beside))

    def load_runs(self, session_id: str) -> list[tuple[RunRecord, RunEnd | None]]:
        """Return the session's runs in the order they started, each with its end if any."""
        return self._held().runs(session_id)

    def save_context(self, context: Context) -> None:
        """Keep a context under its digest, once."""
        self._write(lambda transaction: self._plans.save_context(transaction, context))

    def load_context(self, digest: str) -> Context:
        """Return the context of a digest."""
        return self._held().context(digest)

    def save_experiment(self, experiment: ExperimentRecord) -> ExperimentRecord:
        """Store a plan; return it with its counter."""
        return self._write(lambda transaction: self._plans.save_experiment(transaction, experiment))

    def load_experiments(self, session_id: str, after: int = 0) -> list[ExperimentRecord]:
        """Return the session's plans with a counter above `after`, in order."""
        return self._held().experiments(session_id, after)

    # -- questions in SQL ----------------------------------------------------------------------

    def ask(self, work: Callable[[PostgresQuestion], T]) -> T:
        """Return what `work` makes of one snapshot, read only.

        Not of the `Store` protocol; see `nbdurable.stores.duckdb.query`.
        """
        self._held()
        return self._workers.run(
            lambda line: line.snapshot(lambda connection: work(PostgresQuestion(connection)))
        )

    # -- removal -------------------------------------------------------------------------------

    def forget(self, session_id: str, *, dry_run: bool = False) -> Forgotten:
        """Remove a session for good; see `nbdurable.stores.forgetting`, not of the protocol."""
        self._held()
        if not dry_run:
            self.recover()  # what a dead process left of the session goes with it
        check_in_flight(self._spool.owners(), session_id)
        return self._workers.run(
            lambda line: forget_in_database(line, self._name, session_id, dry_run=dry_run)
        )

    # -- answers in flight ---------------------------------------------------------------------

    def spool(self, draft: SpoolDraft) -> None:
        """Remember an answer in flight in the user's data folder, until its entry is appended."""
        self._held()
        self._spool.put(draft)

    def unspool(self, entry_id: str) -> None:
        """Forget the answer in flight of that entry id; unknown ids are passed over."""
        self._held()
        self._spool.drop([entry_id])

    def recover(self) -> tuple[StoredEntry, ...]:
        """Append what dead processes left in their spools, each exactly once; return it."""
        self._held()
        with self._spool.left_behind() as drafts:
            return tuple(entry for draft in drafts for entry in self._recover(draft))

    def _recover(self, draft: SpoolDraft) -> tuple[StoredEntry, ...]:
        entry = draft.entry
        for end in (draft.end, None):  # a paid-for answer is kept even if its run is not known
            with contextlib.suppress(EntryError, LookupError):
                return self.append(entry.session_id, [entry], end=end)
        return ()  # stored before the kill, or its parent never was

    # -- the handle ----------------------------------------------------------------------------

    def close(self) -> None:
        """Finish what is under way and hang up; calling again does nothing."""
        if os.getpid() != self._pid:
            return
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._listener.close()
                self._workers.close()
                self._spool.close()
                _open.discard(self)

    def _write(self, plan: Callable[[Transaction], T]) -> T:
        self._held()
        return self._workers.run(lambda line: line.write(plan))

    def _held(self) -> Reader:
        # Before anything else: in a forked child the threads that would answer are not there.
        if os.getpid() != self._pid:
            raise StoreError(
                f"store {self._name!r} was opened by process {self._pid} and this is its fork "
                f"{os.getpid()}, whose writes would be lost; start processes with 'spawn' and "
                "open the store there"
            )
        if self._is_closed:
            raise StoreClosed(f"store {self._name!r} is closed; open it again")
        return self._reader


def _teller(workers: Workers) -> Callable[[str], object]:
    return lambda topic: workers.run(lambda line: line.ask((TELL, [[topic]])))


def _spool_path(store_id: str, name: str) -> str:
    """Return where answers in flight are kept for a database.

    Its address counts too: a copy of a database must not take what is to go into the first one.
    """
    from platformdirs import user_data_path

    folder = Path(user_data_path("nbdurable")) / "postgres"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder / hashlib.sha256(f"{store_id} {name}".encode()).hexdigest()[:32])


_open: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for store in list(_open):
        store.close()
