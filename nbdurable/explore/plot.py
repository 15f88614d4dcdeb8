"""Pictures of an experiment: what alternatives cost, how long they take, how they score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nbdurable.explore.plan import SAMPLE
from nbdurable.explore.rows import Row
from nbdurable.pictures import draw_boxes, new_figure, new_panel, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FACTS = {"cost_usd": "cost (USD)", "seconds": "time (s)"}


def figure(rows: Sequence[Row], axes: Sequence[str], scores: Sequence[str]) -> Figure:
    """Return one panel for cost, one for time and one for each score, a box per alternative.

    Raises
    ------
    RunError
        Matplotlib is not installed.
    """
    names = {**_FACTS, **{score: score for score in scores}}
    panels = {name: grouped(rows, axes, name) for name in names}
    panels = {name: groups for name, groups in panels.items() if any(groups.values())}
    if len(panels) > 1 and not any(map(any, panels.get("cost_usd", {}).values())):
        panels.pop("cost_usd", None)  # nothing was paid
    most = max((len(groups) for groups in panels.values()), default=1)
    made = new_figure(max(1, len(panels)) * 4.0, 1.2 + 0.35 * most)
    for at, (name, groups) in enumerate(panels.items(), 1):
        panel = new_panel(made, 1, len(panels), at)
        draw_boxes(panel, list(groups.values()))
        labels = [plain(label) for label in groups]
        panel.set_yticks(range(1, len(groups) + 1), labels if at == 1 else [""] * len(groups))
        panel.set_title(plain(names[name]))
    return made


def grouped(rows: Sequence[Row], axes: Sequence[str], name: str) -> Mapping[str, list[float]]:
    """Return the numbers of a column by alternative, repetitions together."""
    kept = [axis for axis in axes if axis != SAMPLE]
    groups: dict[str, list[float]] = {}
    for row in rows:
        label = ", ".join(str(row[axis])[:30] for axis in kept) or "all"
        numbers = groups.setdefault(label, [])
        value = row.get(name)
        if isinstance(value, int | float):
            numbers.append(float(value))
    return groups
