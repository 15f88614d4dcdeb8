"""Whether a store's file holds what was stored: its digests, counters, references and schema.

Owns what is looked for and how it is told. Does not own any remedy (`repair`). The one idea: every
finding comes from the file alone, through a cursor that only reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import duckdb

from nbdurable.errors import NbDurableError, StoreError, shown
from nbdurable.stored import StoredEntry, is_intact
from nbdurable.stores.duckdb import faults, gaps, instances, schema
from nbdurable.stores.duckdb.log import commits_from, read_log, silent_break
from nbdurable.stores.duckdb.place import check_kind, real_path
from nbdurable.stores.duckdb.schema import ALIAS, COLUMNS, FIELDS, TABLES
from nbdurable.stores.duckdb.views import VIEWS
from nbdurable.wire import digest

_RETRY_S = 0.05
_BATCH = 5_000  # rows that are looked at together
_MOST_NAMED = 3  # of many alike, how many a line names


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    ``is_damage`` is False for what a store may well hold, such as a call that a kill left open.
    """

    what: str
    is_damage: bool = True

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True)
class Report:
    """What a check looked at and found."""

    path: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not any(finding.is_damage for finding in self.findings)


def check(path: str | os.PathLike[str], *, timeout_s: float = 2.0) -> Report:
    """Check a store's file and change nothing, neither it nor its log.

    Parameters
    ----------
    path : str or Path
        A file that this process does not have open.
    timeout_s : float
        How long to wait for another process that holds it.

    Raises
    ------
    StoreError
        It cannot be read at all; the text says whether ``nbdurable repair`` may help.
    """
    name = real_path(path)
    check_kind(name)
    log = read_log(name)
    position = silent_break(log)
    if position is not None:
        lost = commits_from(log, position)
        found = f"its log breaks off at byte {position}, with {lost} transactions behind"
        return Report(name, {}, (Finding(found),))
    with opened(name, timeout_s) as cursor:
        schema.check_version(cursor, name)
        findings = [*_schema(cursor)]
        if any(finding.is_damage for finding in findings):
            return Report(name, {}, tuple(findings))
        findings += chain(contents(cursor), _structure(cursor), _open_ends(cursor))
        return Report(name, counts(cursor), tuple(findings))


