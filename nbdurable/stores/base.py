"""The `Store` protocol: what the durable core asks of a store, and nothing more.

Nothing updates or deletes. Every method may be called from any thread and returns when what it
did is stored, in the sense that a second process would read it. Every method but `close` raises
`StoreClosed` after `close`, and `StoreError` for a fault of the medium. Every method that is given
a session, alone or in a record, raises `SessionNotFound` when the store has no such session (B8).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class Store(Protocol):
    """Persistence of sessions: an append-only log with parent pointers.

    ``seq`` counts entries and moves of the whole store, in one counter; ``n`` counts the entries
    of a session, from 1, without holes. The order of everything is the order of its counter,
    never of its time (B4).
    """

    @property
    def name(self) -> str:
        """What to call the store in a text: a path, or ``:memory:``; never holds a secret."""

    # -- sessions ------------------------------------------------------------------------------

    def create_session(
        self,
        session: SessionRecord,
        entries: Sequence[StoredEntry] = (),
        *,
        beside: Beside = NOTHING,
    ) -> tuple[StoredEntry, ...]:
        """Create a session with what it holds, in one transaction; return the entries as stored.

        Entries and moves keep their order, and merge by the ``seq`` they came with, an entry
        first where that is equal; so a move later than the last entry stays later (B3).

        Raises
        ------
        SessionExists
            The id is taken; nothing was written.
        EntryError, EntryNotFound
            The id is empty or holds NUL (B9), or something is refused as by `append`.
        """

    def load_session(self, session_id: str) -> SessionRecord:
        """Return a session's record, or raise `SessionNotFound`."""

    def list_sessions(self) -> list[SessionSummary]:
        """Return one summary per session, the most recently used first; reads no payload."""

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
        """Store entries, a run's start and end, and more, all or nothing; return the entries.

        The store assigns ``seq``, ``n``, ``depth``, ``digest`` and resolves ``moves_leaf`` None.
        A parent is an entry of the session, or one earlier in the same call. Calling again with
        entries already stored, equal in id and content, is refused like any duplicate.

        Raises
        ------
        SessionNotFound
            No such session.
        EntryError
            A duplicate id in the whole store, a parent that is not in the session (B60), a record
            of another session, a run started twice or ended unstarted; nothing was written.
        EntryNotFound
            A move or an annotation in `beside` is to an entry that is not in the session; nothing
            was written.
        """

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        """Return the session's entries with ``n`` above `after_n`, by ``seq``.

        Raises
        ------
        SessionNotFound
            No such session.
        """

    def changes(self, session_id: str) -> int:
        """Return a number that grows with every entry, move, annotation and plan of the session.

        It grows by one for each, as far as this store's process can know without reading; where
        that is not known, any number that was not returned before. Asking is cheap enough to be
        done every second by whoever shows a session: it neither waits for another process nor
        reads what is stored (B11).
        """

    # -- position ------------------------------------------------------------------------------

    def move(self, session_id: str, entry_id: str | None, created_at: int) -> Move:
        """Store a move of the position to an entry of the session, or to the root (None).

        Raises
        ------
        SessionNotFound
            No such session.
        EntryNotFound
            The entry is not in the session.
        """

    def load_moves(self, session_id: str, after_seq: int = 0) -> list[Move]:
        """Return the session's moves with ``seq`` above `after_seq`, by ``seq``."""

    # -- bytes ---------------------------------------------------------------------------------

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Keep bytes under their hash, once."""

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a hash, or raise `StoreError` naming it."""

    # -- annotations ---------------------------------------------------------------------------

    def annotate(self, annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
        """Store annotations in one transaction; return them with their counters."""

    def load_annotations(self, session_id: str, after: int = 0) -> list[Annotation]:
        """Return the session's annotations with a counter above `after`, in order."""

    # -- runs and experiments ------------------------------------------------------------------

    def start_run(self, run: RunRecord, context: Context | None = None) -> None:
        """Store a run's start alone, with its context when that is new.

        Raises
        ------
        EntryError
            A run of this id is stored already.
        """

    def end_run(self, end: RunEnd) -> None:
        """Store a run's end alone; a run that has one keeps the first.

        Raises
        ------
        EntryError
            No run of this id was started in the session.
        """

    def load_runs(self, session_id: str) -> list[tuple[RunRecord, RunEnd | None]]:
        """Return the session's runs in the order they started, each with its end if it has one."""

    def save_context(self, context: Context) -> None:
        """Keep a context under its digest, once."""

    def load_context(self, digest: str) -> Context:
        """Return the context of a digest, or raise `StoreError` naming it."""

    def save_experiment(self, experiment: ExperimentRecord) -> ExperimentRecord:
        """Store a plan; return it with its counter. The latest of a name counts."""

    def load_experiments(self, session_id: str, after: int = 0) -> list[ExperimentRecord]:
        """Return the session's plans with a counter above `after`, in order."""

    # -- answers in flight ---------------------------------------------------------------------

    def spool(self, draft: SpoolDraft) -> None:
        """Remember an answer in flight outside the log, until its entry is appended (B24)."""

    def unspool(self, entry_id: str) -> None:
        """Forget the answer in flight of that entry id; unknown ids are passed over."""

    def recover(self) -> tuple[StoredEntry, ...]:
        """Append what dead processes left in their spools, each exactly once; return it."""

    def close(self) -> None:
        """Free the medium; calling again does nothing."""
