"""Answers in flight, kept beside the file until they are appended (B24), and who else is there.

Owns one file per process in ``<store>.spool/``, under a lock held while the store is open; a lock
that is free tells that its process is gone. The one idea: a draft is written without a sync, since
a killed process leaves what it wrote to the kernel; only a power cut takes it, and it was not
acknowledged.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock, Timeout

from nbdurable.errors import StoreError, shown
from nbdurable.stored import RunEnd, SpoolDraft, StoredEntry
from nbdurable.stores.duckdb.turns import Turns, new_lock

_log = logging.getLogger("nbdurable")
_COMPACT_BYTES = 8 << 20  # a longer file is rewritten with the newest snapshot of each draft
_ENTER_S = 5.0  # for one who looks at this moment whether the process is alive
ASKED, ANSWERED, UNFINISHED = (".ask", ".done", ".asking")  # of errands, see there
_REWRITTEN = ".new"
_LOOK_S = 1.0  # between two looks whether others are alive


class Spool:
    """The drafts of one open store, and those that dead processes left."""

    def __init__(self, store_path: str, owner: str) -> None:
        self.folder = Path(store_path + ".spool")
        self._path = self.folder / f"{owner}.jsonl"
        self._own = _lock_path(self._path).name
        self._mutex = threading.Lock()
        self._drafts: dict[str, bytes] = {}  # entry id -> its newest line
        self._lock: FileLock | None = None
        self._descriptor = -1
        self._size_bytes = 0
        self._compact_bytes = _COMPACT_BYTES
        self._dead = {Turns.NAME}  # locks that stand for no living process
        self._looked_at = 0.0

    def enter(self) -> None:
        """Let others know that this process has the store open.

        Raises
        ------
        StoreError
            The folder cannot be written, or its disk is full.
        """
        with self._mutex, self._told():
            self._enter()

    def others(self, *, afresh: bool = False) -> bool:
        """Whether another process has the store open; one that died is noticed a second later.

        `afresh` looks now.
        """
        try:
            names = {name for name in os.listdir(self.folder) if name.endswith(".lock")}
        except OSError:
            return False
        names -= self._dead
        names.discard(self._own)
        if names and (afresh or time.monotonic() - self._looked_at > _LOOK_S):
            self._looked_at = time.monotonic()
            gone = {name for name in names if _is_gone(self.folder / name)}
            # What is left of one is its spool, to be recovered; a newcomer has none yet.
            self._dead |= {name for name in gone if (self.folder / name).exists()}
            names -= gone
        return bool(names)

    def owners(self) -> dict[int, Path]:
        """Return the spools of the other processes that have the store open, by process id."""
        if not self.others(afresh=True):
            return {}
        locks = {path for path in self.folder.glob("*.lock") if path.name not in self._dead}
        return {
            int(path.name.partition("-")[0]): path.with_suffix(".jsonl")
            for path in sorted(locks)
            if path.name != self._own and path.name.partition("-")[0].isdecimal()
        }

    def is_alive(self, owner: str) -> bool:
        """Whether the process of that name is, as of now."""
        return not _is_gone(_lock_path(self.folder / owner))

    def put(self, draft: SpoolDraft) -> None:
        """Write the newest snapshot of a draft; without a sync.

        Raises
        ------
        StoreError
            The folder cannot be written, or its disk is full.
        """
        wire = {"entry": draft.entry._asdict(), "end": asdict(draft.end) if draft.end else None}
        line = json.dumps(wire).encode() + b"\n"
        with self._mutex, self._told():
            self._open()
            self._drafts[draft.entry.id] = line
            self._write(line)

    def drop(self, entry_ids: Iterable[str]) -> None:
        """Forget drafts, by the ids of their entries; unknown ids are passed over."""
        if not self._drafts:
            return
        with self._mutex, self._told():
            gone = [id for id in entry_ids if self._drafts.pop(id, None) is not None]
            if gone and not self._drafts:
                self._rewrite()
            elif gone:
                self._write(json.dumps({"gone": gone}).encode() + b"\n")

    def close(self) -> None:
        """Free the lock; drafts still in flight are left to the next recovery."""
        with self._mutex:
            if self._lock is None:
                return
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            if not self._drafts:
                with contextlib.suppress(OSError):  # one that stays has nothing to recover
                    self._path.unlink(missing_ok=True)
            _free(self._lock, self._path)
            self._lock = None

    @contextlib.contextmanager
    def left_behind(self) -> Iterator[list[SpoolDraft]]:
        """Yield the drafts of dead processes; on leaving without an error they are removed."""
        drafts: list[SpoolDraft] = []
        with contextlib.ExitStack() as locks:
            dead: list[tuple[Path, bool]] = []
            for path in sorted(self.folder.glob("*.jsonl")):
                if path == self._path or not path.is_file() or not (lock := _taken(path)):
                    continue
                locks.callback(_free, lock, path)
                if path.exists():  # else another process recovered it before the lock was taken
                    found, is_whole = _read(path)
                    drafts.extend(found)
                    dead.append((path, is_whole))
            yield drafts
            with self._told():
                for path, is_whole in dead:
                    if is_whole:
                        path.unlink(missing_ok=True)
                    else:
                        path.replace(path.with_suffix(".unread"))

    # -- under the mutex -----------------------------------------------------------------------

    def _enter(self) -> None:
        if self._lock is not None:
            return
        path = _lock_path(self._path)
        while True:
            lock = new_lock(path)
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                lock.acquire(timeout=_ENTER_S, poll_interval=0.01)
            except (FileNotFoundError, FileExistsError):
                if _is_blocked(self.folder):
                    raise
                continue  # the last process to leave took the folder away
            if path.exists():
                break
            lock.release()  # taken for one that a dead process left
        self._lock = lock

    def _open(self) -> None:
        self._enter()
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def _write(self, line: bytes) -> None:
        if self._size_bytes + len(line) > self._compact_bytes:
            self._rewrite()
            return
        self._put_bytes(self._descriptor, line)
        self._size_bytes += len(line)

    def _rewrite(self) -> None:
        if not self._drafts:
            os.ftruncate(self._descriptor, 0)
            self._size_bytes = 0
            return
        whole = b"".join(self._drafts.values())
        fresh = self._path.with_suffix(_REWRITTEN)
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND
        descriptor = os.open(fresh, flags, 0o600)
        self._put_bytes(descriptor, whole)
        os.replace(fresh, self._path)
        os.close(self._descriptor)
        self._descriptor, self._size_bytes = descriptor, len(whole)
        self._compact_bytes = max(_COMPACT_BYTES, 2 * len(whole))

    @staticmethod
    def _put_bytes(descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise StoreError(
                f"spool {str(self._path)!r} cannot be written ({exc.strerror or exc}); "
                "free space or change permissions (what is stored is safe)"
            ) from exc


def check_in_flight(spools: Mapping[int, Path], session_id: str) -> None:
    """Raise `StoreError` when one of the spools, by process, holds a draft of a session."""
    pids = [pid for pid, spool in spools.items() if session_id in _drafted_sessions(spool)]
    if pids:
        raise StoreError(
            f"session {shown(session_id)} has an answer on its way in process {pids[0]}; wait for "
            "it or cancel it there, and try again (nothing was changed)"
        )


def _drafted_sessions(path: Path) -> set[str]:
    """Return the sessions of all drafts in a spool file, also of those dropped since."""
    found: set[str] = set()
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return found
    for line in lines:
        try:
            found.add(json.loads(line)["entry"]["session_id"])
        except (ValueError, TypeError, KeyError):
            continue  # no draft, or torn
    return found


def _is_blocked(folder: Path) -> bool:
    """Whether something else stands where a folder is to be."""
    try:
        return not stat.S_ISDIR(os.lstat(folder).st_mode)
    except FileNotFoundError:
        return False


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _taken(path: Path) -> FileLock | None:
    """Return the lock of a spool whose process is gone, else None."""
    lock = new_lock(_lock_path(path))
    try:
        lock.acquire(blocking=False)
    except (Timeout, OSError):
        return None
    return lock


def _is_gone(lock_path: Path) -> bool:
    """Whether the process of a lock ended; takes away what it left but a spool to recover."""
    spool = lock_path.with_suffix(".jsonl")
    if not (lock := _taken(spool)):
        return False
    _free(lock, spool)
    return True


def _free(lock: FileLock, path: Path) -> None:
    # The lock's file goes first: whoever takes a lock afterwards finds no spool to recover.
    for suffix in (ASKED, ANSWERED, UNFINISHED, _REWRITTEN):
        with contextlib.suppress(OSError):  # one that stays is nobody's any more
            path.with_suffix(suffix).unlink(missing_ok=True)
    try:
        if not path.exists():
            _lock_path(path).unlink(missing_ok=True)
    except OSError as exc:
        _log.warning("lock %r stays behind (%s)", str(_lock_path(path)), exc.strerror or exc)
    finally:
        lock.release()
    with contextlib.suppress(OSError):
        path.parent.rmdir()  # when it was the last


def _read(path: Path) -> tuple[list[SpoolDraft], bool]:
    """Return the drafts of a spool file, the newest snapshot of each, and whether all was read.

    A torn last line is no loss: the snapshot before it is there.
    """
    drafts: dict[str, SpoolDraft] = {}
    is_whole = True
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            wire = json.loads(line)
            for gone in wire.get("gone", ()):
                drafts.pop(gone, None)
            if "entry" in wire:
                end = RunEnd(**wire["end"]) if wire["end"] else None
                entry = StoredEntry(**wire["entry"])
                drafts[entry.id] = SpoolDraft(entry=entry, end=end)
        except (ValueError, TypeError, AttributeError) as exc:
            # Garbage of a power cut, or the line of a newer version: not to be thrown away.
            is_whole = False
            _log.warning(
                "line %d of spool %r cannot be read (%s); the file is kept as .unread",
                number,
                str(path),
                type(exc).__name__,
            )
    return list(drafts.values()), is_whole
