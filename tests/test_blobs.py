"""Large bytes are kept once per content, and read only where they are sent (B61)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from damage import by_hand

import nbdurable as nb
from nbdurable.blocks import INLINE_BYTES
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore

DATA = bytes(range(256)) * 400  # 102,400 bytes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a session into which one file was given twice."""
    path = tmp_path / "chats.duckdb"
    with nb.open("s", store=path, model=ScriptedModel("Read.")) as chat:
        chat.run("Read this.", nb.file(DATA, name="a.bin"), show=None)
        chat.run("And this.", nb.file(DATA, name="b.bin"), show=None)
    return path


def kept(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("select sha256, size_bytes, data from nbd.blobs").fetchall()


# B61 case 40
def test_bytes_given_twice_are_kept_once_under_their_hash(path: Path) -> None:
    assert kept(path) == [(hashlib.sha256(DATA).hexdigest(), len(DATA), DATA)]


# B61
def test_two_sessions_share_their_bytes(path: Path) -> None:
    with nb.open("other", store=path, model=ScriptedModel("Read.")) as chat:
        chat.run("Read this.", nb.file(DATA, name="c.bin"), show=None)

    assert len(kept(path)) == 1


# B61
@pytest.mark.parametrize(("extra", "count"), [(0, 0), (1, 1)])
def test_bytes_up_to_a_limit_travel_in_the_entry(tmp_path: Path, extra: int, count: int) -> None:
    path, data = tmp_path / "limit.duckdb", os.urandom(INLINE_BYTES + extra)

    with nb.open("s", store=path, model=ScriptedModel("Read.")) as chat:
        chat.run("Read this.", nb.file(data, name="f.bin"), show=None)

    assert INLINE_BYTES == 32_768
    assert len(kept(path)) == count
    with nb.open("s", store=path, model=ScriptedModel("x")) as chat:
        assert [block.data for block in chat[1].blocks if block.type == "file"] == [data]


def _entries(path: Path) -> object:
    with nb.open("s", store=path, model=ScriptedModel("x")) as chat:
        return len(chat.entries()), repr(chat.entries()), len(chat.tree().nodes)


def _listing(path: Path) -> object:
    store = DuckDBStore(path)
    found = store.list_sessions()
    store.close()
    return len(found)


def _frames(path: Path) -> object:
    with nb.open("s", store=path, model=ScriptedModel("x")) as chat:
        return len(chat.df()), len(chat.runs_df()), len(chat.branches_df())


def _library(path: Path) -> object:
    library = nb.connect(path)
    found = len(library.sessions()), len(library.df()), len(library.search("Read"))
    library.close()
    return found


# B61 case 40
@pytest.mark.parametrize("look", [_entries, _listing, _frames, _library])
def test_nothing_that_lists_reads_bytes(path: Path, look: Callable[[Path], object]) -> None:
    """With the bytes gone, what only lists works as before, and what sends them names them."""
    expected = look(path)
    by_hand(path, "delete from nbd.blobs")

    assert look(path) == expected

    with (
        nb.open("s", store=path, model=ScriptedModel("x")) as chat,
        pytest.raises(nb.errors.StoreError, match=r"blob '.*' is not in store"),
    ):
        next(block for block in chat[1].blocks if block.type == "file").blob.read()


# B61
def test_a_store_keeps_the_first_bytes_of_a_hash(store: Store) -> None:
    store.put_blob("a" * 64, b"first")
    store.put_blob("a" * 64, b"second")

    assert store.get_blob("a" * 64) == b"first"


# B61
def test_bytes_that_are_not_there_are_named(store: Store) -> None:
    with pytest.raises(nb.errors.StoreError, match=r"blob 'b+…? is not in store|blob 'b+' is not"):
        store.get_blob("b" * 64)
