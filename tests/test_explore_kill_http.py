"""B43 B24 over HTTP: a grid of 60 cells, its process killed 20 times, asks for none twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.testing import FakeOpenAI, steps
from nbdurable.testing.steps import Action

MODELS = ["openai/gpt-4o-mini", "openai/gpt-4o", "openai/gpt-4.1-mini", "openai/gpt-4.1-nano"]
CELLS = len(MODELS) * 3 * 5
KILLS = 20

CHILD = """
import sys
import nbdurable as nb

path, base_url, models = sys.argv[1], sys.argv[2], sys.argv[3:]
chat = nb.open("s", store=path, model=models[0], api_base=base_url, api_key="sk-none")
if not chat.entries():
    chat.append(nb.user("Be short."), nb.assistant("Gladly."), nb.user("Ask."), nb.assistant("No."))
if chat.experiments():
    chat.experiment("g").resume(show=None)
else:
    chat.grid("Why?", models, n=5, at=2, temperature=[0, 0.5, 1], name="g", show=None)
"""


class Killing:
    """Answers after 200 ms, refuses each tenth call, and kills a process at the n-th call."""

    def __init__(self) -> None:
        self.asked = 0
        self.kill_at = 0
        self.process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> list[Action]:
        with self._lock:
            self.asked += 1
            self.kill_at -= 1
            if self.kill_at == 0 and self.process is not None:
                self.process.send_signal(signal.SIGKILL)
            if self.asked % 10 == 0:
                return steps.status(429, "slow down", retry_after_s=0)
        return [steps.sleep(0.2), *steps.text("An answer.")]


def killed(answers: Killing, server: FakeOpenAI, path: Path, kill_at: int) -> bool:
    """Run the child until it is killed or has finished; return which."""
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(path), server.base_url, *MODELS]
    answers.kill_at = kill_at + 10**6  # not before the process is known
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    answers.process, answers.kill_at = child, kill_at
    _, errors = child.communicate(timeout=120)
    assert child.returncode in (0, -signal.SIGKILL), errors
    return child.returncode != 0


def finished(path: Path) -> dict[str | None, list[str | None]]:
    """Return the ends of finished runs by cell, as a new opening of the file has them."""
    store = DuckDBStore(path)
    try:
        found: dict[str | None, list[str | None]] = {}
        for record, end in store.load_runs("s"):
            if end is not None and end.outcome == "done":
                found.setdefault(record.cell, []).append(end.leaf_id)
        return found
    finally:
        store.close()


# B43 B24 B25
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_grid_over_http_killed_20_times_ends_with_each_cell_paid_once(tmp_path: Path) -> None:
    rng, path, answers = random.Random(7), tmp_path / "k.duckdb", Killing()
    with FakeOpenAI(answers) as server:
        before: dict[str | None, list[str | None]] = {}
        kills = 0
        while kills < KILLS and killed(answers, server, path, rng.randint(1, 14)):
            kills += 1
            now = finished(path)
            assert all(now[cell] == ends for cell, ends in before.items())
            before = now
        assert kills == KILLS
        assert 0 < len(before) < CELLS

        assert not killed(answers, server, path, 10**6)

    ends = finished(path)
    assert Counter(len(made) for made in ends.values()) == {1: CELLS}
    with nb.open("s", store=path) as chat:
        exp = chat.experiment("g")
        runs = chat.runs_df()
        assert [cell.text for cell in exp] == ["An answer."] * CELLS
        assert exp.cost == pytest.approx(runs[runs["outcome"] == "done"]["cost_usd"].sum())
        assert exp.cost > 0
        assert chat.leaf_id == chat[4].id
