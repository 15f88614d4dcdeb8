"""Formats: sessions to files and files to sessions, one module per format.

Owns the names of formats and the choice of one. A module that exports has ``is_ours(path)`` and
``export(image, path, *, leaf_id, redact)``; one that imports has ``is_ours(path)`` and
``load(path, store)``. They are imported when they are needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from nbdurable.errors import ImportFormatError, StoreError, shown
from nbdurable.formats.redaction import Redact
from nbdurable.formats.report import ImportReport
from nbdurable.loaded import Loaded
from nbdurable.opening import DEFAULT_STORE
from nbdurable.stores import open_store, release_store
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import RecordingStore

EXPORTS: Mapping[str, str] = {
    "dpo": "nbdurable.formats.dpo",
    "jsonl": "nbdurable.formats.jsonl",
}
IMPORTS: Mapping[str, str] = {"jsonl": "nbdurable.formats.jsonl"}
SUFFIXES: Mapping[str, str] = {".jsonl": "jsonl"}


def export(
    image: Loaded,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    leaf_id: str | None = None,
    redact: Redact | None = None,
) -> Path:
    """Write a session to a file, which is replaced as a whole; return its path.

    Parameters
    ----------
    image : Loaded
        The session.
    path : path
        The file. One that is there must be empty or of the same format.
    format : str, optional
        One of `EXPORTS`; by default what the suffix says.
    leaf_id : str, optional
        Write only the path to this entry; by default all of the session.
    redact : callable, optional
        Takes each text that somebody said and returns what stands in its place.

    Raises
    ------
    ImportFormatError
        No such format.
    StoreError
        The file is there and is something else, or cannot be written; it is as it was.
    """
    target = Path(path)
    module = _exporter(target, format, redact)
    module.export(image, target, leaf_id=leaf_id, redact=redact)
    return target


def export_store(
    store: Store, path: str | os.PathLike[str], *, redact: Redact | None = None
) -> Path:
    """Write all sessions of a store to one recording (``.jsonl``), as `export` does one."""
    target = Path(path)
    _exporter(target, "jsonl", redact).export_store(store, target, redact=redact)
    return target


def _exporter(target: Path, format: str | None, redact: Redact | None) -> Any:
    """Return the module that writes a file, which must not be of something else."""
    name = format if format is not None else SUFFIXES.get(target.suffix.lower(), "")
    if name not in EXPORTS:
        found = f"format {shown(format)}" if format is not None else f"suffix {target.suffix!r}"
        raise ImportFormatError(
            f"{found} is of no export that is known; give format= as one of {_listed(EXPORTS)}"
        )
    if redact is not None and not callable(redact):
        raise TypeError(
            f"redact is {shown(redact)}; give a function that takes a text and returns one"
        )
    module: Any = import_module(EXPORTS[name])
    if target.exists() and (not target.is_file() or target.stat().st_size):
        if not (target.is_file() and module.is_ours(target)):
            raise StoreError(
                f"file {os.fspath(target)!r} is there and is no export of format {name!r}; "
                "choose another path, or remove it"
            )
    return module


def load(
    path: str | os.PathLike[str],
    store: Store | str | os.PathLike[str] | None = None,
    format: str | None = None,
) -> ImportReport:
    """Import the sessions of a file to a store; what the store has already is not added again.

    Parameters
    ----------
    path : path
        A file that `Session.export` wrote.
    store : Store or path, optional
        Where to; by default ``$NBDURABLE_STORE``, else ``nbdurable.duckdb`` in the working folder.
    format : str, optional
        One of `IMPORTS`; by default the file's own look decides.

    Returns
    -------
    ImportReport
        What was added, what was not, and why.

    Raises
    ------
    ImportFormatError
        The file is of no known format, or damaged; no session is there by half.
    StoreError
        The file cannot be read, or the store cannot be opened or written.
    """
    source = Path(path)
    module = _importer(source, format)
    opened = open_store(
        store if store is not None else os.environ.get("NBDURABLE_STORE") or DEFAULT_STORE
    )
    try:
        if isinstance(opened, RecordingStore):
            raise StoreError(
                f"recording {opened.name!r} is never written, so nothing can be imported to it; "
                "give the path of a store that lasts, such as 'chats.duckdb'"
            )
        report: ImportReport = module.load(source, opened)
        return report
    finally:
        release_store(opened)


def _importer(source: Path, format: str | None) -> Any:
    if format is not None and format not in IMPORTS:
        raise ImportFormatError(
            f"format {shown(format)} is of no import that is known; "
            f"give one of {_listed(IMPORTS)}, or leave it out"
        )
    if not source.is_file():
        what = "is a folder" if source.is_dir() else "is not there"
        raise StoreError(f"file {os.fspath(source)!r} {what}; give the path of a file to import")
    if format is not None:
        return import_module(IMPORTS[format])
    for home in IMPORTS.values():
        module = import_module(home)
        if module.is_ours(source):
            return module
    raise ImportFormatError(
        f"file {os.fspath(source)!r} is of no format that is known ({_listed(IMPORTS)}); "
        "give a file that Session.export() wrote"
    )


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(map(repr, sorted(names)))
