"""A model view that grows with its path, so that a run in a long session pays for what is new.

Owns what is kept of a view between two calls of a model. Does not own what a view holds (`views`).
The one idea: what comes later on a path changes nothing before it, but for a result that answers
an earlier call and a summary; after those the view is made anew. Each growth can be taken back, so
that runs which part at one entry share the view up to it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from nbdurable.blocks import Message
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.pairing import Pairing, pair
from nbdurable.views import Projection, Repair, View, model_view, visible_entries

MOST_VIEWS = 8  # of different models, at once


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

    def _fall_back_to(self, path: Sequence[Entry]) -> None:
        """Take growths back until what is left is the beginning of the path."""
        while self._length and not (
            self._length <= len(path) and path[self._length - 1].id == self._last_id
        ):
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
    """The growing views of one session, by model and by the tools with effects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: dict[tuple[str, frozenset[str]], GrowingView] = {}

    def view(self, path: Sequence[Entry], model: str, effects: frozenset[str]) -> View:
        """Return what `model_view` returns of a path of the session."""
        with self._lock:
            growing = self._views.pop((model, effects), None) or GrowingView(model, effects)
            self._views[model, effects] = growing  # the one used last comes last
            if len(self._views) > MOST_VIEWS:
                del self._views[next(iter(self._views))]
        return growing.of(path)
