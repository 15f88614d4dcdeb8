"""The static twin of a widget: what a saved notebook shows where no widget runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbdurable.notebook.bridge import Bridge


class Twin:
    """The static form of a widget in one output."""

    def __init__(self, widget: Bridge, html: Callable[[], str]) -> None:
        from IPython.display import display

        self._widget, self._html = widget, html
        self._handle: Any = display({"text/html": self._page()}, raw=True, display_id=True)

    def _page(self) -> str:
        return f'<div data-nbd-twin="{self._widget.uid}">{self._html()}</div>'

    def update(self) -> None:
        """Bring the output up to date now."""
        if self._handle is not None:
            self._handle.update({"text/html": self._page()}, raw=True)


def show(widget: Bridge, html: Callable[[], str]) -> Twin | None:
    """Show a widget in the running cell, after its static twin; return the twin."""
    from IPython.display import display

    twin = Twin(widget, html)
    display(widget)
    return twin
