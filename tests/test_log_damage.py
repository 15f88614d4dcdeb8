"""The log of a store, cut and flipped everywhere: what is whole is read, the rest is told (B66)."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections import Counter
from pathlib import Path

import pytest
from damage import files_in, killed_store, log_of

from nbdurable.errors import StoreError
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check
from nbdurable.stores.duckdb.log import commits_from, head_of, silent_break
from nbdurable.stores.duckdb.repair import RepairNotice

PAIRS = 6


class Damaged:
    """A killed store whose log is spoilt again and again."""

    def __init__(self, folder: Path) -> None:
        home = folder / "whole"
        home.mkdir()
        self.whole = home / "chats.duckdb"
        self.ids = [entry.id for entry in killed_store(self.whole, PAIRS)]
        self.log = log_of(self.whole).read_bytes()
        self.path = folder / "spoilt" / "chats.duckdb"

    def spoil(self, log: bytes) -> None:
        """Put the store, with another log, in the place of the last one."""
        shutil.rmtree(self.path.parent, ignore_errors=True)
        self.path.parent.mkdir()
        shutil.copy(self.whole, self.path)
        log_of(self.path).write_bytes(log)

    def flipped(self, at: int, bit: int) -> bytes:
        """Return the log with one bit changed."""
        return self.log[:at] + bytes([self.log[at] ^ 1 << bit]) + self.log[at + 1 :]

    def opened(self) -> tuple[list[str], bool]:
        """Return the ids in the store, and whether a repair was told; they are a whole prefix."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            store = DuckDBStore(self.path)
        with contextlib.closing(store):
            ids: list[str] = []
            with contextlib.suppress(LookupError):  # cut before the session was made
                ids = [entry.id for entry in store.load_entries("s")]
        assert ids == self.ids[: len(ids)]
        assert len(ids) % 2 == 0
        return ids, any(issubclass(each.category, RepairNotice) for each in told)


@pytest.fixture
def damaged(folder_in_memory: Path) -> Damaged:
    return Damaged(folder_in_memory)


# B66 case 36
def test_a_log_cut_anywhere_gives_the_appends_before_the_cut(damaged: Damaged) -> None:
    cuts = [*range(0, 60, 7), *range(60, len(damaged.log), 211), len(damaged.log) - 1]
    found = []

    for cut in cuts:
        damaged.spoil(damaged.log[:cut])
        ids, was_repaired = damaged.opened()
        found.append(len(ids))
        assert not was_repaired  # a log that was not written to its end is no damage

    assert found == sorted(found)
    assert found[-1] == 2 * PAIRS - 2
    assert len(set(found)) == PAIRS


# B66
def test_no_flipped_bit_loses_anything_in_silence(damaged: Damaged) -> None:
    outcomes: Counter[str] = Counter()
    places = [*range(0, 60, 3), *range(60, len(damaged.log), 97)]

    for number, at in enumerate(places):
        damaged.spoil(damaged.flipped(at, number % 8))
        before = files_in(damaged.path.parent)
        try:
            ids, was_repaired = damaged.opened()
        except StoreError as exc:
            assert "damaged" in str(exc)
            assert files_in(damaged.path.parent) == before
            outcomes["refused"] += 1
            continue
        assert was_repaired or ids == damaged.ids, (at, number % 8)
        outcomes["repaired" if was_repaired else "whole"] += 1

    assert outcomes["repaired"] > outcomes["refused"] > 0


# B66
def test_a_spoilt_length_is_found_although_the_engine_passes_over_it(damaged: Damaged) -> None:
    position = head_of(damaged.log)
    lengths = [position]
    while position < len(damaged.log):
        position += 16 + int.from_bytes(damaged.log[position : position + 8], "little")
        lengths.append(position)

    for at in lengths[3:-1:4]:
        damaged.spoil(damaged.flipped(at + 4, 1))
        assert silent_break(log_of(damaged.path).read_bytes()) == at
        report = check(damaged.path)
        assert not report.is_sound
        assert f"its log breaks off at byte {at}, with " in str(report.findings[0])

        ids, was_repaired = damaged.opened()

        assert was_repaired
        assert len(ids) < len(damaged.ids)


# B66
def test_a_spoilt_head_is_refused_with_what_stands_behind_it(damaged: Damaged) -> None:
    damaged.spoil(damaged.flipped(0, 0))
    before = files_in(damaged.path.parent)

    with pytest.raises(
        StoreError, match=r"the head of its log does not match, with 6 transactions\); go back to"
    ):
        DuckDBStore(damaged.path)

    assert files_in(damaged.path.parent) == before


# B24
def test_a_log_of_any_length_has_no_break_in_it(damaged: Damaged) -> None:
    assert silent_break(damaged.log) is None
    assert [silent_break(damaged.log[:cut]) for cut in range(0, len(damaged.log), 13)] == [
        None
    ] * len(range(0, len(damaged.log), 13))
    assert silent_break(bytes(5_000)) is None
    assert commits_from(damaged.log, 0) == PAIRS
