"""What is seen of an experiment: a bar while it runs, then one line that stays.

Owns both in notebook and terminal. The one idea: the bar is gone at the end, and the line says only
what is recorded, so that a notebook that is run again shows the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from nbdurable.display import in_kernel
from nbdurable.errors import shown
from nbdurable.explore.cell import Cell
from nbdurable.replay.record import FINISHED
from nbdurable.reprs import duration, joined, money, one_line

if TYPE_CHECKING:
    from nbdurable.run import Run
    from nbdurable.stored import RunEnd, RunRecord

Bar = Literal["bar"] | None
Tell = Callable[[int, Sequence["Run | None"]], None]


@contextmanager
def progress(
    name: str, total: int, show: Bar, last_line: Callable[[], str], *, is_live: bool
) -> Iterator[Tell]:
    """Show how many cells are settled; yields what to call with their number and their runs.

    At the end `last_line` stands there in place of the bar. Nothing is shown, and tqdm not
    imported, where no one looks: into a pipe or a file.

    Raises
    ------
    ValueError
        `show` is neither ``"bar"`` nor None.
    """
    if show not in ("bar", None):
        raise ValueError(f"show is {shown(show)}; give 'bar' or None")
    if show is None or not (in_kernel() or _is_terminal()):
        yield lambda settled, runs: None
        return
    bar, finish = (_in_cell if in_kernel() else _in_terminal)(name, total, is_live)
    try:
        yield lambda settled, runs: _tell(bar, settled, runs)
    finally:
        if bar is not None:
            bar.close()
        finish(last_line())


def _tell(bar: Any, settled: int, runs: Sequence[Run | None]) -> None:
    if bar is None:
        return
    facts = {"cost": money(sum(run.cost or 0.0 for run in runs if run is not None))}
    failed = sum(1 for run in runs if run is None or run.outcome not in FINISHED)
    if failed:
        facts["failed"] = str(failed)
    bar.set_postfix(facts, refresh=False)
    bar.update(settled - bar.n)


def _in_cell(name: str, total: int, is_live: bool) -> tuple[Any, Callable[[str], None]]:
    """Return a bar in an output of its own, and what puts a line in its place.

    A bar that tqdm displays itself would leave the view of a dead widget in the saved notebook.
    """
    from nbdurable.notebook.run.live import cell_output

    publish = cell_output()
    if not is_live:
        return None, lambda line: publish({"text/plain": line})
    from tqdm.notebook import tqdm

    bar = tqdm(total=total, desc=name, unit="cell", leave=False, display=False)
    publish(bar.container._repr_mimebundle_())

    def finish(line: str) -> None:
        bar.container.close()  # tqdm keeps that of a bar that did not come to its end
        publish({"text/plain": line})

    return bar, finish


def _in_terminal(name: str, total: int, is_live: bool) -> tuple[Any, Callable[[str], None]]:
    def finish(line: str) -> None:
        print(line, file=sys.stderr)

    if not is_live:
        return None, finish
    from tqdm.std import tqdm

    return tqdm(total=total, desc=name, unit="cell", leave=False, file=sys.stderr), finish


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


# -- the line ------------------------------------------------------------------------------------


def summary(
    name: str, cells: Sequence[Cell], runs: Sequence[tuple[RunRecord, RunEnd | None]]
) -> str:
    """Return such as ``grid-1 · 12 of 12 · $0.0345 · 8.1 s``: what is on record of some cells.

    Failed cells are counted, a cost that no answer has is left out. The time is that in which one
    of the `runs` or more went on, in one go or in several.
    """
    done = sum(cell.state == "done" for cell in cells)
    failed = sum(cell.state not in ("done", "running", "missing") for cell in cells)
    costs = [cell.run.cost for cell in cells if cell.run and cell.run.cost is not None]
    keys = {cell.key for cell in cells}
    mine = [(record, end) for record, end in runs if end is not None and record.cell in keys]
    return joined(
        (
            one_line(name, 40),
            f"{done:,} of {len(cells):,}",
            f"{failed:,} failed" if failed else None,
            money(sum(costs)) if costs else None,
            duration(_busy_s([(r.created_at, end.created_at) for r, end in mine])) if mine else "",
        )
    )


def _busy_s(spans: Sequence[tuple[int, int]]) -> float:
    """Return the seconds that spans of microseconds cover, each moment once."""
    busy, until = 0, -sys.maxsize
    for start, end in sorted(spans):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy / 1e6
