"""Forget a session of a DuckDB file: all the rest in a new file, which takes the old one's place.

Owns what goes and what stays, the new file and its verification. The one idea: nothing is deleted
in a file, since what an engine frees it does not wipe. Until the new file is whole, verified and on
the disk the old one stands untouched, and one rename is all that makes the difference.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from nbdurable.errors import StoreError
from nbdurable.stores.duckdb import checking, core, gaps, place, traces
from nbdurable.stores.duckdb.copying import copied
from nbdurable.stores.duckdb.core import Core
from nbdurable.stores.duckdb.repair import SUFFIXES
from nbdurable.stores.duckdb.schema import ALIAS, COLUMNS, TABLES
from nbdurable.stores.duckdb.spool import check_in_flight
from nbdurable.stores.duckdb.state import no_session
from nbdurable.stores.duckdb.store import DuckDBStore
from nbdurable.stores.forgetting import COPIES, Forgotten

_OF_SESSION = ("entries", "moves", "runs", "run_ends", "experiments", "annotations")
_SHA256 = re.compile(rb'"sha256":\s*"([0-9a-f]{64})"')

# Bytes that anything else names: what a newer version wrote is not read but looked through.
_NEEDED_BLOBS = f"""
    select unnest(regexp_extract_all(said, '"sha256":\\s*"([0-9a-f]{{64}})"', 1)) from (
        select payload as said from {ALIAS}.nbd.entries where session_id <> $1
        union all select plan_json from {ALIAS}.nbd.experiments where session_id <> $1
        union all select value_json from {ALIAS}.nbd.annotations where session_id <> $1)
    union all select unnest($2::varchar[])
"""
_NEEDED_CONTEXTS = f"""
    select context_digest from {ALIAS}.nbd.runs
    where session_id <> $1 and context_digest is not null
"""
_KEPT = {
    "meta": f"key <> '{gaps.KEY}' and $1 is not null",
    "sessions": "id <> $1",
    **dict.fromkeys(_OF_SESSION, "session_id <> $1"),
    "contexts": f"digest in ({_NEEDED_CONTEXTS})",
    "blobs": f"sha256 in ({_NEEDED_BLOBS})",
}
# A fork keeps its copies, but not the name of what it was forked from; and a session that was
# made after the last number that is left comes first in a listing no longer than it should.
_CHANGED = {
    "parent_session_id": "nullif(parent_session_id, $1)",
    "parent_entry_id": "if(parent_session_id = $1, null, parent_entry_id)",
    "created_after": f"""least(created_after, greatest(
        (select coalesce(max(seq), 0) from {ALIAS}.nbd.entries where session_id <> $1),
        (select coalesce(max(seq), 0) from {ALIAS}.nbd.moves where session_id <> $1)))""",
}
_HASHED = {
    **{table: ("session_id", COLUMNS[table]) for table in _OF_SESSION},
    "sessions": ("id", ("id", "created_at", "counter")),
    "contexts": ("digest", COLUMNS["contexts"]),
    "blobs": ("sha256", ("sha256", "size_bytes")),  # whose bytes are hashed by the check
}
_OWN_BLOBS = f"""
    select unnest(regexp_extract_all(payload, '"sha256":\\s*"([0-9a-f]{{64}})"', 1))
    from {ALIAS}.nbd.entries where session_id = $1
