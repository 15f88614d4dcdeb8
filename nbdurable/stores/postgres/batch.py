"""Rows staged for one transaction, and the statements that store them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from nbdurable.stored import StoredEntry
from nbdurable.stores.duckdb.schema import COLUMNS, KEYS

Row = tuple[object, ...]

_MOST_ROWS = 500  # of one statement, whose parameters the protocol counts in 16 bits
_ONCE = frozenset({"blobs", "contexts"})  # kept once per content, whoever comes first
_entry_row = attrgetter(*COLUMNS["entries"])


class Batch:
    """Rows by table, in the order they were staged."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def stage_entries(self, entries: Sequence[StoredEntry]) -> None:
        """Stage completed entries."""
        if entries:
            self.rows.setdefault("entries", []).extend(map(_entry_row, entries))

    def stage(self, table: str, record: object, **extra: object) -> None:
        """Stage one record of a table; `extra` gives the columns that the record lacks."""
        row = tuple(
            _listed(extra[name] if name in extra else getattr(record, name))
            for name in COLUMNS[table]
        )
        self.rows.setdefault(table, []).append(row)

    def first(self) -> tuple[str, str, object]:
        """Return table, key column and key of a row that only this transaction can have stored."""
        table = next((name for name in self.rows if name not in _ONCE), next(iter(self.rows)))
        key = "counter" if "counter" in COLUMNS[table] else KEYS[table][0]
        return table, key, self.rows[table][0][COLUMNS[table].index(key)]

    def statements(self) -> Iterator[tuple[str, list[object]]]:
        """Yield what stores the rows: statements with their parameters."""
        for table, rows in self.rows.items():
            for begin in range(0, len(rows), _MOST_ROWS):
                some = rows[begin : begin + _MOST_ROWS]
                yield _insert(table, len(some)), [value for row in some for value in row]


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _insert(table: str, count: int) -> str:
    names = COLUMNS[table]
    places = (
        ", ".join(f"${row * len(names) + at + 1}" for at in range(len(names)))
        for row in range(count)
    )
    columns = ", ".join(f'"{name}"' for name in names)
    tail = " on conflict do nothing" if table in _ONCE else ""
    return f"insert into nbd.{table} ({columns}) values ({'), ('.join(places)}){tail}"
