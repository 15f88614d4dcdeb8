"""Numbers that are missing from a store's file because a session was forgotten.

Owns how they are found and kept. The one idea: a file keeps on record which numbers were given up,
so that any other hole still tells of damage. Numbers after the last one are used again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from nbdurable.stores.duckdb.schema import ALIAS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Gaps = list[list[int]]  # pairs of the first and the last number that is missing, in order

KEY = "forgotten"  # of the record, in the table of what is known of the file

NUMBERS = {
    "seq": "select seq as place from {nbd}.entries union all select seq from {nbd}.moves",
    **{
        table: f"select counter as place from {{nbd}}.{table}"
        for table in ("sessions", "runs", "experiments", "annotations")
    },
}


def gaps_in(cursor: DuckDBPyConnection, kind: str, alias: str = ALIAS) -> Gaps:
    """Return which numbers of a kind are missing before the last one."""
    numbers = NUMBERS[kind].format(nbd=f"{alias}.nbd")
    query = f"""
        select before + 1, place - 1 from (
            select place, lag(place, 1, 0) over (order by place) as before from ({numbers}))
        where place > before + 1 order by 1
    """
    return [list(row) for row in cursor.execute(query).fetchall()]


def record(cursor: DuckDBPyConnection, alias: str) -> None:
    """Keep on record which numbers are missing from a file without such a record."""
    found = {kind: gaps for kind in NUMBERS if (gaps := gaps_in(cursor, kind, alias))}
    if found:
        cursor.execute(f"insert into {alias}.nbd.meta values (?, ?)", [KEY, json.dumps(found)])


def recorded(cursor: DuckDBPyConnection) -> dict[str, Gaps]:
    """Return the numbers on record as missing, by kind."""
    rows = cursor.execute(f"select value from {ALIAS}.nbd.meta where key = ?", [KEY]).fetchall()
    try:
        found = json.loads(rows[0][0]) if rows else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
