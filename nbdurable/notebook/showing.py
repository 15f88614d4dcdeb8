"""Showing a widget in a cell: the live one, and its static twin for when no kernel is there.

Owns which widgets stand in which cell, and when a twin is brought up to date. The one idea: a
front end shows either a widget or a text from one output, and the wrong one when the kernel is
gone; so the twin is an output of its own, hidden by the live view as long as there is one.
"""

from __future__ import annotations

import contextvars
import hashlib
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from nbdurable.display import in_kernel
from nbdurable.errors import NbDurableError
from nbdurable.notebook.bridge import Bridge, in_context
from nbdurable.origin import cell_execution
from nbdurable.shells import shell

log = logging.getLogger("nbdurable")

TWIN_EVERY_S = 1.0
MOST_TWINS = 20  # of one widget in one cell
TWIN_SHARE = 0.1  # of the time at most, for twins of large sessions

Html = Callable[[], str]

_shown: dict[str, tuple[str | None, list[Bridge]]] = {}  # by cell: its execution, what it shows
_lock = threading.Lock()


def show(widget: Bridge, html: Html, brief: Html | None = None) -> Twin | None:
    """Show a widget in the running cell, after its static twin; return the twin.

    The twin of something large takes its time: with `brief`, it says that first.

    What an earlier execution of the same cell showed is closed, so that a cell that is executed
    again and again has one model. Outside a kernel only the static form is shown.
    """
    from IPython.display import display

    if not in_kernel():
        display({"text/html": html(), "text/plain": repr(widget)}, raw=True)
        return None
    _take_place(widget)
    bundle = dict(live_bundle(widget), **{"text/plain": repr(widget)})
    twin = None
    if "google.colab" in sys.modules:  # there an output cannot hide another
        bundle["text/html"] = html()
    else:
        twin = Twin(widget, html, brief)
    display(bundle, raw=True)
    return twin


def live_bundle(widget: Bridge) -> dict[str, Any]:
    """Return what a front end needs to show a widget live, by media type."""
    bundle = widget._repr_mimebundle_()
    return dict((bundle[0] if isinstance(bundle, tuple) else bundle) or {})


def _take_place(widget: Bridge) -> None:
    cell, execution = _place()
    if cell is None:
        return
    with _lock:
        before, widgets = _shown.pop(cell, (None, []))
        elsewhere = [widget, *(one for _, others in _shown.values() for one in others)]
        stale = [] if before == execution else [one for one in widgets if one not in elsewhere]
        kept = [] if before != execution else [one for one in widgets if not one.is_closed]
        _shown[cell] = (execution, [*kept, widget])
    for one in stale:
        one.close()


def _place() -> tuple[str | None, str | None]:
    """Return a name for the running cell, and one for this execution of it."""
    cell, execution = cell_execution()
    return cell or _cell_by_text(), execution


def _cell_by_text() -> str | None:
    """Return a name for the running cell where the front end gives it none: by its text."""
    inputs = getattr(shell(), "user_ns", {}).get("In")
    if not inputs:
        return None
    return f"text-{hashlib.sha256(str(inputs[-1]).encode()).hexdigest()}"


class Twin:
    """The static form of a widget in one output, brought up to date when it has changed."""

    def __init__(self, widget: Bridge, html: Html, brief: Html | None = None) -> None:
        from IPython.display import HTML, display

        self._widget = widget
        self._html = html
        self._due = 0.0
        self._context = contextvars.copy_context()
        self._handle: Any = display(HTML(self._page(brief or html)), display_id=True)
        if brief is not None:
            self.changed()

    def _page(self, html: Html) -> str:
        return f'<div data-nbd-twin="{self._widget.uid}">{html()}</div>'

    def changed(self) -> None:
        """Bring the output up to date soon; to be called from any thread."""
        if self._handle is not None and not self._widget.is_closed:
            UPDATER.take(self)

    def update(self) -> None:
        """Bring the output up to date now."""
        from IPython.display import HTML

        if self._handle is None or self._widget.is_closed:
            return
        began = time.monotonic()
        in_context(self._context, self._handle.update, HTML(self._page(self._html)))
        took = time.monotonic() - began
        self._due = time.monotonic() + max(TWIN_EVERY_S, took / TWIN_SHARE)

    @property
    def due(self) -> float:
        """When it may be brought up to date next, by `time.monotonic`."""
        return self._due


class Twins:
    """The static forms of one widget, in each cell that shows it; all say the same."""

    def __init__(self) -> None:
        self._by_cell: dict[str | None, tuple[str | None, list[Twin]]] = {}

    def add(self, twin: Twin | None) -> None:
        """Take one more; those of an earlier execution of its cell are gone."""
        if twin is None:
            return
        cell, execution = _place()
        before, twins = self._by_cell.get(cell, (None, []))
        kept = twins if before == execution else []
        self._by_cell[cell] = execution, [*kept, twin][-MOST_TWINS:]

    def changed(self) -> None:
        """Bring all up to date soon; to be called from any thread."""
        for twin in self._all():
            twin.changed()

    def update(self) -> None:
        """Bring all up to date now."""
        for twin in self._all():
            twin.update()

    def _all(self) -> list[Twin]:
        return [twin for _, twins in list(self._by_cell.values()) for twin in twins]


class Updater:
    """The one thread that brings twins up to date, each once in a while."""

    def __init__(self) -> None:
        self._waiting: dict[int, Twin] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def take(self, twin: Twin) -> None:
        """Bring a twin up to date when it is due."""
        with self._changed:
            self._waiting[id(twin)] = twin
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="nbdurable-twins", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                twin = min(self._waiting.values(), key=lambda one: one.due)
                wait_s = twin.due - time.monotonic()
                if wait_s > 0:
                    self._changed.wait(wait_s)
                    continue
                del self._waiting[id(twin)]
            try:
                twin.update()
            except NbDurableError:
                log.debug("a static twin keeps what it shows", exc_info=True)  # the store is gone
            except Exception:
                log.warning("a static twin could not be brought up to date", exc_info=True)
            del twin


UPDATER = Updater()
