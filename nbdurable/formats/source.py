"""Where an import reads from: files, folders and archives, as a row of named byte streams.

Owns what is opened and in which order. Does not own what is in a file. The one idea: an archive is
read as it is, never unpacked, and what lies beside the conversations (pictures) is found by name.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from nbdurable.errors import StoreError, shown

PathLike = str | os.PathLike[str]

READ_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
_SUFFIXES = (".json", ".jsonl", ".ndjson")
_LARGEST_ASSET = 64 << 20
_MARK = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of an import; ``open`` gives a fresh stream from its start."""

    name: str
    size_bytes: int
    open: Callable[[], IO[bytes]]
    path: Path | None = None


class Assets:
    """The files that lie beside those that are read, by name; their bytes on demand."""

    def __init__(self) -> None:
        self._files: dict[str, SourceFile] = {}
        self._names: list[str] = []  # sorted, when they were last asked for
        self.used: set[str] = set()  # names of the files that a reader asked for by name

    def add(self, file: SourceFile) -> None:
        """Take a file."""
        self._files.setdefault(PurePosixPath(file.name).name, file)

    def named(self, name: str) -> SourceFile | None:
        """Return the file of a name, which is no longer to be read by itself."""
        found = self._files.get(name)
        if found is not None:
            self.used.add(found.name)
        return found

    def starting(self, start: str) -> tuple[str, bytes] | None:
        """Return name and bytes of the file whose name begins so; None where none can be read."""
        if len(self._names) != len(self._files):
            self._names = sorted(self._files)
        place = bisect_left(self._names, start)
        name = self._names[place] if place < len(self._names) else ""
        found = self._files.get(name)
        if not start or found is None or not name.startswith(start):
            return None
        if found.size_bytes > _LARGEST_ASSET:
            return None
        try:
            with found.open() as file:
                return PurePosixPath(found.name).name, file.read()
        except READ_ERRORS:
            return None


@dataclass(frozen=True, slots=True)
class Sources:
    """What an import reads: the files with records, in order, and all that lies beside them."""

    files: tuple[SourceFile, ...]
    assets: Assets

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)


@contextmanager
def sources(paths: PathLike | Iterable[PathLike]) -> Iterator[Sources]:
    """Give the files of one path or several: files, folders, ``.zip`` archives.

    A file that is named is read whatever its name; of folders and archives those that end in
    ``.json`` or ``.jsonl``, by name.

    Raises
    ------
    StoreError
        A path is not there or holds no such file, or an archive cannot be read at all.
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    assets, found, archives = Assets(), list[SourceFile](), list[zipfile.ZipFile]()
    try:
        for path in map(_named, listed):
            inside = _files_of(path.expanduser(), assets, archives)
            if not inside:
                raise StoreError(
                    f"{shown(str(path))} holds no .json or .jsonl file; "
                    "give the path of what to import"
                )
            found += inside
        yield Sources(tuple(found), assets)
    finally:
        for archive in archives:
            archive.close()


def _named(path: PathLike) -> Path:
    if not os.fspath(path):  # which `Path` takes for the working folder
        raise StoreError("file '' has no name; give the path of what to import")
    return Path(path)


def _files_of(path: Path, assets: Assets, archives: list[zipfile.ZipFile]) -> list[SourceFile]:
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file())
        files = [_plain(file, file.relative_to(path).as_posix()) for file in inside]
        for file in files:
            assets.add(file)
        return [file for file in files if file.name.lower().endswith(_SUFFIXES)]
    if not path.is_file():
        raise StoreError(f"file {shown(str(path))} is not there; give the path of what to import")
    try:
        with path.open("rb") as opened:
            is_archive = opened.read(len(_MARK)) == _MARK
    except OSError as exc:
        raise StoreError(
            f"file {shown(str(path))} cannot be read: {exc.strerror or exc}; give another path"
        ) from exc
    if not is_archive:
        return [_plain(path, path.name)]
    return _members(path, assets, archives)


def _plain(path: Path, name: str) -> SourceFile:
    return SourceFile(name, path.stat().st_size, lambda: path.open("rb"), path)


def _members(path: Path, assets: Assets, archives: list[zipfile.ZipFile]) -> list[SourceFile]:
    try:
        archive = zipfile.ZipFile(path)
    except READ_ERRORS as exc:
        raise StoreError(
            f"archive {shown(str(path))} cannot be read: {exc}; get it again, or unpack it and "
            "give the folder"
        ) from exc
    archives.append(archive)
    members = [_member(archive, info) for info in archive.infolist() if not info.is_dir()]
    for member in members:
        assets.add(member)
    wanted = [member for member in members if member.name.lower().endswith(_SUFFIXES)]
    return sorted(wanted, key=lambda member: member.name)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> SourceFile:
    def opened() -> IO[bytes]:
        return io.BufferedReader(archive.open(info))  # type: ignore[type-var]

    return SourceFile(info.filename, info.file_size, opened)
