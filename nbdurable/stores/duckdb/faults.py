"""What DuckDB reports, told as the package's own errors (B63).

Owns the reading of DuckDB's messages, in one place because they are texts of a foreign program.
No text of ours repeats a stored value.
"""

from __future__ import annotations

import os
import re

import duckdb

from nbdurable.errors import EntryError, NbDurableError, StoreError, StoreLocked, StoreTooNew

_LOCKED = "Could not set lock on file"
_SHARED = ("Unique file handle conflict", "different configuration")
_PID = re.compile(r"held in (.*?) ?\(PID (\d+)\)")
_VERSION = re.compile(r"version number (\d+), but we can only read .*?between (\d+) and (\d+)")
_HEADER = "in block at location 0"
_TORN_BLOCK = re.compile(
    r"computed checksum (\d+) does not match stored checksum (\d+) in block at location (\d+)"
)
_BAD_LOG_ENTRY = re.compile(r"Corrupt WAL file: entry at byte position (\d+)")
_READS_UP_TO = 69  # the newest storage version that DuckDB 2.0 reads
_DAMAGED = (
    "Corrupt",
    "Failure while replaying WAL",
    "does not match the database file",
    "Could not read enough bytes",
)
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_UNWRITABLE = ("Permission denied", "Read-only file system", "Operation not permitted")
_INVALIDATED = ("has been invalidated", "invalidated because of a previous fatal error")


def is_locked(exc: Exception) -> bool:
    """Whether another process holds the file."""
    return _LOCKED in str(exc)


def torn_block(exc: Exception) -> tuple[int, int, int] | None:
    """Return location, computed and stored checksum of a block that does not match, or None."""
    found = _TORN_BLOCK.search(str(exc))
    return (int(found[3]), int(found[1]), int(found[2])) if found else None


def bad_log_entry(exc: Exception) -> int | None:
    """Return the position of the first entry of the log that does not match, or None."""
    found = _BAD_LOG_ENTRY.search(str(exc))
    return int(found[1]) if found else None


def is_invalidated(exc: Exception) -> bool:
    """Whether the attached file must be attached anew before it is used again."""
    text = str(exc)
    return (
        isinstance(exc, duckdb.FatalException)
        or any(sign in text for sign in _INVALIDATED)
        or ("autocheckpoint failed" in text)
    )


def told_of_call(exc: Exception, path: str) -> NbDurableError:
    """Return the error to raise for what DuckDB raised about a call with values."""
    if isinstance(exc, duckdb.DataError | duckdb.InvalidInputException):
        return EntryError(
            f"a value cannot be stored in {path!r} ({type(exc).__name__}); "
            "give text, finite numbers and times of the documented types"
        )
    return told(exc, path)


def told(exc: Exception, path: str) -> NbDurableError:
    """Return the error to raise for what DuckDB raised about the file `path`."""
    text, name = str(exc), repr(path)
    if _LOCKED in text:
        return _locked(text, path)
    if any(sign in text for sign in _SHARED):
        return StoreLocked(
            f"store {name} is open in this process (PID {os.getpid()}) by another DuckDB "
            "connection; close that one first",
            path=path,
            pid=os.getpid(),
        )
    return _too_new(text, path) or StoreError(_fault(text, name))


def _locked(text: str, path: str) -> StoreLocked:
    found = _PID.search(text)
    pid = int(found[2]) if found and found[2] != "0" else None
    holder = f"{found[1]}, PID {found[2]}" if found else "which one is not known"
    return StoreLocked(
        f"store {path!r} is locked by another process ({holder}); "
        "close it there, or work on a copy",
        path=path,
        pid=pid,
    )


def _too_new(text: str, path: str) -> StoreTooNew | None:
    found = _VERSION.search(text)
    version, newest = (int(found[1]), int(found[3])) if found else (0, _READS_UP_TO)
    if not found and _HEADER in text:
        version = _header_version(path)
    if version <= newest:
        return None
    return StoreTooNew(
        f"store {path!r} has DuckDB storage version {version} and DuckDB "
        f"{duckdb.__version__} reads up to {newest}; install a newer duckdb "
        "(the file was not changed)"
    )


def _header_version(path: str) -> int:
    # Only for a file that could not be attached: closing it drops every lock of this process.
    with open(path, "rb") as file:
        head = file.read(20)
    return int.from_bytes(head[12:20], "little") if head[8:12] == b"DUCK" else 0


def _fault(text: str, name: str) -> str:
    line = text.splitlines()[0] if text else "no message"
    if any(sign in text for sign in _FULL):
        return f"disk of store {name} is full ({line}); free space and try again"
    if "not a valid DuckDB database file" in text:
        return f"file {name} is not a DuckDB database; choose another file"
    if "Is a directory" in text:
        return f"store {name} is a folder; give the path of a file in it"
    if any(sign in text for sign in _UNWRITABLE):
        return f"store {name} cannot be written ({line}); change its permissions, or use a copy"
    if any(sign in text for sign in _DAMAGED):
        return (
            f"store {name} is damaged ({line}); copy it and its .wal aside before anything else "
            "(nothing was changed)"
        )
    return f"store {name} failed ({line}); see the DuckDB message"
