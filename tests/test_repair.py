"""A store that a crash damaged opens repaired, told once; any other damage is left alone (B66)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from damage import (
    BLOCKS,
    by_hand,
    files_in,
    flip,
    killed_store,
    log_of,
    rot,
    tear,
)
from sharing import child

import nbdurable as nb
from nbdurable.errors import StoreError, StoreLocked
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore, place
from nbdurable.stores.duckdb.checking import check
from nbdurable.stores.duckdb.repair import LogCut, RepairNotice
from nbdurable.stores.duckdb.schema import BLOCK_BYTES, NEW_FILE

# Locks a file as DuckDB does and keeps it until its input ends.
LOCKER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "files"  # nothing but the store's own
    folder.mkdir()
    return folder / "chats.duckdb"


def opened(path: Path) -> tuple[list[StoredEntry], list[str]]:
    """Return the entries of a store, and what opening it told of a repair."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        store = DuckDBStore(path)
    entries = store.load_entries("s")
    store.close()
    assert all(issubclass(warning.category, RepairNotice) for warning in told)
    return entries, [str(warning.message) for warning in told]


def aside(path: Path) -> Path:
    """Return the one folder with the damaged files."""
    (folder,) = path.parent.glob("chats.duckdb.damaged-*")
    return folder


# -- the two known damages -----------------------------------------------------------------------


# B66
def test_a_torn_checkpoint_is_repaired_without_loss(path: Path) -> None:
    expected = killed_store(path, checkpointed=5)
    tear(path)
    damaged = files_in(path.parent)

    entries, told = opened(path)

    assert entries == expected
    assert len(told) == 1
    assert re.search(
        r"chats\.duckdb' was damaged \(a checkpoint was cut in the block at byte 12288\) and is "
        r"repaired without loss; all that is left matches its digests \(25 entries\), and the "
        r"damaged files are in 'chats\.duckdb\.damaged-\w+' beside it",
        told[0],
    )
    assert files_in(aside(path)) == damaged


# B66
def test_a_file_of_the_size_of_blocks_that_was_before_is_repaired(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger = 2 * BLOCK_BYTES
    monkeypatch.setattr(place, "NEW_FILE", NEW_FILE.replace(str(BLOCK_BYTES), str(larger)))
    expected = killed_store(path, checkpointed=5)
    tear(path, larger)

    entries, told = opened(path)

    assert entries == expected
    assert len(told) == 1


# B66
def test_a_repair_is_told_once_and_stays_in_a_log(path: Path) -> None:
    killed_store(path)
    tear(path)
    _, told = opened(path)

    entries, told_again = opened(path)

    assert (len(entries), told_again) == (20, [])
    log = Path(f"{path}.repairs.log").read_text("utf-8")
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {re.escape(told[0])}\n", log)
    assert sorted(file.name.partition(".damaged-")[0] for file in path.parent.iterdir()) == [
        "chats.duckdb",
        "chats.duckdb",
        "chats.duckdb.repairs.log",
    ]


# B66 B68
def test_a_repair_in_the_middle_of_a_session_is_told_at_once(path: Path) -> None:
    """Another process that shares the file was killed in a checkpoint."""
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=1), chain(2))
    with child('store = DuckDBStore(path)\nsay("ready")\ntold()', path):
        store.append("s", chain(2))  # after which the file is let go
        tear(path)

        with pytest.warns(RepairNotice, match="repaired without loss"):
            added = store.append("s", [stored()])
        total = 5
        while not log_of(path).exists():  # a checkpoint may have come in between
            store.append("s", [stored()])
            total += 1

        flip(log_of(path), log_of(path).stat().st_size - 300)
        with pytest.warns(RepairNotice, match="transactions of its log, or less, are lost"):
            entries = store.load_entries("s")
    store.close()
    assert [entry.n for entry in added] == [5]
    assert [entry.n for entry in entries] == [*range(1, total)]


# B66
def test_a_repair_does_not_fail_the_call_it_came_in_where_warnings_are_errors(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=1), chain(2))
    with child('store = DuckDBStore(path)\nsay("ready")\ntold()', path):
        store.load_entries("s")
        tear(path)

        assert len(store.load_entries("s")) == 2
    store.close()
    assert "repaired without loss" in caplog.text


def _zeros(log: Path) -> None:
    log.write_bytes(log.read_bytes() + bytes(5_000))


def _flipped(log: Path) -> None:
    flip(log, log.stat().st_size - 300)


def _overwritten(log: Path) -> None:
    data = log.read_bytes()
    log.write_bytes(data[:-700] + b"\xa5" * 700)


# B66
@pytest.mark.parametrize(("spoil", "lost"), [(_zeros, 0), (_flipped, 2), (_overwritten, 2)])
def test_a_log_with_a_bad_end_gives_all_that_comes_before_it(
    path: Path, spoil: Callable[[Path], None], lost: int
) -> None:
    expected = killed_store(path)
    spoil(log_of(path))
    damaged = files_in(path.parent)

    entries, told = opened(path)

    assert entries == expected[: len(expected) - lost]
    if spoil is not _zeros:  # which DuckDB takes for a log that was not written to its end
        assert re.search(
            r"damaged \(its log could not be read from byte \d+ of \d+ on\) and is repaired, but "
            r"the last [12] transactions of its log, or less, are lost; all that is left matches",
            told[0],
        )
        assert files_in(aside(path)) == damaged


