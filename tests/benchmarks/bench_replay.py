"""Measure a notebook of 100 runs that is run again; print a Markdown table.

Exit code 1 when the target is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bench_core import Row, report, timed

import nbdurable as nb
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel, calls

RUNS = 100
TRIES = 5


def look(order: int) -> str:
    """Look an order up."""
    return f"order {order} left on Monday"


def answer(request: ModelRequest) -> object:
    """Call the tool for a question, and answer its result."""
    if request.messages[-1].role == "user":
        return calls(("look", {"order": len(request.messages)}))
    return ["It left on Monday, " * 20]


def notebook(path: Path, model: ScriptedModel) -> None:
    """Run what a notebook of 100 cells would, a branch at every tenth."""
    with nb.open("talk", store=path, model=model, tools=[look], replay=True) as chat:
        checkpoint = None
        for number in range(RUNS):
            if number % 10 == 0:
                checkpoint = chat.leaf_id
            chat.run(f"Where is order {number}?", show=None)
            if number % 10 == 9:
                chat.branch(checkpoint)


def bench(folder: Path) -> Iterator[Row]:
    """Time the first run of the notebook, and the later ones, which call nothing."""
    path, model = folder / "talk.duckdb", ScriptedModel(answer)
    first = timed(lambda: notebook(path, model))
    asked = model.call_count
    best = min(timed(lambda: notebook(path, model)) for _ in range(TRIES))
    assert model.call_count == asked, "a replay called the model"
    yield Row(f"a notebook of {RUNS} runs with a tool, at first", first, "s")
    yield Row(f"a notebook of {RUNS} runs with a tool, replayed", best, "s", 2.0)


if __name__ == "__main__":
    sys.exit(report({"replay": bench}, sys.argv[1:]))
