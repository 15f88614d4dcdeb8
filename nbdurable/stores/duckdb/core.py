"""What all handles of one process on one file share, and the registry that finds it.

Owns the parts of an open file and their order at open and close. The one idea: a process has one
hold per file, counted by its handles; the last one to close frees the file.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading

from nbdurable.errors import StoreError
from nbdurable.stores.duckdb import place
from nbdurable.stores.duckdb.errands import Errands
from nbdurable.stores.duckdb.lease import Lease
from nbdurable.stores.duckdb.reader import Reader
from nbdurable.stores.duckdb.spool import Spool
from nbdurable.stores.duckdb.turns import Turns
from nbdurable.stores.duckdb.writer import Writer


class Core:
    """One open file of this process."""

    def __init__(self, path: str, *, read_only: bool, timeout_s: float) -> None:
        self.path = path
        self.read_only = read_only
        self.pid = os.getpid()
        self.handles = 0
        place.check_place(path, read_only=read_only)
        owner = f"{self.pid}-{secrets.token_hex(4)}"
        self.spool = Spool(path, owner)
        self.lease = Lease(
            path, self.spool, self._turns(), timeout_s=timeout_s, read_only=read_only
        )
        try:
            self.lease.open()
        except BaseException:
            self.spool.close()
            raise
        self.reader = Reader(self.lease)
        self.writer = Writer(self.lease, Errands(self.spool.folder, owner, self.spool.is_alive))
        if not read_only and os.path.isdir(place.work_folder(path)):
            # Inside a hold, when nobody can be at work there.
            self.reader.read(lambda cursor: place.remove_left(path))

    def _turns(self) -> Turns | None:
        try:
            self.spool.enter()
        except StoreError:
            if not self.read_only:
                raise
            return None  # a folder that cannot be written: nobody there writes either
        return Turns(self.spool.folder)

    def check_process(self) -> None:
        """Raise `StoreError` in a fork of the process that opened the file (B65)."""
        if os.getpid() != self.pid:
            raise StoreError(
                f"store {self.path!r} was opened by process {self.pid} and this is its fork "
                f"{os.getpid()}, whose writes would be lost; start processes with 'spawn' and "
                "open the store there"
            )

    def check_place(self) -> None:
        """Raise `StoreError` when the file at the path is not the one held here."""
        if self.lease.is_misplaced():
            raise place.misplaced(self.path)

    def close(self) -> None:
        """Finish what is queued, checkpoint and free the file."""
        self.writer.close()
        self.lease.close()
        self.spool.close()


_cores: dict[tuple[str, bool], Core] = {}  # by path, and whether it is read only
_registry = threading.Lock()


def acquire(path: str, *, exclusive: bool, read_only: bool, timeout_s: float) -> Core:
    """Return the core of a file, opened when this process has not, with one more handle."""
    with _registry:
        core = _cores.get((path, False))
        if core is None:
            core = _cores.get((path, read_only))
        if core is None:
            core = Core(path, read_only=read_only, timeout_s=timeout_s)
            _cores[path, read_only] = core
        core.check_process()
        core.check_place()
        core.handles += 1
    if exclusive:
        try:
            core.lease.keep()
        except BaseException:
            release(core, exclusive=False)
            raise
    return core


def is_open(path: str) -> bool:
    """Whether this process has the file open."""
    with _registry:
        return any(core.path == path and core.pid == os.getpid() for core in _cores.values())


def release(core: Core, *, exclusive: bool) -> None:
    """Give a handle back; the last one closes the file."""
    if core.pid != os.getpid():
        return
    with _registry:
        core.handles -= 1
        if core.handles == 0:
            del _cores[core.path, core.read_only]
            core.close()
        elif exclusive:
            core.lease.unkeep()


@atexit.register
def _close_all() -> None:
    for core in list(_cores.values()):
        if core.pid == os.getpid():
            core.close()


def _renew_lock() -> None:
    global _registry
    _registry = threading.Lock()  # the old one may be held by a thread that the fork left behind


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
