"""A run's answer while it grows, with a button that stops it.

Stands in a cell's output only while the run goes on: at its end static HTML takes its place, so
that nothing of it is left in a saved notebook. A page that was loaded again meanwhile is no longer
told of that, and holds on to the view; so the view stays until the page lets go of it, with all
that came. Only what changed since the last look is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from nbdurable.notebook import assets
from nbdurable.notebook.bridge import Bridge
from nbdurable.notebook.markdown.nodes import Nodes, nodes_of

MOST_KEPT = 20

_kept: list[RunView] = []  # of runs that have ended, while a page may still show them
_lock = threading.Lock()


class RunView(Bridge):
    """The view of one running run; `cancel` is what its button does."""

    _esm = assets.esm("run.js")
    _css = assets.css("output.css", "widget.css", "run.css")

    acts: ClassVar[Mapping[str, str]] = {"cancel": "cancel"}

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._nodes: Nodes = []
        self._foot = ""
        self._is_over = False
        super().__init__()

    def state(self) -> dict[str, Any]:
        """Return what is shown now."""
        return {"nodes": self._nodes, "foot": self._foot, "over": self._is_over}

    def look(self, html: str, foot: str) -> None:
        """Show `html`, of this package's making, and a closing line."""
        nodes = nodes_of(html)
        with self.guard:
            same = 0
            while same < min(len(self._nodes), len(nodes)) and self._nodes[same] == nodes[same]:
                same += 1
            self._nodes, self._foot = nodes, foot
            self.put({"op": "look", "from": same, "nodes": nodes[same:], "foot": foot})

    def end(self, html: str, foot: str) -> None:
        """Show the end, for as long as a page shows this; the newest ones are kept."""
        self.look(html, foot)
        self._cancel = lambda: None  # no run is held by what is left of its view
        with self.guard:
            self._is_over = True
            self.put({"op": "over"})
        with _lock:
            _kept.append(self)
            old = _kept[:-MOST_KEPT]
        for view in old:
            view.close()
        self._let_go()

    def _note_view(self, kind: object, view: object) -> None:
        super()._note_view(kind, view)
        self._let_go()

    def _let_go(self) -> None:
        if self._is_over and self.was_left:
            self.close()

    def close(self) -> None:
        """Let go of the page; idempotent."""
        with _lock:
            if self in _kept:
                _kept.remove(self)
        super().close()

    def cancel(self) -> None:
        """Stop the run; what came is kept."""
        self._cancel()
