"""The object that `sample`, `grid` and `redrive` return: alternatives beside each other.

Owns what is done with the answers. Does not own how they come (`work`).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from types import EllipsisType
from typing import TYPE_CHECKING, SupportsIndex, cast

from nbdurable.errors import RunError, shown
from nbdurable.explore.cell import Cell
from nbdurable.explore.work import Work
from nbdurable.settings import Effects

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from nbdurable.explore.estimate import Estimate
    from nbdurable.explore.progress import Bar
    from nbdurable.explore.score import Scorer
    from nbdurable.notebook.compare.matrix import Matrix
    from nbdurable.session import Session

ROWS_SHOWN = 20


class Experiment(Work):
    """One cell for each combination of what varies, and the answers in them.

    Iterate it for its cells, take one by its place (``exp[0]``), load all as a frame (`df`). Cells
    are detached runs: they move neither leaf nor position (B18). What is missing, because a call
    failed, a budget refused it or the kernel died, `resume` runs; what is finished is never called
    again.
    """

    @property
    def name(self) -> str | None:
        """The name by which `Session.experiment` finds it; None before it is stored."""
        return self._name

    @property
    def id(self) -> str | None:
        """The id that its runs carry; None before it is stored."""
        return self._kept.record.id if self._kept else None

    @property
    def kind(self) -> str:
        """The verb that made it: ``sample``, ``grid``, ``redrive`` or ``then``."""
        return self._plan.kind

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of what varies, in order."""
        return self._plan.axes

    @property
    def cost(self) -> float:
        """USD of all its cells' runs that counts, as far as known."""
        return sum(cell.run.cost or 0.0 for cell in self.cells() if cell.run)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells())

    def __getitem__(self, i: SupportsIndex) -> Cell:
        cells = self.cells()
        at = index(i)
        if not -len(cells) <= at < len(cells):
            raise IndexError(f"cell {at} is not in experiment {self._name!r} ({len(cells)} cells)")
        return cells[at]

    def __repr__(self) -> str:
        done = sum(cell.state == "done" for cell in self.cells())
        name = "not stored" if self._kept is None else shown(self._name)
        return f"<Experiment {name}, {self.kind}, {done} of {len(self)} cells done>"

    def _repr_html_(self) -> str:
        from nbdurable.explore.rows import html_table

        return html_table(self.cells(), self.axes, repr(self)[1:-1], ROWS_SHOWN)

    def df(self, *, collapse: bool = False) -> pd.DataFrame:
        """Load one row per cell.

        Parameters
        ----------
        collapse : bool
            One row for each different text under equal axes, ``sample`` apart, with their
            ``count`` (B43); cost and tokens are summed, scores and times averaged.

        Returns
        -------
        DataFrame
            A column per axis, one per score, then model, text, state, stop reason, error, tokens
            by kind, cost in USD, times in seconds and the answer's ``n`` and ``entry_id``; with a
            schema one ``data.*`` column per field.
        """
        from nbdurable.explore import rows
        from nbdurable.explore.frame import experiment_df

        found = rows.rows_of(self.cells(), self.axes, self._annotations())
        return experiment_df(rows.collapsed(found, self.axes) if collapse else found, self.axes)

    def estimate(self) -> Estimate:
        """Price the cells that are missing: how many calls, their tokens, the most they can cost.

        Of a plan that is not begun, as ``chat.grid(..., start=False).estimate()``, that is all of
        it. Nothing is called or stored.
        """
        from nbdurable.explore.estimate import estimate

        self._session.fresh()
        missing = self._missing()
        settings = self._all_settings(missing, "run", ())
        return estimate(self._session.image, [(self._ask(key), settings[key]) for key in missing])

    def score(
        self, scorer: Scorer | Session, name: str = "score", by: str | None = None
    ) -> Experiment:
        """Score the finished cells and keep the scores as annotations of their answers (B70).

        Cells that have a score of this name and author are passed over, so that a scoring that
        was cut goes on where it was; each score is stored as it comes.

        Parameters
        ----------
        scorer : function or Session
            A function of a `Cell` that gives a number, a bool, or a dict of numbers. Or a judge: a
            session that is asked beside its leaf, once for each cell; its structured answer, or
            the first number in its text, is the score, its cost is in its own run.
        name : str
            The column in `df`; of a dict ``name.key``.
        by : str, optional
            The author; by default the function's name or the judge's model.

        Returns
        -------
        Experiment
            This one.
        """
        from nbdurable.explore.score import score

        self._session.ready(moves=False)
        made = score(self._session.image, self.cells(), scorer, name, by)
        if self._session.replay is not None:
            self._session.replay.note("score", is_hit=not made, where=shown(self._name))
        return self

    def plot(self) -> Figure:
        """Draw cost, time and scores of the alternatives; needs matplotlib (``[plot]``)."""
        from nbdurable.explore import rows
        from nbdurable.explore.plot import figure

        cells, said = self.cells(), self._annotations()
        found = rows.rows_of(cells, self.axes, said)
        targets = {cell.entry.id: cell.i for cell in cells if cell.entry is not None}
        scores = dict.fromkeys(n for row in rows.scores_of(targets, said).values() for n in row)
        return figure(found, self.axes, list(scores))

    def compare(self) -> Matrix:
        """Lay the cells out as a matrix, of what varies against the samples.

        Returns
        -------
        Matrix
            Shown in a cell it is a widget: rows sort by agreement, scores, cost and time, and the
            cells that are chosen stand side by side.
        """
        from nbdurable.notebook.compare.matrix import Matrix

        return Matrix(self)

    def pick(self, i: SupportsIndex) -> Cell:
        """Move the leaf, and the position, onto the answer of a cell, and return the cell.

        Raises
        ------
        RunError
            The cell has no answer.
        """
        cell = self[i]
        if cell.entry is None:
            raise RunError(
                f"cell {cell.i} of experiment {shown(self._name)} has no answer to pick "
                f"({cell.state}); resume() runs what is missing"
            )
        cast("Session", self._session).branch(cell.run)
        return cell

    def then(
        self,
        *input: object,
        name: str | None = None,
        wait: bool = True,
        show: Bar | EllipsisType = ...,
        concurrency: int | None = None,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        start: bool = True,
    ) -> Experiment:
        """Say the same to every alternative, each with its own model and settings.

        Parameters
        ----------
        *input : object
            As for `Session.run`.
        name, wait, show, concurrency, effects, budget_usd, start
            As for `Session.grid`.

        Returns
        -------
        Experiment
            One cell under each finished cell of this one, with the same axes.
        """
        from nbdurable.explore import verbs

        return verbs.then(
            self,
            input,
            name=name,
            go=verbs.Go(
                wait=wait,
                show=show,
                concurrency=concurrency or self._concurrency,
                effects=effects,
                budget_usd=budget_usd,
                start=start,
            ),
        )

    def _annotations(self) -> list[tuple[str, str, str | None, str]]:
        """Return what was said of entries: target, name, author, value as JSON; oldest first."""
        return [
            (one.target_id, one.name, one.by, one.value_json)
            for one in self._session.image.annotations().history()
        ]
