"""Out as ``parquet``: a row for each entry, as it is stored, for any tool that reads tables.

Owns the columns; the file is written by DuckDB. Times are timestamps in UTC, ``text`` is what an
entry says, ``payload`` all of it as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from nbdurable.formats.outgoing import Outgoing, outgoing, outgoing_of
from nbdurable.formats.redaction import Redact
from nbdurable.loaded import Loaded
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import replacing

COLUMNS = {
    "session_id": "varchar",
    "n": "bigint",
    "id": "uuid",
    "parent_id": "uuid",
    "depth": "bigint",
    "on_path": "boolean",
    "created_at": "timestamptz",
    "run_id": "varchar",
    "kind": "varchar",
    "role": "varchar",
    "meta": "boolean",
    "model": "varchar",
    "stop_reason": "varchar",
    "input_tokens": "bigint",
    "output_tokens": "bigint",
    "cache_read_tokens": "bigint",
    "cache_write_tokens": "bigint",
    "reasoning_tokens": "bigint",
    "cost_usd": "double",
    "seconds": "double",
    "ttft_s": "double",
    "source_id": "varchar",
    "text": "varchar",
    "payload": "varchar",
}
_MAGIC = b"PAR1"


def is_ours(path: Path) -> bool:
    """Whether a file is of this kind."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write the entries of a session, or of the path to one of them."""
    _write(path, [outgoing(image, leaf_id, redact)])


def export_store(store: Store, path: Path, *, redact: Redact | None = None) -> None:
    """Write the entries of all sessions, by their ids."""
    ids = sorted(summary.session.id for summary in store.list_sessions())
    _write(path, (outgoing_of(store, id, None, redact) for id in ids))


def _write(path: Path, outs: Iterable[Outgoing]) -> None:
    from nbdurable.stores.duckdb.parquet import write_parquet  # imports duckdb

    with replacing(path) as file:
        write_parquet(os.fspath(file.name), COLUMNS, (row for out in outs for row in _rows(out)))


def _rows(out: Outgoing) -> Iterator[tuple[object, ...]]:
    on_path = {entry.id for entry in out.tree.path(out.leaf_id)}
    for stored, entry in zip(out.stored, out.entries, strict=True):
        text = getattr(entry, "text", None)
        known = {
            "on_path": stored.id in on_path,
            "created_at": entry.created_at,
            "text": text if isinstance(text, str) else None,
        }
        yield tuple(known[name] if name in known else getattr(stored, name) for name in COLUMNS)
