"""A session's experiments as rows of a tree: one each, with how far it is.

Owns which entry belongs to which experiment, and the counts. The one idea: it says what the store
says; only what goes on in this process is known sooner.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nbdurable.explore.drive import drives_of
from nbdurable.explore.plan import Plan
from nbdurable.loaded import Loaded
from nbdurable.origin import is_alive
from nbdurable.replay.record import FINISHED
from nbdurable.run import Run
from nbdurable.stored import ExperimentRecord, RunEnd, RunRecord, StoredEntry

log = logging.getLogger("nbdurable")

Op = dict[str, Any]
Plans = Sequence[tuple[ExperimentRecord, Plan | None]]
Runs = Sequence[tuple[RunRecord, RunEnd | None]]


class Explored:
    """The experiments of one session; their place in ``rows`` is their name on the page."""

    def __init__(self, image: Loaded) -> None:
        self.rows: list[Op] = []  # as they were told
        self._image = image
        self._facts: list[Op] = []
        self._place: dict[str, int] = {}  # by experiment id
        self._of_run: dict[str, int] = {}  # run id -> place, -1 for a run of none
        self._inputs: dict[str, int] = {}  # entries that are input of an experiment
        self._cells: list[dict[str, tuple[str, float | None]]] = []  # outcome, cost
        self._elsewhere: list[set[str]] = []  # cells that run in other processes
        self._counter = 0

    # -- reading the store ---------------------------------------------------------------------

    def fresh_plans(self) -> Plans:
        """Read the plans that are new or have grown; one that cannot be read is None."""
        records = self._image.store.load_experiments(self._image.session_id, self._counter)
        return [(record, _plan_of(record)) for record in records]

    def misses(self, entries: Iterable[StoredEntry]) -> bool:
        """Whether entries came of runs that are not known, where that matters."""
        return bool(self._place) and any(
            entry.run_id is not None and entry.run_id not in self._of_run for entry in entries
        )

    # -- taking what was read ------------------------------------------------------------------

    def take_plans(self, plans: Plans) -> None:
        """Take plans, each a new row or one that has more cells."""
        for record, plan in plans:
            self._counter = max(self._counter, record.counter)
            if plan is None:
                continue
            place = self._place.get(record.id)
            if place is None:
                place = self._place[record.id] = len(self.rows)
                self.rows.append({})
                self._facts.append({})
                self._cells.append({})
                self._elsewhere.append(set())
            tops = [self._top(cell.leaf_id, place) for cell in plan.cells if cell.after is None]
            first = self._image.tree.get(tops[0]) if tops else None
            self._facts[place] = {
                "id": record.id,
                "name": record.name,
                "at": first.n if first else 0,
                "runs": len(plan.cells),
                "axes": list(plan.axes),
            }

    def _top(self, leaf_id: str | None, place: int) -> str | None:
        """Return what the input that ends in `leaf_id` was said after, and note that input."""
        node = self._image.tree.get(leaf_id)
        while node is not None and node.run_id is None and node.moves_leaf is False:
            if self._inputs.setdefault(node.id, place) != place:
                break
            leaf_id = node.parent_id
            node = self._image.tree.get(leaf_id)
        return leaf_id

    def take_runs(self, runs: Runs) -> None:
        """Take what is on record of all runs."""
        for cells in self._elsewhere:
            cells.clear()
        for record, end in runs:
            place = self._place.get(record.experiment_id or "", -1)
            self._of_run[record.id] = place
            if place < 0:
                continue
            if end is not None:
                self._ended(place, record.cell, end.outcome, end.cost_usd)
            elif record.id not in self._image.live and is_alive(record.owner):
                self._elsewhere[place].add(record.cell or "")

    def place_of(self, run: Run) -> int:
        """Return the place of a run's experiment, and remember it; -1 for a run of none."""
        place = self._place.get(run.experiment_id or "", -1)
        self._of_run[run.run_id] = place
        return place

    def ended(self, run: Run) -> None:
        """Count a run of this process that has ended."""
        place = self._of_run.get(run.run_id, -1)
        if place >= 0:
            self._ended(place, run.cell, run.outcome or "error", run.cost)

    def _ended(self, place: int, cell: str | None, outcome: str, cost: float | None) -> None:
        known = self._cells[place].get(cell or "")
        if known is None or known[0] not in FINISHED:
            self._cells[place][cell or ""] = (outcome, cost)

    # -- what it comes to ----------------------------------------------------------------------

    def of_entry(self, entry: StoredEntry) -> int:
        """Return the place of an entry's experiment, or -1."""
        if entry.run_id is not None:
            return self._of_run.get(entry.run_id, -1)
        return self._inputs.get(entry.id, -1)

    @property
    def inputs(self) -> Mapping[str, int]:
        """The entries that are input of an experiment, with its place."""
        return self._inputs

    @property
    def is_running(self) -> bool:
        """Whether one of them is going on."""
        return any(row.get("state") == "running" for row in self.rows)

    def changes(self, live: Iterable[int]) -> Iterator[Op]:
        """Bring the rows up to date and yield what changed; `live` are the places of live runs."""
        going = set(live)
        for place, facts in enumerate(self._facts):
            cells = self._cells[place].values()
            costs = [cost for _, cost in cells if cost is not None]
            done = sum(outcome in FINISHED for outcome, _ in cells)
            cancelled = sum(outcome == "aborted" for outcome, _ in cells)
            is_on = place in going or self._elsewhere[place] or self._drives(facts["id"])
            now = {
                **facts,
                "done": done,
                "failed": len(cells) - done - cancelled,
                "cancelled": cancelled,
                "cost_usd": sum(costs) if costs else None,
                "state": "running" if is_on else "done" if done >= facts["runs"] else "stopped",
            }
            row = self.rows[place]
            fresh = {name: value for name, value in now.items() if row.get(name, ...) != value}
            if fresh:
                row.update(fresh)
                yield {"op": "exp", "index": place, **fresh}

    def _drives(self, experiment_id: str) -> bool:
        return bool(drives_of(self._image, experiment_id))


def _plan_of(record: ExperimentRecord) -> Plan | None:
    try:
        return Plan.from_json(record.plan_json)
    except (LookupError, TypeError, ValueError) as error:  # of a newer version, or damaged
        log.warning("the plan of experiment %s cannot be read: %r", record.id, error)
        return None
