"""What a replay says of experiments: what the nearest has in another way, a line in the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbdurable.blocks import Json
from nbdurable.errors import shown
from nbdurable.explore.cell import Cell
from nbdurable.explore.plan import Plan, difference, label_key
from nbdurable.replay import Replay

if TYPE_CHECKING:
    from nbdurable.explore.kept import Kept


def nearest(replay: Replay, asked: Plan, stored: Sequence[Kept]) -> str:
    """Name the nearest experiment that no call has taken, and what it has in another way.

    Unless a model may never be called, only those at the same place, or with the same words, are
    named: beside any other, a call is simply new.
    """
    left = [
        one
        for one in reversed(stored)
        if one.plan.kind == asked.kind and not replay.is_taken(one.record.id)
    ]
    near = [one for one in left if _is_near(one.plan, asked)] or (left if replay.is_only else [])
    if not near:
        return ""
    how = difference(near[0].plan, asked) or _lacks(near[0].plan, asked)
    return f"nearest is {shown(near[0].record.name)}: {how}"


def _lacks(plan: Plan, asked: Plan) -> str:
    """Say what a plan that could grow does not have yet."""
    for axis in asked.axes:
        known = {label_key(cell.axes.get(axis)) for cell in plan.cells}
        for cell in asked.cells:
            if label_key(cell.axes[axis]) not in known:
                return f"it has no {axis} {shown(cell.axes[axis])}"
    return "it has other cells, or was asked fewer times"


def _is_near(plan: Plan, asked: Plan) -> bool:
    return _start(plan) == _start(asked) or not _words(plan).isdisjoint(_words(asked))


def _start(plan: Plan) -> Json:
    """Return where a plan begins: at a leaf, or at the answers of another experiment."""
    return plan.fixed.get("experiment", plan.leaf_id)


def _words(plan: Plan) -> set[Json]:
    """Return the digests of what a plan says."""
    return {plan.fixed.get("input"), *plan.meanings.get("input", {}).values()} - {None}


def note(
    replay: Replay, kind: str, where: str, cells: Sequence[Cell], missing: int, differs: str
) -> None:
    """Add a line to the report: whether the record answers all of an experiment, what it saves."""
    done = [cell.run for cell in cells if cell.state == "done" and cell.run]
    if done and missing and not differs:
        differs = f"{missing} of {len(cells)} cells had no finished answer"
    replay.note(
        kind,
        is_hit=not missing,
        where=where,
        differs=differs,
        saved_usd=sum(run.cost or 0.0 for run in done) if done else None,
    )
