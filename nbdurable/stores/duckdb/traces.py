"""Where else a session's text stands: in the files beside its store.

Owns which files are looked into and by what its text is known again. The one idea: a file is said
to hold it, not to hold it, or to be one that cannot be looked into; silence would be a promise.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from nbdurable.errors import StoreError
from nbdurable.stores.duckdb import core, instances
from nbdurable.stores.duckdb.checking import opened
from nbdurable.stores.duckdb.place import identity
from nbdurable.stores.duckdb.repair import copies_aside
from nbdurable.stores.duckdb.schema import ALIAS

_MOST_BYTES = 256 << 20  # of a file that is read whole
_MOST_MARKS = 50
_WORDS = re.compile(r"\w[\w ]{22,200}\w")  # what no form of text escapes, and chance never repeats
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TEXTS = frozenset(".jsonl .json .html .htm .md .txt .csv .ipynb .unread .wal .bak".split())
_HAS_ENTRIES = """
    select 1 from duckdb_tables()
    where database_name = ? and schema_name = 'nbd' and table_name = 'entries'
"""
_WAIT_S = 1.0  # for another process that has a file open


@dataclass(frozen=True, slots=True)
class Marks:
    """By what a session's text is known again."""

    ids: frozenset[str]
    payloads: tuple[str, ...]  # the longest
    words: tuple[bytes, ...]  # the longest that stand on a line


def marks_of(entries: Iterable[tuple[str, str]]) -> Marks:
    """Return the marks of entries, given as pairs of id and payload."""
    rows = list(entries)
    words = {found[0] for _, payload in rows for found in _WORDS.finditer(_said(payload))}
    payloads = {payload for _, payload in rows}
    return Marks(
        ids=frozenset(entry_id for entry_id, _ in rows),
        payloads=tuple(sorted(payloads, key=len)[-_MOST_MARKS:]),
        words=tuple(word.encode() for word in sorted(words, key=len)[-_MOST_MARKS:]),
    )


def _said(payload: str) -> str:
    texts: list[str] = []
    try:
        rest = [json.loads(payload)]
    except (ValueError, RecursionError):
        return ""
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            rest.extend(item.values())
        elif isinstance(item, list):
            rest.extend(item)
    return "\n".join(texts)


def traces(path: str, marks: Marks) -> tuple[list[str], list[str]]:
    """Return the files beside a store that hold a session's text, and those that may.

    Parameters
    ----------
    path : str
        The store's file, which is passed over itself.
    marks : Marks
        Of the session.
    """
    holding, unread = [], []
    for file in _beside(path):
        is_there = _is_in(file, marks)
        if is_there is None:
            unread.append(str(file))
        elif is_there:
            holding.append(str(file))
    return holding, unread


def _beside(path: str) -> Iterator[Path]:
    own = {identity(path), (0, 0)}
    folder, name = Path(path).parent, Path(path).name
    folders = [folder, folder / ".ipynb_checkpoints", Path(f"{path}.spool")]
    folders += copies_aside(path)
    for each in folders:
        try:
            files = sorted(each.iterdir())
        except OSError:
            continue
        is_spool = each.name == f"{name}.spool"  # what is in use there was looked at before
        for file in files:
            if identity(str(file)) not in own and (not is_spool or file.suffix == ".unread"):
                yield file


def _is_in(file: Path, marks: Marks) -> bool | None:
    """Whether a file holds the text; None where that cannot be told."""
    try:
        if not file.is_file():
            return False
        if core.is_open(os.path.realpath(file)):
            return None  # to open and close it here would cost DuckDB its lock
        if file.suffix == ".parquet":
            return _is_in_table(file, marks)
        if _is_database(file):
            return _is_in_store(file, marks)
        return file.suffix in _TEXTS and _is_in_bytes(file, marks)
    except (OSError, duckdb.Error):
        return None


def _is_database(file: Path) -> bool:
    with file.open("rb") as opened_file:
        return opened_file.read(12)[8:] == b"DUCK"


def _is_in_store(file: Path, marks: Marks) -> bool | None:
    try:
        with opened(str(file), _WAIT_S) as cursor:
            if not cursor.execute(_HAS_ENTRIES, [ALIAS]).fetchall():
                return False  # a database of something else
            return _is_answered(cursor, f"{ALIAS}.nbd.entries", marks)
    except StoreError:
        # Damaged, or in use: what is seen in its bytes is there, and what is not may be.
        return _is_in_bytes(file, marks) or None


def _is_in_table(file: Path, marks: Marks) -> bool | None:
    base = instances.take()
    try:
        with base.cursor() as cursor:
            quoted = str(file).replace("'", "''")
            return _is_answered(cursor, f"read_parquet('{quoted}')", marks)
    finally:
        instances.give_back(base)


def _is_answered(cursor: duckdb.DuckDBPyConnection, rows: str, marks: Marks) -> bool:
    names = {row[0] for row in cursor.execute(f"describe select * from {rows}").fetchall()}
    wanted = {"id": list(marks.ids), "payload": list(marks.payloads)}
    return any(
        cursor.execute(
            f"select 1 from {rows} where {name}::varchar in (select unnest($1::varchar[])) limit 1",
            [values],
        ).fetchall()
        for name, values in wanted.items()
        if name in names
    )


def _is_in_bytes(file: Path, marks: Marks) -> bool | None:
    if file.stat().st_size > _MOST_BYTES:
        return None
    data = file.read_bytes()
    if any(word in data for word in marks.words):
        return True
    return any(found[0].decode() in marks.ids for found in _UUID.finditer(data))