# B66
def test_both_damages_are_repaired_together(path: Path) -> None:
    expected = killed_store(path, checkpointed=5)
    tear(path)
    _flipped(log_of(path))

    entries, (told,) = opened(path)

    assert entries == expected[:-2]
    assert "a checkpoint was cut in the block at byte 12288, " in told
    assert "its log could not be read from byte " in told


# B66
def test_a_repaired_store_takes_appends_and_is_sound(path: Path) -> None:
    killed_store(path)
    tear(path)
    _flipped(log_of(path))
    opened(path)

    store = DuckDBStore(path)
    store.append("s", [stored()])
    store.close()

    assert check(path).is_sound
    assert check(path).counts["entries"] == 19


# B66
def test_a_notebook_hears_of_a_repair_when_it_opens_a_session(path: Path) -> None:
    killed_store(path)
    tear(path)

    with (
        pytest.warns(RepairNotice, match="was damaged .* and is repaired without loss"),
        nb.open("s", store=path, model=ScriptedModel("x")) as chat,
    ):
        assert len(chat.entries()) == 20


# B66
def test_a_repair_that_was_cut_short_is_done_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = killed_store(path)
    tear(path)
    _flipped(log_of(path))
    apply = LogCut.apply

    def die(step: LogCut, at: str) -> None:
        if at == os.path.realpath(path):
            raise KeyboardInterrupt
        apply(step, at)

    monkeypatch.setattr(LogCut, "apply", die)
    with pytest.raises(KeyboardInterrupt):
        DuckDBStore(path)
    monkeypatch.undo()
    entries, told = opened(path)

    assert entries == expected[:-2]
    assert len(told) == 1


# -- everything else -----------------------------------------------------------------------------


def _rotten(path: Path) -> None:
    rot(path)


def _changed_by_hand(path: Path) -> None:
    by_hand(path, "update nbd.entries set payload = '{}' where n = 3")
    tear(path)


def _hole(path: Path) -> None:
    by_hand(path, "delete from nbd.entries where n = 3")
    tear(path)


def _lost_move(path: Path) -> None:
    by_hand(path, "delete from nbd.moves")
    tear(path)


def _spoiled_metadata(path: Path) -> None:
    for slot in range(64):
        flip(path, BLOCKS + slot * 4_096 + 700)


def _spoiled_head(path: Path) -> None:
    flip(path, 4_096 + 20)
    flip(path, 8_192 + 20)


def _short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


# B66 B63
@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (_rotten, r"is damaged \(Corrupt database file.*block at location 143360\); copy it"),
        (_changed_by_hand, r"cannot be repaired \(entry '.*' does not match its digest\); go back"),
        (_hole, r"cannot be repaired \(session 's' has ordinals with holes, repeats or out of"),
        (_lost_move, r"\(numbers of entries and moves run from 1 to 7 with 6 different ones in 6"),
        (_spoiled_metadata, r"is damaged and cannot be repaired \(.*\); go back to a copy made by"),
        (_spoiled_head, r"is damaged \(Corrupt .* location \d{4}\); copy it and its \.wal aside"),
        (_short, r"is damaged \(.*\); copy it and its \.wal aside before anything else"),
    ],
)
def test_other_damage_is_named_and_the_file_left_as_it_is(
    path: Path, spoil: Callable[[Path], None], text: str
) -> None:
    store = DuckDBStore(path)
    store.create_session(nb.stored.SessionRecord(id="s", created_at=1), [stored()])
    entries = [store.append("s", [stored()])[0] for _ in range(4)]
    store.move("s", entries[0].id, 1)
    store.append("s", [stored()])
    store.close()
    spoil(path)
    before = files_in(path.parent)

    with pytest.raises(StoreError, match=rf"store '.*chats\.duckdb' .*{text}"):
        DuckDBStore(path).load_entries("s")

    assert files_in(path.parent) == before


# B66
def test_a_torn_block_of_data_is_not_given_a_new_checksum(path: Path) -> None:
    """Both blocks are bad: the first hides the second until it is repaired on the copy."""
    killed_store(path, checkpointed=2_000)
    tear(path)
    for block in range(1, 1 + (path.stat().st_size - BLOCKS) // BLOCK_BYTES - 1):
        flip(path, BLOCKS + block * BLOCK_BYTES + 4_000)
    before = files_in(path.parent)

    with pytest.raises(StoreError, match=r"the block of data at byte \d+ does not match"):
        DuckDBStore(path)

    assert files_in(path.parent) == before


# -- others at work ------------------------------------------------------------------------------


@contextmanager
def locked_by_another(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold the file as DuckDB would."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


# B66 B68
@pytest.mark.skipif(os.name != "posix", reason="locks differ there")
def test_a_damaged_store_in_other_hands_is_left_to_them(path: Path) -> None:
    killed_store(path)
    tear(path)
    before = files_in(path.parent)

    with (
        locked_by_another(path),
        pytest.raises(StoreLocked, match=r"chats\.duckdb' is .*(another process|PID)"),
    ):
        DuckDBStore(path, timeout_s=0)

    assert files_in(path.parent) == before


# B66
def test_a_repair_without_room_for_a_copy_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_store(path)
    tear(path)
    before = files_in(path.parent)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", fail)
    with pytest.raises(
        StoreError, match=r"no room for a copy to repair \(No space left on device\); free space"
    ):
        DuckDBStore(path)

    assert files_in(path.parent) == before
