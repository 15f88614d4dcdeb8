"""Where a store's file is, and what stands there: checks, the making of a new file, its identity.

Owns what is done by path, without an attached file. The one idea: a file gets its name when it is
whole, and what a `stat` tells is enough to know whether anybody wrote since.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import duckdb

from nbdurable.errors import StoreError, shown
from nbdurable.stores.duckdb import faults, schema
from nbdurable.stores.duckdb.schema import ALIAS, NEW_FILE, ROW_GROUP_SIZE

Fingerprint = tuple[tuple[int, ...], ...]

_MOST_NAME_BYTES = 240  # systems take 255, of which "<name>.spool" and such need some
_TICK_NS, _COARSE_TICK_NS = 20_000_000, 2_000_000_000  # of times with parts of a second, or none


def identity(path: str) -> tuple[int, int]:
    """Return what names a file whatever it is called; zeros where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def log_of(path: str) -> tuple[int, int]:
    """Return the inode and the size of a file's write-ahead log; zeros where there is none."""
    try:
        status = os.stat(path + ".wal")
    except OSError:
        return (0, 0)
    return (status.st_ino, status.st_size)


class LogName:
    """The write-ahead log of an attached file as last seen: its inode and size, zeros for none.

    DuckDB itself never syncs the folder, so that a power cut could take away the name of a log and
    with it what was acknowledged.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._durable_inode = 0
        self.forget()

    def forget(self) -> None:
        """Count the log as gone."""
        self.inode, self.size = 0, 0

    def attached(self) -> None:
        """Look at a log that others may have made, whose name nobody vouches for."""
        self.inode, self.size = log_of(self._path)
        self._durable_inode = 0

    def sync(self) -> None:
        """Make the name durable where it is new here.

        To be called after each commit and checkpoint: a new log may have the inode of the last.
        """
        self.inode, self.size = log_of(self._path)
        if self.inode and self.inode != self._durable_inode:
            sync_folder(self._path)
        self._durable_inode = self.inode


def state_of(path: str) -> Fingerprint:
    """Return what a `stat` tells of a file and of its log; `(0,)` for one that is not there."""
    found: list[tuple[int, ...]] = []
    for name in (path, path + ".wal"):
        try:
            status = os.stat(name)
        except OSError:
            found.append((0,))
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def fingerprint(path: str) -> Fingerprint | None:
    """Return what differs once anybody wrote to a file; None where that cannot be told yet.

    A commit makes the log longer, a checkpoint removes it and rewrites the file. Two checkpoints
    within a tick of the file system's clock look alike, so that a file just written has none.
    """
    found = state_of(path)
    written_ns = found[0][-1]
    tick_ns = _TICK_NS if written_ns % 1_000_000_000 else _COARSE_TICK_NS
    return None if 0 <= time.time_ns() - written_ns < tick_ns else found


def attach_file(
    connection: duckdb.DuckDBPyConnection, path: str, options: str = "", alias: str = ALIAS
) -> None:
    """Attach a file, by default under the alias of this package."""
    quoted = path.replace("'", "''")
    sized = f"type duckdb, row_group_size {ROW_GROUP_SIZE}"
    connection.execute(f"attach '{quoted}' as {alias} ({sized}{options})")


def real_path(path: str | os.PathLike[str]) -> str:
    """Return a file's path without symbolic links.

    Raises
    ------
    StoreError
        It is the address of a database; no text of ours may repeat that (B69).
    """
    kind, is_address, _ = os.fspath(path).partition("://")
    if is_address:
        raise StoreError(
            f"store address of kind {shown(kind)} is no DuckDB file; give the path of one"
        )
    return os.path.realpath(path)


def check_place(path: str, *, read_only: bool = False) -> None:
    """Raise `StoreError` where no store can be, before anything is made or opened (B63)."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise StoreError(f"folder {folder!r} of store {path!r} does not exist; create it first")
    check_kind(path)
    if os.name == "posix" and "\\" in path:
        raise StoreError(
            f"store {path!r} has a backslash in its path, which DuckDB takes for a folder; "
            "choose another path"
        )
    if "?" in path:
        raise StoreError(
            f"store {path!r} has a question mark in its path, from where on DuckDB takes it for "
            "the query of a URL and keeps its log elsewhere; choose another path"
        )
    if len(os.fsencode(os.path.basename(path))) > _MOST_NAME_BYTES:
        raise StoreError(
            f"store {shown(path)} has a name of more than {_MOST_NAME_BYTES} bytes, which leaves "
            "no room for the names beside it; choose a shorter one"
        )
    if os.path.exists(path) and os.path.getsize(path) == 0:
        raise StoreError(
            f"file {path!r} is empty, which is no DuckDB database; "
            "remove it, or choose another file"
        )
    if read_only:
        if not os.path.exists(path):
            raise StoreError(f"store {path!r} does not exist; open it without read_only to make it")
        return
    try:
        # DuckDB opens a file in a read-only folder, and fails at the first commit.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as exc:
        raise StoreError(
            f"folder {folder!r} of store {path!r} cannot be written "
            f"({exc.strerror}); change its permissions, or choose another folder"
        ) from exc


