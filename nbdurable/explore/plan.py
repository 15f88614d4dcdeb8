"""Plans: which cells an experiment has, as plain values.

Owns axes, cells, their keys, and how a plan is written and compared. Does not own settings, stores
or runs. The one idea: a cell is known by its labels, so that a plan that grew knows which of its
cells it had before; what stands behind a label may never change.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from nbdurable.blocks import Json
from nbdurable.errors import RunError, shown
from nbdurable.wire import as_python, dumps

SAMPLE = "sample"  # the axis of repetitions
# what `Plan.from_json` raises where another version wrote, or an import brought, something else
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
_UNSHOWN = frozenset({"input", "system", "tools", "schema"})  # texts: named, never printed


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that varies: its values, and the label of each.

    ``digests`` tell values apart whose labels do not: a name may stand for any text.
    """

    name: str
    labels: tuple[Json, ...]
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The settings of a cell as they are recorded: enough to run it in another process."""

    model: str
    context: str
    params_json: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """One place of a plan.

    ``leaf_id`` is where its run begins. A cell of a chain begins at the answer of the cell
    ``after`` it, and says again what the entries ``input_ids`` said.
    """

    key: str
    axes: Mapping[str, Json]
    spec: Spec
    leaf_id: str | None = None
    after: str | None = None
    input_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an experiment asks.

    ``fixed`` and ``meanings`` hold what does not vary and, by axis and label, what each label
    stands for; texts by their digest. ``calls`` are the digests of the calls that made it.
    """

    kind: str
    leaf_id: str | None
    axes: tuple[str, ...]
    fixed: Mapping[str, Json]
    meanings: Mapping[str, Mapping[str, Json]]
    cells: tuple[PlannedCell, ...]
    calls: tuple[str, ...] = ()

    def by_key(self) -> dict[str, PlannedCell]:
        """Return the cells by their keys."""
        return {cell.key: cell for cell in self.cells}

    def grown(self, other: Plan) -> Plan:
        """Return this plan with the cells and the call of a compatible one added."""
        known = self.by_key()
        more = tuple(cell for cell in other.cells if cell.key not in known)
        meanings = {
            axis: {**self.meanings.get(axis, {}), **other.meanings.get(axis, {})}
            for axis in self.axes
        }
        return replace(
            self,
            cells=(*self.cells, *more),
            meanings=meanings,
            calls=tuple(dict.fromkeys((*self.calls, *other.calls))),
        )

    # -- as text -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the plan as it is stored."""
        specs = list(dict.fromkeys(cell.spec for cell in self.cells))
        place = {spec: at for at, spec in enumerate(specs)}
        return dumps(
            {
                "kind": self.kind,
                "leaf": self.leaf_id,
                "axes": list(self.axes),
                "fixed": dict(self.fixed),
                "meanings": {axis: dict(found) for axis, found in self.meanings.items()},
                "settings": [
                    {"model": s.model, "context": s.context, "params": json.loads(s.params_json)}
                    for s in specs
                ],
                "cells": [_cell_to_dict(cell, place[cell.spec]) for cell in self.cells],
                "calls": list(self.calls),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return a stored plan."""
        wire = json.loads(text)
        specs = [
            Spec(model=s["model"], context=s["context"], params_json=dumps(s["params"]))
            for s in wire["settings"]
        ]
        return cls(
            kind=wire["kind"],
            leaf_id=wire["leaf"],
            axes=tuple(wire["axes"]),
            fixed=wire["fixed"],
            meanings=wire["meanings"],
            cells=tuple(_cell_from_dict(cell, specs) for cell in wire["cells"]),
            calls=tuple(wire["calls"]),
        )


def _cell_to_dict(cell: PlannedCell, setting: int) -> dict[str, Json]:
    wire: dict[str, Json] = {"axes": dict(cell.axes), "setting": setting, "leaf": cell.leaf_id}
    if cell.after is not None:
        wire |= {"after": cell.after, "input": list(cell.input_ids)}
    return wire


def _cell_from_dict(wire: Mapping[str, Json], specs: Sequence[Spec]) -> PlannedCell:
    axes: dict[str, Json] = wire["axes"]  # type: ignore[assignment]
    return PlannedCell(
        key=cell_key(axes),
        axes=axes,
        spec=specs[cast(int, wire["setting"])],
        leaf_id=wire["leaf"],  # type: ignore[arg-type]
        after=wire.get("after"),  # type: ignore[arg-type]
        input_ids=tuple(wire.get("input", ())),  # type: ignore[arg-type]
    )


# -- axes ----------------------------------------------------------------------------------------


def axis_of(name: str, given: object) -> Axis | None:
    """Return the axis that a value spans: a dict names its values, a list is its own; else None.

    Raises
    ------
    RunError
        It has no values, a label that is no text, or a label twice.
    """
    given = list(given) if isinstance(given, range) else as_python(given)
    if isinstance(given, Mapping):
        labels: tuple[Json, ...] = tuple(given)
        values = tuple(as_python(value) for value in given.values())
        for label in labels:
            if not isinstance(label, str):
                raise RunError(
                    f"axis {name!r} has the name {shown(label)} of type {type(label).__name__}; "
                    "name its values by text"
                )
    elif isinstance(given, list | tuple):
        values = tuple(as_python(value) for value in given)
        labels = tuple(label_of(value, f"{name} {at}") for at, value in enumerate(values, 1))
    else:
        return None
    if not values:
        raise RunError(f"axis {name!r} has no values; give one at least, or leave it out")
    seen: set[str] = set()
    for label in labels:
        text = label_key(label)
        if text in seen:
            raise RunError(
                f"axis {name!r} has {shown(label)} twice; name its values by a dict, or ask "
                "again by n="
            )
        seen.add(text)
    return Axis(name, labels, values)


def label_of(value: object, otherwise: str) -> Json:
    """Return what to call a value: itself where it is plain, its ``name``, else `otherwise`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, str | int | float):
        return value
    name = getattr(value, "name", None)
    if isinstance(name, str):
        return name
    try:
        return dumps(value)
    except ValueError:
        return otherwise


def label_key(label: Json) -> str:
    """Return a label as text, one for each."""
    return dumps(label)


def cell_key(axes: Mapping[str, Json]) -> str:
    """Return the key of the cell at these labels: their JSON text, axes by name."""
    return dumps(dict(sorted(axes.items())))


def combinations(axes: Iterable[Axis]) -> list[dict[str, tuple[Json, object]]]:
    """Return all ways to take one label and value of each axis, the last varying fastest."""
    spans = [
        [(axis.name, pair) for pair in zip(axis.labels, axis.values, strict=True)] for axis in axes
    ]
    return [dict(picked) for picked in itertools.product(*spans)]


# -- comparing -----------------------------------------------------------------------------------


def difference(stored: Plan, asked: Plan) -> str | None:
    """Say in what a plan cannot be one with a stored one, or None (B43)."""
    if stored.kind != asked.kind:
        return f"it is a {stored.kind}, not a {asked.kind}"
    if stored.leaf_id != asked.leaf_id:
        return "it was asked at another leaf"
    if set(stored.axes) != set(asked.axes):
        return f"its axes were {', '.join(stored.axes)}, not {', '.join(asked.axes)}"
    names = sorted({*stored.fixed, *asked.fixed})
    for name in names:
        was, now = stored.fixed.get(name), asked.fixed.get(name)
        if was != now:
            if name in _UNSHOWN:
                return f"its {name} was another"
            return f"its {name} was {shown(was)}, not {shown(now)}"
    for axis, meanings in asked.meanings.items():
        for label, meaning in meanings.items():
            if stored.meanings.get(axis, {}).get(label, meaning) != meaning:
                return f"its {axis} {shown(json.loads(label))} was another"
    return None