"""


@dataclass(frozen=True, slots=True)
class _Going:
    """The session that goes, and the blobs that stay as answers in flight name them."""

    session_id: str
    blobs: list[str]

    def params(self, table: str) -> list[object]:
        """Return the parameters of what is kept of a table."""
        return [self.session_id, self.blobs] if table == "blobs" else [self.session_id]


def forget_in_file(path: str, session_id: str, *, dry_run: bool = False) -> Forgotten:
    """Forget a session of a file that this process does not have open.

    Raises
    ------
    SessionNotFound
        There is no such session.
    StoreError
        It could not be done; nothing was changed.
    """
    if core.is_open(path):
        raise _open_here(path)
    store = DuckDBStore(path, exclusive=True)
    try:
        held = store.medium
        assert isinstance(held, Core)
        if not dry_run:
            store.recover()  # what a dead process left of the session goes with it
        spools = held.spool.owners()
        check_in_flight(spools, session_id)
        going = _Going(session_id, sorted(_blobs_named_in(spools.values())))
        told, marks = store.read(lambda cursor: _looked_at(cursor, path, going))
        if not dry_run:
            _replace(store, held, going)
    finally:
        if not dry_run:
            place.remove_left(path)
        store.close()
    found, unread = traces.traces(path, marks)
    return replace(
        told,
        is_dry_run=dry_run,
        found_in=tuple(found),
        unread=tuple(unread),
        open_in=tuple(spools),
    )


def _open_here(path: str) -> StoreError:
    return StoreError(
        f"store {path!r} is open in this process; close its sessions and libraries first "
        "(nothing was changed)"
    )


def _blobs_named_in(spools: Iterable[Path]) -> set[str]:
    found: set[str] = set()
    for spool in spools:
        with contextlib.suppress(OSError):
            found.update(sha256.decode() for sha256 in _SHA256.findall(spool.read_bytes()))
    return found


# -- what goes and what stays --------------------------------------------------------------------


def _looked_at(
    cursor: duckdb.DuckDBPyConnection, path: str, going: _Going
) -> tuple[Forgotten, traces.Marks]:
    """Return what forgetting removes, and by what the session's text is known again."""
    nbd, session_id = f"{ALIAS}.nbd", going.session_id

    def count(table: str, where: str, params: list[object]) -> int:
        return int(_rows(cursor, f"select count(*) from {nbd}.{table} where {where}", params)[0][0])

    if not count("sessions", "id = $1", [session_id]):
        raise no_session(session_id, path)
    entries = _rows(
        cursor,
        f"select id::varchar, payload, source_id from {nbd}.entries where session_id = $1",
        [session_id],
    )
    told = Forgotten(
        store=path,
        session_id=session_id,
        is_dry_run=True,
        removed={
            table: count(table, f"({_KEPT[table]}) is not true", going.params(table))
            for table in (*_OF_SESSION, "contexts", "blobs")
        },
        kept_sessions=count("sessions", _KEPT["sessions"], [session_id]),
        kept_entries=count("entries", _KEPT["entries"], [session_id]),
        copies=dict(_rows(cursor, COPIES.format(nbd=nbd), [session_id])),
        shared_blobs=count(
            "blobs", f"{_KEPT['blobs']} and sha256 in ({_OWN_BLOBS})", going.params("blobs")
        ),
        imported=sum(source_id is not None for _, _, source_id in entries),
    )
    return told, traces.marks_of((entry_id, payload) for entry_id, payload, _ in entries)


# -- the new file --------------------------------------------------------------------------------


def _replace(store: DuckDBStore, held: Core, going: _Going) -> None:
    """Put a file without the session in the place of the store's."""
    folder = place.work_folder(held.path)
    place.remove_left(held.path)
    try:
        os.mkdir(folder, 0o700)
    except OSError as exc:
        raise StoreError(
            f"folder {folder!r} cannot be made ({exc.strerror}); free space or change "
            "permissions (nothing was changed)"
        ) from exc
    fresh = os.path.join(folder, "new.duckdb")
    store.read(lambda cursor: _write(cursor, fresh, going))
    _check(fresh, held.path)
    store.read(lambda cursor: _end_log(cursor, held.path))
    if held.handles != 1:
        raise _open_here(held.path)
    held.lease.replace(fresh)


def _write(cursor: duckdb.DuckDBPyConnection, fresh: str, going: _Going) -> None:
    """Write what stays to a new file, and compare it row by row."""
    queries = {table: (_selected(table), going.params(table)) for table in TABLES}
    with copied(cursor, fresh, queries) as copy:
        gaps.record(cursor, copy)
        cursor.execute(f"checkpoint {copy}")
        for table, (key, columns) in _HASHED.items():
            names = ", ".join(f'"{name}"' for name in columns)
            query = f"select {key}, count(*), bit_xor(hash({names})) from {{}}.nbd.{table} "
            kept = f"{query.format(ALIAS)} where {_KEPT[table]} group by 1 order by 1"
            written = f"{query.format(copy)} group by 1 order by 1"
            if _rows(cursor, kept, going.params(table)) != _rows(cursor, written):
                raise StoreError(
                    f"table {table!r} was not written as it is to {fresh!r}; free space and try "
                    "again (nothing was changed)"
                )


def _selected(table: str) -> str:
    changed = _CHANGED if table == "sessions" else {}
    names = ", ".join(changed.get(name, f'"{name}"') for name in COLUMNS[table])
    return f"select {names} from {ALIAS}.nbd.{table} where {_KEPT[table]}"


def _check(fresh: str, path: str) -> None:
    """Raise unless all that a new file holds matches its digests."""
    with checking.opened(fresh, 1.0) as cursor:
        wrong = next(checking.contents(cursor), None)
    if wrong is not None:
        raise StoreError(
            f"store {path!r} is damaged beside the session ({wrong}); see nbdurable check "
            "(nothing was changed)"
        )


def _end_log(cursor: duckdb.DuckDBPyConnection, path: str) -> None:
    """Bring all of the log into the file: it would be taken for that of the new one."""
    cursor.execute(f"checkpoint {ALIAS}")
    try:
        os.unlink(path + SUFFIXES[2])  # what a kill left, of which nothing is needed any more
    except FileNotFoundError:
        pass
    except OSError as exc:
        raise StoreError(
            f"file {path + SUFFIXES[2]!r} cannot be removed ({exc.strerror}); change its "
            "permissions and try again (nothing was changed)"
        ) from exc


def _rows(
    cursor: duckdb.DuckDBPyConnection, query: str, params: Iterable[object] = ()
) -> list[tuple[Any, ...]]:
    return cursor.execute(query, list(params)).fetchall()
