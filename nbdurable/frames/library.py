"""What a library tells of a whole store as frames: sessions, finds, spending, any query."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pandas as pd

from nbdurable.codec import one_line
from nbdurable.errors import QueryError, shown
from nbdurable.frames.entries import selected
from nbdurable.frames.layout import (
    HITS,
    SESSIONS,
    TEXT,
    TIME,
    framed,
    framed_rows,
    objects,
    spend_layout,
)
from nbdurable.ids import as_us
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb.query import Params, Question, read
from nbdurable.wire import as_python, dumps

_MOST_HITS = 2**63 - 1  # what DuckDB takes
_AROUND = 60  # code points of a snippet before and after what was found


def sessions_frame(store: Store) -> pd.DataFrame:
    """Return one row per session, the most recently used first; reads no payload."""
    names = [
        *selected(SESSIONS, [name for name in SESSIONS if name != "branches"], "s"),
        "s.leaves as branches",
    ]
    query = f"select {', '.join(names)} from sessions s"
    got = read(store, lambda question: question.columns(query))
    recency = {summary.session.id: at for at, summary in enumerate(store.list_sessions())}
    order = np.argsort([recency.get(id, -1) for id in got["id"]], kind="stable")
    return framed({name: values[order] for name, values in got.items()}, SESSIONS)


# -- search ----------------------------------------------------------------------------------------


def search_frame(
    store: Store,
    text: str,
    *,
    role: str | None = None,
    model: str | None = None,
    since: datetime | date | str | None = None,
    limit: int | None = 50,
) -> pd.DataFrame:
    """Return the entries whose text holds `text`, newest first, with what stands around it."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"search text is {shown(text)}; give the words to look for")
    params: dict[str, object] = {"wanted": text, "escaped": dumps(text)[1:-1]}
    conditions = []
    for name, value in (("role", role), ("model", model)):
        if value is not None:
            if not isinstance(value, str):
                raise QueryError(f"{name} is {shown(value)}; give text, or leave it out")
            conditions.append(f"e.{name} = ${name}")
            params[name] = value
    if since is not None:
        conditions.append("e.created_at >= make_timestamptz($since::bigint)")
        params["since"] = _microseconds(since)
    names = ["e.text" if name == "snippet" else found for name, found in _hit_columns()]
    tail = " order by e.seq desc"
    if limit is not None:
        tail += " limit $limit"
        params["limit"] = _count(limit)

    def hits(question: Question) -> list[tuple[Any, ...]]:
        where = " and ".join([question.found, *conditions])
        query = f"select {', '.join(names)} from entries e where {where}{tail}"
        return question.rows(query, params)

    rows = read(store, hits)
    at = list(HITS).index("snippet")
    return framed_rows([(*row[:at], snippet(row[at], text), *row[at + 1 :]) for row in rows], HITS)


def _count(limit: object) -> int:
    """Return a limit, of any integral type, as DuckDB takes it."""
    count = as_python(limit)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise QueryError(f"limit is {shown(limit)}; give a whole number, or None for all")
    return min(count, _MOST_HITS)


def _hit_columns() -> list[tuple[str, str]]:
    return list(zip(HITS, selected(HITS, list(HITS), "e"), strict=True))


def snippet(text: str, wanted: str) -> str:
    """Return one line of `text` around the first place of `wanted`, cut ends marked."""
    found = re.search(re.escape(wanted), text, re.IGNORECASE)
    begin, end = found.span() if found else (0, 0)
    first, last = max(begin - _AROUND, 0), min(end + _AROUND, len(text))
    line = one_line(text[first:last], limit=2 * _AROUND + len(wanted))
    return f"{'…' * (first > 0)}{line}{'…' * (last < len(text))}"


def _microseconds(since: datetime | date | str) -> int:
    """Return an instant in microseconds UTC; a day begins at midnight UTC, naive times do not."""
    when: object = since
    if isinstance(when, str):
        try:
            when = date.fromisoformat(when) if len(when) <= 10 else datetime.fromisoformat(when)
        except ValueError:
            raise QueryError(
                f"since is {shown(since)}, which is no ISO date or time; give '2026-11-30'"
            ) from None
    if isinstance(when, date) and not isinstance(when, datetime):
        when = datetime.combine(when, time(), UTC)
    if isinstance(when, datetime) and when.tzinfo is not None:
        return as_us(when)
    raise QueryError(
        f"since is {shown(since)}, which names no instant; give a date, or a time with its zone"
    )


# -- spending --------------------------------------------------------------------------------------


def spend_frame(store: Store, by: str = "day") -> pd.DataFrame:
    """Return what was spent by day (UTC), model or session; copies of a fork cost nothing."""
    keys = {"day": "day", "model": "model", "session": "session_id"}
    if by not in keys:
        raise QueryError(f"spend cannot be told by {shown(by)}; choose one of {', '.join(keys)}")
    layout = spend_layout(by)
    key, *numbers = layout
    sums = [
        f"sum(u.{name}) as {name}" if name == "cost_usd" else f"sum(u.{name})::bigint as {name}"
        for name in numbers
    ]
    [named] = selected(layout, [key], "u")
    query = f"select {', '.join([named, *sums])} from usage u group by u.{key} order by u.{key}"
    return framed(read(store, lambda question: question.columns(query)), layout)


# -- any query -------------------------------------------------------------------------------------


def sql_frame(store: Store, query: str, params: Params = ()) -> pd.DataFrame:
    """Return the answer to one SELECT over the views, its dtypes those of its SQL types."""
    described, rows = read(store, lambda question: question.select(query, params))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(described)
    made: dict[str, Any] = {}
    for (name, kind), values in zip(described, columns, strict=True):
        made[_fresh(name, made)] = _column(values, kind)
    return pd.DataFrame(made)


def _fresh(name: str, taken: dict[str, Any]) -> str:
    """Return a name that no column has yet, as DuckDB makes it: ``n``, ``n_1``, ``n_2``."""
    return next(
        n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2))) if n not in taken
    )


def _column(values: Sequence[Any], kind: str) -> Any:
    if kind.endswith("INT") or kind in ("INTEGER", "BIGNUM"):
        fits = all(value is None or abs(value) < 1 << 63 for value in values)
        return pd.array(objects(values), dtype="Int64") if fits else _texts(values, str)
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        reals = [None if value is None else float(value) for value in values]
        return pd.array(objects(reals), dtype="Float64")
    if kind == "BOOLEAN":
        return pd.array(objects(values), dtype="boolean")
    if kind == "TIMESTAMP WITH TIME ZONE":
        return pd.array(pd.to_datetime(objects(values), utc=True), dtype=TIME)
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        return pd.array(pd.to_datetime(objects(values)), dtype="datetime64[us]")
    if kind == "INTERVAL":
        return pd.array(objects(values), dtype="timedelta64[us]")
    if kind == "BLOB":
        return objects(values)
    is_nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION"))
    return _texts(values, _json if is_nested else str)


def _texts(values: Sequence[Any], form: Callable[[Any], str]) -> Any:
    return pd.array(objects(None if v is None else form(v) for v in values), dtype=TEXT)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
