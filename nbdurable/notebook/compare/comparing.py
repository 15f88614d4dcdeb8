"""A comparison as data: what the page, the static table and the frame all say.

Owns names, facts, the difference of every cell, and blindness. Does not own how it is shown. The
one idea: while it is blind, nothing that tells columns apart but their texts is in the data at
all, so that no view could give it away.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import RunError, shown
from nbdurable.notebook.bridge import called
from nbdurable.notebook.compare import aligned
from nbdurable.notebook.compare.columns import Column, columns_of, varying_axes
from nbdurable.notebook.compare.facts import Figures, facts_of, figures_of
from nbdurable.notebook.compare.worddiff import STEPS, Piece, differences
from nbdurable.reprs import count, one_line
from nbdurable.session import Session

SHOWN_CHARS = 40_000  # of one text in the page
SHARED_ROWS = 200
DIFFED_CHARS = 8_000_000  # in all; what is beyond is shown as it is
PREFERRED = "preferred"  # the rating by which entries of several sessions are preferred

Shuffle = Callable[[list[int]], None]
Body = dict[str, Any]


class Comparing:
    """Columns with the choices of who looks at them: the base of differences, blindness, a vote.

    Columns are known by their keys, from 1 on, in the order they are shown. Safe from any thread.

    Parameters
    ----------
    columns : sequence of Column
        Two or more.
    base : int
        The key of the column that the others are compared with.
    blind : bool
        Whether to shuffle the columns and hide what they are until one is preferred.
    by : str, optional
        The author of preferences.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        base: int = 1,
        blind: bool = False,
        by: str | None = None,
        shuffle: Shuffle | None = None,
    ) -> None:
        self.id = uuid.uuid4().hex[:12]
        self._lock = threading.RLock()
        self._shuffle = shuffle or random.SystemRandom().shuffle
        self._given = tuple(columns)
        for column in columns:
            column.session.image.annotations()  # known from here on, also when it is closed
        self._order = list(range(len(self._given)))
        self._by = by
        self._voted: int | None = None
        self.base = 1
        self.blind = False
        self._diffs: dict[tuple[int, int, int], list[Piece]] = {}
        paths = [column.path for column in self._given]
        is_one_session = len({column.session.id for column in self._given}) == 1
        same = _same_id if is_one_session else aligned.alike
        self.shared = paths[0][: aligned.shared_length(paths, same)]
        tails = [path[len(self.shared) :] for path in paths]
        self.places = aligned.places(tails)
        self.figures = [figures_of(tail) for tail in tails]
        self.choose(base=base, blind=blind)

    @classmethod
    def of_ordinals(cls, session: Session, ns: Sequence[int], **options: Any) -> Comparing:
        """Return the comparison of some entries of one session, by their ordinals."""
        session.fresh()
        return cls(columns_of([session[n] for n in ns], session), **options)

    @property
    def columns(self) -> list[Column]:
        """The columns in the order they are shown."""
        return [self._given[at] for at in self._order]

    def places_given(self) -> list[int]:
        """Return where each column stood when they were given, in the order they are shown."""
        return list(self._order)

    # -- choices -------------------------------------------------------------------------------

    def choose(self, *, base: int | None = None, blind: bool | None = None) -> None:
        """Choose the base of differences, or blindness; getting blind shuffles the columns.

        Raises
        ------
        RunError
            There is no column of that key.
        """
        with self._lock:
            if base is not None:
                self._at(base)
                self.base = base
            if blind is not None and blind != self.blind:
                self.blind, self._voted, self._order = blind, None, sorted(self._order)
                if blind:
                    self.base = 1
                    self._shuffle(self._order)

    def prefer(self, key: int) -> None:
        """Store that one column is better than the others, and end blindness.

        Of entries of several sessions each is rated, since a preference is within one session.

        Raises
        ------
        RunError
            There is no such column, or no entry in it.
        """
        with self._lock:
            winner = self._given[self._at(key)]
            others = [c for c in self._given if c is not winner and c.entry_id is not None]
            if winner.entry_id is None:
                raise RunError(f"column {key} has no entry that could be preferred; choose another")
            if any(column.session.id != winner.session.id for column in others) or not others:
                for column in (winner, *others):
                    is_best = column is winner
                    column.session.rate(column.entry_id, is_best, name=PREFERRED, by=self._by)
            else:
                losers = [column.entry_id for column in others]
                winner.session.prefer(winner.entry_id, *losers, by=self._by)
            self.blind, self._voted = False, key

    def _at(self, key: object) -> int:
        if isinstance(key, int) and not isinstance(key, bool) and 1 <= key <= len(self._order):
            return self._order[key - 1]
        raise RunError(
            f"column {shown(key)} is not in this comparison; it has 1 to {len(self._order)}"
        )

    def deed(
        self, *, base: int | None = None, blind: bool | None = None, prefer: int | None = None
    ) -> Body:
        """Do what a view asks for, and return the data anew."""
        with self._lock:
            if base is not None:
                self._at(base)  # what is refused leaves no preference behind
            if prefer is not None:
                self.prefer(prefer)
            self.choose(base=base, blind=blind)
            return self.body()

    # -- data ----------------------------------------------------------------------------------

    def body(self) -> Body:
        """Return the comparison as JSON values."""
        with self._lock:
            names, wins = self.names(), self.wins()
            return {
                "id": self.id,
                "title": self.title(),
                "axes": varying_axes(self._given),
                "columns": [
                    self._hidden_column(at) if self.blind else self._column(at, names, wins)
                    for at in range(len(self._order))
                ],
                "shared": self._shared(),
                "turns": [self._turn(row, place) for row, place in enumerate(self.places)],
                "base": self.base,
                "blind": self.blind,
                "voted": self._voted,
                "votes": {} if self.blind else {at + 1: n for at, n in self.votes().items() if n},
            }

    def title(self) -> str:
        """Return in a few words what is compared."""
        size = len(self._given)
        last = self.shared[-1] if self.shared else None
        if last is None:
            is_one = len({column.session.id for column in self._given}) == 1
            return count(size, "branch" if is_one else "conversation", "branches" if is_one else "")
        is_answers = _is_user(last) and self._are_answers()
        what = count(size, "answer") + " to" if is_answers else count(size, "branch", "branches")
        where = what if is_answers else what + " from"
        said = one_line(aligned.text_of(last), 60)
        return f"{where} #{last.n}, “{said}”"

    def _are_answers(self) -> bool:
        return all(place.turn == 0 and place.role != "user" for place in self.places)

    def names(self) -> list[str]:
        """Return what the columns are called, in the order they are shown."""
        if self.blind:
            return [_letter(at) for at in range(len(self._order))]
        sessions = {column.session.id for column in self._given}
        return [_name(column, with_session=len(sessions) > 1) for column in self.columns]

    def _hidden_column(self, at: int) -> Body:
        return {
            "key": at + 1,
            "n": None,
            "session": None,
            "name": _letter(at),
            "badges": [],
            "labels": [],
            "facts": [],
            "votable": self._given[self._order[at]].entry_id is not None,
        }

    def _column(self, at: int, names: Sequence[str], wins: Mapping[int, int]) -> Body:
        column = self._given[self._order[at]]
        badges = {
            "base": at + 1 == self.base,
            "on path": column.on_path,
            "preferred": at in self.preferred(wins),
        }
        return {
            "key": at + 1,
            "n": column.n,
            "session": column.session.id,
            "name": names[at],
            "badges": [badge for badge, holds in badges.items() if holds],
            "labels": [one_line(label, 60) for label in column.labels],
            "facts": self.facts()[at],
            "votable": column.entry_id is not None,
        }

    def facts(self) -> list[list[Body]]:
        """Return the facts of each column, the same ones in the same order."""
        return facts_of(self.columns, self.ordered_figures())

    def ordered_figures(self) -> list[Figures]:
        """Return what was counted of each column, in the order they are shown."""
        return [self.figures[at] for at in self._order]

    def _shared(self) -> Body:
        rows = [
            {
                "n": None if self.blind and self._many() else entry.n,
                "role": entry.role if isinstance(entry, MessageEntry) else "other",
                "text": one_line(aligned.text_of(entry), 400),
            }
            for entry in self.shared
        ]
        return {"count": len(rows), "rows": rows[-SHARED_ROWS:]}

    def _many(self) -> bool:
        return len({column.session.id for column in self._given}) > 1

    def _turn(self, row: int, place: aligned.Place) -> Body:
        cells: list[Body | None] = []
        for at in self._order:
            text = place.texts[at]
            if text is None:
                cells.append(None)
                continue
            n = None if self.blind else place.entries[at][-1].n
            runs, hidden = _fitting(self.pieces(row, at))
            cells.append({"runs": runs, "n": n, "hidden": hidden})
        return {"role": place.role, "cells": cells}

    def pieces(self, row: int, at: int) -> list[Piece]:
        """Return a cell's text as it differs from the base's; `at` is the place as given."""
        base, texts = self._order[self.base - 1], self.places[row].texts
        text, from_text = texts[at] or "", texts[base]
        if at == base or from_text is None or row >= self._diffed_rows():
            return [("same", text)] if text else []
        key = (row, base, at)
        if key not in self._diffs:
            self._diffs[key] = differences(from_text, text, steps=STEPS)
        return self._diffs[key]

    def _diffed_rows(self) -> int:
        """Return how many rows are compared: time is spent on texts in all, not on each."""
        left = DIFFED_CHARS
        for row, place in enumerate(self.places):
            left -= sum(len(text or "") for text in place.texts)
            if left < 0:
                return row
        return len(self.places)

    def wins(self) -> dict[int, int]:
        """Return how many others here each column was preferred to, by its place shown."""
        wins = self._rated_best()
        for won, _ in self._preferences():
            wins[won] += 1
        return wins

    def votes(self) -> dict[int, int]:
        """Return how often each column was preferred, to however many others at once."""
        votes = self._rated_best()
        for won, _ in set(self._preferences()):
            votes[won] += 1
        return votes

    def _preferences(self) -> list[tuple[int, str | None]]:
        """Return the place and the author of each preference of a column to another one here."""
        where = {(c.session.id, c.entry_id): at for at, c in enumerate(self.columns)}
        sessions = {column.session.id: column.session for column in self._given}
        return [
            (where[session.id, one.winner_id], one.by)
            for session in sessions.values()
            for one in session.image.annotations().preferences()
            if {(session.id, one.winner_id), (session.id, one.loser_id)} <= where.keys()
        ]

    def _rated_best(self) -> dict[int, int]:
        return {
            at: sum(r.name == PREFERRED and r.score is True for r in column.ratings)
            for at, column in enumerate(self.columns)
        }

    def preferred(self, wins: Mapping[int, int]) -> set[int]:
        """Return the places shown that won most often."""
        most = max(wins.values(), default=0)
        return {at for at, won in wins.items() if won and won == most}


