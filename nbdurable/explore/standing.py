"""What stands in the cells of an experiment: the runs that count, and those that go on.

The one idea: it remembers nothing that the store does not know, so that the same experiment opened
by name in another process is the same in every way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbdurable.errors import RunError, shown
from nbdurable.explore.cell import Cell
from nbdurable.explore.draft import Draft
from nbdurable.explore.drive import Drive, drives_of
from nbdurable.explore.kept import Kept
from nbdurable.explore.plan import Plan
from nbdurable.explore.progress import summary
from nbdurable.replay.record import FINISHED
from nbdurable.run import Run
from nbdurable.secrets import scrub, secrets_of
from nbdurable.settings import Effects
from nbdurable.starting import runs_of
from nbdurable.stored import RunEnd, RunRecord

if TYPE_CHECKING:
    from nbdurable.exploring import Exploring

CONCURRENCY = 8


def checked_concurrency(given: object) -> int:
    """Return how many cells a provider gets at once, or raise `ValueError`."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f"concurrency is {shown(given)}; give a whole number, 1 or more")
    return given


class Standing:
    """Cells of one experiment, and the runs that fill them."""

    def __init__(
        self,
        session: Exploring,
        *,
        name: str | None = None,
        kept: Kept | None = None,
        draft: Draft | None = None,
        concurrency: int = CONCURRENCY,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        differs: str = "",
    ) -> None:
        self._session = session
        self._kept = kept
        self._draft = draft
        self._name = kept.record.name if kept else name
        self._drafts = {cell.key: cell for cell in draft.cells} if draft else {}
        self._plan = self._known_plan()
        self._planned = self._plan.by_key()
        self._keys = tuple(self._drafts or self._planned)
        self._concurrency = checked_concurrency(concurrency)
        self._effects = effects
        self._budget_usd = budget_usd  # of the call that made it, and of that alone (B26)
        self._differs = differs  # what a replay says of it, in the report
        self._own: list[Drive] = []
        self._settled: list[Cell] | None = None

    def _known_plan(self) -> Plan:
        if self._kept is not None:
            return self._kept.plan
        if self._draft is None:
            raise RunError("an experiment is made by sample(), grid() or redrive()")
        return self._draft.plan({})

    # -- what stands there -----------------------------------------------------------------------

    def cells(self) -> list[Cell]:
        """Return the cells in the order of the plan, each with what stands there now."""
        if self._settled is not None:
            return list(self._settled)
        is_live = bool(self._drives())
        runs = self._runs()
        cells = [
            Cell(
                i=i,
                key=key,
                axes=dict(
                    self._drafts[key].axes if key in self._drafts else self._planned[key].axes
                ),
                run=runs.get(key),
                error=self._error(key, runs.get(key)),
            )
            for i, key in enumerate(self._keys)
        ]
        if not is_live and all(cell.state == "done" for cell in cells):
            self._settled = cells
        return cells

    def _error(self, key: str, run: Run | None) -> str | None:
        if run is not None:
            return run.error
        for drive in reversed(self._own):
            if key in drive.refused:
                return scrub(str(drive.refused[key]), secrets_of())
            if key in drive.runs:
                return drive.runs[key].error  # its start could not be stored
        return None

    def _runs(self) -> dict[str, Run]:
        """Return the run that counts for each cell: a finished one, else the newest."""
        if self._kept is None:
            return {}
        self._session.image.refresh()
        mine = self._stored_runs(self._kept)
        found: dict[str, Run] = {}
        for (record, _), run in zip(mine, runs_of(self._session, mine), strict=True):
            key = record.cell or ""
            if key not in found or found[key].outcome not in FINISHED:
                found[key] = run
        return found

    def _stored_runs(self, kept: Kept) -> list[tuple[RunRecord, RunEnd | None]]:
        image = self._session.image
        records = image.store.load_runs(image.session_id)
        return [pair for pair in records if pair[0].experiment_id == kept.record.id]

    def _drives(self) -> list[Drive]:
        """Return what of it goes on in this process, whoever began it."""
        if self._kept is None:
            return []
        drives = drives_of(self._session.image, self._kept.record.id)
        return [drive for drive in drives if drive.keys.intersection(self._keys)]

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is going on in this process."""
        return not self._drives()

    def _summary(self) -> str:
        runs = [] if self._kept is None else self._stored_runs(self._kept)
        return summary(self._name or "", self.cells(), runs)
