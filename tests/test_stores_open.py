from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nbdurable.errors import StoreClosed, StoreError
from nbdurable.stored import SessionRecord
from nbdurable.stores import open_store, release_store
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.memory import MemoryStore


# B1
def test_a_store_is_returned_as_it_is() -> None:
    store = MemoryStore()

    assert open_store(store) is store


# B1
def test_the_memory_name_gives_a_memory_store() -> None:
    assert isinstance(open_store(":memory:"), MemoryStore)


# B1
@pytest.mark.parametrize("name", ["chats.duckdb", "chats.db", "chats"])
def test_any_other_path_is_a_duckdb_file(tmp_path: Path, name: str) -> None:
    store = open_store(str(tmp_path / name))

    assert isinstance(store, DuckDBStore)
    store.close()


# B54
def test_opening_again_shares_until_the_last_close(tmp_path: Path) -> None:
    first, second = open_store(tmp_path / "a.duckdb"), open_store(tmp_path / "." / "a.duckdb")
    first.create_session(SessionRecord(id="s", created_at=1))

    release_store(first)

    assert second.append("s", [stored()])[0].n == 1
    release_store(second)
    with pytest.raises(StoreClosed, match="closed"):
        second.load_session("s")


# B1
def test_a_recording_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"a\.jsonl' is not there .*; give the path of a rec"):
        open_store(tmp_path / "a.jsonl")

    assert list(tmp_path.glob("*.jsonl")) == []


# B69
def test_an_address_of_another_kind_is_refused_without_its_password() -> None:
    with pytest.raises(StoreError, match="of kind 'mysql' cannot be opened; give the") as caught:
        open_store("mysql://me:secret@localhost/db")

    assert "secret" not in str(caught.value)


# B69
def test_an_address_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith(("psycopg", "nbdurable.stores.postgres")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(StoreError, match=r"pip install 'nbdurable\[postgres\]'") as caught:
        open_store("postgresql://me:secret@localhost/db")

    assert "secret" not in str(caught.value)


def test_duckdb_is_not_imported_before_a_file_is_opened() -> None:
    code = "import sys, nbdurable.stores; print('duckdb' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
