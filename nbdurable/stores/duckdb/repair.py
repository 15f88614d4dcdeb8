"""Undo what a crash can do to a store's file: a torn checkpoint block, a bad entry in the log.

Owns the two known damages, the copies set aside and the repair log. Does not own what counts as
sound (`checking`). The one idea: every step is tried on a copy, which must then hold exactly what
was stored; only then the same few bytes are changed in the file, so that a file which cannot be
repaired is never touched, and a kill in the middle leaves one that still can be.

A checkpoint writes its metadata to free slots of a live block, in place: a write that was cut
leaves the slots in use as they were, under a checksum of the whole block that fits neither version.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import duckdb

from nbdurable.errors import StoreError, StoreLocked
from nbdurable.stores.duckdb import checking, faults, instances
from nbdurable.stores.duckdb.log import commits_from, read_log, silent_break
from nbdurable.stores.duckdb.schema import ALIAS

_log = logging.getLogger("nbdurable")
SUFFIXES = ("", ".wal", ".wal.checkpoint")  # of the files that a store may consist of
_ASIDE = ".damaged-"
_FIRST_BLOCK = 12_288  # before it stand three headers, which are never in the way of a checkpoint
_MOST_STEPS = 8
_RETRY_S = 0.05


class RepairNotice(UserWarning):
    """A damaged store was repaired when it was opened."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """A block gets the checksum of what is in it."""

    location: int
    computed: int
    stored: int

    def __str__(self) -> str:
        return f"a checkpoint was cut in the block at byte {self.location}"

    def apply(self, path: str) -> None:
        """Write the checksum, 8 bytes at the start of the block."""
        with open(path, "r+b") as file:
            self.apply_to(file)

    def apply_to(self, file: BinaryIO) -> None:
        """Write the checksum to a file that is open."""
        file.seek(self.location)
        if int.from_bytes(file.read(8), "little") != self.stored:
            raise StoreError(f"block at byte {self.location} changed during a repair; try again")
        file.seek(self.location)
        file.write(self.computed.to_bytes(8, "little"))
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True, slots=True)
class LogCut:
    """The log ends before its first bad frame."""

    position: int
    size: int
    commits: int  # that end behind the cut, of which the bad one may or may not be one

    def __str__(self) -> str:
        return f"its log could not be read from byte {self.position} of {self.size} on"

    def apply(self, path: str) -> None:
        """Cut the log of the store at `path`."""
        with open(f"{path}.wal", "r+b") as log:
            log.truncate(self.position)
            os.fsync(log.fileno())


Step = Checksum | LogCut


def is_known(exc: Exception) -> bool:
    """Whether an error of DuckDB tells of a damage that `mend` may undo."""
    block = faults.torn_block(exc)
    is_torn = block is not None and block[0] >= _FIRST_BLOCK
    return is_torn or faults.bad_log_entry(exc) is not None


def attach(
    attempt: Callable[[], None],
    path: str,
    deadline: float,
    *,
    is_first: bool,
    read_only: bool = False,
) -> list[str]:
    """Attach a file, repaired before that where it must be; return what to tell the user.

    Parameters
    ----------
    attempt : callable
        Attaches the file; DuckDB's errors pass on, unless they tell of a damage that is known.
    path : str
        The file.
    deadline : float
        Until when to wait for another process that repairs it, on the monotonic clock.
    is_first : bool
        Look for what DuckDB would pass over in silence too, which costs a walk over the log.
    read_only : bool
        Repair nothing.
    """
    told: list[str] = []
    if read_only:
        attempt()
        return told
    if is_first and silent_break(read_log(path)) is not None:
        told.append(mend(path, deadline))
    try:
        attempt()
    except duckdb.Error as exc:
        if not is_known(exc):
            raise
        told.append(mend(path, deadline))
        attempt()
    return [text for text in told if text]


def tell(untold: list[str]) -> None:
    """Warn of repairs that came in the middle of a user's call, each once; from its thread."""
    while untold:
        try:
            text = untold.pop(0)
        except IndexError:
            return  # another thread was quicker
        try:
            warnings.warn(text, RepairNotice, stacklevel=4)
        except RepairNotice:
            # Where warnings are errors; the call was done, and its result must not be lost.
            _log.warning("%s", text)


def mend(path: str, deadline: float) -> str:
    """Repair a file that cannot be attached for a known damage; return what to tell the user.

    Returns "" when there was nothing to do, as another process was quicker; such a one is waited
    for until `deadline`, of the monotonic clock.

    Raises
    ------
    StoreLocked
        Another process is at work on the file.
    StoreError
        It cannot be repaired; nothing was changed.
    """
    with (
        _alone(path, deadline) as file,
        tempfile.TemporaryDirectory(
            dir=os.path.dirname(path), prefix=f".{os.path.basename(path)[:40]}."
        ) as folder,
    ):
        work = os.path.join(folder, "copy.duckdb")
        _copy(file, path, work)
        steps, counts = _tried(path, work)
        if not steps:
            return ""
        aside = _set_aside(file, path)
        text = _told(path, steps, counts, aside)
        _note(path, text)
        for step in steps:
            if isinstance(step, Checksum):
                step.apply_to(file)
            else:
                step.apply(path)
    return text


# -- on a copy -----------------------------------------------------------------------------------


