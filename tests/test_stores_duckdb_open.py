from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from unwritable import immutable

from nbdurable.errors import (
    StoreClosed,
    StoreError,
    StoreLocked,
    StoreTooNew,
)
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore

SESSION = SessionRecord(id="s", created_at=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "files"  # nothing but the store's own
    folder.mkdir()
    return folder / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SESSION)
    yield made
    made.close()


def closed_store(path: Path) -> bytes:
    """Make a store of three entries at `path`; return the file's bytes."""
    store = DuckDBStore(path)
    store.create_session(SESSION, chain(3))
    store.close()
    return path.read_bytes()


# -- one file ------------------------------------------------------------------------------------


# B63
def test_a_closed_store_is_one_file(path: Path) -> None:
    closed_store(path)

    assert os.listdir(path.parent) == ["chats.duckdb"]


# B15
def test_no_progress_is_drawn_on_standard_output() -> None:
    """DuckDB draws it where Python runs no script, which a notebook has in common with ``-c``."""
    program = """
from nbdurable.stores.duckdb import instances
query = "select current_setting('enable_progress_bar')"
print(instances.take().execute(query).fetchall())
"""

    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert said.stdout == "[(False,)]\n"


# B62
def test_a_new_file_can_be_read_by_the_oldest_promised_duckdb(path: Path) -> None:
    closed_store(path)

    with duckdb.connect() as connection:
        connection.execute(f"attach '{path}' as f")
        tags = connection.execute(
            "select tags['storage_version'] from duckdb_databases() where database_name = 'f'"
        ).fetchone()
    assert tags is not None and tags[0].startswith("v1.5.0")


def test_a_path_may_hold_quotes_and_spaces(tmp_path: Path) -> None:
    path = tmp_path / 'it\'s "my" ü file.db'

    closed_store(path)

    store = DuckDBStore(path)
    assert len(store.load_entries("s")) == 3
    store.close()


# B5
def test_two_stores_on_one_file_share_it_in_a_process(store: DuckDBStore, path: Path) -> None:
    other = DuckDBStore(path)
    other.append("s", [stored()])

    assert len(store.load_entries("s")) == 1
    other.close()


# B54
def test_the_last_close_frees_the_file(store: DuckDBStore, path: Path) -> None:
    link = path.parent / "link.duckdb"
    link.symlink_to(path)
    other = DuckDBStore(link)

    other.close()
    other.close()
    store.append("s", [stored()])  # still open
    store.close()

    duckdb.connect(path).close()


def test_a_closed_store_says_so(store: DuckDBStore) -> None:
    store.close()

    with pytest.raises(StoreClosed, match=r"store '.*chats\.duckdb' is closed; open it again"):
        store.list_sessions()


# case 28
def test_a_plain_connection_of_this_process_is_named(path: Path) -> None:
    closed_store(path)

    with (
        duckdb.connect(path),
        pytest.raises(StoreLocked, match=r"open in this process .* another DuckDB connection"),
    ):
        DuckDBStore(path, timeout_s=0)


# -- refused files -------------------------------------------------------------------------------


# B63
def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"folder '.*nowhere' of store .* does not exist; create"):
        DuckDBStore(tmp_path / "nowhere" / "chats.duckdb")


# B63
def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder; give the path of a file in it"):
        DuckDBStore(tmp_path)


def _empty(path: Path) -> None:
    path.touch()


def _text(path: Path) -> None:
    path.write_text("no database " * 5000)


def _sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table t(a)")
    connection.commit()
    connection.close()


def _other_duckdb(path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("create table sales(a int)")


def _cut(path: Path) -> None:
    path.write_bytes(closed_store(path)[:20_000])


# B63
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (_empty, "is empty, which is no DuckDB database; remove it, or choose another file"),
        (_text, "is not a DuckDB database; choose another file"),
        (_sqlite, "is not a DuckDB database; choose another file"),
        (_other_duckdb, "is a DuckDB database without the tables of a store; choose another"),
        (_cut, r"is damaged \(.*\); copy it and its \.wal aside"),
    ],
)
def test_a_file_that_is_no_store_is_refused_untouched(
    path: Path, make: Callable[[Path], None], text: str
) -> None:
    make(path)
    before = path.read_bytes()

    with pytest.raises(StoreError, match=rf"'.*chats\.duckdb' {text}"):
        DuckDBStore(path)

    assert path.read_bytes() == before


# B63
def test_an_empty_duckdb_database_becomes_a_store(path: Path) -> None:
    duckdb.connect(path).close()

    assert closed_store(path)


# B62 case 37
@pytest.mark.parametrize("is_sound", [True, False], ids=["written so", "raised by hand"])
def test_a_file_of_a_newer_duckdb_names_both_versions(path: Path, is_sound: bool) -> None:
    data = bytearray(closed_store(path))
    data[12:20] = (99).to_bytes(8, "little")
    path.write_bytes(data)
    if is_sound:
        with duckdb.connect() as connection, pytest.raises(duckdb.Error) as caught:
            connection.execute(f"attach '{path}' as f")
        found = re.search(r"computed checksum (\d+)", str(caught.value))
        assert found
        data[0:8] = int(found[1]).to_bytes(8, "little")
        path.write_bytes(data)

    with pytest.raises(
        StoreTooNew, match=rf"version 99 and DuckDB {duckdb.__version__} reads up to 69; install"
    ):
        DuckDBStore(path)

    assert path.read_bytes() == data


# B62
def test_a_file_of_a_newer_schema_names_both_versions_and_is_untouched(path: Path) -> None:
    closed_store(path)
    with duckdb.connect(path) as connection:
        connection.execute("pragma disable_checkpoint_on_shutdown")
        connection.execute("update nbd.meta set value = '7' where key = 'schema_version'")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    with pytest.raises(
        StoreTooNew, match="has schema version 7 and this nbdurable reads up to 1; install"
    ):
        DuckDBStore(path)

    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert set(before) == {"chats.duckdb", "chats.duckdb.wal"}


# B63
def test_a_file_that_cannot_be_written_is_refused(path: Path) -> None:
    closed_store(path)
    with immutable(path), pytest.raises(StoreError, match=r"cannot be written \(.*\); change its"):
        DuckDBStore(path)


# B63
def test_a_folder_that_cannot_be_written_is_refused(path: Path) -> None:
    closed_store(path)
    with (
        immutable(path.parent),
        pytest.raises(StoreError, match=r"folder '.*' of store '.*' cannot be written \("),
    ):
        DuckDBStore(path)
