"""SIGKILL among processes that share a file harms neither what is stored nor the others (B68)."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash.kills import Life, Lives, kill_among

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def grown(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A life that was not cut short, in a store that another lived in."""
    path = tmp_path_factory.mktemp("grown") / "chats.duckdb"
    *_, last = lives.lived([Life(path=path, seed=-seed) for seed in range(1, 3)])
    assert last.code == 0
    return last


# B24 B68 case 28
@pytest.mark.timeout(300)
@pytest.mark.parametrize("processes", [2, 3])
def test_kills_among_processes_that_share_a_file_lose_nothing(
    rivals: list[Lives], grown: Life, folder_in_memory: Path, processes: int
) -> None:
    tally = kill_among(rivals[:processes], grown, folder_in_memory, 6, seed=processes)

    print(tally)
    assert tally.kills >= 3
    assert tally.prompts == 6


# B24 B68 B66
@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_hundreds_of_kills_among_processes_lose_nothing(
    rivals: list[Lives], grown: Life, folder_in_memory: Path
) -> None:
    tallies = [
        kill_among(rivals[:processes], grown, folder_in_memory, 150, seed=10 + processes)
        for processes in (2, 3)
    ]

    for tally in tallies:
        print(tally)
    assert sum(tally.kills for tally in tallies) >= 200
    assert sum(tally.repaired for tally in tallies) > 0