def counts(cursor: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the number of rows by table."""
    return {
        table: int(_rows(cursor, f"select count(*) from {ALIAS}.nbd.{table}")[0][0])
        for table in TABLES
        if table != "meta"
    }


@contextlib.contextmanager
def opened(path: str, timeout_s: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor on a file that this process does not have open, attached to be read.

    Raises
    ------
    StoreError
        It cannot be read.
    """
    base = instances.take()
    try:
        _attach(base, path, timeout_s)
        with base.cursor() as cursor:
            yield cursor
        base.execute(f"detach {ALIAS}")
    except duckdb.Error as exc:
        raise _unreadable(exc, path) from exc
    finally:
        instances.give_back(base)


def _attach(base: duckdb.DuckDBPyConnection, path: str, timeout_s: float) -> None:
    quoted, deadline = path.replace("'", "''"), time.monotonic() + timeout_s
    while True:
        try:
            base.execute(f"attach '{quoted}' as {ALIAS} (type duckdb, read_only)")
            return
        except duckdb.Error as exc:
            if not faults.is_locked(exc) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def _unreadable(exc: duckdb.Error, path: str) -> NbDurableError:
    if faults.torn_block(exc) or faults.bad_log_entry(exc) is not None:
        line = str(exc).splitlines()[0]
        return StoreError(
            f"store {path!r} is damaged ({line}); nbdurable repair copies it aside and mends it, "
            "if all it holds can be verified"
        )
    return faults.told(exc, path)


# -- what was stored -----------------------------------------------------------------------------


def contents(cursor: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Yield where rows are not what was stored, or are missing: digests, hashes and counters."""
    yield from _named("entry", "does not match its digest", _changed_entries(cursor))
    yield from _named("blob", "does not match its hash", _changed_blobs(cursor))
    yield from _named(
        "session",
        "has ordinals with holes, repeats or out of order",
        _column(cursor, _BROKEN_ORDINALS),
    )
    yield from _named("entry id", "is there more than once", _column(cursor, _REPEATED_IDS))
    forgotten = gaps.recorded(cursor)
    for kind, numbers in gaps.NUMBERS.items():
        query = f"select count(*), count(distinct place), min(place), max(place) from ({numbers})"
        ((rows, distinct, first, last),) = _rows(cursor, query.format(nbd=f"{ALIAS}.nbd"))
        is_dense = not rows or (rows == distinct == last and first == 1)
        known = forgotten.get(kind, [])
        if (known or not is_dense) and (rows != distinct or gaps.gaps_in(cursor, kind) != known):
            what = "numbers of entries and moves" if kind == "seq" else f"counters of {kind}"
            yield Finding(
                f"{what} run from {first} to {last} with {distinct} different ones in {rows} rows"
            )


def _changed_entries(cursor: duckdb.DuckDBPyConnection) -> Iterator[str]:
    names = ", ".join(
        f"{name}::varchar" if name in ("id", "parent_id") else f'"{name}"'
        for name in FIELDS["entries"]
    )
    for row in _each(cursor, f"select {names} from {ALIAS}.nbd.entries"):
        entry = StoredEntry._make(row)
        if not is_intact(entry):
            yield entry.id


def _changed_blobs(cursor: duckdb.DuckDBPyConnection) -> Iterator[str]:
    # One at a time: together they may be more than the memory holds.
    for sha256 in _column(cursor, f"select sha256 from {ALIAS}.nbd.blobs"):
        query = f"select size_bytes, data from {ALIAS}.nbd.blobs where sha256 = ?"
        for size_bytes, data in cursor.execute(query, [sha256]).fetchall():
            if size_bytes != len(data) or hashlib.sha256(data).hexdigest() != sha256:
                yield sha256


_BROKEN_ORDINALS = f"""
    select distinct session_id from (
        select session_id, n,
            row_number() over (partition by session_id order by seq) as expected
        from {ALIAS}.nbd.entries)
    where n <> expected order by session_id
"""
_REPEATED_IDS = f"""
    select id::varchar from {ALIAS}.nbd.entries group by id having count(*) > 1 order by id
"""


# -- how it hangs together -----------------------------------------------------------------------


def _schema(cursor: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    found: dict[tuple[str, str], list[str]] = {}
    query = """
        select schema_name, table_name, column_name from duckdb_columns()
        where database_name = ? order by schema_name, table_name, column_index
    """
    for home, table, column in cursor.execute(query, [ALIAS]).fetchall():
        found.setdefault((home, table), []).append(column)
    for table, columns in COLUMNS.items():
        if found.get(("nbd", table)) != list(columns):
            yield Finding(f"table nbd.{table} is missing or has other columns than the schema")
    for view in VIEWS:
        if ("main", view) not in found:
            yield Finding(f"view {view} is missing")


def _structure(cursor: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    for what, ill, query in _REFERENCES:
        yield from _named(what, ill, _column(cursor, query.format(nbd=f"{ALIAS}.nbd")))
    yield from _named("entry", "is in a ring of parents", _in_rings(cursor))
    contexts = _rows(cursor, f"select digest, system, tools_json from {ALIAS}.nbd.contexts")
    changed = (kept for kept, system, tools in contexts if digest([system, tools]) != kept)
    yield from _named("context", "does not match its digest", changed)


# What is named, what ails it, and a query for its names.
_REFERENCES = (
    (
        "entry",
        "is an orphan: its parent is not in its session",
        """select e.id::varchar from {nbd}.entries e anti join {nbd}.entries p
            on p.id = e.parent_id and p.session_id = e.session_id
            where e.parent_id is not null order by e.seq""",
    ),
    (
        "entry",
        "has another depth than its path",
        """select e.id::varchar from {nbd}.entries e left join {nbd}.entries p
            on p.id = e.parent_id and p.session_id = e.session_id
            where (e.parent_id is null or p.id is not null)
            and e.depth <> coalesce(p.depth, 0) + 1 order by e.seq""",
    ),
    (
        "session",
        "is not there but has entries",
        """select distinct session_id from {nbd}.entries
            where session_id not in (select id from {nbd}.sessions) order by 1""",
    ),
    (
        "session id",
        "is there more than once",
        "select id from {nbd}.sessions group by id having count(*) > 1 order by id",
    ),
    (
        "session",
        "has a move to an entry that is not there",
        """select distinct m.session_id from {nbd}.moves m anti join {nbd}.entries e
            on e.id = m.entry_id and e.session_id = m.session_id
            where m.entry_id is not null order by 1""",
    ),
    (
        "run",
        "has ended but never started",
        "select run_id from {nbd}.run_ends where run_id not in (select id from {nbd}.runs) "
        "order by 1",
    ),
    (
        "run",
        "has input that is not there",
        """select distinct r.id from (
                select id, session_id, unnest(input_ids) as input from {nbd}.runs) r
            anti join {nbd}.entries e
            on e.id = try_cast(r.input as uuid) and e.session_id = r.session_id order by 1""",
    ),
    (
        "run",
        "names a context that is not there",
        """select id from {nbd}.runs where context_digest is not null
            and context_digest not in (select digest from {nbd}.contexts) order by 1""",
    ),
    (
        "blob",
        "is not there but an entry needs it",
        """select distinct sha256 from (
                select unnest(regexp_extract_all(
                    payload, '"sha256":"([0-9a-f]{{64}})"', 1)) as sha256
                from {nbd}.entries where kind = 'message')
            where sha256 not in (select sha256 from {nbd}.blobs) order by 1""",
    ),
)


_PARENTS = f"select id::varchar, parent_id::varchar from {ALIAS}.nbd.entries"


def _in_rings(cursor: duckdb.DuckDBPyConnection) -> Iterator[str]:
    query = f"""
        select id::varchar, parent_id::varchar from {ALIAS}.nbd.entries e
        where exists (select 1 from {ALIAS}.nbd.entries p
            where p.id = e.parent_id and p.seq >= e.seq)
    """
    late = cursor.execute(query).fetchall()  # none in a store that only appended
    if not late:
        return
    parents = dict(
        _rows(cursor, f"select id::varchar, parent_id::varchar from {ALIAS}.nbd.entries")
    )
    for start, above in late:
        walked = {start}
        while above in parents and above not in walked:
            walked.add(above)
            above = parents[above]
        if above == start:
            yield start


# -- what may well be ----------------------------------------------------------------------------


def _open_ends(cursor: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Yield calls without a result, and results without a call: prompts make up for both."""
    called = f"""
        select c.id::varchar, c.call_id
        from {ALIAS}.main.tool_calls c join {ALIAS}.nbd.entries e using (id)
        where c.complete and not c.provider_run
        and coalesce(e.stop_reason, '') not in ('error', 'aborted')
    """
    answers = f"select id::varchar, call_id from {ALIAS}.main.tool_results where role = 'tool'"
    calls = set(_rows(cursor, called))
    results = _rows(cursor, answers)
    if not calls and not results:
        return
    parents: dict[str, str | None] = dict(_rows(cursor, _PARENTS))
    answered: set[tuple[str, str]] = set()
    strays: list[str] = []
    for entry_id, call_id in results:
        above, walked = parents.get(entry_id), {entry_id}
        while above is not None and (above, call_id) not in calls and above not in walked:
            walked.add(above)
            above = parents.get(above)
        if above is not None and (above, call_id) in calls:
            answered.add((above, call_id))
        else:
            strays.append(entry_id)
    unpaired = sorted({entry_id for entry_id, _ in calls - answered})
    yield from _named("entry", "calls a tool and has no result", unpaired, is_damage=False)
    yield from _named("entry", "is a result without a call", strays, is_damage=False)


# -- rows ----------------------------------------------------------------------------------------


def _named(
    what: str, ill: str, names: Iterable[str], *, is_damage: bool = True
) -> Iterator[Finding]:
    """Yield one finding for all of `names`, of which it shows some."""
    found = list(names)
    if found:
        listed = ", ".join(map(shown, found[:_MOST_NAMED]))
        more = f" (and {len(found) - _MOST_NAMED} more)" if len(found) > _MOST_NAMED else ""
        yield Finding(f"{what} {listed}{more} {ill}", is_damage)


def _column(cursor: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [row[0] for row in _rows(cursor, query)]


def _rows(cursor: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return cursor.execute(query).fetchall()


def _each(cursor: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    cursor.execute(query)
    while rows := cursor.fetchmany(_BATCH):
        yield from rows
