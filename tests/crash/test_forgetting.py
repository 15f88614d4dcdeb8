"""A kill or a fault at any write of forgetting leaves the old store or the new one, whole."""

from __future__ import annotations

import contextlib
import errno
import shutil
import warnings
from pathlib import Path

import pytest
from crash.kills import Life, Lives
from forgetting import all_but, fill, holding

from nbdurable.stores.conformance import contents
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a log, as a kill leaves it."""
    home = tmp_path_factory.mktemp("filled")
    with contextlib.closing(DuckDBStore(home / "chats.duckdb")) as store:
        fill(store)
        for suffix in ("", ".wal"):
            shutil.copy(f"{store.name}{suffix}", f"{home / 'killed.duckdb'}{suffix}")
    return home / "killed.duckdb"


class Homes:
    """Copies of a store, each for a life of its own, and what is expected of them."""

    def __init__(self, filled: Path, folder: Path) -> None:
        self._filled, self._folder = filled, folder
        with contextlib.closing(DuckDBStore(self.new("expected").path)) as store:
            self.whole = contents(store)
            self.rest = all_but(store, "secret")

    def new(self, name: str, **wanted: int) -> Life:
        """Return a life that forgets in a copy of the store."""
        home = self._folder / name
        home.mkdir()
        for suffix in ("", ".wal"):
            shutil.copy(f"{self._filled}{suffix}", f"{home / 'chats.duckdb'}{suffix}")
        return Life(path=home / "chats.duckdb", seed=0, does="forget", **wanted)

    def is_forgotten(self, life: Life) -> bool:
        """Whether a life came to forget; the store is whole in either case."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            store = DuckDBStore(life.path)
        with contextlib.closing(store):
            found = contents(store)
        assert all("without loss" in str(warning.message) for warning in told), life
        assert found in (self.whole, self.rest), life
        assert check(life.path).is_sound, life
        assert not Path(f"{life.path}.spool").exists(), (life, "something is left")
        if found == self.rest:
            left = [file for file in life.path.parent.iterdir() if "damaged" not in file.name]
            assert holding(left) == [], life
        return found == self.rest


def places(operations: int, step: int) -> list[int]:
    """Return some operations, or all: the last ones are about the rename."""
    return sorted({*range(1, operations + 1, step), *range(operations - 9, operations + 1)})


ALL = pytest.param(1, marks=pytest.mark.slow, id="all")


# B24 B66
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [5, ALL])
def test_a_kill_at_any_write_leaves_the_old_store_or_the_new_one(
    lives: Lives, filled: Path, folder_in_memory: Path, step: int
) -> None:
    homes = Homes(filled, folder_in_memory)
    (whole,) = lives.lived([homes.new("whole")])
    (operations,) = whole.said("end")
    assert homes.is_forgotten(whole) and whole.said("forgotten")

    outcomes = []
    for life in lives.lived(
        homes.new(str(at), at=at, cut=(0, 4_096, -7 - at)[at % 3])
        for at in places(operations, step)
    ):
        assert life.code == -9 or life.said("end"), life  # some do with a write less
        outcomes.append(homes.is_forgotten(life))
        assert outcomes[-1] or not life.said("forgotten"), life
        shutil.rmtree(life.path.parent)

    print(operations, sum(outcomes))
    assert outcomes == sorted(outcomes)  # once it is gone it is gone
    assert 0 < sum(outcomes) < len(outcomes)


# B63
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fails", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("step", [11, ALL])
def test_a_write_that_fails_anywhere_is_told_and_leaves_one_or_the_other(
    lives: Lives, filled: Path, folder_in_memory: Path, fails: int, step: int
) -> None:
    homes = Homes(filled, folder_in_memory)
    (whole,) = lives.lived([homes.new("whole")])
    (operations,) = whole.said("end")

    refused, wrong = 0, []
    for life in lives.lived(
        homes.new(str(at), at=at, fails=fails) for at in places(operations, step)
    ):
        is_gone, told = homes.is_forgotten(life), life.said("refused")
        if not (life.said("forgotten") if is_gone and not told else told):
            wrong.append(life)
        if told and is_gone and "is replaced" not in told[0]:
            wrong.append(life)
        refused += bool(told)
        shutil.rmtree(life.path.parent)

    print(operations, refused)
    assert wrong == []  # once all are over: they have one process in common
    assert refused > 3
