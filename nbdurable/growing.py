"""A model view that grows with its path, so that a run in a long session pays for what is new.

Owns what is kept of a view between two calls of a model. Does not own what a view holds (`views`).
The one idea: what comes later on a path changes nothing before it, but for a result that answers
an earlier call and a summary; after those the view is made anew. Each growth can be taken back, so
that runs which part at one entry share the view up to it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from nbdurable.blocks import Message
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.pairing import Pairing, pair
from nbdurable.views import Projection, Repair, View, model_view, visible_entries

MOST_VIEWS = 8  # of different models and branches, at once


@dataclass(frozen=True, slots=True)
class _Growth:
    """Where a view ended before a growth, and which counts of open calls the growth changed."""

    length: int
    last_id: str | None
    messages: int
    repairs: int
    open: dict[str, int | None]


class GrowingView:
    """The view of one path at a time, for one model; safe to use from any thread.

    Parameters
    ----------
    model : str, optional
        As for `model_view`.
    effects : frozenset of str
        As for `model_view`.
    """

    def __init__(self, model: str | None = None, effects: frozenset[str] = frozenset()) -> None:
        self._model = model
        self._effects = effects
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._length = 0  # of the path that is in the view
        self._last_id: str | None = None
        self._messages: list[Message] = []
        self._ids: list[str | None] = []
        self._repairs: list[Repair] = []
        self._open: dict[str, int] = {}  # calls without a result, by call id
        self._growths: list[_Growth] = []

    def of(self, path: Sequence[Entry]) -> View:
        """Return what `model_view` returns of a path of the session, oldest first.

        Entries that are not stored, such as the input of a run to come, may follow the path or
        stand in it; they are not remembered.
        """
        with self._lock:
            self._fall_back_to(path)
            stored = self._stored_part(path)
            fresh = self._projected(path[self._length : stored])
            if fresh is None:
                self._clear()
                fresh = self._project(visible_entries(path[:stored]))
            if stored > self._length:
                self._grow(*fresh)
                self._length, self._last_id = stored, path[stored - 1].id
            return self._with(path[stored:]) or model_view(
                path, model=self._model, effects=self._effects
            )

    def fits(self, path: Sequence[Entry]) -> int:
        """Return how many entries of the view begin the path; less than half of it gives 0."""
        with self._lock:
            kept, _ = self._end_after(self._shared_growths(path))
            return kept if 2 * kept >= self._length else 0

    def _end_after(self, growths: int) -> tuple[int, str | None]:
        """Return where the view ended after so many growths, and the entry there."""
        if growths == len(self._growths):
            return self._length, self._last_id
        return self._growths[growths].length, self._growths[growths].last_id

    def _shared_growths(self, path: Sequence[Entry]) -> int:
        """Return how many growths, from the first on, are the beginning of the path."""

        def is_past(growths: int) -> bool:
            length, last_id = self._end_after(growths)
            return length > len(path) or path[length - 1].id != last_id

        return bisect_left(range(1, len(self._growths) + 1), True, key=is_past)

    def _fall_back_to(self, path: Sequence[Entry]) -> None:
        """Take growths back until what is left is the beginning of the path."""
        shared = self._shared_growths(path)
        while len(self._growths) > shared:
            before = self._growths.pop()
            self._length, self._last_id = before.length, before.last_id
            del self._messages[before.messages :], self._ids[before.messages :]
            del self._repairs[before.repairs :]
            for call_id, count in before.open.items():
                if count is None:
                    del self._open[call_id]
                else:
                    self._open[call_id] = count

    def _stored_part(self, path: Sequence[Entry]) -> int:
        at = self._length
        while at < len(path) and path[at].n is not None:
            at += 1
        return at

    def _projected(self, entries: Sequence[Entry]) -> tuple[Pairing, View] | None:
        """Return the view of entries that follow; None when they change what is before them."""
        if any(isinstance(entry, CompactionEntry) for entry in entries):
            return None
        pairing, view = self._project(entries)
        return None if pairing.reaches_back else (pairing, view)

    def _project(self, entries: Sequence[Entry]) -> tuple[Pairing, View]:
        messages = [entry for entry in entries if isinstance(entry, MessageEntry)]
        pairing = pair(messages, self._open)
        return pairing, Projection(entries, self._model, self._effects, pairing).view()

    def _grow(self, pairing: Pairing, view: View) -> None:
        changed = {call_id: self._open.get(call_id) for call_id in pairing.open}
        self._growths.append(
            _Growth(self._length, self._last_id, len(self._ids), len(self._repairs), changed)
        )
        for call_id, count in pairing.open.items():
            self._open[call_id] = self._open.get(call_id, 0) + count
        self._messages += view.messages
        self._ids += view.entry_ids
        self._repairs += view.repairs

    def _with(self, entries: Sequence[Entry]) -> View | None:
        """Return the view with entries that are not remembered; None as from `_projected`."""
        made = self._projected(entries)
        if made is None:
            return None
        tail = made[1]
        return View(
            (*self._messages, *tail.messages),
            (*self._ids, *tail.entry_ids),
            (*self._repairs, *tail.repairs),
        )


class GrowingViews:
    """The growing views of one session, by model and by the tools with effects.

    Branches far from each other have each their own, so that going to and fro keeps both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: list[tuple[str, frozenset[str], GrowingView]] = []  # the one used last, last

    def view(self, path: Sequence[Entry], model: str, effects: frozenset[str]) -> View:
        """Return what `model_view` returns of a path of the session."""
        with self._lock:
            growing = self._fitting(path, model, effects)
        return growing.of(path)

    def _fitting(self, path: Sequence[Entry], model: str, effects: frozenset[str]) -> GrowingView:
        best, most = len(self._views), 0
        for at, (of_model, with_effects, growing) in enumerate(self._views):
            if (of_model, with_effects) == (model, effects):
                fits = growing.fits(path)
                if fits > most:
                    best, most = at, fits
        if best == len(self._views):
            self._views.append((model, effects, GrowingView(model, effects)))
        self._views.append(self._views.pop(best))
        del self._views[:-MOST_VIEWS]
        return self._views[-1][2]
