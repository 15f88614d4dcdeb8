"""What every handle of a session has: its image, its leaf, its settings, its end.

Owns opening checks and the release of what the handle holds. Does not own verbs (`session`).
"""

from __future__ import annotations

import atexit
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Self

from nbdurable import lifecycle, starting
from nbdurable.errors import SessionClosed, shown
from nbdurable.lifecycle import Publisher, SessionEvent
from nbdurable.loaded import Leaf, Loaded, unload
from nbdurable.settings import Settings
from nbdurable.stores import release_store

if TYPE_CHECKING:
    from nbdurable.run import Run

_open_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    """One opening of a session, which holds its image and its store until it is closed."""

    def __init__(
        self,
        image: Loaded,
        settings: Settings,
        *,
        publisher: Publisher | None = None,
    ) -> None:
        self.image = image
        self.settings = settings
        self.publisher = publisher
        self.leaf = Leaf(image.position)
        self.seen_position = image.position
        self.runs_started: weakref.WeakSet[Run] = weakref.WeakSet()
        self._is_closed = False
        self._close_lock = threading.Lock()
        self._release = weakref.finalize(self, _let_go, image)
        self._release.atexit = False  # close_all stops the runs first
        _open_handles.add(self)

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
        if not was_closed:
            starting.stop_all(self.runs_started)
            self._release()

    def fresh(self) -> None:
        """Check that the handle is open, and read what others wrote (B11)."""
        if self._is_closed:
            raise SessionClosed(
                f"session {shown(self.image.session_id)} was closed on this handle; "
                "open it again by its id"
            )
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

    def tell(self, type: str, *, session_id: str | None = None, **facts: str | None) -> None:
        """Publish a lifecycle event, outside all locks."""
        event = SessionEvent(
            type=type,  # type: ignore[arg-type]
            session_id=session_id or self.image.session_id,
            **facts,
        )
        lifecycle.publish(self.publisher, event)


def _let_go(image: Loaded) -> None:
    unload(image)
    release_store(image.store)


@atexit.register
def close_all() -> None:
    """Close every open handle: what is in flight at the end of a process is kept."""
    for handle in list(_open_handles):
        handle.close()
