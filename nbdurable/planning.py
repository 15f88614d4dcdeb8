"""From a verb to a job: every check that can be made at the call is made here (B13).

Owns the way from what a caller gave to what the loop runs. Does not start anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import EllipsisType

from nbdurable.blocks import Json, Message
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import BudgetExceeded, RunError, shown
from nbdurable.inputs import input_digest
from nbdurable.loaded import Leaf, Loaded
from nbdurable.loop import Job
from nbdurable.models.base import ModelRequest
from nbdurable.models.params import recorded_json
from nbdurable.origin import cell_id, process_token
from nbdurable.run import Run, failed_at_call
from nbdurable.settings import Settings
from nbdurable.stored import Context, RunRecord
from nbdurable.views import View, continuation_leaf, ends_in_reply
from nbdurable.wire import digest, dumps


class LeafMoved(Exception):
    """Another thread moved the handle's leaf while a run from it was prepared; plan it anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a verb wants run: its kind, its input and from where.

    ``from_id`` is the handle's leaf when it was read, of a verb that goes on from there. A run of
    an experiment names it and its ``cell``, the place in the plan. ``detail`` is what else the verb
    was given that makes requests differ.
    """

    kind: str
    input: tuple[Entry, ...]
    leaf_id: str | None
    moves: bool = True
    rerun_of: str | None = None
    from_id: str | EllipsisType | None = ...
    experiment_id: str | None = None
    cell: str | None = None
    detail: tuple[tuple[str, Json], ...] = ()
    missed: Missed | None = None

    def under(self, leaf_id: str | None) -> Ask:
        """Return the same ask at another leaf."""
        return replace(self, leaf_id=leaf_id)


@dataclass(frozen=True, slots=True)
class Missed:
    """A request that replay found no answer to, as the caller gave it (B58).

    The record keeps it so, whichever model answers. ``repeats`` is an unfinished run that is made
    again from its stored input.
    """

    digest: str
    model: str
    repeats: RunRecord | None = None


def plan(image: Loaded, settings: Settings, ask: Ask, leaf: Leaf) -> Job:
    """Return the job of a verb that answers what stands at its leaf.

    Raises
    ------
    RunError
        There is nothing to answer.
    ModelError, BudgetExceeded
        As `job_of`.
    """
    view = prospective_view(image, settings, ask)
    return job_of(image, settings, ask, leaf, view.messages)


def job_of(
    image: Loaded, settings: Settings, ask: Ask, leaf: Leaf, messages: tuple[Message, ...]
) -> Job:
    """Return a job whose first call sends `messages`, the model checked and the budget held.

    Raises
    ------
    ModelError
        The model is not available; nothing was stored (B7).
    BudgetExceeded
        The first call could pass the budget (B26); carries a run that never began.
    """
    settings.model.check(settings.params)
    run = Run(
        image.new_id(),
        model=settings.model.name,
        moves=ask.moves,
        leaf_id=ask.leaf_id,
        schema=settings.schema,
    )
    run.experiment_id, run.cell = ask.experiment_id, ask.cell
    _check_budget(settings, messages, run)
    context = settings.context()
    missed = ask.missed or Missed(digest_of_ask(settings, ask, context), settings.model.name)
    record = RunRecord(
        id=run.run_id,
        session_id=image.session_id,
        kind=ask.kind,
        created_at=image.clock(),
        request_digest=missed.digest,
        context_digest=context.digest,
        model=missed.model,
        params_json=recorded_json(settings.params),
        ephemeral_json=dumps(ephemeral_digests(ask.input)),
        moves=ask.moves,
        rerun_of=ask.rerun_of,
        experiment_id=ask.experiment_id,
        cell=ask.cell,
        origin=cell_id(),
        owner=process_token(),
    )
    return Job(
        image=image,
        run=run,
        leaf=leaf,
        record=record,
        context=context,
        input=ask.input,
        settings=settings,
        repeats=missed.repeats,
        refuse_repeats=settings.effects == "refuse"
        and (ask.missed is not None or ask.kind in ("rerun", "edit")),
    )


def digest_of_ask(settings: Settings, ask: Ask, context: Context) -> str:
    """Return the digest of a request as the caller gave it (B56)."""
    return settings.request_digest(ask.kind, ask.input, context, dict(ask.detail))


def prospective_view(image: Loaded, settings: Settings, ask: Ask) -> View:
    """Return what the model would read, and refuse a run that has nothing to answer (B22)."""
    path = image.path(ask.leaf_id)
    if not ask.input and ends_in_reply(path):
        raise RunError(
            "the path ends in a finished reply, so there is nothing to continue; give input, "
            "or rerun() the answer"
        )
    view = settings.view([*path, *ask.input], image.views)
    if not view.messages:
        raise RunError(
            f"session {shown(image.session_id)} has nothing at the leaf that a model could answer; "
            "give input that is not blank"
        )
    if view.messages[-1].role == "assistant":
        raise RunError(
            "what the model would read ends in an assistant message, so there is nothing to "
            "answer; give a user's words that are not blank"
        )
    return view


def continued_leaf(image: Loaded, leaf_id: str | None) -> str | None:
    """Return where a run without input goes on: beside a failed answer, else at the leaf."""
    return continuation_leaf(image.path(leaf_id))


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How full a model's context is.

    ``entries`` has one (id, tokens) per entry that the model reads; system text and tools are in
    ``total_tokens`` only. ``limit_tokens`` is None when unknown.
    """

    total_tokens: int
    limit_tokens: int | None
    entries: tuple[tuple[str, int], ...]


def context_use(image: Loaded, settings: Settings, leaf_id: str | None) -> ContextUse:
    """Count what the model reads at a leaf (B47)."""
    model = settings.model
    view = settings.view(image.path(leaf_id), image.views)
    counts: dict[str, int] = {}
    for entry_id, message in zip(view.entry_ids, view.messages, strict=True):
        if entry_id is not None:
            tokens = model.count_tokens(ModelRequest(messages=(message,)))
            counts[entry_id] = counts.get(entry_id, 0) + tokens
    total = model.count_tokens(settings.request(view.messages))
    return ContextUse(total, model.context_limit(), tuple(counts.items()))


def _check_budget(settings: Settings, messages: tuple[Message, ...], run: Run) -> None:
    if not settings.budgets:
        return
    most = settings.model.max_cost_usd(settings.request(messages))
    for budget in settings.budgets:
        try:
            budget.settle(budget.hold(most, settings.model.name), 0.0)
        except BudgetExceeded as exc:
            raise failed_at_call(run, exc) from None


def ephemeral_digests(input: Sequence[Entry]) -> list[str]:
    """Return the digest of each ephemeral message of an input."""
    spoken = [entry for entry in input if isinstance(entry, MessageEntry) and entry.ephemeral]
    return [digest(content) for content in input_digest(spoken)]
