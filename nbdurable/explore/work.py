"""The work of an experiment: how the cells that are missing are run, and followed to their end.

Owns the way from a stored plan, or a draft, to a drive and to its end. Does not own what stands in
the cells (`standing`).
"""

from __future__ import annotations

import asyncio
import math
import time
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, Self

from nbdurable.background import check_may_wait
from nbdurable.budget import Budget
from nbdurable.errors import BudgetExceeded, ReplayMiss, shown
from nbdurable.explore import kept as keeping
from nbdurable.explore import noted
from nbdurable.explore.cell import Cell
from nbdurable.explore.draft import refuse_effects
from nbdurable.explore.drive import Drive, Task, beginning
from nbdurable.explore.progress import Bar, progress
from nbdurable.explore.standing import Standing, checked_concurrency
from nbdurable.loaded import Leaf
from nbdurable.planning import Ask, plan
from nbdurable.replay.record import FINISHED, place
from nbdurable.run import BEAT_S, LAST_WORDS_S
from nbdurable.settings import Effects, Settings
from nbdurable.threads import interruptible


class Work(Standing):
    """Cells of one experiment, and how those that are missing are run."""

    # -- running what is missing -----------------------------------------------------------------

    def resume(
        self,
        *,
        wait: bool = True,
        show: Bar | EllipsisType = ...,
        concurrency: int | None = None,
        effects: Effects | None = None,
        budget_usd: float | None = None,
    ) -> Self:
        """Run the cells that have no finished answer; call no finished one again.

        Cells that run already, here or in another process, are left to run.

        Parameters
        ----------
        wait, show, concurrency, effects, budget_usd
            As for `Session.grid`; ``effects`` is by default what the plan was made with here.

        Returns
        -------
        Experiment
            This one.

        Raises
        ------
        ModelError, BudgetExceeded, RunError
            Refused at the call: a model is not available, a price is unknown, a tool has effects.
        ReplayMiss
            Cells are missing in a replay that may call no model.
        """
        if wait:
            check_may_wait("an experiment")
        self._session.ready(moves=False)
        if concurrency is not None:
            self._concurrency = checked_concurrency(concurrency)
        self._settled = None
        missing = self._missing()
        self._note(missing)
        if not missing:
            return self._go({}, wait, show)
        limit = self._budget_usd if budget_usd is None else budget_usd
        budgets = () if limit is None else (Budget(limit),)
        allowed = self._effects if effects is None else effects
        settings = self._all_settings(missing, allowed, budgets)
        self._check(missing, settings)
        return self._go(settings, wait, show)

    def _begin(self, settings: Mapping[str, Settings]) -> None:
        if not settings:
            return
        with beginning:  # another handle may have begun some of the same cells meanwhile
            self._store()
            self._budget_usd = None
            if missing := [key for key in self._missing() if key in settings]:
                self._own.append(self._drive(missing, settings))
                self._own[-1].start()

    def _missing(self) -> list[str]:
        busy = {key for drive in self._drives() for key in drive.keys}
        return [
            cell.key
            for cell in self.cells()
            if cell.state not in ("done", "running") and cell.key not in busy
        ]

    def _note(self, missing: Sequence[str]) -> None:
        replay, kept = self._session.replay, self._kept
        if replay is None:
            return
        if kept is not None:
            replay.mark(kept.record.id)
        at = f"at {place(self._session.image, self._plan.leaf_id)}"
        where = shown(self._name) if kept else at
        noted.note(replay, self._plan.kind, where, self.cells(), len(missing), self._differs)

    def _store(self) -> None:
        if self._draft is None:
            return
        image = self._session.image
        name = self._name or keeping.free_name(image, self._draft.kind)
        self._kept = keeping.keep(image, self._draft, name, self._kept)
        self._plan, self._name = self._kept.plan, self._kept.record.name
        self._planned = self._plan.by_key()
        if self._session.replay is not None:
            self._session.replay.mark(self._kept.record.id)

    def _check(self, keys: Sequence[str], settings: Mapping[str, Settings]) -> None:
        """Refuse at the call what could not be run; nothing is stored yet."""
        replay = self._session.replay
        if replay is not None and replay.is_only:
            raise ReplayMiss(
                f"experiment {shown(self._name)} has {len(keys)} of {len(self._keys)} cells "
                "without a finished answer, and replay may call no model; open with replay=True"
            )
        refuse_effects(self._plan.kind, settings.values())
        seen: set[object] = set()
        refused: list[BudgetExceeded] = []
        checked = 0
        for key in keys:
            ask, own = self._ask(key), settings[key]
            marks = {id(own), (ask.leaf_id, id(ask.input) if ask.input else 0)}
            if marks <= seen or self._after(key) is not None:
                continue
            seen |= marks
            checked += 1
            try:
                plan(self._session.image, own, ask, Leaf(ask.leaf_id))
            except BudgetExceeded as exc:
                if own.model.max_cost_usd(own.request(())) is None:
                    raise
                refused.append(exc)
        if refused and len(refused) == checked:
            raise refused[0]

    def _after(self, key: str) -> str | None:
        return self._drafts[key].after if key in self._drafts else self._planned[key].after

    def _all_settings(
        self, keys: Sequence[str], effects: Effects, budgets: tuple[Budget, ...]
    ) -> dict[str, Settings]:
        """Return the settings of each cell; one object where they are the same."""
        image, replay = self._session.image, self._session.replay
        made: dict[object, Settings] = {}
        found = {}
        for key in keys:
            mine = self._drafts[key].settings if key in self._drafts else None
            mark = id(mine) if mine else self._planned[key].spec
            if mark not in made:
                own = mine or keeping.settings_of(
                    image, self._planned[key].spec, self._session.settings
                )
                if replay is not None and replay.model is not None:
                    own = replace(own, model=replay.model)
                made[mark] = replace(own, effects=effects, budgets=(*own.budgets, *budgets))
            found[key] = made[mark]
        return found

    def _ask(self, key: str) -> Ask:
        """Return what to ask for a cell: with its input as long as that is not stored."""
        image = self._session.image
        if self._kept is not None and key in self._planned:
            planned = self._planned[key]
            said, leaf_id = keeping.again(image, planned.input_ids), planned.leaf_id
        else:
            draft = self._drafts[key]
            said = keeping.again(image, draft.input_ids) or draft.input
            leaf_id = draft.under_id
        return Ask(
            kind=self._plan.kind,
            input=said,
            leaf_id=leaf_id,
            moves=False,
            experiment_id=self._kept.record.id if self._kept else None,
            cell=key,
        )

    def _drive(self, keys: Sequence[str], settings: Mapping[str, Settings]) -> Drive:
        """Return a drive of the cells; each chain begins at its first cell without an answer."""
        chains: dict[str, list[Task]] = {}
        ends = {key: run.leaf_id for key, run in self._runs().items() if run.outcome in FINISHED}
        for key in keys:
            ask, before = self._ask(key), self._after(key)
            if before in chains:
                chains[key] = [*chains.pop(before), Task(key, ask, settings[key])]
            elif before is None or before in ends:
                ask = ask if before is None else ask.under(ends[before])
                chains[key] = [Task(key, ask, settings[key])]  # a chain goes by its last cell
        own_id = self._kept.record.id if self._kept else ""
        return Drive(self._session, own_id, list(chains.values()), self._concurrency)

    # -- following -------------------------------------------------------------------------------

    def _go(self, settings: Mapping[str, Settings], wait: bool, show: Bar | EllipsisType) -> Self:
        """Start the cells that have settings here and, when asked, follow all to their end."""
        if not wait:
            self._begin(settings)
            return self
        try:
            with interruptible():
                self._begin(settings)
                self._follow(None, "bar" if isinstance(show, EllipsisType) else show)
        except KeyboardInterrupt:
            self._stop()
            raise
        if settings:
            self._warn_missing()
        return self

    def wait(self, timeout_s: float | None = None, show: Bar = None) -> Self:
        """Block until nothing of it is going on here, and return it; failed cells raise nothing.

        An interrupt cancels all its cells, keeps what came, and passes on.

        Raises
        ------
        TimeoutError
            It still goes on after `timeout_s` seconds; it is left alone.
        """
        check_may_wait("an experiment")
        try:
            with interruptible():
                self._follow(timeout_s, show)
        except KeyboardInterrupt:
            self._stop()
            raise
        if self._drives():
            raise TimeoutError(f"experiment {self._name} still goes on after {timeout_s} s")
        return self

    def _follow(self, timeout_s: float | None, show: Bar) -> None:
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        drives = self._drives()
        total = len(self._keys)
        with progress(self._name or "", total, show, self._summary, is_live=bool(drives)) as tell:
            done = total - sum(len(drive.keys) for drive in drives)
            while (left := until - time.monotonic()) > 0:
                ended = [run for drive in drives for run in drive.ended()]
                tell(done + len(ended), ended)
                live = next((drive for drive in drives if not drive.is_done), None)
                if live is None:
                    break
                live.look_up(len(live.order), min(BEAT_S, left))

    def _stop(self) -> None:
        """Cancel for an interrupted reader, and wait until what came is stored."""
        for drive in (drives := self._drives()):
            drive.cancel()
        for drive in drives:
            with drive.changed:
                drive.changed.wait_for(lambda drive=drive: drive.is_done, LAST_WORDS_S)  # type: ignore[misc]

    def cancel(self) -> None:
        """Stop all its cells and return at once; partial answers are kept, `resume` goes on."""
        for drive in self._drives():
            drive.cancel()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._finished().__await__()

    async def _finished(self) -> Self:
        try:
            while self._drives():
                await asyncio.sleep(BEAT_S)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._stop()
            raise
        return self

    def as_completed(self) -> Iterator[Cell]:
        """Yield each cell that has a finished answer, as they come, until no more can come."""
        told: set[str] = set()
        while True:
            drives = self._drives()
            for cell in self.cells():
                if cell.state == "done" and cell.key not in told:
                    told.add(cell.key)
                    yield cell
            if not drives:
                return
            drives[0].look_up(len(drives[0].order), BEAT_S)

    def _warn_missing(self) -> None:
        if not (missing := [cell for cell in self.cells() if cell.state != "done"]):
            return
        error = next((cell.error for cell in missing if cell.error), None)
        warnings.warn(
            f"{len(missing)} of {len(self._keys)} cells of experiment {shown(self._name)} have no "
            f"finished answer{f': {error}' if error else ''}; resume() runs them again",
            stacklevel=5,
        )
