"""What a store may do at once, where each call of the protocol takes longer than its rows.

Owns the choice between a store that can and one that cannot. The one idea: the outcome is that of
the calls one after the other; each session created is there whole or not at all, and none depends
on its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, Protocol, runtime_checkable

from nbdurable.errors import EntryError, NbDurableError, TreeError
from nbdurable.stored import NOTHING, Beside, Move, SessionRecord, StoredEntry
from nbdurable.stores.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A session to be created; ``blobs`` are pairs of a hash and the bytes its entries name."""

    session: SessionRecord
    entries: Sequence[StoredEntry] = ()
    beside: Beside = NOTHING
    blobs: Sequence[tuple[str, bytes]] = ()


class HeldEntry(NamedTuple):
    """What tells a stored entry from another, without what it says."""

    session_id: str
    id: str
    seq: int
    n: int
    depth: int
    created_at: int
    moves_leaf: bool
    source_id: str | None
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a session holds, without what its entries say; ``move`` is the last one."""

    entries: Mapping[str, HeldEntry]
    move: Move | None
    note_ids: frozenset[str]


@runtime_checkable
class CreatesMany(Protocol):
    """A store that creates several sessions in one transaction."""

    def create_sessions(self, sessions: Sequence[NewSession]) -> list[NbDurableError | None]:
        """Create sessions as `create_session` does each; return why one was refused, or None."""


@runtime_checkable
class OutlinesMany(Protocol):
    """A store that reads the outlines of several sessions in a few queries."""

    def outlines(self, session_ids: Sequence[str]) -> dict[str, Outline]:
        """Return the outlines of those of the sessions that are there."""


def outlines(store: Store, session_ids: Sequence[str]) -> dict[str, Outline]:
    """Return the outline of each session of a store, all of which are there."""
    if session_ids and isinstance(store, OutlinesMany):
        return store.outlines(session_ids)
    return {id: _outline(store, id) for id in session_ids}


def _outline(store: Store, session_id: str) -> Outline:
    entries = store.load_entries(session_id)
    moves = store.load_moves(session_id)
    return Outline(
        entries={entry.id: HeldEntry._make(_held(entry)) for entry in entries},
        move=moves[-1] if moves else None,
        note_ids=frozenset(note.id for note in store.load_annotations(session_id)),
    )


_held = attrgetter(*HeldEntry._fields)


@runtime_checkable
class LoadsNews(Protocol):
    """A store that waits once for the file, and reads all that is new of a session."""

    def load_news(
        self, session_id: str, after_n: int, after_seq: int
    ) -> tuple[list[StoredEntry], list[Move]]:
        """Return what `load_entries` and `load_moves` return."""


def load_news(
    store: Store, session_id: str, after_n: int, after_seq: int
) -> tuple[list[StoredEntry], list[Move]]:
    """Return a session's entries with ``n`` above `after_n` and moves with ``seq`` above another.

    Raises
    ------
    SessionNotFound
        No such session.
    """
    if isinstance(store, LoadsNews):
        return store.load_news(session_id, after_n, after_seq)
    return store.load_entries(session_id, after_n), store.load_moves(session_id, after_seq)


def create_sessions(store: Store, sessions: Sequence[NewSession]) -> list[NbDurableError | None]:
    """Create sessions in a store, many to a transaction where it can.

    Returns
    -------
    list of NbDurableError or None
        One for each, in their order: None when it was created, else why it was refused.

    Raises
    ------
    StoreError
        The store failed; some of the sessions may be stored, each of them whole.
    """
    if sessions and isinstance(store, CreatesMany):
        return store.create_sessions(sessions)
    return [_created(store, one) for one in sessions]


def _created(store: Store, one: NewSession) -> NbDurableError | None:
    try:
        for sha256, data in one.blobs:
            store.put_blob(sha256, data)
        store.create_session(one.session, one.entries, beside=one.beside)
    except (EntryError, TreeError) as exc:
        return exc
    return None
