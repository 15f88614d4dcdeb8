"""A cell: one place of an experiment, and what stands there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from nbdurable.blocks import Json
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import shown
from nbdurable.replay.record import FINISHED
from nbdurable.run import Run

State = Literal["done", "running", "missing", "error", "aborted", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One place of an experiment and what stands there.

    ``axes`` are its labels by axis. ``run`` is the finished run, else the newest; ``entry`` its
    last answer. ``state`` is ``done``, ``running``, ``missing`` (never begun, or refused by a
    budget), ``error``, ``aborted`` or ``interrupted`` (its process is gone).
    """

    i: int
    key: str
    axes: Mapping[str, Json]
    run: Run | None = None
    error: str | None = None

    @property
    def state(self) -> State:
        """What became of the cell."""
        if self.run is None:
            return "missing"
        outcome = self.run.outcome
        if outcome is None:
            return "running"
        return "done" if outcome in FINISHED else outcome  # type: ignore[return-value]

    @property
    def entry(self) -> MessageEntry | None:
        """The last answer, finished or not."""
        made: tuple[Entry, ...] = () if self.run is None else self.run.entries
        for entry in reversed(made):
            if isinstance(entry, MessageEntry) and entry.role == "assistant":
                return entry
        return None

    @property
    def text(self) -> str:
        """The text of the last answer; empty when there is none."""
        return self.run.text if self.run else ""

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={shown(label, 40)}" for name, label in self.axes.items())
        return f"<Cell {self.i} {self.state}, {said}>"
