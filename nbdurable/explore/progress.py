"""One progress bar for an experiment, with its running cost, in notebook and terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from nbdurable.display import in_kernel
from nbdurable.errors import shown
from nbdurable.explore.cell import FINISHED
from nbdurable.reprs import money

if TYPE_CHECKING:
    from nbdurable.run import Run

Bar = Literal["bar"] | None
Tell = Callable[[int, Sequence["Run | None"]], None]


@contextmanager
def progress(name: str, total: int, show: Bar) -> Iterator[Tell]:
    """Show how many cells are settled; yields what to call with their number and their runs.

    Nothing is shown, and tqdm not imported, where no one looks: into a pipe or a file.

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
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=name, unit="cell", file=sys.stderr) as bar:

        def tell(settled: int, runs: Sequence[Run | None]) -> None:
            facts = {"cost": money(sum(run.cost or 0.0 for run in runs if run is not None))}
            failed = sum(1 for run in runs if run is None or run.outcome not in FINISHED)
            if failed:
                facts["failed"] = str(failed)
            bar.set_postfix(facts, refresh=False)
            bar.update(settled - bar.n)

        yield tell


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
