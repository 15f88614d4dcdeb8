"""A backup is a whole store of one moment, made while the original is in use."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage import killed_store, log_of

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import StoreClosed, StoreError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, contents, stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SessionRecord(id="s", created_at=1), chain(5))
    yield made
    made.close()


def read_back(path: Path) -> dict[str, object]:
    store = DuckDBStore(path)
    found = contents(store)
    store.close()
    return found


# B63
def test_a_backup_holds_all_that_was_stored(store: DuckDBStore, tmp_path: Path) -> None:
    copy = store.backup(tmp_path / "it's a copy.duckdb")

    assert read_back(copy) == contents(store)
    assert check(copy).is_sound
    assert copy == tmp_path / "it's a copy.duckdb"


# B61
def test_a_backup_holds_runs_contexts_and_bytes(path: Path, tmp_path: Path) -> None:
    model = ScriptedModel("Seen.")
    data = os.urandom(100_000)
    with nb.open("s", store=path, model=model, system="Be brief.") as chat:
        run = chat.run("Look.", nb.file(data, name="f.bin"), show=None)
        chat.label(run, "best")
        copy = chat.image.store.backup(tmp_path / "copy.duckdb")
        expected = contents(chat.image.store)

    assert read_back(copy) == expected
    assert check(copy).counts == check(path).counts
    with nb.open("s", store=copy, model=model) as chat:
        assert [block.data for block in chat[1].blocks if block.type == "file"] == [data]


# B63
def test_a_backup_is_of_one_moment_while_others_append(store: DuckDBStore, tmp_path: Path) -> None:
    stop, began = threading.Event(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            store.append("s", chain(2))
            began.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert began.wait(30)
    copies = [store.backup(tmp_path / f"copy {i}.duckdb") for i in range(3)]
    stop.set()
    for thread in threads:
        thread.join()

    counts = []
    for copy in copies:
        assert check(copy).is_sound
        counts.append(check(copy).counts["entries"])
    assert counts == sorted(counts)
    assert all(count % 2 for count in counts)  # five, and pairs: no append is half there


# B24
def test_a_backup_is_one_file_and_leaves_nothing_else(store: DuckDBStore, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()

    store.backup(folder / "copy.duckdb")

    assert os.listdir(folder) == ["copy.duckdb"]
    store.append("s", [stored()])  # the original goes on


def test_a_backup_takes_appends_of_its_own(store: DuckDBStore, tmp_path: Path) -> None:
    copy = DuckDBStore(store.backup(tmp_path / "copy.duckdb"))
    copy.append("s", [stored()])

    assert [len(each.load_entries("s")) for each in (copy, store)] == [6, 5]
    copy.close()


# B63
def test_a_backup_replaces_nothing(store: DuckDBStore, tmp_path: Path) -> None:
    there = tmp_path / "there.duckdb"
    there.write_text("mine")

    with pytest.raises(StoreError, match=r"backup '.*there\.duckdb' is there already; choose"):
        store.backup(there)
    with pytest.raises(StoreError, match=r"backup '.*chats\.duckdb' is there already; choose"):
        store.backup(store.name)

    assert there.read_text() == "mine"


# B63
def test_a_backup_into_no_folder_is_refused(store: DuckDBStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"folder '.*no' of backup '.*' does not exist; create"):
        store.backup(tmp_path / "no" / "copy.duckdb")


# B63
def test_a_backup_onto_a_full_disk_leaves_nothing(
    store: DuckDBStore, small_disk: Path, tmp_path: Path
) -> None:
    for _ in range(20):
        store.put_blob(os.urandom(8).hex(), os.urandom(1_000_000))

    with pytest.raises(StoreError, match=r"disk of store '.*copy\.duckdb' is full \(.*\); free"):
        store.backup(small_disk / "copy.duckdb")

    assert os.listdir(small_disk) == []
    store.append("s", [stored()])


def test_a_closed_store_gives_no_backup(store: DuckDBStore, tmp_path: Path) -> None:
    store.close()

    with pytest.raises(StoreClosed, match="is closed; open it again"):
        store.backup(tmp_path / "copy.duckdb")


# B66
def test_a_backup_of_a_store_with_a_rotten_block_names_the_store(
    path: Path, tmp_path: Path
) -> None:
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=1), chain(3_000))
    store.close()
    data = bytearray(path.read_bytes())
    for block in range(1, (len(data) - 12_288) // 262_144):
        if any(data[12_288 + block * 262_144 + 8 : 12_288 + (block + 1) * 262_144]):
            last = 12_288 + block * 262_144 + 60_000
            data[last] ^= 1
    path.write_bytes(data)

    with pytest.raises(StoreError, match=r"store '.*chats\.duckdb' is damaged \(Corrupt"):
        DuckDBStore(path).backup(tmp_path / "copy.duckdb")

    assert not (tmp_path / "copy.duckdb").exists()


# B66
def test_the_command_copies_a_store(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed_store(path)
    assert log_of(path).exists()

    assert main(["backup", str(path), "copy.duckdb"]) == 0
    assert main(["backup", str(path), "copy.duckdb"]) == 1

    told = capsys.readouterr()
    assert "chats.duckdb is copied to " in told.out
    assert "copy.duckdb' is there already" in told.err
    assert check("copy.duckdb").counts["entries"] == 20
