"""Figures: how they are made, and what was spent as one. Matplotlib is loaded when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbdurable.errors import RunError
from nbdurable.origin import shell

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_MOST_BARS = 40  # the dearest ones; more are unreadable


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches.

    Raises
    ------
    RunError
        Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise RunError(
            "a plot needs matplotlib; install it with pip install 'nbdurable[plot]'"
        ) from exc
    _let_the_notebook_draw(Figure)
    return Figure(figsize=(width, height), layout="constrained")


def _let_the_notebook_draw(kind: type[Figure]) -> None:
    """Have IPython show figures as pictures, as it does by itself once pyplot is imported."""
    found: Any = shell()
    if found is None:
        return
    formatters = found.display_formatter.formatters.values()
    if not any(kind in formatter for formatter in formatters):
        from IPython.core.pylabtools import select_figure_formats

        select_figure_formats(found, {"png"})


def plain(text: str) -> str:
    """Return text that Matplotlib draws as it is, never as a formula."""
    return text.replace("$", r"\$")


def spend_figure(frame: DataFrame, by: str) -> Figure:
    """Return a bar for each day, model or session: its cost, or its tokens where none is known.

    Days go from left to right; of models and sessions the dearest are on top.
    """
    has_costs = bool(frame["cost_usd"].fillna(0).sum())
    column = "cost_usd" if has_costs else "total_tokens"
    spent = frame.set_index(frame.columns[0])[column].fillna(0).astype(float)
    is_daily = by == "day"
    if not is_daily:
        spent = spent.sort_values().tail(_MOST_BARS)
    labels = [plain(str(label)[:40]) for label in spent.index]
    made = new_figure(7.0, 3.0 if is_daily else 1.0 + 0.3 * max(len(labels), 1))
    panel = made.add_subplot()
    if is_daily:
        panel.bar(labels, spent.to_list())
        panel.tick_params(axis="x", rotation=45 if len(labels) > 6 else 0)
    else:
        panel.barh(labels, spent.to_list())
    name = "cost (USD)" if has_costs else "tokens"
    panel.set_title(f"{name} by {by}")
    return made
