"""In-memory DuckDB instances, of which one is kept to be used again.

Making an instance takes ten times as long as attaching a file to it, and a notebook opens and
closes its store at each run of a cell.
"""

from __future__ import annotations

import os
import threading

import duckdb

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
MERGES = 2  # of groups of rows, that a checkpoint makes of each table; DuckDB makes 100

_lock = threading.Lock()
_spare: tuple[int, duckdb.DuckDBPyConnection] | None = None  # with the process that made it


def take() -> duckdb.DuckDBPyConnection:
    """Return an instance with nothing attached, the caller's own until it is given back."""
    global _spare
    with _lock:
        if _spare is not None and _spare[0] == os.getpid():
            (_, connection), _spare = _spare, None
            set_merges(connection, MERGES)
            return connection
    connection = duckdb.connect(":memory:", config=_CONFIG)
    # Without a script, as in a notebook, DuckDB draws what takes over two seconds on stdout.
    connection.execute("set enable_progress_bar = false")
    connection.execute("set checkpoint_on_detach = 'DISABLED'")
    connection.execute("pragma disable_checkpoint_on_shutdown")
    set_merges(connection, MERGES)
    return connection


def set_merges(connection: duckdb.DuckDBPyConnection, count: int) -> None:
    """Set how many merges of groups of rows a checkpoint of this instance makes of each table."""
    connection.execute(f"set max_vacuum_tasks = {count}")


def give_back(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep an instance for the next `take`, if it is sound and none is kept."""
    global _spare
    with _lock:
        # One of another process is left where it is: its threads are not here to end it.
        if _spare is None and _is_clean(connection):
            _spare = os.getpid(), connection
            return
    connection.close()


def _is_clean(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        rows = connection.execute("select count(*) from duckdb_databases() where not internal")
        return rows.fetchall() == [(1,)]  # its own, in memory
    except duckdb.Error:
        return False


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()  # the old one may be held by a thread that the fork left behind


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
