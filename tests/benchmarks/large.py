"""A store of very many entries, made in SQL in seconds; its digests are not real."""

from __future__ import annotations

import contextlib
from pathlib import Path

from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.schema import ALIAS, COLUMNS

LONG = {"short": 1_000, "long": 10_000, "longest": 100_000}

_ID = "('019a0000-0000-7000-8000-' || lpad(to_hex({seq}), 12, '0'))::uuid"
_TEXT = "(case when n % 2 = 1 then 'Question ' else 'Answer ' end) || n || ' of ' || session_id"
_CREATED_AT = 1_770_000_000_000_000
_VALUES = {
    "seq": "first + n",
    "id": _ID.format(seq="first + n"),
    "session_id": "session_id",
    "n": "n",
    "parent_id": f"case when n > 1 then {_ID.format(seq='first + n - 1')} end",
    "depth": "n",
    "kind": "'message'",
    "role": "case when n % 2 = 1 then 'user' else 'assistant' end",
    "meta": "false",
    "stop_reason": "case when n % 2 = 0 then 'stop' end",
    "preview": f"left({_TEXT}, 120)",
    "moves_leaf": "true",
    "created_at": f"{_CREATED_AT} + first + n",
    "payload": """format('{{"v":1,"role":"{}","blocks":[{{"type":"text","text":"{}"}}]{}}}',
        case when n % 2 = 1 then 'user' else 'assistant' end,
        """
    + _TEXT
    + """ || repeat(' and some more words', 20),
        case when n % 2 = 1 then '' else ',"stop_reason":"stop"' end)""",
    "digest": "''",
}


def build(path: Path, entries: int = 1_000_000, sessions: int = 10_000) -> None:
    """Make a store: a session for each of `LONG` in the middle, and as many others as it takes."""
    others = sessions - len(LONG)
    each, rest = divmod(entries - sum(LONG.values()), others)
    lengths = [(f"session {at}", each + (at < rest)) for at in range(others)]
    lengths[others // 2 : others // 2] = LONG.items()
    columns = ", ".join(_VALUES.get(name, "null") for name in COLUMNS["entries"])
    with contextlib.closing(DuckDBStore(path)) as store, store._core.lease.held() as cursor:
        cursor.execute(
            """create temp table plan as
            select unnest($1::varchar[]) as session_id, unnest($2::bigint[]) as length,
                unnest(range(1, len($1) + 1)) as counter""",
            [[name for name, _ in lengths], [length for _, length in lengths]],
        )
        cursor.execute(
            """create temp table placed as
            select *, sum(length) over (order by counter)::bigint - length as first from plan"""
        )
        cursor.execute(
            f"""insert into {ALIAS}.nbd.sessions
            select session_id, {_CREATED_AT} + first, null, null, counter, first from placed
            order by counter"""
        )
        cursor.execute(
            f"""insert into {ALIAS}.nbd.entries select {columns} from
            (select session_id, first, unnest(range(1, length + 1)) as n from placed)
            order by first + n"""
        )
        cursor.execute(f"checkpoint {ALIAS}")
        for table in ("plan", "placed"):
            cursor.execute(f"drop table {table}")
