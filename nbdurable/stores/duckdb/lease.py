"""Who holds the file, and when: one in-memory DuckDB instance to which the file is attached.

Owns attach, detach and what "held" means. Does not own what is read or written, nor the queue
(`turns`). The one idea: every operation runs inside `held()`, fully materialised, so that no cursor
outlives the hold. Where another process has the store open, the file is let go at the end of each
hold, before the caller goes on: a caller may keep Python busy for seconds, and then no thread of
this process could let it go. Where none has, it stays attached while it is used.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator

import duckdb

from nbdurable.errors import StoreClosed, StoreError
from nbdurable.stores.duckdb import faults, instances, place, repair, schema
from nbdurable.stores.duckdb.errands import DoneElsewhere, Errand
from nbdurable.stores.duckdb.schema import ALIAS
from nbdurable.stores.duckdb.spool import Spool
from nbdurable.stores.duckdb.turns import Turns
from nbdurable.stores.duckdb.upkeep import Upkeep
from nbdurable.stores.duckdb.witness import Witness

_log = logging.getLogger("nbdurable")
_FIRST_RETRY_S, _LAST_RETRY_S = 0.002, 0.1
_LINGER_S = 0.1  # how long a file that nobody else wants stays attached after its last use
_MOST_TURN_S = 0.05  # after which one who waits elsewhere comes before further holds here
_MOST_DRAIN_S = 0.2
_CLOSE_WAIT_S = 1.0  # for another holder, to checkpoint at the last close

_IDLE_LOG_BYTES = 64_000  # worth a checkpoint when nobody waits
_OWN_LOG_BYTES = 4 << 20  # while attached for good; below DuckDB's own 16 MiB, which hits an append


class Lease:
    """The hold on one file by this process.

    ``generation`` grows with each attach. ``instance`` grows when cursors made before are lost.

    Parameters
    ----------
    path : str
        The file.
    spool : Spool
        Knows whether another process has the store open.
    turns : Turns, optional
        The queue for the file; without one whoever comes is served.
    timeout_s : float
        How long to wait for another holder.
    read_only : bool
        Attach the file without a right to write.
    """

    def __init__(
        self, path: str, spool: Spool, turns: Turns | None, *, timeout_s: float, read_only: bool
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.generation = 0
        self.repairs: list[str] = []  # what was repaired, to be told once
        self.instance = 0
        self.witness = Witness(path)
        self._spool = spool
        self.on_leaving: Callable[[bool], None] = lambda is_shared: None  # before each detach
        self._turns = turns
        self._timeout_s = timeout_s
        self._change = threading.Condition()
        self._holds = 0
        self._keepers = 0
        self._is_attached = False
        self._is_closed = False
        self._attached_at = self._used_at = 0.0
        self._upkeep = Upkeep()
        self._lingering: threading.Thread | None = None
        self._log, self._file = place.LogName(path), (0, 0)
        self._base = instances.take()
        self._cursors: list[duckdb.DuckDBPyConnection] = []

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
            if not os.path.lexists(self.path):
                place.create_store(self._base, self.path)
            with self._change:
                self._attach(self._timeout_s)
                if not self.read_only and schema.is_empty(self._base):
                    schema.create(self._base, place.created_by())
                version = schema.check_version(self._base, self.path)
                if not self.read_only:
                    schema.migrate(self._base, version)
                self._rest()
        except BaseException as exc:
            self._release(is_last=not self._spool.others(afresh=True))  # without a checkpoint
            if isinstance(exc, duckdb.Error):
                raise faults.told(exc, self.path) from exc
            raise

    @contextlib.contextmanager
    def held(self, errand: Errand | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Hold the file for one operation and yield a cursor of its own.

        Not for the main thread, in which an interrupt could come between attaching and its note;
        `aside.run` is. `errand` is what it is for; it is posted when another process has the turn.

        Raises
        ------
        DoneElsewhere
            The errand was answered meanwhile.
        StoreClosed
            After `close`.
        StoreLocked
            Another process held it until the deadline.
        """
        with self._change:
            self._check_open()
            if self._is_attached and self._is_overdue():
                self._change.wait_for(lambda: self._holds == 0, _MOST_DRAIN_S)
                self._check_open()
            if not self._is_attached:
                self._attach(self._timeout_s, errand)
            self._holds += 1
            cursor = self._base.cursor()
        try:
            yield cursor
        finally:
            cursor.close()
            with self._change:
                self._holds -= 1
                if self._holds == 0:
                    self._rest()
                    self._change.notify_all()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor that is good inside holds for as long as `instance` stays."""
        with self._change:
            self._cursors.append(self._base.cursor())
            return self._cursors[-1]

    def keep(self) -> None:
        """Keep the file attached, until as many calls of `unkeep`."""
        with self.held():
            self._keepers += 1

    def unkeep(self) -> None:
        """Let the file go again when nobody else keeps it."""
        with self._change:
            self._keepers -= 1
            if self._holds == 0 and not self._is_closed:
                self._rest()

    def reattach(self, generation: int) -> None:
        """Attach anew after DuckDB invalidated the file; not to be called inside `held()`.

        A caller whose `generation` is past does nothing: another thread was quicker.
        """
        with self._change:
            self._change.wait_for(lambda: self._holds == 0)
            self._check_open()
            if generation == self.generation and self._is_attached:
                self._detach()
                self._attach(self._timeout_s)
                self._rest()

    def close(self) -> None:
        """Wait for the holds and free the file, whole if no other process has it open."""
        with self._change:
            if self._is_closed:
                return
            self._is_closed = True
            self._change.wait_for(lambda: self._holds == 0)
            is_last = not self._spool.others(afresh=True)
            if is_last:
                self._settle()
            self._release(is_last=is_last)

    def changed(self) -> int:
        """Return a number that grows when others wrote; by a `stat`, without attaching."""
        return self.witness.look(self._file)

    @property
    def is_kept(self) -> bool:
        """Whether the file is kept from all others, and not only for the time of a hold."""
        return self._keepers > 0

    def due_bytes(self) -> int:
        """Return how long the log may be before an idle moment is used for a checkpoint."""
        return _OWN_LOG_BYTES if self._keepers else _IDLE_LOG_BYTES

    def check_files(self) -> None:
        """Make sure that what is written can be found again; for the writer, between writes.

        A write-ahead log that somebody removed is made up for by a checkpoint.

        Raises
        ------
        StoreError
            The file at the path is not the one that is attached.
        """
        self._check_file()
        seen = self._log.inode
        if seen and seen != place.identity(self.path + ".wal")[1]:
            _log.warning("%r was removed while the store was open; made up for", self.path + ".wal")
            self._base.execute(f"checkpoint {ALIAS}")
            self.sync_name()

    def replace(self, fresh: str) -> None:
        """Put a whole file in the place of the kept one, which has no log; not inside `held()`.

        Raises
        ------
        StoreError
            The file could not be replaced; it is as it was.
        """
        with self._change:
            self._change.wait_for(lambda: self._holds == 0)
            self._check_file()
            place.replace_file(fresh, self.path)
            self._file = place.identity(self.path)
            self._log.forget()
            self._detach()
        place.sync_replaced(self.path)

    def is_misplaced(self) -> bool:
        """Whether the file that was opened is no longer the one at the path."""
        return self._file != (0, 0) and self._file != place.identity(self.path)

    def wal_bytes(self) -> int:
        """Return the size of the write-ahead log in bytes; does not open it."""
        return place.log_of(self.path)[1]

    def sync_name(self) -> None:
        """Make the name of a new write-ahead log durable."""
        self._log.sync()

    # -- under the condition -------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed(f"store {self.path!r} is closed; open it again")

    def _check_file(self) -> None:
        if self.is_misplaced():
            raise place.misplaced(self.path)

    def _attach(self, timeout_s: float, errand: Errand | None = None) -> None:
        deadline = time.monotonic() + timeout_s
        try:
            if self._turns is not None:  # else DuckDB's lock decides, and names the holder
                self._turns.enter(deadline, errand)
            if errand is not None and errand.is_done():
                raise DoneElsewhere
            self._attach_by(deadline)
        except BaseException:
            self._leave_turn()
            raise
        self._is_attached = True
        self._attached_at = time.monotonic()
        self._file = place.identity(self.path)
        self._log.attached()
        self.generation += 1
        self.witness.attached()

    def _attach_by(self, deadline: float) -> None:
        pause_s = _FIRST_RETRY_S
        options = ", read_only" if self.read_only else ""
        while True:
            self._check_file()  # a missing one would be made
            began, has_log = time.monotonic(), self.wal_bytes() > 0
            wanted = place.identity(self.path)
            try:
                self.repairs += repair.attach(
                    lambda: place.attach_file(self._base, self.path, options),
                    self.path,
                    deadline,
                    is_first=self.generation == 0,
                    read_only=self.read_only,
                )
                if place.identity(self.path) == wanted:
                    self._upkeep.attached(time.monotonic() - began, has_log=has_log)
                    return
                # Replaced meanwhile: which of the two is attached is not known.
                self._base.execute(f"detach {ALIAS}")
            except duckdb.Error as exc:
                if not faults.is_locked(exc) or time.monotonic() + pause_s > deadline:
                    raise faults.told(exc, self.path) from exc
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_RETRY_S)

    def _is_overdue(self) -> bool:
        is_long = time.monotonic() - self._attached_at > _MOST_TURN_S
        return is_long and self._holds > 0 and not self._keepers and self._spool.others()

    def _rest(self) -> None:
        """Let the file go unless it is kept, or used soon again and wanted by nobody else."""
        if self._keepers or not self._is_attached:
            return
        if self._spool.others() or not self._linger():
            self._let_go()

    def _linger(self) -> bool:
        self._used_at = time.monotonic()
        if self._lingering is None:
            thread = threading.Thread(
                target=self._let_go_when_idle, name="nbdurable-lease", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                return False  # no thread starts once the interpreter ends
            self._lingering = thread
        return True

    def _let_go_when_idle(self) -> None:
        while True:
            with self._change:
                rest_s = self._used_at + _LINGER_S - time.monotonic()
                if rest_s <= 0 and self._holds == 0 and not self._keepers:
                    self._let_go()
                if self._is_closed or self._keepers or not self._is_attached:
                    self._lingering = None
                    return
            time.sleep(max(rest_s, _LINGER_S / 4))

    def _let_go(self) -> None:
        if not self._is_attached:
            return
        if not self.read_only:
            self._upkeep.shorten(self.wal_bytes(), self._checkpoint)
        self._detach()
        self._leave_turn()

    def _leave_turn(self) -> None:
        if self._turns is not None:
            self._turns.leave()

    def _release(self, *, is_last: bool) -> None:
        self._is_closed = True
        self._detach()
        if self._turns is not None:
            self._turns.close(is_last=is_last)
        self._drop_cursors()
        instances.give_back(self._base)

    def _settle(self) -> None:
        """Make the one file the whole store, whoever copies it."""
        if self.read_only or not (self.wal_bytes() or self._log.size):
            return
        if not self._is_attached:
            try:
                self._attach(_CLOSE_WAIT_S)
            except StoreError as exc:
                _log.warning("%s", exc)  # the log keeps everything durable
                return
        if self.is_misplaced():
            _log.warning("store %r was removed or replaced while it was open", self.path)
            if place.identity(self.path + ".wal")[1] not in (0, self._log.inode):
                return  # a checkpoint would take away the log of the file there now
        self._checkpoint()

    def _checkpoint(self) -> None:
        try:
            self._base.execute(f"checkpoint {ALIAS}")
        except duckdb.Error as exc:
            _log.warning("%s", faults.told(exc, self.path))  # the log keeps everything durable

    def _detach(self) -> None:
        if not self._is_attached:
            return
        self.on_leaving(self._spool.others())
        self.witness.leaving()
        self._is_attached = False
        try:
            self._base.execute(f"detach {ALIAS}")
        except duckdb.Error:
            # A fatal error takes the whole instance along: a new one attaches the file afresh.
            self._drop_cursors()
            self._base.close()
            self._base = instances.take()
            self.instance += 1

    def _drop_cursors(self) -> None:
        for cursor in self._cursors:
            cursor.close()
        self._cursors.clear()
