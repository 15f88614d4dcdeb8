"""Stores: where sessions are kept, one object per file or database and process.

`open_store` counts who holds a store and `release_store` frees it with the last of them. A store
that a caller made is the caller's to close.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from nbdurable.errors import StoreError, shown
from nbdurable.stores.base import Store
from nbdurable.wire import is_repaired

__all__ = ["Store", "default_store", "open_store", "release_store"]

_lock = threading.Lock()
_held: dict[str, tuple[Store, int]] = {}  # by real path, or by identity for memory stores


def default_store() -> str:
    """Return the store of who gives none: ``$NBDURABLE_STORE``, else a file in this folder."""
    return os.environ.get("NBDURABLE_STORE") or "nbdurable.duckdb"


def open_store(where: Store | str | os.PathLike[str], *, for_reading: bool = False) -> Store:
    """Return the store of a path, one object for all who open it in this process.

    Parameters
    ----------
    where : Store or path
        A path to a DuckDB file, which is made when missing; a ``.jsonl`` that `Session.export`
        wrote, which is loaded and never written; ``":memory:"`` for a fresh memory store; a
        ``postgresql://`` address; or a store, which is returned as it is.
    for_reading : bool
        Nothing will be written: a DuckDB file that cannot be is opened all the same, and a
        database that holds no store is refused.

    Raises
    ------
    StoreError
        The file or database cannot be opened, or is of a kind that this version does not know.
    """
    if not isinstance(where, str | os.PathLike):
        if not isinstance(where, Store):
            raise StoreError(
                f"store {shown(where)} of type {type(where).__name__} is no store; "
                "give a path, ':memory:', or an object with the methods of Store"
            )
        key = _key_of(where)
        return _hold(key, lambda: where) if key else where
    given = os.fspath(where)
    if "://" in given:
        return _hold(f"address {given}", lambda: _open_address(given, must_exist=for_reading))
    text = _checked_path(os.path.expanduser(given))
    if text == ":memory:":
        from nbdurable.stores.memory import MemoryStore

        memory = MemoryStore()
        return _hold(f"memory {id(memory)}", lambda: memory)
    key, read_only = os.path.realpath(text), for_reading and not _is_writable(text)
    return _hold(f"{key} read only" if read_only else key, lambda: _open_file(text, read_only))


def release_store(store: Store) -> None:
    """Let go of a store from `open_store`; the last holder closes it."""
    key = _key_of(store)
    if not key:
        return
    with _lock:
        _, holders = _held[key]
        if holders > 1:
            _held[key] = (store, holders - 1)
            return
        del _held[key]
    store.close()


def _key_of(store: Store) -> str:
    with _lock:
        return next((key for key, (held, _) in _held.items() if held is store), "")


def _hold(key: str, make: Callable[[], Store]) -> Store:
    with _lock:
        store, holders = _held.get(key) or (make(), 0)
        if holders and (check_place := getattr(store, "check_place", None)):
            check_place()  # else what is opened and what is at the path are two things
        _held[key] = (store, holders + 1)
        return store


def _is_writable(path: str) -> bool:
    folder = os.path.dirname(os.path.realpath(path))
    return os.access(path, os.W_OK) and os.access(folder, os.W_OK)


def _open_file(path: str, read_only: bool) -> Store:
    if path.endswith(".jsonl"):
        from nbdurable.stores.jsonl import RecordingStore

        return RecordingStore(path)
    from nbdurable.stores.duckdb import DuckDBStore

    return DuckDBStore(Path(path), read_only=read_only)


def _checked_path(text: str) -> str:
    if not text or "\0" in text or is_repaired(text):
        raise StoreError(
            f"store path {shown(text)} cannot be used; give text that is not empty and has "
            "neither NUL nor half a character"
        )
    return text


def _open_address(address: str, *, must_exist: bool) -> Store:
    kind = address.partition("://")[0]  # neither user nor password may reach a text
    if kind not in ("postgresql", "postgres"):
        raise StoreError(
            f"store address of kind {shown(kind)} cannot be opened; give the path of a file, or "
            "postgresql://…"
        )
    try:
        from nbdurable.stores.postgres import PostgresStore
    except ImportError as exc:
        raise StoreError(
            f"store address of kind {shown(kind)} needs psycopg, which cannot be imported "
            f"({exc}); run pip install 'nbdurable[postgres]'"
        ) from exc
    return PostgresStore(address, must_exist=must_exist)
