"""Drafts: a plan with the things themselves, before anything is stored.

Owns the way from what a verb was given to cells: models, system texts, tools, parameters and input
per cell. The one idea: every value is checked here, at the call, so that a plan that was stored can
be run.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nbdurable.blocks import Json
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import EntryError, RunError, shown
from nbdurable.explore.plan import (
    SAMPLE,
    Axis,
    Plan,
    PlannedCell,
    Spec,
    axis_of,
    cell_key,
    combinations,
    label_key,
)
from nbdurable.inputs import as_entries, input_digest
from nbdurable.models import resolve_model
from nbdurable.models.params import RECORDED, recorded, recorded_json
from nbdurable.settings import Settings, checked_system
from nbdurable.stored import Context
from nbdurable.tools import as_tools
from nbdurable.wire import as_python, digest

OWN_AXES = frozenset({"input", "model", "system", "tools", SAMPLE, "turn"})
Drafts = tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCell:
    """A cell before its input is stored: what is said under ``under_id``, and with what."""

    axes: Mapping[str, Json]
    settings: Settings
    under_id: str | None
    input: Drafts = ()
    after: str | None = None
    input_ids: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The cell's key in its plan."""
        return cell_key(self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a verb asks: cells, and what tells it from other experiments."""

    kind: str
    leaf_id: str | None
    axes: tuple[str, ...]
    cells: tuple[DraftCell, ...]
    fixed: Mapping[str, Json]
    meanings: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)

    def digest(self) -> str:
        """Return the digest by which equal calls are known (B56)."""
        return digest(
            {
                "kind": self.kind,
                "leaf": self.leaf_id,
                "cells": [cell.key for cell in self.cells],
                "fixed": dict(self.fixed),
                "meanings": {axis: dict(found) for axis, found in self.meanings.items()},
            }
        )

    def plan(self, leaves: Mapping[str, str | None]) -> Plan:
        """Return the plan whose cells begin at these leaves, by the cells' keys."""
        return Plan(
            kind=self.kind,
            leaf_id=self.leaf_id,
            axes=self.axes,
            fixed=self.fixed,
            meanings=self.meanings,
            cells=tuple(
                PlannedCell(
                    key=cell.key,
                    axes=cell.axes,
                    spec=spec_of(cell.settings),
                    leaf_id=leaves.get(cell.key),
                    after=cell.after,
                    input_ids=cell.input_ids,
                )
                for cell in self.cells
            ),
            calls=(self.digest(),),
        )

    def contexts(self) -> list[Context]:
        """Return the contexts of all cells, each once."""
        found = [settings.context() for settings in _distinct(c.settings for c in self.cells)]
        return list({context.digest: context for context in found}.values())


def spec_of(settings: Settings) -> Spec:
    """Return what is recorded of settings."""
    return Spec(
        model=settings.model.name,
        context=settings.context().digest,
        params_json=recorded_json(settings.params),
    )


def _distinct(settings: Iterable[Settings]) -> list[Settings]:
    return list({id(one): one for one in settings}.values())


# -- input ---------------------------------------------------------------------------------------


def checked_input(*input: object) -> Drafts:
    """Return input as drafts that can be stored.

    Raises
    ------
    EntryError
        Something cannot be sent, or is ephemeral: an experiment must be able to go on elsewhere.
    """
    drafts = as_entries(*input)
    if any(isinstance(draft, MessageEntry) and draft.ephemeral for draft in drafts):
        raise EntryError(
            "ephemeral input is never stored, so an experiment could not be resumed with it; "
            "give it as plain input or meta()"
        )
    return drafts


def input_axis(given: object) -> tuple[Axis | None, Drafts]:
    """Return the axis of inputs, or the one input that is fixed; values become drafts."""
    if given is None:
        return None, ()
    axis = axis_of("input", given)
    if axis is None:
        return None, checked_input(given)
    drafts = tuple(
        checked_input(*(value if isinstance(value, list | tuple) else (value,)))
        for value in axis.values
    )
    for label, said in zip(axis.labels, drafts, strict=True):
        if not said:
            raise EntryError(f"input {shown(label)} is empty; give it words")
    return replace(axis, values=drafts), ()


def said(drafts: Sequence[Entry]) -> Json:
    """Return the digest of an input's content, None of none."""
    return digest(input_digest(drafts)) if drafts else None


# -- settings ------------------------------------------------------------------------------------


def setting_axes(given: Mapping[str, object]) -> tuple[list[Axis], dict[str, Any]]:
    """Part what varies, lists and dicts, from what is fixed; a list of tools is fixed."""
    axes: list[Axis] = []
    fixed: dict[str, Any] = {}
    for name, value in given.items():
        is_one = name == "tools" and not isinstance(value, Mapping)
        axis = None if is_one else axis_of(name, value)
        if axis is not None:
            axes.append(axis)
        elif value is not ... and not (name == "model" and value is None):
            fixed[name] = value
    return axes, fixed


def varied(base: Settings, picked: Mapping[str, object]) -> Settings:
    """Return settings with the picked value of each axis in their place."""
    values = dict(picked)
    changed: dict[str, Any] = {}
    if "model" in values:
        changed["model"] = resolve_model(values.pop("model"))  # type: ignore[arg-type]
    if "system" in values:
        changed["system"] = checked_system(values.pop("system"))
    if "tools" in values:
        changed["tools"] = as_tools(values.pop("tools"))  # type: ignore[arg-type]
    if values:
        recorded_json(values)
        changed["params"] = {**base.params, **values}
    return replace(base, **changed) if changed else base


def checked_axes(axes: Sequence[Axis]) -> None:
    """Refuse axes of parameters that are not recorded: their values may be keys (B69).

    Raises
    ------
    RunError
        The text names the nearest parameter that can be an axis.
    """
    for axis in axes:
        if axis.name in OWN_AXES or axis.name in RECORDED:
            continue
        near = difflib.get_close_matches(axis.name, sorted(RECORDED), n=1)
        hint = f"did you mean {near[0]!r}? else " if near else ""
        raise RunError(
            f"parameter {axis.name!r} is not one that is recorded, so it cannot be an axis; "
            f"{hint}give a value that is itself a list or dict in params="
        )


def fixed_facts(base: Settings, axes: Iterable[str], drafts: Sequence[Entry]) -> dict[str, Json]:
    """Return what tells one experiment from another beside its axes, texts by their digest."""
    context = base.context()
    facts: dict[str, Json] = {
        "input": said(drafts),
        "model": base.model.name,
        "system": None if context.system is None else digest(context.system),
        "tools": digest(context.tools_json) if base.tools else None,
        **json.loads(recorded_json(base.params)),
    }
    varying = set(axes)
    return {name: fact for name, fact in facts.items() if name not in varying}


def meanings_of(axes: Iterable[Axis]) -> dict[str, dict[str, Json]]:
    """Return, by axis and label, the digest of what a label stands for, where it is not itself."""
    return {
        axis.name: {
            label_key(label): _meaning(axis.name, value)
            for label, value in zip(axis.labels, axis.values, strict=True)
            if label != value
        }
        for axis in axes
    }


def _meaning(name: str, value: Any) -> Json:
    if name == "input":
        return said(value)
    if name == "model":
        return resolve_model(value).name
    if name == "tools":
        return digest([tool.spec.to_dict() for tool in as_tools(value)])
    if name == "system":
        return None if value is None else digest(checked_system(value))
    plain = recorded({name: value})
    return digest(plain) if plain else None


def samples(n: object) -> Axis:
    """Return the axis of `n` repetitions.

    Raises
    ------
    ValueError
        `n` is no whole number above 0.
    """
    count = as_python(n)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"n is {shown(n)}; give a whole number, 1 or more")
    numbers = tuple(range(1, count + 1))
    return Axis(SAMPLE, numbers, numbers)


