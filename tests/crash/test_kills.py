"""SIGKILL at every place of a session's life loses nothing that was acknowledged (B24)."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from crash.kills import Life, Lives, Tally, planned, prove

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def grown(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A life that was not cut short, in a store that others lived in."""
    path = tmp_path_factory.mktemp("grown") / "chats.duckdb"
    *_, last = lives.lived([Life(path=path, seed=-seed) for seed in range(1, 3)])
    assert last.code == 0
    return last


def kill(lives: Lives, grown: Life, folder: Path, count: int, seed: int) -> Tally:
    """Kill children at `count` places and prove each."""
    tally = Tally()
    (operations,) = grown.said("end")
    for life in lives.lived(list(planned(folder, grown.path, operations, count, seed))):
        assert life.code in (-9, 0), life
        prove(life, tally)
        shutil.rmtree(life.path.parent)
    return tally


# B24
def test_a_life_that_is_not_cut_short_is_whole(grown: Life, tmp_path: Path) -> None:
    copy = tmp_path / "chats.duckdb"
    shutil.copy(grown.path, copy)
    tally = Tally()

    prove(Life(path=copy, seed=grown.seed, lines=grown.lines), tally)

    assert tally.acknowledged > 30
    assert tally.spooled > 0


# B24 B66
def test_sixty_kills_lose_nothing(lives: Lives, grown: Life, folder_in_memory: Path) -> None:
    tally = kill(lives, grown, folder_in_memory, 60, seed=1)

    print(tally)
    assert tally.kills > 50
    assert tally.acknowledged > 500
    assert tally.spooled > 10


# B24 B66
@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_two_thousand_kills_lose_nothing(shim: Path, grown: Life, folder_in_memory: Path) -> None:
    def work(seed: int) -> Tally:
        server = Lives(shim)
        try:
            return kill(server, grown, folder_in_memory, 1_050, seed)
        finally:
            server.close()

    with ThreadPoolExecutor(2) as pool:
        tallies = list(pool.map(work, (2, 3)))

    for tally in tallies:
        print(tally)
    assert sum(tally.kills for tally in tallies) >= 2_000
    assert sum(tally.repaired for tally in tallies) > 0
