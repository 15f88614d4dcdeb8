"""Adding foreign conversations to a store: each a session, there whole or not at all.

Owns which session a conversation is, and what of it is new there. The one idea: nothing that is
stored is touched; what the source added since stands under its parent, beside what was added here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from nbdurable.errors import EntryError, SessionExists, TreeError
from nbdurable.formats.drafts import Conversation
from nbdurable.formats.planting import Hidden, Planted, plant
from nbdurable.formats.report import Outcome
from nbdurable.stored import NOTHING, Beside, Move, SessionRecord, StoredEntry, digest_of
from nbdurable.stores.base import Store
from nbdurable.stores.together import (
    HeldEntry,
    NewSession,
    Outline,
    create_sessions,
    outlines,
)
from nbdurable.wire import clean

WENT_ON = "the session went on here too; what is new stands beside it, its position stays"


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one conversation."""

    session_id: str
    outcome: Outcome
    planted: Planted
    entries: int = 0
    told: str | None = None


class Adder:
    """Adds conversations of one format to a store.

    Parameters
    ----------
    store : Store
        Where to.
    format : str
        The format's name.
    has_ids : bool
        Whether a second conversation of the same id in one import is that one again.
    now : int
        Microseconds since the epoch: the time of what has none.
    hidden : str
        What becomes of what the source hides; see `plant`.
    """

    def __init__(
        self, store: Store, format: str, *, has_ids: bool, now: int, hidden: Hidden
    ) -> None:
        self._store = store
        self._format = format
        self._has_ids = has_ids
        self._now = now
        self._hidden = hidden
        self._known = {summary.session.id for summary in store.list_sessions()}
        self._used: set[str] = set()

    def add_all(self, found: Iterable[Conversation]) -> list[Added]:
        """Add conversations, the new ones among them in one transaction; see `add`."""
        made: list[Added] = []
        waiting: dict[str, tuple[Conversation, Planted]] = {}
        found = list(found)
        named = {next(self._names(one.id)) for one in found}
        here = outlines(self._store, sorted(named & self._known))
        for one in found:
            session_id = next(self._names(one.id))
            if session_id in self._known or session_id in waiting:
                made += self._created(waiting)
                waiting.clear()
                made.append(self._unchanged(one, session_id, here) or self.add(one))
            else:
                self._used.add(session_id)
                waiting[session_id] = one, self._planted(one, session_id, {})
        return [*made, *self._created(waiting)]

    def _created(self, waiting: Mapping[str, tuple[Conversation, Planted]]) -> Iterator[Added]:
        """Create sessions; one that somebody else created meanwhile is added to."""
        news = [self._new(one, id, planted) for id, (one, planted) in waiting.items()]
        refusals = create_sessions(self._store, news)
        for (session_id, (one, planted)), refusal in zip(waiting.items(), refusals, strict=True):
            if refusal is None:
                self._known.add(session_id)
                yield Added(session_id, "added", planted, entries=len(planted.entries))
            elif isinstance(refusal, SessionExists):
                self._known.add(session_id)
                self._used.discard(session_id)
                yield self.add(one)
            else:
                yield _refused(session_id, refusal)

    def add(self, found: Conversation) -> Added:
        """Add a conversation, or what its session lacks of it.

        Raises
        ------
        StoreError
            The store failed; nothing of the conversation was stored.
        """
        for session_id in self._names(found.id):
            try:
                added = self._added(found, session_id)
            except (EntryError, TreeError) as exc:
                added = _refused(session_id, exc)
            if added is not None:
                self._used.add(session_id)
                return added
        raise AssertionError("names do not end")

    def _unchanged(
        self, found: Conversation, session_id: str, here: Mapping[str, Outline]
    ) -> Added | None:
        """Return that all of a conversation is there, as it is; None where that is to be seen."""
        outline = here.get(session_id)
        planted = self._planted(found, session_id, {}) if outline is not None else Planted()
        if outline is None or not planted.entries:
            return None
        if not all(_is_held(entry, outline.entries.get(entry.id)) for entry in planted.entries):
            return None
        if not all(note.id in outline.note_ids for note in planted.annotations):
            return None
        moves = [outline.move] if outline.move is not None else []
        stays = planted.leaf_id is None or planted.leaf_id == _last(moves)
        if not stays and not _went_on(outline.entries, moves):
            return None
        self._used.add(session_id)
        return Added(session_id, "unchanged", planted)

    def _names(self, id: str) -> Iterator[str]:
        plain = (clean(id) or "").replace("\0", "\ufffd")
        for number in count(1):
            name = f"{self._format}:{plain}" + (f"#{number}" if number > 1 else "")
            if self._has_ids or name not in self._used:
                yield name

    def _added(self, found: Conversation, session_id: str) -> Added | None:
        """Add to the session of an id; None where that is another conversation."""
        if session_id not in self._known:
            planted = self._planted(found, session_id, {})
            return next(self._created({session_id: (found, planted)}))
        here = {entry.id: entry for entry in self._store.load_entries(session_id)}
        planted = self._planted(found, session_id, here)
        if not self._is_same(planted, here):
            return None
        return self._grow(session_id, planted, here)

    def _is_same(self, planted: Planted, here: Mapping[str, StoredEntry]) -> bool:
        """Whether a conversation is that of a session: it shares entries, or has them all."""
        mine = {entry.id for entry in planted.entries}
        theirs = {id for id, entry in here.items() if entry.source_id is not None}
        if not mine or not theirs:
            return True
        return not mine.isdisjoint(theirs) if self._has_ids else mine <= theirs or theirs <= mine

    def _planted(
        self, found: Conversation, session_id: str, known: Mapping[str, StoredEntry]
    ) -> Planted:
        return plant(
            found, session_id, self._format, now=self._now, hidden=self._hidden, known=known
        )

    def _new(self, found: Conversation, session_id: str, planted: Planted) -> NewSession:
        created_at = found.at or min((e.created_at for e in planted.entries), default=self._now)
        moves = (_move(planted, session_id),) if planted.leaf_id is not None else ()
        return NewSession(
            session=SessionRecord(id=session_id, created_at=created_at),
            entries=planted.entries,
            beside=Beside(moves=moves, annotations=tuple(planted.annotations)),
            blobs=[(blob.sha256, blob.read()) for blob in planted.blobs],
        )

    def _grow(self, session_id: str, planted: Planted, here: Mapping[str, StoredEntry]) -> Added:
        fresh = [entry for entry in planted.entries if entry.id not in here]
        known = {note.id for note in self._store.load_annotations(session_id)}
        notes = tuple(note for note in planted.annotations if note.id not in known)
        beside = replace(NOTHING, annotations=notes)
        told: str | None = None
        moves = self._store.load_moves(session_id)
        if _went_on(here, moves):
            told = WENT_ON if fresh else None
        elif planted.leaf_id is not None and planted.leaf_id != _last(moves):
            beside = replace(beside, moves=(_move(planted, session_id),))
        if not fresh and beside == NOTHING:
            return Added(session_id, "unchanged", planted, told=told)
        self._keep_blobs(planted)
        self._store.append(session_id, fresh, beside=beside)
        return Added(session_id, "grown", planted, entries=len(fresh), told=told)

    def _keep_blobs(self, planted: Planted) -> None:
        for blob in planted.blobs:
            self._store.put_blob(blob.sha256, blob.read())


