"""Read a recording: check that all of it is there, then give its sessions one by one.

Owns the checks of a file. The one idea: a file is read twice, first as bytes against the sum in
its last line, then as records; so a cut or changed file is refused before anything is stored, and
no more than one session is in memory.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from nbdurable.errors import ImportFormatError, StoreError, shown
from nbdurable.stored import (
    Annotation,
    Beside,
    Context,
    ExperimentRecord,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
)
from nbdurable.stores.jsonl.lines import FORMAT, VERSION, from_line, parsed
from nbdurable.stores.jsonl.sections import Section

Keep = Callable[[str, bytes], None]

_HEADER_BYTES = 65_536  # no first line of ours is longer, and a foreign one may be endless


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does."""
    try:
        with path.open("rb") as file:
            first = file.readline(_HEADER_BYTES).removeprefix(codecs.BOM_UTF8)
        return parsed(first).get("format") == FORMAT
    except (OSError, ValueError):
        return False


@contextmanager
def opened(path: Path) -> Iterator[Recording]:
    """Open and check a recording.

    Raises
    ------
    StoreError
        The file is not there or cannot be read.
    ImportFormatError
        It is no recording, one of a newer version, or damaged.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for
        raise StoreError(f"file {os.fspath(path)!r} is no regular file; choose another path")
    try:
        file = path.open("rb")
    except OSError as exc:
        what = "is not there" if isinstance(exc, FileNotFoundError) else "cannot be read"
        raise StoreError(
            f"file {os.fspath(path)!r} {what} ({exc.strerror}); give the path of a recording"
        ) from exc
    with file:
        recording = Recording(file, os.fspath(path))
        recording.check()
        yield recording


class Recording:
    """An open recording; `check` it, then read its `sections`."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self.is_redacted = False

    # -- the first reading ---------------------------------------------------------------------

    def check(self) -> None:
        """Raise unless the file is whole and of a version known here."""
        self._check_header()
        seen, last, number = hashlib.sha256(), b"", 0
        for number, line in self._lines():
            if number > 1:
                seen.update(last + b"\n")
            last = line
        end = self._parsed(number, last, may_be_cut=True)
        if end.get("type") != "end":
            raise self._damage(number, "is no last line, so the file was cut")
        if end.get("sha256") != seen.hexdigest():
            self._find_garbled()
            raise self._damage(number, "gives another sum than the lines before it have")

    def _check_header(self) -> None:
        first = self._file.readline(_HEADER_BYTES).removeprefix(codecs.BOM_UTF8)
        try:
            header = parsed(first)
        except ValueError:
            header = {}
        if header.get("type") != "header" or header.get("format") != FORMAT:
            raise ImportFormatError(
                f"line 1 of {self._name!r} is no header of a recording; "
                "give a file that Session.export() wrote"
            )
        version = header.get("version")
        if type(version) is not int or version < 1:
            raise self._damage(1, f"has no legal version ({shown(version)})")
        if version > VERSION:
            raise ImportFormatError(
                f"file {self._name!r} has format version {version} and this nbdurable reads up to "
                f"{VERSION}; install a newer nbdurable (nothing was imported)"
            )
        self.is_redacted = header.get("redacted") is True

    def _find_garbled(self) -> None:
        for number, line in self._lines():
            self._parsed(number, line)

    # -- the second ----------------------------------------------------------------------------

    def sections(self, keep: Keep) -> Iterator[Section]:
        """Yield the sessions; `keep` is called with the hash and bytes of what they refer to.

        Raises
        ------
        ImportFormatError
            A line is none of a recording; what was yielded before is whole.
        """
        contexts: dict[str, Context] = {}
        blob = _Blob()
        draft: _Draft | None = None
        for number, line in self._lines():
            wire = self._parsed(number, line)
            kind = wire["type"]
            try:
                if kind == "session":
                    if draft is not None:
                        yield draft.section(contexts)
                    draft = _Draft(from_line(SessionRecord, kind, wire), number)
                elif kind == "context":
                    context = from_line(Context, kind, wire)
                    contexts[context.digest] = context
                elif kind == "blob":
                    blob.take(wire, keep)
                    continue
                elif kind not in ("header", "end"):
                    if draft is None:
                        raise ValueError(f"type {kind!r} before any session")
                    draft.take(kind, wire)
                blob.check_done()
            except (ValueError, TypeError, KeyError) as exc:
                raise self._damage(number, f"is not legal: {exc}") from exc
        if draft is not None:
            yield draft.section(contexts)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the file's lines from its start, numbered, without their ends."""
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            bare = line.removesuffix(b"\n").removesuffix(b"\r")
            yield number, bare.removeprefix(codecs.BOM_UTF8) if number == 1 else bare

    def _parsed(self, number: int, line: bytes, *, may_be_cut: bool = False) -> dict[str, Any]:
        try:
            return parsed(line)
        except ValueError as exc:
            cut = ", so the file was cut or changed" if may_be_cut else ""
            raise self._damage(number, f"is {exc}{cut}") from exc

    def _damage(self, number: int, found: str) -> ImportFormatError:
        return ImportFormatError(
            f"line {number} of {self._name!r} {found}; get or export the file again"
        )


