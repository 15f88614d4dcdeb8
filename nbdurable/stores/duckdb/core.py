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
from nbdurable.stores.duckdb.lease import Lease
from nbdurable.stores.duckdb.reader import Reader
from nbdurable.stores.duckdb.spool import Spool
from nbdurable.stores.duckdb.writer import Writer


class Core:
    """One open file of this process."""

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self.path = path
        self.pid = os.getpid()
        self.handles = 0
        self.lease = Lease(path, timeout_s=timeout_s)
        self.lease.open()
        self.reader = Reader(self.lease)
        self.writer = Writer(self.lease)
        self.spool = Spool(path, f"{self.pid}-{secrets.token_hex(4)}")

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
            raise StoreError(
                f"store {self.path!r} was removed or replaced while this process has it open; "
                "close all its sessions, or restart the kernel, and open it again"
            )

    def close(self) -> None:
        """Finish what is queued, checkpoint and free the file."""
        self.writer.close()
        self.spool.close()
        self.lease.close()


_cores: dict[str, Core] = {}
_registry = threading.Lock()


def acquire(path: str, *, timeout_s: float) -> Core:
    """Return the core of a file, opened when this process has not, with one more handle."""
    with _registry:
        core = _cores.get(path)
        if core is None:
            core = _cores[path] = Core(path, timeout_s=timeout_s)
        core.check_process()
        core.check_place()
        core.handles += 1
        return core


def release(core: Core) -> None:
    """Give a handle back; the last one closes the file."""
    if core.pid != os.getpid():
        return
    with _registry:
        core.handles -= 1
        if core.handles == 0:
            del _cores[core.path]
            core.close()


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
