"""Figures: how they are made, and what was spent as one. Matplotlib is loaded when one is drawn."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from nbdurable.errors import RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_MOST_BARS = 40  # the dearest ones; more are unreadable
# A picture does not know the theme of the page it will stand in, today or in ten years: it has no
# ground, and colours about as far from white as from the ground of a dark page.
INK = "#7f7f7f"
_BAR, _MARK = "#3f88c5", "#d1712a"


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

    class Picture(Figure):  # type: ignore[misc]
        """A figure that a notebook draws also where pyplot, which tells it how, was not loaded."""

        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png")
            return drawn.getvalue()

    return Picture(figsize=(width, height), layout="constrained", facecolor="none")


def new_panel(figure: Figure, rows: int = 1, columns: int = 1, at: int = 1) -> Axes:
    """Return an empty panel of a figure, legible on light and dark pages alike."""
    panel = figure.add_subplot(rows, columns, at, facecolor="none")
    panel.tick_params(color=INK, labelcolor=INK)
    panel.spines[:].set_color(INK)
    panel.title.set_color(INK)
    panel.set_prop_cycle(color=[_BAR])
    return panel


def draw_boxes(panel: Axes, groups: list[list[float]]) -> None:
    """Draw a box for each list of numbers, from the top down."""
    lines = {"color": INK}
    panel.boxplot(
        groups,
        orientation="horizontal",
        boxprops=lines,
        whiskerprops=lines,
        capprops=lines,
        flierprops={**lines, "markeredgecolor": INK},
        medianprops={"color": _MARK, "linewidth": 2},
    )
    panel.invert_yaxis()


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
    panel = new_panel(made)
    if is_daily:
        panel.bar(labels, spent.to_list())
        panel.tick_params(axis="x", rotation=45 if len(labels) > 6 else 0)
    else:
        panel.barh(labels, spent.to_list())
    name = "cost (USD)" if has_costs else "tokens"
    panel.set_title(f"{name} by {by}")
    return made
