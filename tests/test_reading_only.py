"""A store that is only read: from a file that cannot be written, or asked for so (B63, B68)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sharing import child
from unwritable import immutable

import nbdurable as nb
from nbdurable.errors import StoreError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a session of three entries, alone in its folder."""
    folder = tmp_path / "files"
    folder.mkdir()
    made = DuckDBStore(folder / "chats.duckdb")
    made.create_session(SessionRecord(id="s", created_at=1), chain(3))
    made.close()
    return folder / "chats.duckdb"


# B63
@pytest.mark.parametrize("what", ["file", "folder"])
def test_connect_reads_what_cannot_be_written(path: Path, what: str) -> None:
    with immutable(path if what == "file" else path.parent), nb.connect(path) as library:
        assert library.sessions()["entries"].tolist() == [3]
        assert len(library.df()) == 3

    assert os.listdir(path.parent) == [path.name]


# B24 B63
def test_the_log_of_a_killed_process_is_read_where_nothing_can_be_written(path: Path) -> None:
    with child(
        "store = DuckDBStore(path)\nsay('ready')\ntold()\n"
        "store.append('s', [stored()])\nsay('stored')\ntold()",
        path,
    ) as other:
        assert other.ask() == "stored"
        other.kill()
    before = {name: (path.parent / name).stat().st_size for name in os.listdir(path.parent)}

    with immutable(path.parent), nb.connect(path) as library:
        assert len(library.df()) == 4

    after = {name: (path.parent / name).stat().st_size for name in os.listdir(path.parent)}
    assert after == before
    assert after[f"{path.name}.wal"] > 0


# B63
def test_a_store_that_is_only_read_refuses_to_write(path: Path) -> None:
    store = DuckDBStore(path, read_only=True)
    last = store.load_entries("s")[-1]

    with pytest.raises(StoreError, match=r"'.*' is open for reading only; nothing was written;"):
        store.append("s", [stored(parent_id=last.id)])
    with pytest.raises(StoreError, match="open it without read_only, or work on a copy"):
        store.move("s", last.id, 1)

    assert store.recover() == ()
    assert len(store.load_entries("s")) == 3
    store.close()


# B63
def test_a_missing_file_is_not_made_for_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"'.*none\.duckdb' does not exist; open it without"):
        DuckDBStore(tmp_path / "none.duckdb", read_only=True)

    assert not (tmp_path / "none.duckdb").exists()


# B68
def test_who_only_reads_sees_what_another_process_adds(path: Path) -> None:
    store = DuckDBStore(path, read_only=True)
    with child(
        "store = DuckDBStore(path)\nsay('ready')\n"
        "while told():\n    say(store.append('s', [stored()])[0].n)",
        path,
    ) as other:
        counts = []
        for _ in range(3):
            other.ask()
            counts.append(len(store.load_entries("s")))

    assert counts == [4, 5, 6]
    store.close()


# B68
def test_two_who_only_read_do_not_wait_for_each_other(path: Path) -> None:
    store = DuckDBStore(path, read_only=True, timeout_s=0)
    with child(
        "store = DuckDBStore(path, read_only=True, timeout_s=60)\nsay('ready')\n"
        "while told():\n    say(len(store.load_entries('s')))",
        path,
    ) as other:
        assert [other.ask() for _ in range(3)] == ["3", "3", "3"]
    store.close()


# B5
def test_a_process_that_writes_shares_its_store_with_who_asks_to_read(path: Path) -> None:
    writing = DuckDBStore(path)
    reading = DuckDBStore(path, read_only=True)
    writing.append("s", [stored()])

    assert len(reading.load_entries("s")) == 4
    assert reading.medium is writing.medium
    reading.close()
    writing.close()


# B54
def test_a_library_and_a_session_of_one_process_close_one_file(path: Path) -> None:
    with nb.connect(path) as library, nb.open("s", store=path, model=ScriptedModel()) as chat:
        chat.append("more")
        assert len(library.df()) == 4

    assert os.listdir(path.parent) == [path.name]
