"""A consistent copy of a store's file while it is in use.

Owns the copy and how it gets its name. The one idea: one transaction reads all tables, whatever is
appended meanwhile, and the copy is a fresh file, so that no log and no damage goes along.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import duckdb

from nbdurable.errors import StoreError, shown
from nbdurable.stores.duckdb import faults, place, schema
from nbdurable.stores.duckdb.schema import ALIAS, NEW_FILE, TABLES

Params = Sequence[object]

_ALL: dict[str, tuple[str, Params]] = {
    table: (f"select * from {ALIAS}.nbd.{table}", ()) for table in TABLES
}


def back_up(cursor: duckdb.DuckDBPyConnection, path: str, to: str) -> None:
    """Copy the attached file, which is at `path`, to a new file at `to`.

    Raises
    ------
    StoreError
        There is something at `to`, its folder is not there, or it cannot be written.
    """
    folder = os.path.dirname(to)
    if "\0" in to:
        raise StoreError(f"backup {shown(to)} holds NUL; choose another path")
    named = shown(to, 200)
    if os.path.lexists(to):
        raise StoreError(f"backup {named} is there already; choose another path, or remove it")
    if not os.path.isdir(folder):
        raise StoreError(
            f"folder {shown(folder, 200)} of backup {named} does not exist; create it first"
        )
    try:
        with tempfile.TemporaryDirectory(
            dir=folder, prefix=f".{os.path.basename(to)[:40]}."
        ) as hidden:
            fresh = os.path.join(hidden, "copy.duckdb")
            with copied(cursor, fresh, _ALL):
                pass
            place.sync_file(fresh)
            _put_in_place(fresh, to)
        place.sync_folder(to)
    except duckdb.Error as exc:
        is_of_source = faults.torn_block(exc) or f'"{path}"' in str(exc)
        raise faults.told(exc, path if is_of_source else to) from exc
    except OSError as exc:
        if isinstance(exc, StoreError):
            raise
        raise StoreError(
            f"backup {named} cannot be written ({exc.strerror}); choose another folder"
        ) from exc


@contextlib.contextmanager
def copied(
    cursor: duckdb.DuckDBPyConnection, fresh: str, queries: Mapping[str, tuple[str, Params]]
) -> Iterator[str]:
    """Write a new file, and yield the alias under which it is attached.

    Parameters
    ----------
    cursor : DuckDBPyConnection
        To which the file that is copied is attached.
    fresh : str
        The path of the new file.
    queries : mapping
        By table what to write, as a query and its parameters.
    """
    copy = f"nbd_copy_{secrets.token_hex(4)}"
    place.attach_file(cursor, fresh, f", {NEW_FILE}", copy)
    try:
        cursor.execute("begin")
        schema.create_tables(cursor, copy)
        for table, (query, params) in queries.items():
            cursor.execute(f"insert into {copy}.nbd.{table} {query}", params)
        cursor.execute("commit")
        cursor.execute(f"checkpoint {copy}")
        yield copy
    except BaseException:
        _roll_back(cursor)
        raise
    finally:
        cursor.execute("use memory")
        cursor.execute(f"detach {copy}")


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("rollback")
    except duckdb.Error:
        return  # a failed commit has rolled back already


def _put_in_place(fresh: str, to: str) -> None:
    try:
        os.link(fresh, to)
    except FileExistsError:
        raise StoreError(
            f"backup {shown(to, 200)} is there already; choose another path, or remove it"
        ) from None
    except OSError:
        # A file system without hard links.
        os.rename(fresh, to)
