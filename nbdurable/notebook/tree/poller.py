"""One thread of the process that looks whether other processes wrote what is shown."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Protocol

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
