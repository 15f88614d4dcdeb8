"""What is seen of an experiment: a bar while it runs, one line when it has ended, B15's silence."""

from __future__ import annotations

import io
import sys

import pytest

from nbdurable.explore.progress import summary
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import RunEnd, RunRecord
from nbdurable.stores.memory import MemoryStore
from tests.exploring import echo, opened


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of stderr."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


# B15
def test_a_bar_vanishes_and_a_line_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)

    opened(MemoryStore(), echo(cost_usd=0.25)).sample(3, "Q")

    last = screen.getvalue().rpartition("\r")[2]
    assert last.startswith("sample-1 · 3 of 3 · $0.7500 · ")
    assert last.endswith(" s\n")


# B15 B56
def test_an_experiment_that_is_finished_shows_the_same_line_and_no_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = terminal(monkeypatch)
    chat = opened(MemoryStore(), echo(cost_usd=0.25))
    chat.grid("Q", temperature=[0, 1])
    first = screen.getvalue().rpartition("\r")[2]
    screen.seek(0)
    screen.truncate()

    chat.grid("Q", temperature=[0, 1])

    assert screen.getvalue() == first


# B15
def test_the_line_counts_failed_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    chat = opened(MemoryStore(), ScriptedModel("one", ConnectionError("reset")))

    with pytest.warns(UserWarning, match="1 of 2 cells"):
        chat.sample(2, "Q", concurrency=1)

    last = screen.getvalue().rpartition("\r")[2]
    assert last.startswith("sample-1 · 1 of 2 · 1 failed · ")


# B15
def test_nothing_is_shown_into_a_pipe_nor_when_nobody_waits(
    capfd: pytest.CaptureFixture[str],
) -> None:
    chat = opened(MemoryStore(), echo())

    chat.sample(2, "Q")
    chat.sample(2, "Q", wait=False).wait()

    assert capfd.readouterr() == ("", "")


def test_the_time_is_that_in_which_something_ran() -> None:
    chat = opened(MemoryStore(), echo())
    cells = chat.sample(3, "Q").cells()
    spans = [(0, 2_000_000), (1_000_000, 3_000_000), (60_000_000, 61_500_000)]

    line = summary("s", cells, [made(cells[i].key, *span) for i, span in enumerate(spans)])

    assert line == "s · 3 of 3 · 4.5 s"


def made(cell: str, start: int, end: int) -> tuple[RunRecord, RunEnd]:
    record = RunRecord(id=cell, session_id="s", kind="sample", created_at=start, cell=cell)
    return record, RunEnd(run_id=cell, session_id="s", outcome="done", created_at=end)
