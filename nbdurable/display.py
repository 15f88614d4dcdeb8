"""The choice of a display for a run: the cell, the terminal, or nothing (B15)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Literal, Protocol

from nbdurable.errors import shown
from nbdurable.events import Event
from nbdurable.shells import shell

Show = Literal["stream", "line"] | None


class Display(Protocol):
    """Shows one run; all methods are called from the thread that reads its events."""

    def on_event(self, event: Event) -> None:
        """Take the next event."""

    def tick(self) -> None:
        """Show what is waiting; to be called when no event has come for some 0.1 s."""

    def close(self, result: object = None) -> None:
        """Show the end: the finished run, or the exception that stopped it."""


def make_display(show: Show, cancel: Callable[[], None] | None = None) -> Display | None:
    """Return the display for a run that was started here, or None to show nothing.

    `cancel` is what a stop button does, where there is room for one.

    In a Jupyter kernel that is the output of the running cell, never stdout. Elsewhere it is the
    terminal, when stdout is one; nothing is written into a pipe or a file.

    Raises
    ------
    ValueError
        `show` is none of ``"stream"``, ``"line"`` and None.
    """
    if show is None:
        return None
    if show not in ("stream", "line"):
        raise ValueError(f"show {shown(show)} is not known; give 'stream', 'line' or None")
    if in_kernel():
        from nbdurable.notebook.run.live import CellDisplay  # the only floor above that is shown on

        return CellDisplay(show, cancel=cancel)
    if sys.stdout is not None and sys.stdout.isatty():
        from nbdurable.terminal import TerminalDisplay

        return TerminalDisplay(show)
    return None


def in_kernel() -> bool:
    """Tell whether this code runs in a Jupyter kernel."""
    return getattr(shell(), "kernel", None) is not None
