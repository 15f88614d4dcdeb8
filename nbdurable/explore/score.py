"""Scores of cells, by a function or by a judge session, as annotations on their answers."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbdurable.annotations import NOT_RATINGS
from nbdurable.asking import Asking
from nbdurable.blocks import Json
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import EntryError, ModelError, RunError, shown
from nbdurable.explore.cell import Cell
from nbdurable.loaded import Loaded
from nbdurable.reprs import money
from nbdurable.stored import Annotation
from nbdurable.wire import dumps, finite

if TYPE_CHECKING:
    from nbdurable.run import Run

Scorer = Callable[[Cell], Any]
AT_ONCE = 8  # judgements under way

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def score(
    image: Loaded, cells: Sequence[Cell], scorer: Scorer | Asking, name: str, by: str | None
) -> int:
    """Score the finished cells that have no score of this name and author; return how many.

    Each score is stored before the next is asked for.
    """
    if name.partition(".")[0] in NOT_RATINGS:
        raise EntryError(
            f"name {shown(name)} of a score means something else here; choose another, "
            f"none of {sorted(NOT_RATINGS)}"
        )
    author = by or _author(scorer)
    done = {
        one.target_id
        for one in image.store.load_annotations(image.session_id)
        if one.by == author and f"{one.name}.".startswith(f"{name}.") and one.value_json != "null"
    }
    todo = [c for c in cells if c.state == "done" and c.entry and c.entry.id not in done]
    scored = _judged(image, todo, scorer) if isinstance(scorer, Asking) else _computed(todo, scorer)
    count = 0
    for cell, value, note in scored:
        numbers = _numbers(name, value)
        if not numbers or cell.entry is None:
            _warn(cell, name, value)
            continue
        image.store.annotate(
            [
                Annotation(
                    id=image.new_id(),
                    session_id=image.session_id,
                    target_id=cell.entry.id,
                    name=full,
                    value_json=dumps(number),
                    created_at=image.clock(),
                    by=author,
                    note=note,
                )
                for full, number in numbers.items()
            ]
        )
        count += 1
    return count


def _author(scorer: Scorer | Asking) -> str:
    if isinstance(scorer, Asking):
        return scorer.settings.model.name
    return getattr(scorer, "__name__", type(scorer).__name__)


def _warn(cell: Cell, name: str, value: object) -> None:
    warnings.warn(
        f"cell {cell.i} got no {name!r}: {shown(value)} holds no number; score() asks again",
        stacklevel=4,
    )


def _numbers(name: str, value: object) -> dict[str, Json]:
    """Return scores by name: of a number one, of a dict of numbers one each."""
    if isinstance(value, Mapping):
        found = {f"{name}.{key}": _number(one) for key, one in value.items()}
        return {key: one for key, one in found.items() if one is not None}
    one = _number(value)
    return {} if one is None else {name: one}


def _number(value: object) -> Json:
    if isinstance(value, bool):
        return value
    plain = value.item() if hasattr(value, "item") else value  # a NumPy scalar
    if isinstance(plain, int | float) and finite(float(plain)) is not None:
        return plain
    return None


# -- who scores ----------------------------------------------------------------------------------

Scored = tuple[Cell, object, str | None]


def _computed(cells: Sequence[Cell], scorer: Scorer) -> Iterator[Scored]:
    if not callable(scorer):
        raise TypeError(f"scorer {shown(scorer)} is neither a function of a cell nor a session")
    return ((cell, scorer(cell), None) for cell in cells)


def _judged(image: Loaded, cells: Sequence[Cell], judge: Asking) -> Iterator[Scored]:
    """Put each answer to the judge, beside its leaf, some at once."""
    for start in range(0, len(cells), AT_ONCE):
        some = cells[start : start + AT_ONCE]
        runs = [judge.run(_case(image, cell), move=False, wait=False, show=None) for cell in some]
        try:
            for cell, run in zip(some, runs, strict=True):
                yield cell, _verdict(run), _note(run)
        finally:
            for run in runs:
                run.cancel()  # those that an interrupt left under way


def _case(image: Loaded, cell: Cell) -> str:
    above: list[Entry] = [] if cell.entry is None else image.path(cell.entry.id)
    asked = [e for e in above if isinstance(e, MessageEntry) and e.role == "user" and not e.meta]
    question = asked[-1].text if asked else ""
    return f"Question:\n{question}\n\nAnswer:\n{cell.text}\n\nScore the answer by one number."


def _verdict(run: Run) -> object:
    try:
        run.wait()
    except (ModelError, RunError) as exc:
        return str(exc)
    data = getattr(run, "data", None)
    if data is not None:
        return data
    found = _NUMBER.search(run.text)
    return run.text if found is None else json.loads(found[0])


def _note(run: Run) -> str:
    cost = "" if run.cost is None else f", {money(run.cost)}"
    return f"run {run.run_id}{cost}"