@dataclass(slots=True)
class _Draft:
    """A session whose lines are being read."""

    record: SessionRecord
    line: int
    entries: list[StoredEntry] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    ends: list[RunEnd] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    experiments: list[ExperimentRecord] = field(default_factory=list)

    def take(self, kind: str, wire: dict[str, Any]) -> None:
        """Take a line of the session, or raise `ValueError`."""
        known: dict[str, Any] = {"session_id": self.record.id}
        seq = len(self.entries) + len(self.moves) + 1
        match kind:
            case "entry":
                entry = from_line(StoredEntry, kind, wire, seq=seq, **known)
                if entry.n != len(self.entries) + 1:
                    raise ValueError(f"'n' must be {len(self.entries) + 1}, got {entry.n}")
                self.entries.append(entry)
            case "move":
                self.moves.append(from_line(Move, kind, wire, seq=seq, **known))
            case "run":
                self.runs.append(from_line(RunRecord, kind, wire, **known))
            case "run_end":
                self.ends.append(from_line(RunEnd, kind, wire, **known))
            case "annotation":
                self.annotations.append(from_line(Annotation, kind, wire, **known))
            case "experiment":
                self.experiments.append(from_line(ExperimentRecord, kind, wire, **known))
            case _:
                raise ValueError(f"type {shown(kind)} is not known")

    def section(self, contexts: dict[str, Context]) -> Section:
        """Return the session, with the contexts that its runs name."""
        digests = dict.fromkeys(run.context_digest for run in self.runs)
        beside = Beside(
            moves=tuple(self.moves),
            runs=tuple(self.runs),
            ends=tuple(self.ends),
            contexts=tuple(contexts[digest] for digest in digests if digest in contexts),
            annotations=tuple(self.annotations),
            experiments=tuple(self.experiments),
        )
        return Section(
            session=self.record, entries=tuple(self.entries), beside=beside, line=self.line
        )


class _Blob:
    """Bytes that come in parts, one after the other."""

    def __init__(self) -> None:
        self._sha256 = ""
        self._data = bytearray()
        self._is_open = False

    def check_done(self) -> None:
        """Raise `ValueError` while parts are still to come."""
        if self._is_open:
            raise ValueError(f"the bytes of {shown(self._sha256)} before it are not complete")

    def take(self, wire: dict[str, Any], keep: Keep) -> None:
        """Take one part, and hand over what is complete; or raise `ValueError`."""
        sha256, size, at = wire["sha256"], wire["size"], wire["at"]
        if at == 0:
            self.check_done()
            self._sha256, self._is_open = sha256, True
        if sha256 != self._sha256 or at != len(self._data):
            raise ValueError(f"part at byte {shown(at)} of {shown(sha256)} is out of place")
        try:
            self._data += base64.b64decode(wire["base64"], validate=True)
        except binascii.Error as exc:
            raise ValueError(f"'base64' cannot be read: {exc}") from exc
        if len(self._data) < size:
            return
        data, self._data, self._is_open = bytes(self._data), bytearray(), False
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ValueError(f"bytes of {shown(sha256)} have another hash")
        keep(sha256, data)