def check_kind(path: str) -> None:
    """Raise `StoreError` for what is there and is no file: a pipe would be waited for."""
    if os.path.isdir(path):
        raise StoreError(f"store {path!r} is a folder; give the path of a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise StoreError(f"store {path!r} is no regular file; choose another path")


def create_store(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Make an empty store under another name and link it in place: it is whole or not there."""
    with tempfile.TemporaryDirectory(
        dir=os.path.dirname(path), prefix=f".{os.path.basename(path)[:40]}."
    ) as folder:
        fresh = os.path.join(folder, "new.duckdb")
        try:
            attach_file(connection, fresh, f", {NEW_FILE}")
            schema.create(connection, created_by())
            connection.execute(f"detach {ALIAS}")
        except duckdb.Error as exc:
            raise faults.told(exc, path) from exc
        _put_in_place(fresh, path)
    sync_folder(path)


def _put_in_place(fresh: str, path: str) -> None:
    try:
        os.link(fresh, path)
    except FileExistsError:
        return  # another process was quicker; its file is as good
    except OSError:
        # A file system without hard links.
        if not os.path.lexists(path):
            os.rename(fresh, path)


def work_folder(path: str) -> str:
    """Return where a file is made that is to take a store's place; nobody else's is there."""
    return f"{path}.spool/forget"


def remove_left(path: str) -> None:
    """Remove what a process that was killed left of a file that was to take the store's place."""
    shutil.rmtree(work_folder(path), ignore_errors=True)


def replace_file(fresh: str, path: str) -> None:
    """Put a whole file in a store's place at once: a crash leaves the one or the other.

    Raises
    ------
    StoreError
        It could not be done; the file is as it was.
    """
    try:
        os.chmod(fresh, os.stat(path).st_mode & 0o777)
        sync_file(fresh)
        if os.path.lexists(f"{path}.wal"):
            raise StoreError(f"store {path!r} has a log again; try again (nothing was changed)")
        os.replace(fresh, path)
    except StoreError:
        raise
    except OSError as exc:
        raise StoreError(
            f"store {path!r} cannot be replaced ({exc.strerror}); close it everywhere and try "
            "again (nothing was changed)"
        ) from exc


def sync_replaced(path: str) -> None:
    """Make it durable that a store's file was replaced.

    Raises
    ------
    StoreError
        It is replaced, and may be as before after a power cut.
    """
    try:
        sync_folder(path)
    except OSError as exc:
        raise StoreError(
            f"store {path!r} is replaced, but its folder could not be synced ({exc.strerror}); "
            "after a power cut look whether the session is gone"
        ) from exc


def misplaced(path: str) -> StoreError:
    """Return the error for a file that is not the one that was opened."""
    return StoreError(
        f"store {path!r} was removed or replaced while it was open, as nbdurable forget does it; "
        "nothing was written; put it back if it was moved; close all its sessions, or restart the "
        "kernel, and open it again"
    )


def sync_file(path: str) -> None:
    """Make what is in a file durable."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Make the names in a file's folder durable."""
    if os.name != "posix":
        return
    descriptor = os.open(Path(path).parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def created_by() -> str:
    """Return what a new store says of who made it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"nbdurable {version('nbdurable')}, duckdb {duckdb.__version__}"
    except PackageNotFoundError:
        return f"nbdurable from source, duckdb {duckdb.__version__}"
