"""The verbs that explore: from what they were given to an experiment that is under way."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

from nbdurable.blocks import Json
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import EntryError, RunError, TreeError, shown
from nbdurable.explore import kept as keeping
from nbdurable.explore.draft import (
    Draft,
    DraftCell,
    checked_axes,
    checked_input,
    crossed,
    fixed_facts,
    input_axis,
    meanings_of,
    refuse_effects,
    said,
    samples,
    setting_axes,
    varied,
)
from nbdurable.explore.experiment import Experiment
from nbdurable.explore.plan import Axis, cell_key, combinations
from nbdurable.explore.progress import Bar
from nbdurable.explore.standing import CONCURRENCY, checked_concurrency
from nbdurable.planning import continued_leaf
from nbdurable.references import Reference, resolve
from nbdurable.reruns import asked_entry
from nbdurable.settings import Effects, Settings
from nbdurable.views import ends_in_reply

if TYPE_CHECKING:
    from nbdurable.exploring import Exploring

History = Literal["new", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """How an experiment is run, as every verb takes it."""

    wait: bool = True
    show: Bar | EllipsisType = ...
    concurrency: int = CONCURRENCY
    effects: Effects = "refuse"
    budget_usd: float | None = None
    start: bool = True
    fresh: bool = False


def sample(
    session: Exploring,
    n: int,
    input: tuple[object, ...],
    at: Reference,
    name: str | None,
    given: Mapping[str, Any],
    go: Go,
) -> Experiment:
    """Return `n` sibling answers; see `Session.sample`."""
    count, drafts = samples(n), checked_input(*input)
    session.ready(moves=False)
    leaf_id = _leaf(session, at)
    under_id = leaf_id if drafts else _open_question(session, leaf_id)
    base = _base(session, given, go)
    draft = crossed("sample", leaf_id, under_id, (None, drafts), (), base, count)
    return _begin(session, draft, name, replace(go, fresh=True))


def grid(
    session: Exploring,
    input: object,
    n: int,
    at: Reference,
    name: str | None,
    varying: Mapping[str, object],
    given: Mapping[str, Any],
    go: Go,
) -> Experiment:
    """Return an answer for each combination; see `Session.grid`."""
    count, inputs = samples(n), input_axis(input)
    session.ready(moves=False)
    leaf_id = _leaf(session, at)
    has_words = inputs[0] is not None or bool(inputs[1])
    under_id = leaf_id if has_words else _open_question(session, leaf_id)
    axes, base = _parted(session, varying, given, go)
    draft = crossed("grid", leaf_id, under_id, inputs, axes, base, count)
    return _begin(session, draft, name, go)


def _base(session: Exploring, given: Mapping[str, Any], go: Go) -> Settings:
    return session.settings.override(**given, effects=go.effects)


def _parted(
    session: Exploring, varying: Mapping[str, object], given: Mapping[str, Any], go: Go
) -> tuple[list[Axis], Settings]:
    """Return the axes of what may vary, and the settings that are the same for all."""
    axes, fixed = setting_axes(varying)
    checked_axes(axes)
    twice = sorted(set(given) & set(varying))
    if twice:
        raise RunError(f"parameter {twice[0]!r} is given twice, also in params=; give it once")
    return axes, _base(session, {**fixed, **given}, go)


def _begin(session: Exploring, draft: Draft, name: str | None, go: Go) -> Experiment:
    if name is not None and (not isinstance(name, str) or not name.strip() or "\0" in name):
        raise ValueError(f"name is {shown(name)}; give text that is not blank, or leave it out")
    checked_concurrency(go.concurrency)
    refuse_effects(draft.kind, (cell.settings for cell in draft.cells))
    found, differs = keeping.find(session, draft, name, always_new=go.fresh, starts=go.start)
    experiment = Experiment(
        session,
        name=name,
        kept=found,
        draft=draft,
        concurrency=go.concurrency,
        effects=go.effects,
        budget_usd=go.budget_usd,
        differs=differs,
    )
    if go.start:
        experiment.resume(wait=go.wait, show=go.show)
    return experiment


# -- where ---------------------------------------------------------------------------------------


def _leaf(session: Exploring, at: Reference) -> str | None:
    return session._at(at, False)


def _open_question(session: Exploring, leaf_id: str | None) -> str | None:
    """Return what to answer without input: what waits at the leaf, else what it answers (B42)."""
    image = session.image
    start = continued_leaf(image, leaf_id)
    path = image.path(start)
    if not path or not ends_in_reply(path):
        return start
    last = next(entry for entry in reversed(path) if isinstance(entry, MessageEntry))
    return asked_entry(image, last.id, leaf_id)[0]


# -- going on ------------------------------------------------------------------------------------


def then(
    experiment: Experiment, input: tuple[object, ...], *, name: str | None, go: Go
) -> Experiment:
    """Return every finished alternative continued; see `Experiment.then`."""
    session, drafts = experiment._session, checked_input(*input)
    session.ready(moves=False)
    if not drafts:
        raise EntryError("then() was given no input; give the words to go on with")
    done = [cell for cell in experiment.cells() if cell.state == "done" and cell.run]
    if not done:
        raise RunError(
            f"experiment {shown(experiment.name)} has no finished answer to go on from; "
            "resume() runs what is missing"
        )
    settings = experiment._all_settings([cell.key for cell in done], go.effects, ())
    cells = tuple(
        DraftCell(
            axes=cell.axes,
            settings=settings[cell.key],
            under_id=cell.run.leaf_id if cell.run else None,
            input=drafts,
        )
        for cell in done
    )
    fixed: dict[str, Json] = {"input": said(drafts), "experiment": experiment.id}
    draft = Draft(kind="then", leaf_id=None, axes=experiment.axes, cells=cells, fixed=fixed)
    return _begin(session, draft, name, replace(go, fresh=True))


def redrive(
    session: Exploring,
    leaf: Reference,
    history: History,
    name: str | None,
    varying: Mapping[str, object],
    given: Mapping[str, Any],
    go: Go,
) -> Experiment:
    """Return every turn of a path asked again; see `Session.redrive`."""
    if history not in ("new", "recorded"):
        raise ValueError(f"history is {shown(history)}; give 'new' or 'recorded'")
    session.ready(moves=False)
    leaf_id = resolve(session.image, leaf, session.leaf.id, session.replay)
    turns = turns_of(session.image.path(leaf_id))
    if not turns:
        raise TreeError("the path has no user message to ask again; give the leaf of one that has")
    axes, base = _parted(session, varying, given, go)
    numbers = tuple(range(1, len(turns) + 1))
    turn = Axis("turn", numbers, numbers)
    cells: list[DraftCell] = []
    for picked in combinations(axes):
        settings = varied(base, {axis: pair[1] for axis, pair in picked.items()})
        labels = {axis: pair[0] for axis, pair in picked.items()}
        before: str | None = None
        for number, asked in zip(numbers, turns, strict=True):
            chained = history == "new" and before is not None
            cell = DraftCell(
                axes={**labels, "turn": number},
                settings=settings,
                under_id=None if chained else asked[-1].id,
                after=before if chained else None,
                input_ids=tuple(entry.id for entry in asked) if chained else (),
            )
            before = cell_key(cell.axes)
            cells.append(cell)
    names = (*(axis.name for axis in axes), turn.name)
    facts = {**fixed_facts(base, names, ()), "history": history}
    draft = Draft(
        kind="redrive",
        leaf_id=leaf_id,
        axes=names,
        cells=tuple(cells),
        fixed=facts,
        meanings=meanings_of(axes),
    )
    return _begin(session, draft, name, go)


def turns_of(path: list[Entry]) -> list[list[Entry]]:
    """Return what the user said on a path, turn by turn: messages side by side are one turn.

    Meta messages before an answer belong to what it answered (B49).
    """
    turns: list[list[Entry]] = []
    said: list[Entry] = []
    for entry in path:
        if not isinstance(entry, MessageEntry):
            continue
        if entry.role == "user":
            said.append(entry)
        elif entry.role == "assistant":
            if any(isinstance(one, MessageEntry) and not one.meta for one in said):
                turns.append(said)
                said = []
    if any(isinstance(one, MessageEntry) and not one.meta for one in said):
        turns.append(said)
    return turns


def kept_experiments(session: Exploring) -> list[Experiment]:
    """Return the session's experiments in the order they were made; warn of one unreadable."""
    session.fresh()
    for one in keeping.unread(session.image):
        warnings.warn(f"{one.text}; it is left out", stacklevel=3)
    return [Experiment(session, kept=one) for one in keeping.all_kept(session.image)]


def kept_experiment(session: Exploring, name: str) -> Experiment:
    """Return the latest experiment of a name, or of that id."""
    session.fresh()
    return Experiment(session, kept=keeping.kept_by_name(session.image, name))
