"""Stored experiments: found again, compared, and stored with their input before the first call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbdurable.entries import Entry
from nbdurable.errors import ReplayMiss, RunError, TreeError, shown
from nbdurable.explore import noted
from nbdurable.explore.draft import Draft, said
from nbdurable.explore.plan import UNREADABLE, Plan, Spec, difference
from nbdurable.inputs import as_entries
from nbdurable.loaded import Leaf, Loaded
from nbdurable.replay.record import place
from nbdurable.reruns import as_recorded, own_tools
from nbdurable.settings import Settings
from nbdurable.stored import ExperimentRecord

if TYPE_CHECKING:
    from nbdurable.asking import Asking


@dataclass(frozen=True, slots=True)
class Kept:
    """An experiment as stored: its record and its plan."""

    record: ExperimentRecord
    plan: Plan


@dataclass(frozen=True, slots=True)
class Unread:
    """A stored experiment whose plan cannot be read, and why."""

    record: ExperimentRecord
    why: str

    @property
    def text(self) -> str:
        """What to tell the user."""
        record = self.record
        return (
            f"experiment {shown(record.name)} of session {shown(record.session_id)} has a plan "
            f"that cannot be read here ({self.why}); open it with the version of nbdurable that "
            "made it"
        )


def all_kept(image: Loaded) -> list[Kept]:
    """Return the session's experiments in the order they were made, each as it grew last.

    One whose plan cannot be read, such as a newer version's, is left out.
    """
    return [one for one in _latest(image) if isinstance(one, Kept)]


def unread(image: Loaded) -> list[Unread]:
    """Return the experiments whose plans cannot be read here."""
    return [one for one in _latest(image) if isinstance(one, Unread)]


def _latest(image: Loaded) -> list[Kept | Unread]:
    latest: dict[str, ExperimentRecord] = {}
    for record in image.store.load_experiments(image.session_id):
        latest[record.id] = record
    return [_kept(record) for record in latest.values()]


def _kept(record: ExperimentRecord) -> Kept | Unread:
    try:
        return Kept(record, Plan.from_json(record.plan_json))
    except UNREADABLE as error:
        return Unread(record, f"{type(error).__name__}: {error}")


def kept_by_name(image: Loaded, name: str) -> Kept:
    """Return the latest experiment of a name, or of that id.

    Raises
    ------
    TreeError
        There is none, and the text lists those there are; or its plan cannot be read.
    """
    found = _latest(image)
    for one in reversed(found):
        if name in (one.record.name, one.record.id):
            if isinstance(one, Unread):
                raise TreeError(one.text)
            return one
    names = ", ".join(dict.fromkeys(shown(one.record.name) for one in found)) or "none"
    raise TreeError(
        f"experiment {shown(name)} is not in session {shown(image.session_id)}; it has {names}"
    )


def find(
    handle: Asking, draft: Draft, name: str | None, *, always_new: bool, starts: bool
) -> tuple[Kept | None, str]:
    """Return the stored experiment that a call means, or None when it makes a new one (B43, B56).

    Beside it, of a call that a replay has no answer for, what the nearest has in another way.

    Raises
    ------
    RunError
        The name is that of an experiment which this one cannot be; the text says in what.
    TreeError
        The name is that of an experiment whose plan cannot be read.
    ReplayMiss
        A replay that may call no model has none.
    """
    for one in unread(handle.image) if name is not None else ():
        if one.record.name == name:
            raise TreeError(f"{one.text}, or give another name")
    stored = all_kept(handle.image)
    named = next((one for one in reversed(stored) if one.record.name == name), None)
    asked = draft.plan({})
    if named is not None and (how := difference(named.plan, asked)):
        raise RunError(
            f"experiment {shown(name)} cannot be asked again like this: {how}; "
            "give another name, or the same again"
        )
    call = draft.digest()
    equal = [one for one in stored if call in one.plan.calls]
    if name is not None:
        equal = [one for one in equal if one.record.name == name]
    replay = handle.replay
    if replay is not None:
        key = (draft.kind, draft.leaf_id, call, name)
        at = replay.take(key) if starts else replay.count_of(key)  # to price it takes nothing
        if at < len(equal):
            return equal[at], ""
    if not always_new and (named or equal):
        return named or equal[-1], ""
    if replay is None or not starts:
        return None, ""
    differs = noted.nearest(replay, asked, stored)
    text = f"replay has no recorded {draft.kind} equal to this one"
    if replay.is_only:
        where = f"at {place(handle.image, draft.leaf_id)}"
        replay.note(draft.kind, is_hit=False, where=where, differs=differs)
        found = f", {differs}" if differs else ""
        raise ReplayMiss(f"{text}{found}; open with replay=True to run it")
    if differs:
        warnings.warn(f"{text}, {differs}; it runs for real", stacklevel=5)
    return None, differs


def free_name(image: Loaded, kind: str) -> str:
    """Return a name such as ``grid-2`` that no experiment of the session has."""
    taken = {record.name for record in image.store.load_experiments(image.session_id)}
    number = 1
    while f"{kind}-{number}" in taken:
        number += 1
    return f"{kind}-{number}"


def keep(image: Loaded, draft: Draft, name: str, known: Kept | None) -> Kept:
    """Store what of a draft is not stored yet: contexts, input, then the plan.

    Input is stored once for each content and place, beside the leaf, which stays (B43).
    """
    stored = known.plan.by_key() if known else {}
    fresh = [cell for cell in draft.cells if cell.key not in stored]
    if known is not None and not fresh:
        return known
    for context in draft.contexts():
        image.save_context(context)
    leaves = _stored_inputs(draft, known.plan if known else None)
    by_key: dict[str, str | None] = {}
    for cell in fresh:
        place = (cell.under_id, said(cell.input))
        if cell.input and place not in leaves:
            leaf = Leaf(cell.under_id)
            image.append(cell.input, leaf, moves=False)
            leaves[place] = leaf.id
        by_key[cell.key] = leaves[place] if cell.input else cell.under_id
    plan = draft.plan(by_key)
    plan = known.plan.grown(plan) if known else plan
    record = ExperimentRecord(
        id=known.record.id if known else image.new_id(),
        session_id=image.session_id,
        name=name,
        plan_json=plan.to_json(),
        created_at=image.clock(),
    )
    return Kept(image.store.save_experiment(record), plan)


def _stored_inputs(draft: Draft, plan: Plan | None) -> dict[tuple[str | None, object], str | None]:
    """Return where the inputs of a plan that grows are stored, by place and content."""
    if plan is None:
        return {}
    stored = plan.by_key()
    return {
        (cell.under_id, said(cell.input)): stored[cell.key].leaf_id
        for cell in draft.cells
        if cell.key in stored and cell.input
    }


# -- settings again ------------------------------------------------------------------------------


def settings_of(image: Loaded, spec: Spec, base: Settings) -> Settings:
    """Return the settings that a plan records, over what is not recorded of `base` (B42).

    Raises
    ------
    RunError
        A recorded tool is not among the handle's; the text names it.
    """
    context = image.store.load_context(spec.context)
    return as_recorded(
        base,
        model=spec.model,
        system=context.system,
        tools=own_tools(base, context, "the experiment", "the session with it"),
        params_json=spec.params_json,
    )


def again(image: Loaded, ids: Sequence[str]) -> tuple[Entry, ...]:
    """Return what stored entries said, as drafts to say it again."""
    return as_entries(*(image.entry(entry_id) for entry_id in ids))
