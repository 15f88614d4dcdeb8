"""What this process knows of one session: its entries, its position, its activity.

Owns the in-memory image of a session and keeps it equal to the store (B11, B21): every change goes
to the store first and comes back from it. All handles of one session in one process share one
image; each has its own leaf. Does not own verbs (`session`) or the loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from nbdurable.annotations import Annotations
from nbdurable.codec import blobs_in, decode, encode
from nbdurable.entries import CustomEntry, Entry, MessageEntry, moves_position
from nbdurable.errors import EntryNotFound, RunActive, StoreClosed, shown
from nbdurable.frozen import collected_later
from nbdurable.growing import GrowingViews
from nbdurable.ids import Clock, IdMaker, as_datetime, now_us
from nbdurable.paths import Paths
from nbdurable.stored import Annotation, Context, Move, RunEnd, RunRecord, StoredEntry
from nbdurable.stores.together import load_news
from nbdurable.tree import Tree
from nbdurable.watching import Watched

if TYPE_CHECKING:
    from nbdurable.run import Run
    from nbdurable.stores.base import Store


class Leaf:
    """Where the next append of one handle, or of one detached run, attaches.

    Its lock is held from reading the leaf to storing what attaches there, so that two appends of
    one handle never become siblings by accident.
    """

    __slots__ = ("id", "lock")

    def __init__(self, entry_id: str | None) -> None:
        self.id = entry_id
        self.lock = threading.Lock()


class Loaded(Watched):
    """One session's image; safe to use from any thread.

    ``position`` is where a fresh handle resumes (B3): an entry id, or None for the root.
    """

    def __init__(
        self, store: Store, session_id: str, clock: Clock = now_us, new_id: IdMaker | None = None
    ) -> None:
        self.store = store
        self.session_id = session_id
        self.clock = clock
        self.new_id = new_id or IdMaker(clock)
        self.tree: Tree[StoredEntry] = Tree()
        self.views = GrowingViews()
        self._paths = Paths(self.tree)
        self.holders: list[Store] = []  # one per handle, on one file all of them
        self.foreground: Run | None = None
        self.live: WeakValueDictionary[str, Run] = WeakValueDictionary()  # of all handles here
        self._lock = threading.RLock()
        self._decoded: dict[str, Entry] = {}
        self._spoken: dict[str | None, list[Entry]] = {}  # ephemeral, by the entry said after
        self._by_n: list[str] = []
        self._position: tuple[int, str | None] = (0, None)
        self._last_move = 0
        self._changes = -1  # of the store, when last read
        self._contexts: set[str] = set()
        self._annotations = Annotations()
        self._annotated = -1  # changes of the store, when annotations were last read
        self.record = store.load_session(session_id)
        self.refresh()

    # -- reading -------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what others added since, entries by ``n`` and moves by ``seq`` (B11)."""
        changes = self.store.changes(self.session_id)
        if changes == self._changes:
            return
        with self._lock:
            after_n, after_move = len(self._by_n), self._last_move
        with collected_later():
            self._take(*load_news(self.store, self.session_id, after_n, after_move))
        self._changes = changes
        self.tell_watchers()

    def _take(self, entries: Iterable[StoredEntry], moves: Iterable[Move] = ()) -> None:
        with self._lock:
            fresh = [entry for entry in entries if entry.n > len(self._by_n)]
            if fresh and self.tree.orphans():
                self._paths.forget()
            self.tree.add(fresh)
            self._by_n.extend(entry.id for entry in fresh)
            last = next((entry for entry in reversed(fresh) if entry.moves_leaf), None)
            if last is not None:
                self._position = max(self._position, (last.seq, last.id), key=itemgetter(0))
            for move in moves:
                self._last_move = max(self._last_move, move.seq)
                self._position = max(self._position, (move.seq, move.entry_id), key=itemgetter(0))

    def annotations(self) -> Annotations:
        """Return the annotations with what others added since, by counter (B11).

        They are read here and not by `refresh`, as few verbs look at them.
        """
        try:
            changes = self.store.changes(self.session_id)
        except StoreClosed:
            return self._annotations  # as they were known; what is shown is readable still
        if changes != self._annotated:
            fresh = self.store.load_annotations(self.session_id, self._annotations.last)
            if any(annotation.target_id not in self.tree for annotation in fresh):
                self.refresh()  # said of entries that came later than the last look
            self._annotations.add(fresh)
            self._annotated = changes
        return self._annotations

    @property
    def position(self) -> str | None:
        """The entry where the session resumes; None is the root."""
        return self._position[1]

    @property
    def count(self) -> int:
        """How many entries are stored, as far as known here."""
        return len(self._by_n)

    def id_of(self, n: int) -> str | None:
        """Return the id of ordinal `n`, or None."""
        return self._by_n[n - 1] if 1 <= n <= len(self._by_n) else None

    def stored(self, entry_id: str) -> StoredEntry:
        """Return an entry as stored, or raise `EntryNotFound`."""
        found = self.tree.get(entry_id)
        if found is None:
            raise EntryNotFound(
                f"entry {shown(entry_id)} is not in session {shown(self.session_id)} "
                f"({self.count} entries); see session.entries()",
                entry_id=entry_id,
            )
        return found

    def entry(self, entry_id: str) -> Entry:
        """Return an entry decoded; custom ones afresh each time, as their fields may be mutable."""
        return self._decoded.get(entry_id) or self._decode(self.stored(entry_id))

    def _decode(self, stored: StoredEntry) -> Entry:
        entry = decode(stored, self.store.get_blob)
        if not isinstance(entry, CustomEntry):
            self._decoded[stored.id] = entry
        return entry

    def path(self, leaf_id: str | None) -> list[Entry]:
        """Return the entries from the root to `leaf_id`, oldest first."""
        if leaf_id is None:
            return []
        with self._lock:
            known, rest = self._paths.split(leaf_id)
        path = known.entries
        count = len(path)
        for at in known.custom_at:
            path[at] = self.entry(path[at].id)
        if rest:
            with collected_later():
                path += [self._decoded.get(node.id) or self._decode(node) for node in rest]
            with self._lock:
                self._paths.keep(count, path)
        return path

    def all_entries(self) -> list[Entry]:
        """Return every entry by ``seq``, ephemeral ones where they were said (B35)."""
        with self._lock:
            ids, spoken = list(self._by_n), {key: list(said) for key, said in self._spoken.items()}
        found = spoken.get(None, [])
        for entry_id in ids:
            found.append(self.entry(entry_id))
            found.extend(spoken.get(entry_id, ()))
        return found

    # -- writing -------------------------------------------------------------------------------

    def append(
        self,
        drafts: Sequence[Entry],
        leaf: Leaf,
        *,
        run_id: str | None = None,
        moves: bool = True,
        start: RunRecord | None = None,
        end: Callable[[str | None], RunEnd] | None = None,
        ids: Sequence[str] = (),
    ) -> list[Entry]:
        """Store drafts one under the other from `leaf` on, all or nothing, and move the leaf.

        Ephemeral drafts are remembered where they were said, not stored. `start` gets the leaf and
        the input ids filled in; `end` is called with the last id. `ids` are ids chosen before.

        Raises
        ------
        StoreError, BadPayload, EntryError
            Nothing was stored, nothing changed here.
        """
        with leaf.lock:
            parent, made, spoken = leaf.id, [], []
            now = self.clock()
            for at, draft in enumerate(drafts):
                if isinstance(draft, MessageEntry) and draft.ephemeral:
                    spoken.append((parent, self._spoken_form(draft, parent, run_id, now)))
                    continue
                stored = encode(
                    draft,
                    id=ids[at] if at < len(ids) else self.new_id(),
                    session_id=self.session_id,
                    parent_id=parent,
                    created_at=now,
                    run_id=run_id,
                    moves_leaf=moves_position(draft, moves),
                )
                made.append(stored)
                parent = stored.id
            self._keep_blobs(drafts)
            if start is not None:
                began = start.start_leaf_id or leaf.id  # known before, where it compacted first
                start = replace(start, start_leaf_id=began, input_ids=tuple(e.id for e in made))
            kept = self.store.append(
                self.session_id, made, start=start, end=end(parent) if end else None
            )
            self._take_own(kept)
            leaf.id = parent
            with self._lock:
                for after, entry in spoken:
                    self._spoken.setdefault(after, []).append(entry)
        self.tell_watchers()
        return [self.entry(stored.id) for stored in kept]

    def begin_again(
        self, start: RunRecord, input: Sequence[Entry], leaf: Leaf, base_id: str | None
    ) -> list[Entry]:
        """Store the start of a run whose input is stored already, and put `leaf` at its end.

        `start` names that input; `base_id` is the entry that it stands under.
        """
        with leaf.lock:
            self.store.start_run(start)
            leaf.id = self.say_again(start, input, base_id)
        self.tell_watchers()
        return [self.entry(entry_id) for entry_id in start.input_ids]

    def say_again(
        self, start: RunRecord, input: Sequence[Entry], base_id: str | None
    ) -> str | None:
        """Remember what of a stored input is ephemeral where it was said; return its last entry."""
        parent, spoken, stored = base_id, [], iter(start.input_ids)
        for draft in input:
            if isinstance(draft, MessageEntry) and draft.ephemeral:
                spoken.append((parent, self._spoken_form(draft, parent, start.id, self.clock())))
            else:
                parent = next(stored)
        with self._lock:
            for after, entry in spoken:
                self._spoken.setdefault(after, []).append(entry)
        return parent

    def _keep_blobs(self, drafts: Sequence[Entry]) -> None:
        for draft in drafts:
            if isinstance(draft, MessageEntry) and draft.ephemeral:
                continue
            for blob in blobs_in(draft):
                self.store.put_blob(blob.sha256, blob.read())

    def _take_own(self, kept: Sequence[StoredEntry]) -> None:
        if not kept:
            return
        if kept[0].n > len(self._by_n) + 1:  # others appended in between
            self._take(self.store.load_entries(self.session_id, len(self._by_n)))
        self._take(kept)
        self._count_own(len(kept))

    def _count_own(self, rows: int) -> None:
        """Count rows that were written here, so that they are not read again for that."""
        expected = self._changes + rows  # told once: a refresh may go on meanwhile
        if self.store.changes(self.session_id) == expected:
            self._changes = expected

    def _spoken_form(
        self, draft: MessageEntry, parent: str | None, run_id: str | None, now: int
    ) -> Entry:
        return replace(
            draft, id=self.new_id(), parent_id=parent, created_at=as_datetime(now), run_id=run_id
        )

    def spoken_in(self, run_id: str) -> dict[str | None, list[Entry]]:
        """Return the ephemeral input of a run, by the entry after which it was said."""
        with self._lock:
            found = {
                after: [entry for entry in said if entry.run_id == run_id]
                for after, said in self._spoken.items()
            }
        return {after: said for after, said in found.items() if said}

    def spoken(self, entry_id: str) -> bool:
        """Whether `entry_id` is that of an ephemeral entry said in this process."""
        with self._lock:
            return any(entry.id == entry_id for said in self._spoken.values() for entry in said)

    def save_context(self, context: Context) -> None:
        """Keep a context, if this process has not stored it for this session yet."""
        if context.digest not in self._contexts:
            self.store.save_context(context)
            self._contexts.add(context.digest)

    def move(self, entry_id: str | None) -> None:
        """Store a move of the position."""
        self._take((), [self.store.move(self.session_id, entry_id, self.clock())])
        self._count_own(1)
        self.tell_watchers()

    def annotate(self, annotation: Annotation) -> Annotation:
        """Store an annotation; return it with its counter."""
        (kept,) = self.store.annotate([annotation])
        self._count_own(1)
        self.tell_watchers()
        return kept

    # -- activity ------------------------------------------------------------------------------

    def claim(self, run: Run) -> None:
        """Make `run` the foreground run of this session in this process, or raise `RunActive`."""
        with self._lock:
            self.check_idle()
            self.foreground = run
        self.tell_watchers()

    def release(self, run: Run) -> None:
        """Let the next foreground run begin."""
        with self._lock:
            if self.foreground is run:
                self.foreground = None
        self.tell_watchers()

    def check_idle(self) -> None:
        """Raise `RunActive` while a foreground run goes on (B18)."""
        active = self.foreground
        if active is not None:
            error = RunActive(
                f"session {shown(self.session_id)} has run {active.run_id} going on in this "
                "process; wait() for it, cancel() it, or start with move=False"
            )
            error.run = active
            raise error


# -- one image per session and store -----------------------------------------------------------

_images: WeakKeyDictionary[object, dict[str, Loaded]] = WeakKeyDictionary()
_images_lock = threading.Lock()


def _medium(store: Store) -> object:
    """Return what two stores on one file have in common; a store that names nothing is alone."""
    return getattr(store, "medium", store)


def load(store: Store, session_id: str, clock: Clock = now_us) -> Loaded:
    """Return the process's image of a session, refreshed; count one handle more."""
    with _images_lock:
        image = _images.setdefault(_medium(store), {}).get(session_id)
        if image is not None:
            image.holders.append(store)
    if image is not None:
        try:
            image.refresh()
        except BaseException:
            unload(image, store)
            raise
        return image
    fresh = Loaded(store, session_id, clock)
    with _images_lock:
        image = _images.setdefault(_medium(store), {}).setdefault(session_id, fresh)
        image.holders.append(store)
    return image


def unload(image: Loaded, store: Store) -> None:
    """Count one handle less, that held `store`; the last one forgets the image."""
    with _images_lock:
        image.holders.remove(store)
        if not image.holders:
            _images.get(_medium(store), {}).pop(image.session_id, None)
        elif image.store not in image.holders:
            image.store = image.holders[-1]  # that one may be closed now
