"""SIGKILL at every place of a session's life loses nothing that was acknowledged (B24)."""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from crash.kills import Life, Lives, Tally, kill, kill_many, prove, prove_appends

from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain
from nbdurable.stores.duckdb import DuckDBStore

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def grown(lives: Lives, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A life that was not cut short, in a store that others lived in."""
    path = tmp_path_factory.mktemp("grown") / "chats.duckdb"
    *_, last = lives.lived([Life(path=path, seed=-seed) for seed in range(1, 3)])
    assert last.code == 0
    return last


# B24
def test_a_life_that_is_not_cut_short_is_whole(grown: Life, tmp_path: Path) -> None:
    copy = tmp_path / "chats.duckdb"
    shutil.copy(grown.path, copy)
    tally = Tally()

    prove(Life(path=copy, seed=grown.seed, lines=grown.lines), tally)

    assert tally.acknowledged > 15
    assert tally.spooled > 0


# B24 B66
@pytest.mark.timeout(600)  # a third of a second each, where nothing else is at work
def test_kills_anywhere_in_a_session_lose_nothing(
    lives: Lives, grown: Life, folder_in_memory: Path
) -> None:
    tally = kill(lives, grown, folder_in_memory, 40, seed=1)

    print(tally)
    assert tally.kills == 40
    assert tally.acknowledged > 300
    assert tally.spooled > 5


# B24 B66
@pytest.mark.timeout(600)
def test_kills_at_every_write_of_appends_and_a_checkpoint_lose_nothing(
    lives: Lives, folder_in_memory: Path
) -> None:
    template = folder_in_memory / "template.duckdb"
    with contextlib.closing(DuckDBStore(template)) as store:
        store.create_session(SessionRecord(id="s", created_at=1), chain(1))
        for _ in range(3):  # so that there are free slots in the block of metadata
            store.append("s", chain(2))
            with store._core.lease.held() as cursor:
                cursor.execute("checkpoint nbd_file")
    tally = Tally()

    def home(at: int, cut: int) -> Life:
        place = folder_in_memory / f"{at} {cut}"
        place.mkdir()
        shutil.copy(template, place / "chats.duckdb")
        return Life(path=place / "chats.duckdb", seed=0, at=at, cut=cut, does="append")

    (whole,) = lives.lived([home(0, 0)])
    (operations,) = whole.said("end")
    places = [(at, cut) for at in range(1, operations + 1) for cut in (0, 4_096, -7 - at)]
    for life in lives.lived([home(at, cut) for at, cut in places]):
        assert life.code == -9
        prove_appends(life, 7, tally)

    print(tally)
    assert tally.kills >= 50
    assert tally.repaired > 0


# B24 B66
@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_two_thousand_kills_lose_nothing(shim: Path, grown: Life, folder_in_memory: Path) -> None:
    work = partial(kill_many, shim, grown, folder_in_memory, 1_050)

    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        tallies = list(pool.map(work, (2, 3)))

    for tally in tallies:
        print(tally)
    assert sum(tally.kills for tally in tallies) >= 2_000
    assert sum(tally.repaired for tally in tallies) > 0
