"""An experiment as a matrix: what varies against the samples, with how far answers agree.

Owns rows, their sums and the widget; a click in it compares cells, which is made in `comparing`.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from nbdurable.blocks import Json
from nbdurable.explore.cell import Cell
from nbdurable.explore.plan import SAMPLE
from nbdurable.explore.rows import scores_of
from nbdurable.notebook.assets import css, esm
from nbdurable.notebook.bridge import Bridge
from nbdurable.notebook.compare.columns import columns_of
from nbdurable.notebook.compare.comparing import Body, Compared, Comparing
from nbdurable.notebook.compare.matrixhtml import matrix_html
from nbdurable.notebook.showing import Twins, show
from nbdurable.reprs import count, joined, model_names, money, one_line
from nbdurable.wire import dumps

if TYPE_CHECKING:
    from pandas import DataFrame

    from nbdurable.explore.experiment import Experiment

TEXT_CHARS = 140
LABEL_CHARS = 80


class Matrix:
    """The cells of an experiment laid out; made by `Experiment.compare`."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        experiment._annotations()  # known from here on, also when the session is closed
        self._widget: MatrixWidget | None = None

    def __repr__(self) -> str:
        return f"<Matrix of {matrix_body(self._experiment)['title']}>"

    def df(self) -> DataFrame:
        """Return one row per cell; see `Experiment.df`."""
        return self._experiment.df()

    def html(self) -> str:
        """Return the matrix as HTML without script, of bounded size."""
        return matrix_html(matrix_body(self._experiment))

    def widget(self) -> MatrixWidget:
        """Return the matrix as a widget, the same one each time."""
        if self._widget is None or self._widget.is_closed:
            self._widget = MatrixWidget(self._experiment)
        return self._widget

    def _repr_html_(self) -> str:
        return self.html()

    def _ipython_display_(self) -> None:
        self.widget().show()

    def _display_(self) -> MatrixWidget:
        """Return what marimo shows for it."""
        return self.widget()


class MatrixWidget(Bridge):
    """A matrix in the page; views look again while the experiment runs."""

    _esm = esm("compare/matrix.js")
    _css = css("widget.css", "compare.css", "matrix.css")
    acts: ClassVar[Mapping[str, str]] = {"compared": "_compared"}
    asks: ClassVar[Mapping[str, str]] = {"look": "_look", "compare_cells": "_compare_cells"}

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._shown = Compared()
        self._twins = Twins()
        super().__init__()

    def __repr__(self) -> str:
        return f"<MatrixWidget of {matrix_body(self._experiment)['title']}>"

    def state(self) -> dict[str, Any]:
        """Return the matrix as it is now."""
        return matrix_body(self._experiment)

    def show(self) -> None:
        """Show it in the running cell, after its static form."""
        self._twins.add(show(self, lambda: matrix_html(matrix_body(self._experiment))))

    def _look(self) -> Body:
        body = matrix_body(self._experiment)
        if not body["running"]:
            self._twins.changed()
        return body

    def _compare_cells(self, cells: list[int]) -> Body:
        chosen = [self._experiment[at] for at in cells]
        return self._shown.begin(Comparing(columns_of(chosen)))

    def _compared(self, id: str, **choices: Any) -> Body:
        body = self._shown.deed(id, **choices)
        if "prefer" in choices:
            self._twins.changed()
        return body


# -- data --------------------------------------------------------------------------------------


def matrix_body(experiment: Experiment) -> Body:
    """Return an experiment's cells as rows of what varies and columns of samples.

    Where nothing was sampled twice, the last axis that varies makes the columns.
    """
    cells, axes = experiment.cells(), list(experiment.axes)
    scores = _scores(experiment, cells)
    across = _across(cells, axes)
    heads = _heads(cell.axes.get(across) for cell in cells)
    names = model_names(n for c in cells if isinstance(n := c.axes.get("model"), str))
    grouped: dict[str, list[Cell]] = {}
    kept = [axis for axis in axes if axis != across]
    for cell in cells:
        grouped.setdefault(dumps([cell.axes.get(axis) for axis in kept]), []).append(cell)
    running = sum(cell.state == "running" for cell in cells)
    done = sum(cell.state == "done" for cell in cells)
    return {
        "title": joined(
            (
                one_line(experiment.name or experiment.kind, 60),
                count(len(cells), "run"),
                f"{done} done" if done < len(cells) else None,
                money(experiment.cost),
            )
        ),
        "axes": [axis for axis in kept if axis != SAMPLE],
        "across": across,
        "heads": list(heads.values()),
        "scores": list(dict.fromkeys(name for row in scores.values() for name in row)),
        "running": running,
        "rows": [
            {"labels": [_axis_label(axis, row[0], names) for axis in kept if axis != SAMPLE]}
            | _row(row, across, heads, scores)
            for row in grouped.values()
        ],
    }


