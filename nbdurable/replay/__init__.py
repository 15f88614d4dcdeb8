"""Replay: a notebook that can be run again without paying twice (B55-B58).

Owns what a handle opened with ``replay=`` remembers: how it answers a miss, what it has taken of
the record so far, where each notebook cell began, and a line about each call. What is equal is each
verb's own affair. The one idea: everything taken is one log, so that a cell that is executed again
puts the handle back by cutting that log where the cell began.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from nbdurable.annotations import Content
from nbdurable.models.base import Model
from nbdurable.replay.record import RecordedRuns, Request

T = TypeVar("T")
ANNOTATE = "annotate"


@dataclass(frozen=True, slots=True)
class CellStart:
    """Where a handle stood when a cell began: its leaf, and how much it had taken."""

    cell: str
    leaf_id: str | None
    taken: int


class Replay:
    """How one handle replays.

    Parameters
    ----------
    is_only : bool
        Never call a model: a miss raises `ReplayMiss`.
    model : Model, optional
        Answers misses in place of the requested model.
    """

    def __init__(self, *, is_only: bool = False, model: Model | None = None) -> None:
        self.is_only = is_only
        self.model = model
        self.runs = RecordedRuns()
        self.is_ahead = True  # the handle's leaf was put where it is in memory only
        self.overlapped: Any = None  # the replayed run that was returned live, until the next one
        self.repeating: dict[tuple[str, ...], Any] = {}  # runs by the stored input they repeat
        self.requests: dict[str, Request] = {}  # of recorded runs by id, once they were compared
        self.moving = threading.Lock()  # held while a recorded run is taken and the leaf goes there
        self._taken: Counter[Hashable] = Counter()
        self._log: list[Hashable] = []
        self._cells: list[CellStart] = []
        self._executions: set[str] = set()
        self._lines: list[ReplayLine] = []
        self._lock = threading.Lock()

    def of_child(self) -> Replay:
        """Return the replay of a fork's handle: the same mode, nothing taken yet."""
        return Replay(is_only=self.is_only, model=self.model)

    # -- what was taken ------------------------------------------------------------------------

    def take(self, key: Hashable) -> int:
        """Return how many equal calls came before this one, and count it (B56).

        `key` names the verb, the leaf and the digest of what was asked, such as
        ``("sample", leaf_id, digest)``; the n-th equal call takes the n-th equal stored thing.
        """
        with self._lock:
            return self._take(key)

    def count_of(self, key: Hashable) -> int:
        """Return how many equal calls came so far, and count none."""
        with self._lock:
            return self._taken[key]

    def _take(self, key: Hashable) -> int:
        before = self._taken[key]
        self._taken[key] += 1
        self._log.append(key)
        return before

    def first_free(self, things: Iterable[T], name: Callable[[T], str]) -> T | None:
        """Return the first of some stored things that no call has taken yet, and take it."""
        with self._lock:
            for thing in things:
                if not self._taken["taken", name(thing)]:
                    self._take(("taken", name(thing)))
                    return thing
        return None

    def mark(self, *names: str) -> None:
        """Count stored things as taken, such as what a call just made."""
        with self._lock:
            for name in names:
                self._take(("taken", name))

    def reserve(self, input_ids: tuple[str, ...]) -> bool:
        """Set a stored input aside for a run that repeats it; False while another does."""
        with self._lock:
            active = self.repeating.get(input_ids, self)
            if active is None or (active is not self and not active.is_done):
                return False
            self.repeating[input_ids] = None
            return True

    def is_taken(self, name: str) -> bool:
        """Return whether a call has taken a stored thing."""
        with self._lock:
            return self._taken["taken", name] > 0

    def annotated(self) -> list[Content]:
        """Return what the handle has said of entries so far, stored before or not, in order."""
        with self._lock:
            return [key[1] for key in self._log if isinstance(key, tuple) and key[0] == ANNOTATE]

    # -- cells ---------------------------------------------------------------------------------

    def begin(self, cell: str, execution: str, leaf_id: str | None) -> CellStart | None:
        """Note that a cell is executed; return where it began before, if it did (B57).

        `execution` names this execution, so that the second verb of a cell changes nothing, nor
        does a late one of a thread that an earlier execution left.
        """
        with self._lock:
            if execution in self._executions:
                return None
            self._executions.add(execution)
            places = [at for at, start in enumerate(self._cells) if start.cell == cell]
            if not places:
                self._cells.append(CellStart(cell, leaf_id, len(self._log)))
                return None
            start = self._cells[places[0]]
            del self._cells[places[0] + 1 :]
            self._rewind(start.taken)
            self.runs.expire()
            self.overlapped = None
            return start

    def _rewind(self, taken: int) -> None:
        while len(self._log) > taken:
            self._taken[self._log.pop()] -= 1

    # -- the report ----------------------------------------------------------------------------

    def note(
        self,
        verb: str,
        *,
        is_hit: bool,
        where: str = "",
        differs: str = "",
        saved_usd: float | None = None,
    ) -> None:
        """Add a line about one call to the report."""
        line = ReplayLine(verb, is_hit, where, differs, saved_usd)
        with self._lock:
            self._lines.append(line)

    def report(self) -> ReplayReport:
        """Return what was replayed so far and what was not."""
        with self._lock:
            return ReplayReport(tuple(self._lines))


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """One call: the verb, whether the record answered it, where its entries stand.

    ``differs`` says of a miss what the nearest recorded run has in another way; ``saved_usd`` is
    what the answer did cost when it was made, None when unknown.
    """

    verb: str
    is_hit: bool
    where: str = ""
    differs: str = ""
    saved_usd: float | None = None

    def __str__(self) -> str:
        state = "replayed" if self.is_hit else "made"
        saved = f"${self.saved_usd:.4f} saved" if self.saved_usd else ""
        return ", ".join(
            part for part in (f"{self.verb} {state}", self.where, self.differs, saved) if part
        )


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay took from the record and what it made, a line per call, in order."""

    lines: tuple[ReplayLine, ...] = ()

    @property
    def hits(self) -> int:
        """How many calls the record answered."""
        return sum(line.is_hit for line in self.lines)

    @property
    def misses(self) -> int:
        """How many calls were made, or refused with ``replay="only"``."""
        return len(self.lines) - self.hits

    @property
    def saved_usd(self) -> float:
        """What the replayed answers did cost when they were made, as far as it is known."""
        return sum(line.saved_usd or 0.0 for line in self.lines)

    @property
    def _summary(self) -> str:
        return f"{self.hits} replayed, {self.misses} made, ${self.saved_usd:.4f} saved"

    def __str__(self) -> str:
        return "\n".join([self._summary, *(f"  {line}" for line in self.lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{escape(str(line))}</li>" for line in self.lines)
        return f"<p>{escape(self._summary)}</p><ol>{rows}</ol>"
