"""A run's answer while it grows, with a button that stops it.

Stands in a cell's output only while the run goes on: at its end static HTML takes its place, so
that nothing of it is left in a saved notebook. Only what changed since the last look is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from nbdurable.notebook import assets
from nbdurable.notebook.bridge import Bridge
from nbdurable.notebook.markdown.nodes import Nodes, nodes_of


class RunView(Bridge):
    """The view of one running run; `cancel` is what its button does."""

    _esm = assets.esm("run.js")
    _css = assets.css("output.css", "widget.css", "run.css")

    acts: ClassVar[Mapping[str, str]] = {"cancel": "cancel"}

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._nodes: Nodes = []
        self._foot = ""
        super().__init__()

    def state(self) -> dict[str, Any]:
        """Return what is shown now."""
        return {"nodes": self._nodes, "foot": self._foot}

    def look(self, html: str, foot: str) -> None:
        """Show `html`, of this package's making, and a closing line."""
        nodes = nodes_of(html)
        with self.guard:
            same = 0
            while same < min(len(self._nodes), len(nodes)) and self._nodes[same] == nodes[same]:
                same += 1
            self._nodes, self._foot = nodes, foot
            self.put({"op": "look", "from": same, "nodes": nodes[same:], "foot": foot})

    def cancel(self) -> None:
        """Stop the run; what came is kept."""
        self._cancel()
