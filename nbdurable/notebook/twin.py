"""The static twin of a widget: what a saved notebook shows where no widget runs.

The twin is an output of its own before the widget; a live view hides it by a style.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbdurable.notebook.bridge import Bridge


class Twin:
    """The static side of one widget, updated in each cell that shows it."""

    def __init__(self, widget: Bridge, html: Callable[[], str]) -> None:
        self._widget = widget
        self._html = html
        self._handle: Any = None

    def html(self) -> str:
        """Return what stands in the notebook."""
        return f'<div data-nbd-twin="{self._widget.uid}">{self._html()}</div>'

    def show(self) -> None:
        """Show twin and widget in the cell that runs now."""
        from IPython.display import HTML, display

        self._handle = display(HTML(self.html()), display_id=True)
        display(self._widget)

    def update(self) -> None:
        """Put the widget's state of now in place of that of before."""
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(self.html()))