def _scores(experiment: Experiment, cells: Sequence[Cell]) -> dict[int, dict[str, Json]]:
    targets = {cell.entry.id: cell.i for cell in cells if cell.entry is not None}
    return scores_of(targets, experiment._annotations())


def _across(cells: Sequence[Cell], axes: Sequence[str]) -> str:
    """Return the axis that makes the columns: the samples, or else the last one that varies."""
    varying = [axis for axis in axes if len({dumps(cell.axes.get(axis)) for cell in cells}) > 1]
    if SAMPLE in varying or len(varying) < 2:
        return SAMPLE if SAMPLE in axes else (varying or [*axes, SAMPLE])[-1]
    return varying[-1]


def _row(
    cells: Sequence[Cell],
    across: str,
    heads: Iterable[str],
    scores: Mapping[int, Mapping[str, Json]],
) -> Body:
    groups = _groups(cells)
    found = {
        dumps(cell.axes.get(across)): _cell(cell, groups.get(cell.i), scores.get(cell.i, {}))
        for cell in cells
    }
    given = [scores.get(cell.i, {}) for cell in cells]
    names = dict.fromkeys(name for one in given for name in one)
    runs = [cell.run for cell in cells if cell.run is not None]
    return {
        "cells": [found.get(head) for head in heads],
        "agreement": agreement(groups.values()),
        "scores": {
            name: _mean(scores.get(cell.i, {}).get(name) for cell in cells) for name in names
        },
        "cost": _mean((run.cost for run in runs), total=True),
        "seconds": _mean(run.seconds for run in runs),
    }


def _cell(cell: Cell, group: int | None, scores: Mapping[str, Json]) -> Body:
    entry = cell.entry
    return {
        "i": cell.i,
        "n": entry.n if entry is not None else None,
        "state": cell.state,
        "text": one_line(cell.text or cell.error or "", TEXT_CHARS),
        "group": group,
        "scores": dict(scores),
    }


def _groups(cells: Sequence[Cell]) -> dict[int, int]:
    """Return for each finished cell which answer it gave: 0 the most frequent one of all."""
    said = {cell.i: _said(cell) for cell in cells if cell.state == "done"}
    order = {text: at for at, (text, _) in enumerate(Counter(said.values()).most_common())}
    return {i: order[text] for i, text in said.items()}


def _said(cell: Cell) -> str:
    """Return what two equal answers have in common: their data, or else their words."""
    run = cell.run
    if run is not None and run.schema is not None and run.data_error is None:
        from pydantic_core import to_jsonable_python  # slow to load

        return json.dumps(to_jsonable_python(run.data), sort_keys=True)
    return " ".join(cell.text.split())


def agreement(groups: Iterable[int]) -> float | None:
    """Return the share of the most frequent answer; None of fewer than two."""
    counts = Counter(groups)
    return max(counts.values()) / counts.total() if counts.total() > 1 else None


def _mean(values: Iterable[Any], *, total: bool = False) -> float | None:
    """Return the mean (or sum) of the numbers that are known."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    return sum(known) if total else statistics.fmean(known)


def _heads(values: Iterable[Json]) -> dict[str, str]:
    """Return what stands over each column, by its value as JSON; no two say the same."""
    heads: dict[str, str] = {}
    met: Counter[str] = Counter()
    for value in values:
        if (key := dumps(value)) not in heads:
            label = _label(value)
            met[label] += 1
            heads[key] = label if met[label] == 1 else f"{label} ({met[label]})"
    return heads


def _axis_label(axis: str, cell: Cell, names: Mapping[str, str]) -> str:
    value = cell.axes.get(axis)
    return names[value] if axis == "model" and isinstance(value, str) else _label(value)


def _label(value: Json) -> str:
    if value is None:
        return "–"
    return one_line(value if isinstance(value, str) else dumps(value), LABEL_CHARS)
