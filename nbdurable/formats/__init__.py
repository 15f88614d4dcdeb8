"""Formats: sessions to files and files to sessions, one module per format.

Owns the names of formats and the choice of one. A module that exports has ``is_ours(path)`` and
``export(image, path, *, leaf_id, redact)``; one that imports is a `drafts.Reader`, but for our own,
``jsonl``. They are imported when they are needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from nbdurable.errors import ImportFormatError, StoreError, shown
from nbdurable.formats.importing import READERS, Importer, Target
from nbdurable.formats.planting import Hidden
from nbdurable.formats.redaction import Redact
from nbdurable.formats.report import ImportReport
from nbdurable.formats.source import PathLike, Sources, sources
from nbdurable.ids import now_us
from nbdurable.loaded import Loaded
from nbdurable.stores import default_store, open_store, release_store
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import RecordingStore

EXPORTS: Mapping[str, str] = {
    "dpo": "nbdurable.formats.dpo",
    "finetune": "nbdurable.formats.finetune",
    "html": "nbdurable.formats.html",
    "jsonl": "nbdurable.formats.jsonl",
    "markdown": "nbdurable.formats.markdown",
    "openai": "nbdurable.formats.openai_export",
    "parquet": "nbdurable.formats.parquet",
    "pi": "nbdurable.formats.pi_export",
}
IMPORTS: Mapping[str, str] = {"jsonl": "nbdurable.formats.jsonl", **READERS}
STORE_EXPORTS = ("finetune", "jsonl", "parquet")  # those whose files hold several sessions
SUFFIXES: Mapping[str, str] = {
    ".htm": "html",
    ".html": "html",
    ".json": "openai",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".parquet": "parquet",
}


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
    store: Store,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    redact: Redact | None = None,
) -> Path:
    """Write all sessions of a store to one file, as `export` does one.

    Without a format, and where the suffix names none that holds several, that is a recording.

    Raises
    ------
    ImportFormatError
        No such format, or one whose files hold one session each.
    """
    target = Path(path)
    if format is None:
        named = SUFFIXES.get(target.suffix.lower(), "")
        format = named if named in STORE_EXPORTS else "jsonl"
    if format in EXPORTS and format not in STORE_EXPORTS:
        raise ImportFormatError(
            f"format {shown(format)} holds one session to a file; use Session.export(), "
            f"or give format= as one of {_listed(dict.fromkeys(STORE_EXPORTS, ''))}"
        )
    _exporter(target, format, redact).export_store(store, target, redact=redact)
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
    if os.path.exists(target) and (not target.is_file() or target.stat().st_size):
        if not (target.is_file() and module.is_ours(target)):
            raise StoreError(
                f"file {os.fspath(target)!r} is there and is no export of format {name!r}; "
                "choose another path, or remove it"
            )
    return module


def load(
    path: PathLike | Iterable[PathLike],
    store: Store | str | os.PathLike[str] | None = None,
    format: str | None = None,
    *,
    hidden: Hidden = "meta",
) -> ImportReport:
    """Import conversations to a store; what the store has already is not added again.

    Parameters
    ----------
    path : path or iterable of path
        A file that `Session.export` wrote, or an export of another program: a file, several, a
        folder, or the ``.zip`` as it came.
    store : Store or path, optional
        Where to; by default ``$NBDURABLE_STORE``, else ``nbdurable.duckdb`` in the working folder.
    format : str, optional
        One of `IMPORTS`; by default the look of each file decides.
    hidden : str
        What the source does not show: ``"meta"`` keeps it in prompts and out of the transcript,
        ``"skip"`` leaves it out and hangs what follows under what was before.

    Returns
    -------
    ImportReport
        What was added, what was not, and why.

    Raises
    ------
    ImportFormatError
        Nothing is of a format that is known, or a recording is damaged; no session is there by
        half.
    StoreError
        A file cannot be read, or the store cannot be opened or written.
    """
    if format is not None and format not in IMPORTS:
        raise ImportFormatError(
            f"format {shown(format)} is of no import that is known; "
            f"give one of {_listed(IMPORTS)}, or leave it out"
        )
    if hidden not in get_args(Hidden):
        raise ValueError(f"hidden is {shown(hidden)}; give 'meta' or 'skip'")
    given = default_store() if store is None else store
    with sources(path) as found, ExitStack() as stack:

        @cache
        def target() -> Store:
            opened = open_store(given)
            stack.callback(release_store, opened)
            return _lasting(opened)

        return _imported(found, _shown_path(path), target, format, hidden)


def _lasting(store: Store) -> Store:
    if isinstance(store, RecordingStore):
        raise StoreError(
            f"recording {store.name!r} is never written, so nothing can be imported to "
            "it; give the path of a store that lasts, such as 'chats.duckdb'"
        )
    return store


def _imported(
    found: Sources, path: str, target: Target, format: str | None, hidden: Hidden
) -> ImportReport:
    from nbdurable.formats import jsonl

    importer = Importer(target, None if format == "jsonl" else format, hidden, now_us())
    foreign = []
    for file in found.files:
        is_own = file.path is not None and (format == "jsonl" or jsonl.is_ours(file.path))
        if file.path is None or not is_own or format not in (None, "jsonl"):
            foreign.append(file)
            continue
        own = jsonl.load(file.path, target)
        importer.sessions += own.sessions
        importer.oddities += own.oddities
        importer.formats["jsonl"] = ""
    if foreign or not importer.formats:
        importer.take(foreign, found.assets)
    times = "; ".join(filter(None, importer.formats.values()))
    return ImportReport(
        path=path,
        format=", ".join(importer.formats),
        store=target().name,
        sessions=tuple(importer.sessions),
        oddities=tuple(importer.oddities),
        times=times,
    )


def _shown_path(path: PathLike | Iterable[PathLike]) -> str:
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    names = [os.fspath(one) for one in path]
    return names[0] if len(names) == 1 else f"{len(names)} paths"


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(map(repr, sorted(names)))
