"""Who is shown something learns of what other processes wrote.

A store that tells of changes is listened to; into any other, one thread of the process looks.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from nbdurable.stores.base import Store

log = logging.getLogger("nbdurable")

POLL_S = 1.0


class Pollable(Protocol):
    """Something that wants to look once in a while."""

    def poll(self) -> None:
        """Look; must return soon and raise nothing."""


class Poller:
    """Has everyone look once a second, in turn; idle while there is no one."""

    def __init__(self) -> None:
        self._all: weakref.WeakSet[Pollable] = weakref.WeakSet()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, one: Pollable) -> None:
        """Have one more look; it is held weakly."""
        with self._changed:
            self._all.add(one)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="nbdurable-poller", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def discard(self, one: Pollable) -> None:
        """Have one look no more."""
        with self._changed:
            self._all.discard(one)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._all))
                due = list(self._all)
            for one in due:
                try:
                    one.poll()
                except Exception:  # of one; the others look on
                    log.warning("what is shown could not be compared with its store", exc_info=True)
            due.clear()
            one = None  # type: ignore[assignment]  # nobody is held while it waits
            threading.Event().wait(POLL_S)


POLLER = Poller()


@runtime_checkable
class TellingStore(Protocol):
    """A store that tells of changes by itself, such as `PostgresStore`."""

    def watch(self, session_id: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` now and soon after each change of a session; return what ends that."""


class ToldOf(Pollable, Protocol):
    """Something that need not look where it is told."""

    def poll(self, *, is_told: bool = False) -> None:
        """Look, or take it as told; must return soon and raise nothing."""


def look_out(one: ToldOf, store: Store, session_id: str) -> Callable[[], None]:
    """Have one learn of what others write to a session; return what ends that.

    It is held weakly.
    """
    me = weakref.ref(one)

    def look() -> None:
        if (there := me()) is not None:
            there.poll(is_told=True)

    def discard() -> None:
        if (there := me()) is not None:
            POLLER.discard(there)

    if isinstance(store, TellingStore):
        return store.watch(session_id, look)
    POLLER.add(one)
    return discard
