"""The loop of a run: model, tools, model again, every message stored before it is told.

Owns the order of B13 and the ends of B22-B25. Does not own reading (`run`), verbs (`session`) or
what a tool does (`toolstep`, `tools`). The one idea: only the model call and the tool bodies can
be cancelled; a store call never is, so that cancelling tears nothing (B23).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

from nbdurable.blocks import Message, Reply, ToolResultBlock, Usage
from nbdurable.budget import Budget
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import BudgetExceeded, NbDurableError, RunError, told
from nbdurable.events import Event
from nbdurable.hooks import HookChain
from nbdurable.loaded import Leaf, Loaded
from nbdurable.media import told_of_other
from nbdurable.modelcall import ModelCall, cancelled_error
from nbdurable.models.base import Model, ModelRequest
from nbdurable.run import Run
from nbdurable.secrets import secrets_of, without_secrets
from nbdurable.settings import Settings
from nbdurable.stored import Context, Outcome, RunEnd, RunRecord
from nbdurable.threads import RunCancelled, in_worker, unless_set
from nbdurable.tools import Tool
from nbdurable.toolstep import ToolStep, own_calls
from nbdurable.wire import clean, dumps

log = logging.getLogger("nbdurable")

T = TypeVar("T")
E = TypeVar("E", bound=Entry)


@dataclass(slots=True, kw_only=True)
class Job:
    """All that a run needs, settled at the call."""

    image: Loaded
    run: Run
    leaf: Leaf
    record: RunRecord
    context: Context
    input: tuple[Entry, ...]
    settings: Settings
    repeats: RunRecord | None = None
    refuse_repeats: bool = False
    prepare: Callable[[Loop], Awaitable[None]] | None = None
    on_compacted: Callable[[Entry], None] | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def model(self) -> Model:
        """The model that answers."""
        return self.settings.model

    @property
    def hooks(self) -> HookChain:
        """The application's hooks."""
        return self.settings.hooks

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools on offer."""
        return self.settings.tools


class Loop:
    """One run of a job, on the background loop."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.step = 0
        self.ended_as: Outcome | None = None  # the end of the run that is stored
        self._began = time.monotonic()
        self._seconds: float | None = None  # as stored with that end
        self._usage = Usage()
        self._costs: list[float | None] = []

    async def run(self) -> None:
        """Run to the end, whatever it is; never raises."""
        job, outcome, failure = self.job, "error", None
        try:
            await self._store_input()
            outcome = await self._steps()
        except Stopped as stop:
            outcome, failure = stop.outcome, stop.cause
        except RunCancelled:
            outcome, failure = "aborted", cancelled_error()
        except BaseException as exc:  # what got past here would end the loop of all other runs
            failure = self._failed(exc)
        if outcome == "aborted" and self.ended_as not in (None, "aborted"):
            outcome, failure = self.ended_as, None  # the cancel came after the end was stored
        await self._end_alone(outcome, failure)  # type: ignore[arg-type]
        text = None if failure is None else told(failure)
        self.emit(
            "agent_error" if outcome in ("error", "aborted") else "agent_end",
            outcome=outcome,
            error=text,
            usage=self._usage,
            cost_usd=self.cost,
            seconds=self.seconds,
        )
        job.image.release(job.run)
        job.run._finish(outcome, failure, self.seconds)  # type: ignore[arg-type]

    def _failed(self, error: BaseException) -> NbDurableError:
        """Return what ended the run as an error of ours that tells no secret (B69)."""
        secrets, failed = secrets_of(self.job.settings.params), error
        if isinstance(failed, NbDurableError):
            return without_secrets(failed, secrets)
        failed = RunError(f"run {self.job.record.id} failed: {told_of_other(error)}")
        failed.__cause__ = error
        failed = without_secrets(failed, secrets)
        log.error("run %s failed", self.job.record.id, exc_info=failed)
        return failed

    @property
    def seconds(self) -> float:
        """Seconds since the run began, or until the end that is stored."""
        return time.monotonic() - self._began if self._seconds is None else self._seconds

    @property
    def cost(self) -> float | None:
        """USD of the answers so far, or None when one is unknown."""
        known = [cost for cost in self._costs if cost is not None]
        return sum(known) if known and len(known) == len(self._costs) else None

    def emit(self, type: str, **values: object) -> None:
        """Write an event to the run's log."""
        job = self.job
        self.job.run._emit(
            Event(
                type=type,  # type: ignore[arg-type]
                run_id=job.record.id,
                leaf_id=values.pop("leaf_id", job.leaf.id),  # type: ignore[arg-type]
                step=self.step,
                **values,  # type: ignore[arg-type]
            )
        )

    # -- input and steps -----------------------------------------------------------------------

    async def _store_input(self) -> None:
        job = self.job
        if job.prepare is not None:
            await job.prepare(self)
        entries = await in_worker(self._append_input)
        job.run._input_ids = tuple(entry.id for entry in entries)
        self.emit("agent_start", entries=tuple(entries))

    def _append_input(self) -> list[Entry]:
        job = self.job
        job.image.save_context(job.context)
        if job.repeats is not None:
            return self._begin_again(job.repeats)
        return job.image.append(
            job.input, job.leaf, run_id=job.record.id, moves=job.record.moves, start=job.record
        )

    def _begin_again(self, first: RunRecord) -> list[Entry]:
        """Start from the input that another run has stored and not answered (B58)."""
        job, image = self.job, self.job.image
        record = replace(job.record, start_leaf_id=first.start_leaf_id, input_ids=first.input_ids)
        base_id = image.stored(first.input_ids[0]).parent_id
        entries = image.begin_again(record, job.input, job.leaf, base_id)
        if record.moves and image.position != job.leaf.id:
            image.move(job.leaf.id)
        return entries

    async def _steps(self) -> Outcome:
        while True:
            self.step += 1
            self.emit("step_start")
            is_last = self.step >= self.job.settings.max_steps
            entry = await self._answer(is_last)
            calls = own_calls(entry.message)
            results: tuple[ToolResultBlock, ...] = ()
            if calls:
                results = await ToolStep(self, entry, is_last).run()
                if self.job.cancelled.is_set():
                    raise Stopped("aborted", cancelled_error())
            self.emit("step_end")
            await self._hooked(self.job.hooks.after_step(entry.message, results))
            if calls and is_last:
                return "max_steps"
            if not calls and not await self._follow_up(entry, is_last):
                return "done"

    async def _hooked(self, work: Coroutine[Any, Any, T]) -> T:
        """Await hooks; one that hangs does not outlive a cancel of the run (B23)."""
        return await unless_set(self.job.cancelled, work)

    async def _follow_up(self, entry: MessageEntry, is_last: bool) -> bool:
        """Ask `before_stop` for more input and store it (B32)."""
        job = self.job
        if is_last or not job.hooks.wants("before_stop"):
            return False
        more = await self._hooked(job.hooks.before_stop(entry.message))
        if not more:
            return False
        entries = await in_worker(
            partial(job.image.append, more, job.leaf, run_id=job.record.id, moves=job.record.moves)
        )
        for made in entries:
            message = made.message if isinstance(made, MessageEntry) else None
            self.emit("message_end", entries=(made,), leaf_id=made.id, message=message)
        return True

    # -- one model call ------------------------------------------------------------------------

    async def _answer(self, is_last: bool) -> MessageEntry:
        """Call the model once and store what it said; raise `Stopped` when that ends the run."""
        job = self.job
        request = await self._hooked(job.hooks.before_model(self.request()))
        if job.cancelled.is_set():
            raise Stopped("aborted", cancelled_error())
        await self.call_begins()
        held = self.hold_budget(request)
        call = ModelCall(self, request)
        self.emit("message_start")
        failure = await call.run()
        self.settle_budget(held, call.cost_usd(failure))
        if failure is None:
            self.call_ended()
            goes_on = own_calls(call.message()) or (job.hooks.wants("before_stop") and not is_last)
            ends = not goes_on
            return await self._store_answer(call, "done" if ends else None, None)
        if not call.assembly.is_empty:
            await self._store_answer(call, call.outcome, failure)
        raise Stopped(call.outcome, failure)

    async def call_begins(self) -> None:
        """Wait until the model may be called; a run by itself need not wait."""

    def call_ended(self) -> None:
        """Let others call the model, while this answer is stored."""

    def request(self) -> ModelRequest:
        """Return the request for the leaf as it is now."""
        job = self.job
        view = job.settings.view(self._path(), job.image.views)
        if view.messages and view.messages[-1].role == "assistant":
            raise RunError(
                "the path ends in a finished reply, so there is nothing to answer; give input"
            )
        return job.settings.request(view.messages)

    def _path(self) -> list[Entry]:
        """Return the path to the leaf, the run's ephemeral input where it was said (B35)."""
        image = self.job.image
        path, spoken = image.path(self.job.leaf.id), image.spoken_in(self.job.record.id)
        if not spoken:
            return path
        said = [part for entry in path for part in (entry, *spoken.get(entry.id, ()))]
        return [*spoken.get(None, ()), *said]

    async def _store_answer(
        self, call: ModelCall, outcome: Outcome | None, failure: BaseException | None
    ) -> MessageEntry:
        message = call.message(outcome, failure)
        self.count(message)
        reply = message.reply or Reply()
        entry = await self.store(
            MessageEntry(message=message), outcome, failure, ids=(call.entry_id,)
        )
        self.emit(
            "message_end",
            entries=(entry,),
            leaf_id=entry.id,
            message=message,
            usage=reply.usage,
            cost_usd=reply.cost_usd,
            seconds=reply.seconds,
        )
        return entry

    async def store(
        self,
        draft: E,
        outcome: Outcome | None = None,
        failure: BaseException | None = None,
        ids: Sequence[str] = (),
    ) -> E:
        """Append one entry at the leaf, with the run's end when `outcome` is given."""
        job = self.job
        made: RunEnd | None = None

        def end(leaf_id: str | None) -> RunEnd:
            nonlocal made
            made = self.end(outcome or "done", leaf_id, failure)
            return made

        stored = await in_worker(
            partial(
                job.image.append,
                (draft,),
                job.leaf,
                run_id=job.record.id,
                moves=job.record.moves,
                end=end if outcome else None,
                ids=ids,
            )
        )
        self.ended_as, self._seconds = outcome, made.seconds if made else None
        return cast(E, stored[0])

    # -- ends and budgets ----------------------------------------------------------------------

    def end(self, outcome: Outcome, leaf_id: str | None, failure: BaseException | None) -> RunEnd:
        """Return the record of the run's end as things stand."""
        return RunEnd(
            run_id=self.job.record.id,
            session_id=self.job.image.session_id,
            outcome=outcome,
            created_at=self.job.image.clock(),
            leaf_id=leaf_id,
            error=None if failure is None else clean(told(failure)),
            steps=self.step,
            seconds=self.seconds,
            usage_json=dumps(self._usage.to_dict()),
            cost_usd=self.cost,
        )

    async def _end_alone(self, outcome: Outcome, failure: BaseException | None) -> None:
        """Store the end of a run that no message carried."""
        job = self.job
        if self.ended_as or (self.step == 0 and not job.run.events):
            return
        try:
            await in_worker(
                partial(job.image.store.end_run, self.end(outcome, job.leaf.id, failure))
            )
        except BaseException:  # a store of another's may raise anything; the run ends all the same
            log.exception("the end of run %s could not be stored", job.record.id)

    def count(self, message: Message) -> None:
        """Add an answer's tokens and cost to the run's."""
        reply = message.reply
        self._usage += (reply.usage if reply else None) or Usage()
        self._costs.append(reply.cost_usd if reply else None)

    def hold_budget(self, request: ModelRequest) -> list[tuple[Budget, float]]:
        """Set aside what a call can cost, in every budget, or raise `BudgetExceeded`."""
        held: list[tuple[Budget, float]] = []
        budgets = self.job.settings.budgets
        most = self.job.model.max_cost_usd(request) if budgets else None
        try:
            for budget in budgets:
                held.append((budget, budget.hold(most, self.job.model.name)))
        except BudgetExceeded:
            self.settle_budget(held, 0.0)
            raise
        return held

    def settle_budget(self, held: list[tuple[Budget, float]], cost_usd: float | None) -> None:
        """Count what the call did cost."""
        for budget, most in held:
            budget.settle(most, cost_usd)


class Stopped(Exception):
    """The run ends here; `cause` is raised to its readers."""

    def __init__(self, outcome: Outcome, cause: BaseException | None) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.cause = cause