def _refused(session_id: str, exc: Exception) -> Added:
    return Added(session_id, "refused", Planted(), told=f"the store refused it: {exc}")


def _move(planted: Planted, session_id: str) -> Move:
    """Return the move to the position, at the time of its entry: so it is known for an import's."""
    at = next(e.created_at for e in planted.entries if e.id == planted.leaf_id)
    return Move(session_id=session_id, entry_id=planted.leaf_id, seq=1 << 62, created_at=at)


def _last(moves: list[Move]) -> str | None:
    return moves[-1].entry_id if moves else None


def _is_held(entry: StoredEntry, held: HeldEntry | None) -> bool:
    """Whether an entry is stored as it is; the time of one that has none may be another."""
    if held is None:
        return False
    as_stored = entry._replace(
        seq=held.seq,
        n=held.n,
        depth=held.depth,
        created_at=held.created_at,
        moves_leaf=held.moves_leaf,
    )
    return digest_of(as_stored) == held.digest


def _went_on(here: Mapping[str, StoredEntry] | Mapping[str, HeldEntry], moves: list[Move]) -> bool:
    """Whether someone wrote to the session, or moved in it, since its imports."""
    if any(entry.source_id is None for entry in here.values()):
        return True
    if not moves:
        return False
    at = here.get(moves[-1].entry_id or "")
    return at is None or at.created_at != moves[-1].created_at
