"""Rows staged for one transaction, and how they are written.

Owns the order of columns and the two ways of insertion. Does not own checks (`plans`). The one
idea: a transaction is whole or not there, so finding one row of it again tells its outcome (B67).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

import duckdb

from nbdurable.stored import StoredEntry
from nbdurable.stores.duckdb import instances
from nbdurable.stores.duckdb.schema import ALIAS, COLUMNS, KEYS, ROW_GROUP_SIZE
from nbdurable.wire import clean

Row = tuple[object, ...]
Query = tuple[str, tuple[object, ...]]  # with its parameters

_MOST_VALUES = 8  # rows of one statement; for more an appender is quicker
_MERGED_CHARS = 32 << 20  # most payload of a full group of rows that is merged with others
_BY_CONTENT = frozenset({"blobs", "contexts"})
_IMAGED = frozenset({"moves", "annotations", "experiments"})
_entry_row = itemgetter(*map(StoredEntry._fields.index, COLUMNS["entries"]))
_session_of = itemgetter(StoredEntry._fields.index("session_id"))


def _columns(table: str, *names: str) -> itemgetter[Row]:
    return itemgetter(*map(COLUMNS[table].index, names))


_placed_entry = _columns("entries", "seq", "session_id", "id", "n", "depth", "moves_leaf")
_placed_move = _columns("moves", "session_id", "entry_id", "seq")
_PAYLOAD = COLUMNS["entries"].index("payload")


class Batch:
    """Rows by table, in the order they were staged."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.changes: Counter[str] = Counter()  # rows that a session's image reads, by session

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def stage_entries(self, entries: Sequence[StoredEntry]) -> None:
        """Stage completed entries."""
        if entries:
            self.rows.setdefault("entries", []).extend(map(_entry_row, entries))
            self.changes.update(map(_session_of, entries))

    def stage(self, table: str, record: object, **extra: object) -> None:
        """Stage one record of a table; `extra` gives the columns that the record lacks."""
        row = tuple(
            _sound(extra[name] if name in extra else getattr(record, name))
            for name in COLUMNS[table]
        )
        self.rows.setdefault(table, []).append(row)
        if table in _IMAGED:
            self.changes[getattr(record, "session_id")] += 1  # noqa: B009

    def placed(self) -> list[Row]:
        """Return (seq, session, entry, n, depth, moves) of entries and moves, by seq."""
        rows = [_placed_entry(row) for row in self.rows.get("entries", ())]
        for row in self.rows.get("moves", ()):
            session_id, entry_id, seq = _placed_move(row)
            rows.append((seq, session_id, entry_id, None, None, True))
        return sorted(rows, key=itemgetter(0))

    def witness(self) -> Query:
        """Return a query for a row that only this batch can have stored.

        Where there are others, it is none of content that any batch may keep.
        """
        table = min(self.rows, key=lambda name: name in _BY_CONTENT)
        row = dict(zip(COLUMNS[table], self.rows[table][0], strict=True))
        same = " and ".join(f"{name} is not distinct from ?" for name in KEYS[table])
        query = f"select 1 from {ALIAS}.nbd.{table} where {same} limit 1"
        return query, tuple(row[name] for name in KEYS[table])


def _sound(value: object) -> object:
    """Return a value as DuckDB takes it: text without lone surrogates (B64), lists for tuples."""
    if isinstance(value, str):
        return clean(value)
    return list(value) if isinstance(value, tuple) else value


class Inserter:
    """Write batches through one cursor, with statements that are parsed once."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        cursor.execute(f"use {ALIAS}.nbd")
        # A flag of this cursor alone: planning an insert costs more than it does.
        cursor.execute("pragma disable_optimizer")
        self._statements: dict[tuple[str, int], duckdb.Statement] = {}
        self._entries = self._chars = 0  # that were written, and of their payloads
        self._is_merging = True

    def close(self) -> None:
        """Free the cursor."""
        self._cursor.close()

    def write(self, batch: Batch) -> None:
        """Store a batch in one transaction; on an error nothing of it is left open."""
        self._weigh(batch.rows.get("entries", ()))
        if len(batch.rows) == 1 and len(batch) <= _MOST_VALUES:
            ((table, rows),) = batch.rows.items()
            self._insert(table, rows)
            return
        self._cursor.execute("begin")
        try:
            for table, rows in batch.rows.items():
                self._insert(table, rows)
            self._cursor.execute("commit")
        except BaseException:
            # A failed commit has rolled back already.
            with contextlib.suppress(duckdb.Error):
                self._cursor.execute("rollback")
            raise

    def _weigh(self, entries: Sequence[Row]) -> None:
        """Let checkpoints merge small groups of rows only where their payloads are small too.

        To merge two it has all of them in memory at once, as text.
        """
        self._entries += len(entries)
        self._chars += sum(len(str(row[_PAYLOAD])) for row in entries)
        is_light = self._chars * ROW_GROUP_SIZE <= _MERGED_CHARS * self._entries
        if is_light != self._is_merging:
            self._is_merging = is_light
            instances.set_merges(self._cursor, instances.MERGES if is_light else 0)

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        if len(rows) <= _MOST_VALUES:
            values = list(chain.from_iterable(rows))
            self._cursor.execute(self._statement(table, len(rows)), values)
            return
        appender = self._cursor.appender(table)
        try:
            appender.append_rows(rows)
            appender.flush()
        finally:
            appender.clear()  # DuckDB warns of rows that a failure left in it

    def _statement(self, table: str, count: int) -> duckdb.Statement:
        if (table, count) not in self._statements:
            marks = f"({', '.join('?' * len(COLUMNS[table]))})"
            text = f"insert into {ALIAS}.nbd.{table} values {', '.join([marks] * count)}"
            self._statements[table, count] = self._cursor.extract_statements(text)[0]
        return self._statements[table, count]
