"""What every handle of a session has: its image, its leaf, its settings, its end.

Owns opening checks and the release of what the handle holds. Does not own verbs (`session`).
A handle that nobody closed is released by a thread of its own: the garbage collector may find it
anywhere, also in the middle of code that holds the locks which the release needs.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Self

from nbdurable import lifecycle, starting
from nbdurable.background import is_on_loop
from nbdurable.entries import Entry
from nbdurable.errors import NbDurableError, SessionClosed, StoreError, shown
from nbdurable.lifecycle import Publisher, SessionEvent
from nbdurable.loaded import Leaf, Loaded, unload
from nbdurable.origin import cell_execution
from nbdurable.replay import Replay
from nbdurable.settings import Settings
from nbdurable.stored import StoredEntry
from nbdurable.stores import Store, release_store

if TYPE_CHECKING:
    from nbdurable.run import Run

log = logging.getLogger("nbdurable")

LAST_RELEASE_S = 10.0

_open_handles: weakref.WeakSet[Handle] = weakref.WeakSet()
_numbers = itertools.count()
_leaked: SimpleQueue[tuple[Loaded, Store] | None] = SimpleQueue()  # put() is safe in a finalizer
_releaser: threading.Thread | None = None
_releaser_lock = threading.Lock()


class Handle:
    """One opening of a session, which holds its image and its store until it is closed."""

    def __init__(
        self,
        image: Loaded,
        settings: Settings,
        *,
        store: Store,
        publisher: Publisher | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.image = image
        self.settings = settings
        self.held = store
        self.publisher = publisher
        self.replay = replay
        self.leaf = Leaf(image.position)
        self.seen_position = image.position
        self.runs_started: weakref.WeakSet[Run] = weakref.WeakSet()
        self.before_close: set[Callable[[], None]] = set()  # what starts runs is stopped first
        self.number = next(_numbers)  # of opening
        self._is_closed = False
        self._close_lock = threading.Lock()
        self._pid = os.getpid()
        self._leak = weakref.finalize(self, _leaked.put, (image, store))
        self._leak.atexit = False  # close_all stops the runs first
        _open_handles.add(self)
        _watch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel this handle's runs, keep what came, and let go of the store; idempotent.

        The last handle in the process frees the store's file.
        """
        with self._close_lock:
            was_closed, self._is_closed = self._is_closed, True
        # In a fork, runs and locks are those of threads that are not there.
        if was_closed or os.getpid() != self._pid:
            return
        if is_on_loop():  # a run that calls this ends only after this has returned
            threading.Thread(target=self._end, name="nbdurable-close").start()
        else:
            self._end()

    def _end(self) -> None:
        try:
            for stop in list(self.before_close):
                stop()
            starting.stop_all(self.runs_started)
            self._remember()
        finally:
            self._leak.detach()
            _let_go(self.image, self.held)

    def _remember(self) -> None:
        """Read what was annotated last, for somebody who looked and may go on looking."""
        if self.image._annotated >= 0:
            try:
                self.image.annotations()
            except StoreError:
                log.debug("annotations of a closing session are not known", exc_info=True)

    def fresh(self) -> None:
        """Check that the handle is open, and read what others wrote (B11)."""
        if self._is_closed:
            raise SessionClosed(
                f"session {shown(self.image.session_id)} was closed on this handle; "
                "open it again by its id"
            )
        self.begin_cell()
        self.image.refresh()

    def ready(self, *, moves: bool = True) -> None:
        """Check for a verb that writes: open and, where it moves the leaf, no foreground run."""
        self.fresh()
        if moves:
            self.image.check_idle()

    def go_to(self, entry_id: str | None) -> None:
        """Put the leaf elsewhere, in memory."""
        self.leaf = Leaf(entry_id)
        self.seen_position = self.image.position
        self.image.tell_watchers()

    def put(self, entry_id: str | None) -> None:
        """Put the leaf where replay has it, in memory until the next write from there (B56)."""
        self.go_to(entry_id)
        if self.replay is not None:
            self.replay.is_ahead = True
            self.replay.overlapped = None

    def settle(self) -> None:
        """Store the move to where replay has put the leaf, before the first write from there."""
        if self.replay is not None and self.replay.is_ahead:
            self.settled()
            if self.image.position != self.leaf.id:
                self.image.move(self.leaf.id)
                self.seen_position = self.image.position

    def settled(self) -> None:
        """Note that the position is, or is about to be, where the leaf is."""
        if self.replay is not None:
            self.replay.is_ahead = False

    def wrote(self, entries: Sequence[Entry]) -> None:
        """Count entries that a verb has appended as those that its replay takes."""
        if self.replay is not None:
            self.replay.mark(*(entry.id for entry in entries))

    def has_seen(self, entry: StoredEntry) -> bool:
        """Whether an entry came by a call of this handle, where that matters: in replay."""
        return self.replay is None or self.replay.is_taken(entry.run_id or entry.id)

    def begin_cell(self) -> None:
        """Go back to where the cell that is executed now began before, if it did (B57)."""
        if self.replay is None:
            return
        cell, execution = cell_execution()
        if cell is None or execution is None or self.image.foreground in self.runs_started:
            return
        start = self.replay.begin(cell, execution, self.leaf.id)
        if start is not None and start.leaf_id != self.leaf.id:
            self.put(start.leaf_id)

    def tell(self, type: str, *, session_id: str | None = None, **facts: str | None) -> None:
        """Publish a lifecycle event, outside all locks."""
        event = SessionEvent(
            type=type,  # type: ignore[arg-type]
            session_id=session_id or self.image.session_id,
            **facts,
        )
        lifecycle.publish(self.publisher, event, self.settings.params)


def open_handles() -> list[Handle]:
    """Return the handles that are open in this process, the newest first."""
    handles = [handle for handle in list(_open_handles) if not handle._is_closed]
    return sorted(handles, key=lambda handle: handle.number, reverse=True)


def _let_go(image: Loaded, store: Store) -> None:
    unload(image, store)
    release_store(store)


def _watch() -> None:
    """Have leaked handles released, and open ones closed before anything else at the end."""
    global _releaser
    with _releaser_lock:
        if _releaser is None or not _releaser.is_alive():
            _releaser = threading.Thread(
                target=_release_leaked, name="nbdurable-release", daemon=True
            )
            _releaser.start()
        # The last one registered goes first: before stores and models that were loaded meanwhile.
        atexit.unregister(close_all)
        atexit.register(close_all)


def _release_leaked() -> None:
    while (held := _leaked.get()) is not None:
        try:
            _let_go(*held)
        except NbDurableError:
            log.warning("a store that nobody closed could not be released", exc_info=True)


def close_all() -> None:
    """Close every open handle: what is in flight at the end of a process is kept."""
    for handle in list(_open_handles):
        handle.close()
    if _releaser is not None and _releaser.is_alive():
        _leaked.put(None)
        _releaser.join(LAST_RELEASE_S)  # a thread that writes must not meet the interpreter's end
