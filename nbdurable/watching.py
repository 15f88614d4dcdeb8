"""Telling others that something has changed: what, they look up themselves.

The one idea: a watcher is only woken. It is called in the thread that made the change and must
return at once; what it raises is logged and never reaches who made the change.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger("nbdurable")

_lock = threading.Lock()


def call(wake: Callable[[], None]) -> None:
    """Wake one watcher; what it raises is logged."""
    try:
        wake()
    except Exception:  # of somebody who only looks on
        log.warning("a watcher failed", exc_info=True)


class Watched:
    """Something that tells whoever watches it of each change."""

    _watchers: tuple[Callable[[], None], ...] = ()

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each change, outside locks; return what ends that."""
        with _lock:
            self._watchers = (*self._watchers, wake)

        def stop() -> None:
            with _lock:
                self._watchers = tuple(one for one in self._watchers if one is not wake)

        return stop

    def tell_watchers(self) -> None:
        """Wake whoever watches."""
        for wake in self._watchers:
            call(wake)
