"""Write a recording: sections to lines of a file, whole or not at all.

Owns the order of lines and the file's last one, which tells whether all of it is there. The one
idea: equal content gives equal bytes, so that a recording can be compared and kept under version
control.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from nbdurable.errors import StoreError, shown
from nbdurable.stored import Move, StoredEntry
from nbdurable.stores.jsonl.lines import FORMAT, VERSION, kind_of, plain_line, to_line
from nbdurable.stores.jsonl.sections import Section, blobs_of

Fetch = Callable[[str], bytes]

BLOB_BYTES = 720_000  # of one line, so that it has less than 1 MB


def lines_of(
    sections: Iterable[Section], fetch: Fetch, *, is_redacted: bool = False
) -> Iterator[str]:
    """Yield the lines of a recording but the last, without line ends.

    Parameters
    ----------
    sections : iterable of Section
        One per session.
    fetch : callable
        Returns the bytes of a hash, or raises `StoreError`.
    is_redacted : bool
        Whether texts were changed; the first line says so.
    """
    said = {"redacted": True} if is_redacted else {}
    yield plain_line("header", format=FORMAT, version=VERSION, created_by=_version(), **said)
    blobs: set[str] = set()
    contexts: set[str] = set()
    for section in sections:
        yield to_line("session", section.session)
        beside = section.beside
        yield from (to_line("experiment", plan) for plan in beside.experiments)
        for context in beside.contexts:
            if context.digest not in contexts:
                contexts.add(context.digest)
                yield to_line("context", context)
        ends = {end.run_id: end for end in beside.ends}
        for run in beside.runs:
            yield to_line("run", run)
            if run.id in ends:
                yield to_line("run_end", ends[run.id])
        for row in section.timeline():
            if isinstance(row, Move):
                yield to_line("move", row)
                continue
            for sha256 in blobs_of(row):
                if sha256 not in blobs:
                    blobs.add(sha256)
                    yield from _blob_lines(sha256, row, fetch)
            yield to_line("entry", row)
        yield from (to_line("annotation", note) for note in beside.annotations)


def _blob_lines(sha256: str, entry: StoredEntry, fetch: Fetch) -> Iterator[str]:
    try:
        data = fetch(sha256)
    except StoreError as exc:
        if type(exc) is not StoreError:
            raise
        warnings.warn(
            f"bytes of entry #{entry.n} of session {shown(entry.session_id)} are left out: {exc}",
            stacklevel=2,
        )
        return
    for at in range(0, max(len(data), 1), BLOB_BYTES):
        part = base64.b64encode(data[at : at + BLOB_BYTES]).decode("ascii")
        yield plain_line("blob", sha256=sha256, size=len(data), at=at, base64=part)


def _version() -> str:
    try:
        return version("nbdurable")
    except PackageNotFoundError:
        return "unknown"


# -- the file ----------------------------------------------------------------------------------


def write_recording(path: Path, lines: Iterable[str]) -> None:
    """Write lines and the last one to a file, which is replaced when all of it is on the disk.

    Raises
    ------
    StoreError
        The file cannot be written; what was there is as it was.
    """
    with replacing(path) as file:
        counts: Counter[str] = Counter()
        seen = hashlib.sha256()
        for line in lines:
            data = line.encode("utf-8") + b"\n"
            seen.update(data)
            counts[kind_of(line)] += 1
            file.write(data)
        counted = {kind: counts[kind] for kind in sorted(counts)}
        end = plain_line("end", lines=counts.total(), counts=counted, sha256=seen.hexdigest())
        file.write(end.encode("utf-8") + b"\n")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write to that takes the place of `path` at the end, or is removed.

    Raises
    ------
    StoreError
        The file cannot be written; what was there is as it was.
    """
    if "\0" in os.fspath(path):
        raise StoreError(f"file {shown(os.fspath(path))} holds NUL; give another path")
    target = Path(os.path.realpath(path))
    fresh = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        with fresh.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            fresh.chmod(target.stat().st_mode & 0o777)
        os.replace(fresh, target)
    except StoreError:
        fresh.unlink(missing_ok=True)
        raise
    except OSError as exc:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise StoreError(
            f"file {shown(os.fspath(path), 200)} cannot be written: {exc.strerror or exc}; "
            "give another path, or make room there"
        ) from exc
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
