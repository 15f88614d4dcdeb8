"""B43 B24: an experiment outlives its process: no finished cell is called again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore

# Asks a grid and kills itself at the n-th event of a kind; each call is told before it is made.
CHILD = """
import json, os, signal, sys
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.run import Run

path, kind, nth, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

def say(run, event, emit=Run._emit):
    global nth
    emit(run, event)
    nth -= event.type == kind
    if event.type == kind and nth == 0:
        os.kill(os.getpid(), signal.SIGKILL)

Run._emit = say

def answer(request):
    return ["An ", 0.001, "answer."]

chat = nb.open("s", store=path, model=ScriptedModel(answer, cost_usd=0.25))
if chat.experiments():
    chat.experiment("g").resume(show=None)
else:
    chat.grid({"a": "A", "b": "B"}, temperature=[0, 0.5, 1], n=2, name="g", show=None)
print("finished")
"""
KINDS = ["agent_start", "step_start", "message_start", "message_update", "message_end", "agent_end"]


def asked(path: Path, kind: str, nth: int) -> bool:
    """Run the child; return whether it came to its end."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, str(path), kind, str(nth), ""],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode == 0


def check(path: Path) -> tuple[int, int]:
    """Finish in this process; return how many cells were finished before, and calls made now."""
    store = DuckDBStore(path)
    try:
        store.recover()
        before = {
            (record.cell, end.leaf_id)
            for record, end in store.load_runs("s")
            if end and end.outcome == "done"
        }
        model = ScriptedModel("An answer.", cost_usd=0.25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chat = nb.open("s", store=store, model=model)
            exp = chat.experiment("g").resume(show=None)
        assert [cell.text for cell in exp] == ["An answer."] * 12
        done = [
            (record.cell, end.leaf_id)
            for record, end in store.load_runs("s")
            if end and end.outcome == "done"
        ]
        assert before <= set(done)
        assert set(Counter(cell for cell, _ in done).values()) == {1}
        assert len(done) == 12
        assert exp.cost == 3.0
        assert exp.df()["cost_usd"].sum() == 3.0
        assert chat.leaf_id is None
        chat.close()
        return len(before), model.call_count
    finally:
        store.close()


# B43 B24 B3
@pytest.mark.parametrize(
    ("kind", "nth"), [("agent_start", 1), ("message_update", 9), ("agent_end", 7)]
)
def test_a_killed_grid_is_finished_by_another_process(tmp_path: Path, kind: str, nth: int) -> None:
    path = tmp_path / "k.duckdb"
    assert not asked(path, kind, nth)

    finished, calls = check(path)

    assert finished + calls == 12
    assert finished > 0 or kind != "agent_end"


# B43 B24
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]
)
def test_a_grid_killed_again_and_again_is_finished_once(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "k.duckdb"

    for _ in range(4):
        asked(path, rng.choice(KINDS), rng.randint(1, 12))

    store = DuckDBStore(path)
    is_planned = bool(store.load_experiments("s"))
    store.close()
    if is_planned:
        check(path)
