"""A drive: one go at the missing cells of an experiment, on the background loop.

Owns how many calls a provider gets at once, what waits for what, and the end. Does not own what a
run does (`loop`) or which cells are missing (`experiment`). The one idea: a cell is a detached run
like any other, so whatever stops a drive leaves finished cells, partial answers and missing cells.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from nbdurable.background import background_loop, submit
from nbdurable.errors import BudgetExceeded, ModelError, NbDurableError
from nbdurable.loaded import Leaf, Loaded
from nbdurable.loop import Job, Loop
from nbdurable.models.base import ModelRequest
from nbdurable.planning import Ask, plan
from nbdurable.replay.record import FINISHED
from nbdurable.settings import Settings
from nbdurable.starting import STOP_WAIT_S, made_live
from nbdurable.threads import RunCancelled, call_soon, in_worker, unless_set

if TYPE_CHECKING:
    from nbdurable.asking import Asking
    from nbdurable.budget import Budget
    from nbdurable.run import Run

log = logging.getLogger("nbdurable")

RATE_LIMIT_ROUNDS = 4  # how often a cell is asked again that every attempt of its run was refused
ROUND_BASE_S = 1.0
LONGEST_ROUND_S = 60.0


@dataclass(frozen=True, slots=True)
class Task:
    """One cell to run: its key, what to ask and with what."""

    key: str
    ask: Ask
    settings: Settings


class Lane:
    """The way to one provider: how many calls are on it at once.

    A call keeps its place while it waits to be made again, so that its first retry costs nothing
    more. Each further one takes a place away, and each cell without a retry gives part of it back:
    a provider that refuses every tenth call keeps all of them, one that refuses most gets few.
    """

    def __init__(self, places: int) -> None:
        self.most = self.places = float(places)
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def _is_free(self) -> bool:
        return self.taken < int(self.places)

    def give(self) -> None:
        """Free a place, which the one who waits longest may take."""
        self.taken -= 1
        self._call_next()

    async def take(self) -> None:
        """Wait for a place, first come first served, and take it."""
        if self._is_free and not self._waiting:
            self.taken += 1
            return
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(called)
        try:
            await called  # whoever calls has taken the place
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self.give()
            raise

    def _call_next(self) -> None:
        while self._waiting and self._is_free:
            called = self._waiting.popleft()
            if not called.done():
                self.taken += 1
                called.set_result(None)

    def learn(self, retries: int) -> None:
        """Take or give places by how a cell fared."""
        change = 1.0 - retries if retries else 0.25
        self.places = min(self.most, max(1.0, self.places + change))
        self._call_next()


class Place:
    """A cell's place on its lane: taken before the cell begins, given up after each answer.

    So the next cell begins while an answer is stored, and while tools run.
    """

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.is_taken = False

    async def take(self) -> None:
        """Wait for the place and take it."""
        await self.lane.take()
        self.is_taken = True

    def give(self) -> None:
        """Give the place up, if it is taken."""
        if self.is_taken:
            self.is_taken = False
            self.lane.give()


class CellLoop(Loop):
    """The loop of a cell, which says when its first call has set its budget aside."""

    def __init__(self, job: Job, place: Place) -> None:
        super().__init__(job)
        self.holds = asyncio.Event()
        self._place = place

    async def call_begins(self) -> None:
        """Wait for a place where the last answer gave it up; a cancel ends the wait."""
        if not self._place.is_taken:
            await unless_set(self.job.cancelled, self._place.take())

    def call_ended(self) -> None:
        """Give up the place."""
        self._place.give()

    def hold_budget(self, request: ModelRequest) -> list[tuple[Budget, float]]:
        """Set aside what a call can cost, as any loop does."""
        try:
            return super().hold_budget(request)
        finally:
            self.holds.set()


class Drive:
    """Cells on their way; safe to use from any thread.

    Parameters
    ----------
    handle : Asking
        Whose runs they are; closing it cancels them.
    chains : sequence of sequences of Task
        Chains run beside each other; in a chain each task begins where the one before it ended.
    concurrency : int
        Cells at once for each provider.
    """

    def __init__(
        self,
        handle: Asking,
        experiment_id: str,
        chains: Sequence[Sequence[Task]],
        concurrency: int,
    ) -> None:
        self.handle = handle
        self.experiment_id = experiment_id
        self.chains = [list(chain) for chain in chains]
        self.keys = frozenset(task.key for chain in chains for task in chain)
        self.runs: dict[str, Run] = {}
        self.refused: dict[str, BaseException] = {}
        self.order: list[str] = []  # keys as they ended
        self.changed = threading.Condition()
        self.is_done = False
        self._concurrency = concurrency
        self._is_stopped = False
        self._lanes: dict[str, Lane] = {}
        self._stop = asyncio.Event()
        self._budget_gate = asyncio.Lock()
        self._some_ended = asyncio.Event()

    def start(self) -> None:
        """Begin, in the caller's context; only once."""
        with _lock:
            _drives.setdefault(self.handle.image, []).append(self)
        self.handle.before_close.add(self.stop)
        submit(self._run())

    def cancel(self) -> None:
        """Start no further cell and cancel those that run; return at once."""
        self._is_stopped = True
        with self.changed:
            live = [run for run in self.runs.values() if not run.is_done]
        for run in live:
            run.cancel()
        call_soon(background_loop(), self._wake)

    def stop(self) -> None:
        """Cancel, and wait a little until what came of it is stored."""
        self.cancel()
        with self.changed:
            self.changed.wait_for(lambda: self.is_done, STOP_WAIT_S)

    def ended(self) -> list[Run | None]:
        """Return what became of the cells that are settled, as they were."""
        with self.changed:
            return [self.runs.get(key) for key in self.order]

    def look_up(self, seen: int, wait_s: float) -> None:
        """Wait a little for more than `seen` cells to be settled; put open questions (B29)."""
        with self.changed:
            if len(self.order) == seen and not self.is_done:
                self.changed.wait(wait_s)
            live = [run for run in self.runs.values() if not run.is_done]
        for run in live:
            run._ask()

    def _wake(self) -> None:
        self._stop.set()
        self._some_ended.set()

    async def _run(self) -> None:
        try:
            await asyncio.gather(*(self._feed(*fed) for fed in self._by_lane().items()))
        finally:
            with _lock:
                _drives[self.handle.image].remove(self)
            self.handle.before_close.discard(self.stop)
            with self.changed:
                self.is_done = True
                self.changed.notify_all()

    def _by_lane(self) -> dict[Lane, list[Sequence[Task]]]:
        """Return chains by the lane that each begins on."""
        by_lane: dict[Lane, list[Sequence[Task]]] = {}
        for chain in self.chains:
            by_lane.setdefault(self._lane(chain[0]), []).append(chain)
        return by_lane

    async def _feed(self, lane: Lane, chains: Sequence[Sequence[Task]]) -> None:
        """Begin chains in their order, each once there is a place for its first cell.

        A thousand that wait would be a thousand tasks, which each call of LiteLLM looks through.
        """
        begun: list[asyncio.Task[None]] = []
        for chain in chains:
            place = Place(lane)
            try:
                await unless_set(self._stop, self._turn(chain[0], place))
            except RunCancelled:
                break
            begun.append(asyncio.create_task(self._chain(chain, place)))
        await asyncio.gather(*begun)

    async def _turn(self, task: Task, place: Place) -> None:
        """Take a place; with a budget, once the cells before it have set theirs aside."""
        if task.settings.budgets:
            async with self._budget_gate:
                pass
        await place.take()

    async def _chain(self, chain: Sequence[Task], place: Place) -> None:
        """Run cells one after the other; the first has its place already."""
        before: Run | None = None
        for task in chain:
            try:
                if task is not chain[0]:
                    place = Place(self._lane(task))
                    await unless_set(self._stop, place.take())
                before = await self._cell(task, before, place)
            except RunCancelled:
                return
            finally:
                place.give()
            if before is None or before.outcome not in FINISHED:
                return

    def _lane(self, task: Task) -> Lane:
        model = task.settings.model
        most = min(self._concurrency, getattr(model, "calls_at_once", self._concurrency))
        return self._lanes.setdefault(model.name.split("/", 1)[0], Lane(most))

    # -- one cell --------------------------------------------------------------------------------

    async def _cell(self, task: Task, before: Run | None, place: Place) -> Run | None:
        ask = task.ask if before is None else task.ask.under(before.leaf_id)
        for round in range(RATE_LIMIT_ROUNDS + 1):
            if self._is_stopped:
                return None
            try:
                run = await self._one_run(task, ask, place)
            except BaseException as exc:  # of a model of the user's; this task is never cancelled
                if not isinstance(exc, NbDurableError | GeneratorExit):  # or it was thrown away
                    log.exception("cell %s of experiment %s failed", task.key, self.experiment_id)
                self.refused[task.key] = exc
                run = None
            place.lane.learn(_retries(run))
            if (delay_s := self._again_after(run, round)) is None:
                break
            await self._pause(delay_s)
        with self.changed:
            self.order.append(task.key)
            self.changed.notify_all()
        return run

    async def _one_run(self, task: Task, ask: Ask, place: Place) -> Run | None:
        if not task.settings.budgets:
            await self._follow(task, await self._planned(task, ask, place))
            return self.runs.get(task.key)
        place.give()  # its call takes one; those that it waits for here may need this to go on
        async with self._budget_gate:
            while not self._is_stopped:
                self._some_ended.clear()
                try:
                    loop = await self._planned(task, ask, place)
                    break
                except BudgetExceeded:
                    if not (self._has_live() or self._some_ended.is_set()):
                        raise
                await self._some_ended.wait()  # what it held may be free now
            else:
                return None
            going = asyncio.create_task(self._follow(task, loop))
            await _first(going, loop.holds)
        await going
        return self.runs.get(task.key)

    def _has_live(self) -> bool:
        return any(not run.is_done for run in self.runs.values())

    async def _planned(self, task: Task, ask: Ask, place: Place) -> CellLoop:
        image, settings = self.handle.image, task.settings
        job = await in_worker(partial(plan, image, settings, ask, Leaf(ask.leaf_id)))
        return CellLoop(job, place)

    async def _follow(self, task: Task, loop: CellLoop) -> None:
        if self._is_stopped:
            return
        run = loop.job.run
        work = made_live(self.handle, loop.job, loop)
        with self.changed:
            self.runs[task.key] = run
            self.changed.notify_all()
        if self._is_stopped:
            loop.job.cancelled.set()  # the cancel came while it was made known
        await work
        self._some_ended.set()

    def _again_after(self, run: Run | None, round: int) -> float | None:
        """Return when to ask a cell again whose provider had no room for it; None for never."""
        failure = None if run is None else run._failure
        if round == RATE_LIMIT_ROUNDS or self._is_stopped or not isinstance(failure, ModelError):
            return None
        if failure.reason != "rate_limit" or run is None or _has_answer(run):
            return None
        asked_s = failure.retry_after_s or 0.0
        delay_s = max(asked_s, ROUND_BASE_S * 2**round * random.uniform(0.75, 1.25))
        return None if asked_s > LONGEST_ROUND_S else delay_s

    async def _pause(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s):
                await self._stop.wait()
        except TimeoutError:
            return


async def _first(task: asyncio.Task[None], event: asyncio.Event) -> None:
    """Wait until the task has ended or the event is set."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _has_answer(run: Run) -> bool:
    return any(entry.id not in run.input_ids for entry in run.entries)


def _retries(run: Run | None) -> int:
    return 0 if run is None else sum(event.type == "retry" for event in run.events)


# -- the drives of this process ------------------------------------------------------------------

_drives: WeakKeyDictionary[Loaded, list[Drive]] = WeakKeyDictionary()
_lock = threading.Lock()
beginning = threading.Lock()  # held from the look at what is missing to the start of its drive


def drives_of(image: Loaded, experiment_id: str) -> list[Drive]:
    """Return the drives of an experiment that go on in this process."""
    with _lock:
        return [d for d in _drives.get(image, ()) if d.experiment_id == experiment_id]