# -- what the verbs ask --------------------------------------------------------------------------


def crossed(
    kind: str,
    leaf_id: str | None,
    under_id: str | None,
    inputs: tuple[Axis | None, Drafts],
    axes: Sequence[Axis],
    base: Settings,
    n: Axis,
) -> Draft:
    """Return the draft of every input with every value of every axis, `n` times."""
    by_input, drafts = inputs
    outer = [by_input] if by_input else []
    made: dict[str, Settings] = {}
    cells = []
    for picked in combinations([*outer, *axes]):
        values = {name: pair[1] for name, pair in picked.items() if name != "input"}
        labels = {name: pair[0] for name, pair in picked.items()}
        key = cell_key({name: label for name, label in labels.items() if name != "input"})
        settings = made[key] if key in made else made.setdefault(key, varied(base, values))
        words: Any = picked["input"][1] if by_input else drafts
        cells += [
            DraftCell(
                axes={**labels, n.name: number}, settings=settings, under_id=under_id, input=words
            )
            for number in n.labels
        ]
    names = tuple(axis.name for axis in [*outer, *axes, n])
    return Draft(
        kind=kind,
        leaf_id=leaf_id,
        axes=names,
        cells=tuple(cells),
        fixed=fixed_facts(base, names, drafts),
        meanings=meanings_of([*outer, *axes]),
    )


def refuse_effects(kind: str, settings: Iterable[Settings]) -> None:
    """Refuse tools with effects, unless they may run (B29).

    Raises
    ------
    RunError
        The text names the tool.
    """
    for own in _distinct(settings):
        for tool in own.tools:
            if tool.effects and own.effects != "run":
                raise RunError(
                    f"{kind} would run tool {tool.name!r}, which has effects, once for each "
                    "answer; leave it out by tools=, or allow it by effects='run'"
                )
