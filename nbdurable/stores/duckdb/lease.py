"""Who holds the file, and when: one in-memory DuckDB instance to which the file is attached.

Owns attach, detach and what "held" means. Does not own what is read or written. The one idea:
every operation runs inside `held()`, fully materialised, so that no cursor outlives the hold;
today the file stays attached until `close`, and a hold per operation needs no other change.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from nbdurable.errors import StoreClosed, StoreError, shown
from nbdurable.stores.duckdb import faults, instances, repair, schema
from nbdurable.stores.duckdb.schema import ALIAS, STORAGE_VERSION

_log = logging.getLogger("nbdurable")
_MOST_NAME_BYTES = 240  # systems take 255, of which "<name>.spool" and such need some
_FIRST_RETRY_S, _LAST_RETRY_S = 0.01, 0.1


class Lease:
    """The hold on one file by this process.

    ``generation`` grows with each attach: cursors of an earlier one are of no use.
    """

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self.path = path
        self.generation = 0
        self.repairs: list[str] = []  # what was repaired, to be told once
        self._timeout_s = timeout_s
        self._change = threading.Condition()
        self._holds = 0
        self._is_attached = False
        self._is_closed = False
        self._wal_seen = (0, 0)
        self._file = (0, 0)
        self._base = instances.take()

    def open(self) -> None:
        """Attach the file, made first when missing, and check that it is a store.

        Raises
        ------
        StoreLocked
            Another process held it until the deadline.
        StoreTooNew
            Its version is newer than what is read here.
        StoreError
            It cannot be read and written, or is no store.
        """
        try:
            _check_place(self.path)
            if not os.path.lexists(self.path):
                _create(self._base, self.path)
            with self._change:
                self._attach()
            if schema.is_empty(self._base):
                schema.create(self._base, _created_by())
            schema.migrate(self._base, schema.check_version(self._base, self.path))
        except BaseException as exc:
            self._release()  # without a checkpoint: what is not ours stays as it is
            if isinstance(exc, duckdb.Error):
                raise faults.told(exc, self.path) from exc
            raise

    @contextlib.contextmanager
    def held(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Hold the file for one operation and yield a cursor of its own.

        Raises
        ------
        StoreClosed
            After `close`.
        """
        with self._change:
            self._check_open()
            if not self._is_attached:
                self._attach()
            self._holds += 1
            cursor = self._base.cursor()
        try:
            yield cursor
        finally:
            cursor.close()
            with self._change:
                self._holds -= 1
                self._change.notify_all()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor that is good for this generation; to be called inside `held()`."""
        with self._change:
            return self._base.cursor()

    def reattach(self, generation: int) -> None:
        """Attach anew after DuckDB invalidated the file; not to be called inside `held()`.

        A caller whose `generation` is past does nothing: another thread was quicker.
        """
        with self._change:
            self._change.wait_for(lambda: self._holds == 0)
            self._check_open()
            if generation == self.generation:
                self._detach()
                self._attach()

    def close(self) -> None:
        """Wait for the holds, checkpoint, detach and free the file."""
        with self._change:
            if self._is_closed:
                return
            self._is_closed = True
            self._change.wait_for(lambda: self._holds == 0)
            self._checkpoint()
            self._release()

    def check_files(self) -> None:
        """Make sure that what is written can be found again; for the writer, between writes.

        A write-ahead log that somebody removed is made up for by a checkpoint.

        Raises
        ------
        StoreError
            The file at the path is not the one that is attached.
        """
        if self.is_misplaced():
            raise StoreError(
                f"store {self.path!r} was removed or replaced while it was open; nothing was "
                "written; put it back, or close all its sessions here and open it again"
            )
        seen = self._wal_seen[0]
        if seen and seen != _identity(self.path + ".wal")[1]:
            _log.warning("%r was removed while the store was open; made up for", self.path + ".wal")
            self._base.execute(f"checkpoint {ALIAS}")
            self.sync_name()

    def is_misplaced(self) -> bool:
        """Whether the attached file is no longer the one at the path."""
        return self._is_attached and self._file != _identity(self.path)

    def wal_bytes(self) -> int:
        """Return the size of the write-ahead log in bytes; does not open it."""
        try:
            return os.stat(self.path + ".wal").st_size
        except OSError:
            return 0

    def sync_name(self) -> None:
        """Make the name of a new write-ahead log durable; DuckDB itself never syncs the folder."""
        try:
            status = os.stat(self.path + ".wal")
        except OSError:
            self._wal_seen = (0, 0)
            return
        inode, size = self._wal_seen
        self._wal_seen = (status.st_ino, status.st_size)
        if (inode != status.st_ino or size > status.st_size) and os.name == "posix":
            _sync_folder(self.path)

    # -- under the condition -------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed(f"store {self.path!r} is closed; open it again")

    def _attach(self) -> None:
        deadline, pause_s = time.monotonic() + self._timeout_s, _FIRST_RETRY_S
        attempt = partial(_attach_file, self._base, self.path)
        while True:
            try:
                is_first = self.generation == 0
                self.repairs += repair.attach(attempt, self.path, deadline, is_first=is_first)
                break
            except duckdb.Error as exc:
                if not faults.is_locked(exc) or time.monotonic() + pause_s > deadline:
                    raise faults.told(exc, self.path) from exc
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_RETRY_S)
        self._is_attached = True
        self._file = _identity(self.path)
        self.generation += 1

    def _release(self) -> None:
        self._is_closed = True
        self._detach()
        instances.give_back(self._base)

    def _checkpoint(self) -> None:
        # So that after a close the one file is the whole store, whoever copies it.
        if not self._is_attached or not (self.wal_bytes() or self._wal_seen[1]):
            return
        if self.is_misplaced():
            _log.warning("store %r was removed or replaced while it was open", self.path)
            if _identity(self.path + ".wal")[1] not in (0, self._wal_seen[0]):
                return  # a checkpoint would take away the log of the file there now
        try:
            self._base.execute(f"checkpoint {ALIAS}")
        except duckdb.Error as exc:
            _log.warning("%s", faults.told(exc, self.path))  # the log keeps everything durable

    def _detach(self) -> None:
        if not self._is_attached:
            return
        self._is_attached = False
        try:
            self._base.execute(f"detach {ALIAS}")
        except duckdb.Error:
            # A fatal error takes the whole instance along: a new one attaches the file afresh.
            self._base.close()
            self._base = instances.take()


def _identity(path: str) -> tuple[int, int]:
    """Return what names a file whatever it is called; zeros where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _attach_file(connection: duckdb.DuckDBPyConnection, path: str, options: str = "") -> None:
    quoted = path.replace("'", "''")
    connection.execute(f"attach '{quoted}' as {ALIAS} (type duckdb{options})")