class Compared:
    """What a widget needs to show comparisons inside it: one at a time, known by its id."""

    def __init__(self) -> None:
        self._shown: Comparing | None = None

    def begin(self, comparing: Comparing) -> Body:
        """Show a comparison in place of the last one; return its data."""
        self._shown = comparing
        return comparing.body()

    def deed(self, id: str, **choices: Any) -> Body:
        """Do what a view asks for of a comparison; see `Comparing.deed`."""
        if self._shown is None or self._shown.id != id:
            raise RunError("this comparison is no longer shown; compare again")
        body: Body = called("compared", self._shown.deed, choices)
        return body


def _same_id(one: Entry, other: Entry) -> bool:
    return one.id == other.id


def _is_user(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and entry.role == "user"


def _letter(at: int) -> str:
    return chr(ord("A") + at)


def _name(column: Column, *, with_session: bool) -> str:
    n = "root" if column.n is None else f"#{column.n}"
    return f"{one_line(column.session.id, 40)} {n}" if with_session else n


def _fitting(pieces: Sequence[Piece]) -> tuple[list[list[str]], str | None]:
    """Return the pieces that are shown, and what tells of the rest."""
    room, runs, hidden = SHOWN_CHARS, [], 0
    for kind, text in pieces:
        if room > 0:
            runs.append([kind, text[:room]])
        hidden += max(len(text) - max(room, 0), 0)
        room -= len(text)
    return runs, f"… {count(hidden, 'more character')}" if hidden else None