def _tried(path: str, work: str) -> tuple[list[Step], dict[str, int]]:
    """Repair the copy `work` of `path`; return the steps, and its rows by table."""
    steps: list[Step] = []
    log = read_log(work)
    position = silent_break(log)
    if position == 0:
        raise _beyond(
            path, f"the head of its log does not match, with {commits_from(log, 0)} transactions"
        )
    if position is not None:
        steps.append(LogCut(position, len(log), commits_from(log, position)))
        steps[0].apply(work)
    while True:
        try:
            counts = _verified(path, work, steps)
        except duckdb.Error as exc:
            step = _step(exc, work)
            if step is None or step in steps or len(steps) == _MOST_STEPS:
                raise _beyond(path, str(exc).splitlines()[0]) from exc
            step.apply(work)
            steps.append(step)
        else:
            return steps, counts


def _step(exc: duckdb.Error, work: str) -> Step | None:
    block, position = faults.torn_block(exc), faults.bad_log_entry(exc)
    if block is not None and block[0] >= _FIRST_BLOCK:
        return Checksum(*block)
    if position is not None:
        log = read_log(work)
        return LogCut(position, len(log), commits_from(log, position))
    return None


def _verified(path: str, work: str, steps: list[Step]) -> dict[str, int]:
    """Return the rows by table of a copy that holds what was stored; DuckDB's errors pass on."""
    base = instances.take()
    try:
        base.execute(f"attach '{work.replace(chr(39), chr(39) * 2)}' as {ALIAS} (type duckdb)")
        with base.cursor() as cursor:
            _check_blocks(cursor, path, steps)
            wrong = next(checking.contents(cursor), None)
            if wrong is not None:
                raise _beyond(path, str(wrong))
            counts = checking.counts(cursor)
        base.execute(f"detach {ALIAS}")
        return counts
    finally:
        instances.give_back(base)


def _check_blocks(cursor: duckdb.DuckDBPyConnection, path: str, steps: list[Step]) -> None:
    """Refuse a checksum for a block of data, which no checkpoint writes in place: it is rotten."""
    mended = [step for step in steps if isinstance(step, Checksum)]
    if not mended:
        return
    cursor.execute(f"use {ALIAS}.main")
    size = cursor.execute("select block_size from pragma_database_size()").fetchall()[0][0]
    ids = {
        row[0] for row in cursor.execute("select block_id from pragma_metadata_info()").fetchall()
    }
    for step in mended:
        if (step.location - _FIRST_BLOCK) // size not in ids:
            raise _beyond(path, f"the block of data at byte {step.location} does not match")


def _beyond(path: str, found: str) -> StoreError:
    return StoreError(
        f"store {path!r} is damaged and cannot be repaired ({found}); go back to a copy made "
        "by backup (nothing was changed)"
    )


# -- on the file ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _alone(path: str, deadline: float) -> Iterator[BinaryIO]:
    """Yield the file under the lock that DuckDB itself takes; it is lost when any other closes."""
    try:
        file = open(path, "r+b")
    except OSError as exc:
        raise faults.told(duckdb.IOException(f"{exc.strerror}"), path) from exc
    with file:
        while not _is_locked(file):
            if time.monotonic() > deadline:
                raise StoreLocked(
                    f"store {path!r} is damaged and in the hands of another process; "
                    "wait until it is done there",
                    path=path,
                    pid=None,
                )
            time.sleep(_RETRY_S)
        yield file


def _is_locked(file: BinaryIO) -> bool:
    """Take the lock on an open file and return whether it is ours; there is none on Windows."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _copy(file: BinaryIO, path: str, to: str) -> None:
    """Copy the store at `path`, open as `file`, to the path `to`."""
    try:
        with open(to, "xb") as copy:
            file.seek(0)
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
        for suffix in SUFFIXES[1:]:
            if os.path.exists(path + suffix):
                shutil.copyfile(path + suffix, to + suffix)
    except OSError as exc:
        raise StoreError(
            f"store {path!r} is damaged and there is no room for a copy to repair "
            f"({exc.strerror}); free space and open it again (nothing was changed)"
        ) from exc


def copies_aside(path: str) -> list[Path]:
    """Return the folders of copies that repairs of a file left beside it, the oldest first."""
    folder, name = Path(path).parent, Path(path).name
    return sorted(one for one in folder.iterdir() if one.name.startswith(f"{name}{_ASIDE}"))


def _set_aside(file: BinaryIO, path: str) -> str:
    """Copy the damaged files to a new folder beside them; return its path."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    for attempt in range(100):
        aside = f"{path}{_ASIDE}{stamp}" + (f"-{attempt}" if attempt else "")
        try:
            os.mkdir(aside, 0o700)
            break
        except FileExistsError:
            continue
    try:
        _copy(file, path, os.path.join(aside, os.path.basename(path)))
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return aside


def _note(path: str, text: str) -> None:
    with open(f"{path}.repairs.log", "a", encoding="utf-8") as log:
        log.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n")
        log.flush()
        os.fsync(log.fileno())


def _told(path: str, steps: list[Step], counts: dict[str, int], aside: str) -> str:
    found = ", ".join(map(str, steps))
    cuts = [step for step in steps if isinstance(step, LogCut)]
    loss = " without loss"
    if cuts:
        most = sum(step.commits for step in cuts) + 1
        loss = f", but the last {most} transactions of its log, or less, are lost"
    return (
        f"store {path!r} was damaged ({found}) and is repaired{loss}; all that is left matches "
        f"its digests ({counts['entries']} entries), and the damaged files are in "
        f"{os.path.basename(aside)!r} beside it"
    )
