"""Damage to a store's file, as crashes and bad disks do it."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores.conformance import chain
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.schema import BLOCK_BYTES

BLOCKS = 12_288  # where the blocks begin; the first holds the metadata


def killed_store(path: Path, pairs: int = 10, checkpointed: int = 0) -> list[StoredEntry]:
    """Make what a kill leaves: a file with `checkpointed` entries, and a log with pairs of more."""
    home = path.parent / "lived"
    home.mkdir()
    store = DuckDBStore(home / path.name)
    store.create_session(SessionRecord(id="s", created_at=1), chain(checkpointed))
    with store._core.lease.held() as cursor:
        cursor.execute("checkpoint nbd_file")
    for _ in range(pairs):
        store.append("s", chain(2))
    entries = store.load_entries("s")
    for file in home.iterdir():
        if file.is_file():
            shutil.copy(file, path.parent / file.name)
    store.close()
    shutil.rmtree(home)
    return entries


def log_of(path: Path) -> Path:
    """Return the path of a store's log."""
    return Path(f"{path}.wal")


def flip(path: Path, at: int, mask: int = 0x10) -> None:
    """Change a byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= mask
    path.write_bytes(data)


def tear(path: Path, block_bytes: int = BLOCK_BYTES) -> None:
    """Change a free slot of the metadata block, as a checkpoint that was cut does."""
    flip(path, BLOCKS + block_bytes - 100)


def rot(path: Path) -> None:
    """Change a block of data, which no crash does."""
    flip(path, BLOCKS + BLOCK_BYTES + 4_000)


def by_hand(path: Path, *statements: str) -> None:
    """Change a closed store's file with plain DuckDB, and leave no log."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute("checkpoint")


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder with what is in them; folders have nothing."""
    return {file.name: file.read_bytes() if file.is_file() else b"" for file in folder.iterdir()}