def _check_place(path: str) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise StoreError(f"folder {folder!r} of store {path!r} does not exist; create it first")
    if os.path.isdir(path):
        raise StoreError(f"store {path!r} is a folder; give the path of a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise StoreError(f"store {path!r} is no regular file; choose another path")
    if os.name == "posix" and "\\" in path:
        raise StoreError(
            f"store {path!r} has a backslash in its path, which DuckDB takes for a folder; "
            "choose another path"
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
    try:
        # DuckDB opens a file in a read-only folder, and fails at the first commit.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as exc:
        raise StoreError(
            f"folder {folder!r} of store {path!r} cannot be written "
            f"({exc.strerror}); change its permissions, or choose another folder"
        ) from exc


def _create(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Make an empty store under another name and link it in place: it is whole or not there."""
    with tempfile.TemporaryDirectory(
        dir=os.path.dirname(path), prefix=f".{os.path.basename(path)[:40]}."
    ) as folder:
        fresh = os.path.join(folder, "new.duckdb")
        try:
            _attach_file(connection, fresh, f", storage_version '{STORAGE_VERSION}'")
            schema.create(connection, _created_by())
            connection.execute(f"detach {ALIAS}")
        except duckdb.Error as exc:
            raise faults.told(exc, path) from exc
        _put_in_place(fresh, path)
    _sync_folder(path)


def _put_in_place(fresh: str, path: str) -> None:
    try:
        os.link(fresh, path)
    except FileExistsError:
        return  # another process was quicker; its file is as good
    except OSError:
        # A file system without hard links.
        if not os.path.lexists(path):
            os.rename(fresh, path)


def _sync_folder(path: str) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(Path(path).parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _created_by() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"nbdurable {version('nbdurable')}, duckdb {duckdb.__version__}"
    except PackageNotFoundError:
        return f"nbdurable from source, duckdb {duckdb.__version__}"
