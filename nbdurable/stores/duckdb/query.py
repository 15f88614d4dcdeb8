"""Questions in SQL, to any store: one snapshot, read only, fully materialised.

Owns how a store is asked and which statements of a user are let through. Does not own what the
answers are made into (`frames`). The one idea: whatever the store, the views of `views` are asked,
in a DuckDB store's own file, in a database that has views like them, or in a copy of another
store's records in memory (`mirror`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import duckdb

from nbdurable.errors import QueryError, shown
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import faults
from nbdurable.stores.duckdb.mirror import mirrored
from nbdurable.stores.duckdb.schema import ALIAS, TABLES
from nbdurable.stores.duckdb.store import DuckDBStore
from nbdurable.stores.duckdb.views import POSITIONS, VIEWS
from nbdurable.wire import as_python

T = TypeVar("T")
Params = Sequence[object] | Mapping[str, object]
Columns = dict[str, Any]  # a NumPy array each, masked where values are missing

# Functions that give rows without reading anything outside the query.
_ROW_FUNCTIONS = frozenset("generate_series json_each json_tree range repeat unnest".split())
_PLAIN_NAME = re.compile(r"\w+")


# The payload holds every text, escaped as JSON: looking there first is a fifth of the time of
# reading the texts out of all. Where a payload escapes what need not be, it is looked at whole.
_FOUND = """
    (contains(lower(e.payload), lower($escaped)) or contains(e.payload, '\\u')
        or contains(e.payload, '\\/'))
    and contains(lower(e.text), lower($wanted))
"""


class Question:
    """What is asked of one snapshot of a store; good inside `read` only.

    Its queries are in the words that DuckDB and PostgreSQL share; what they say apart stands here:
    ``positions``, where each session resumes, and ``found``, whether entry ``e`` says a text.
    """

    positions = POSITIONS
    found = _FOUND

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def columns(self, query: str, params: Params = ()) -> Columns:
        """Return the answer as arrays by column."""
        return self._cursor.execute(query, params).fetchnumpy()

    def rows(self, query: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Return the answer as rows."""
        return self._cursor.execute(query, params).fetchall()

    def select(
        self, query: str, params: Params = ()
    ) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        """Run a query of the user's; return names and types of its columns, and its rows.

        Raises
        ------
        QueryError
            It is no single SELECT over the store's views and tables, or DuckDB refuses it.
        """
        try:
            _check(self._cursor, query)
            answer = self._cursor.execute(query, python_params(params))
            described = [(str(name), str(kind)) for name, kind, *_ in answer.description or ()]
            return described, answer.fetchall()
        except duckdb.Error as exc:
            if faults.is_invalidated(exc):
                raise  # the store attaches its file anew and asks again
            line = str(exc).splitlines()[0]
            raise QueryError(
                f"query {shown(query)} failed ({line}); see the data dictionary for views "
                "and columns"
            ) from exc


def read(store: Store, work: Callable[[Question], T], session_id: str | None = None) -> T:
    """Return what `work` makes of one snapshot of a store.

    Parameters
    ----------
    store : Store
        Any store.
    work : callable
        Asks; is called again when the file had to be attached anew. What it returns must not
        depend on the connection.
    session_id : str, optional
        The only session asked about, so that a store without SQL copies only that.
    """
    if ask := getattr(store, "ask", None):  # a store that answers SQL by itself
        return cast(T, ask(work))
    if isinstance(store, DuckDBStore):
        return store.read(lambda cursor: _asked(cursor, work))
    with mirrored(store, session_id) as cursor:
        return _asked(cursor, work)


def _asked(cursor: duckdb.DuckDBPyConnection, work: Callable[[Question], T]) -> T:
    with _snapshot(cursor):
        return work(Question(cursor))


@contextmanager
def _snapshot(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    cursor.execute(f"use {ALIAS}.main")
    cursor.execute("set timezone = 'UTC'")  # of this cursor alone
    cursor.execute("set python_enable_replacements = false")  # names are views, never variables
    cursor.execute("begin transaction read only")
    try:
        yield
    finally:
        cursor.execute("rollback")


def python_params(params: Params) -> Params:
    """Return parameters with numbers as Python's own; what is no such collection is refused."""
    if isinstance(params, Mapping):
        return {name: as_python(value) for name, value in params.items()}
    if isinstance(params, str) or not isinstance(params, Iterable):
        raise QueryError(
            f"params is {shown(params)}; give a list of values, or a dict of values by name"
        )
    return [as_python(value) for value in params]


# -- what a user may ask -----------------------------------------------------------------------


def _check(cursor: duckdb.DuckDBPyConnection, query: str) -> None:
    """Refuse all but one SELECT that reads the store's own views and tables.

    DuckDB parses; the read-only transaction stops what a SELECT could still write.
    """
    if len(cursor.extract_statements(query)) != 1:
        raise QueryError(f"query {shown(query)} is not one statement; give one SELECT")
    row = cursor.execute("select json_serialize_sql($1::varchar)", [query]).fetchone()
    parsed = json.loads(row[0]) if row else {}
    if parsed.get("error"):
        raise QueryError(
            f"query {shown(query)} is no SELECT ({parsed['error_message']}); "
            "the library only reads, write with session verbs"
        )
    nodes = list(parsed_nodes(parsed))
    own = {entry["key"] for node in nodes for entry in node.get("cte_map", {}).get("map", ())}
    for node in nodes:
        _check_source(node, query, {name for name in own if _PLAIN_NAME.fullmatch(name)})


def _check_source(node: Mapping[str, Any], query: str, own: set[str]) -> None:
    found = ""
    if node.get("type") == "TABLE_FUNCTION":
        name = str(node["function"].get("function_name", "")).lower()
        found = "" if name in _ROW_FUNCTIONS else f"{name}()"
    elif node.get("type") == "BASE_TABLE" and not _is_own(node, own):
        found = str(node.get("table_name"))
    if found:
        raise QueryError(
            f"query {shown(query)} reads {shown(found)}, which is no view of the store; "
            f"ask {', '.join(VIEWS)}"
        )


def _is_own(node: Mapping[str, Any], own: set[str]) -> bool:
    name, schema = str(node.get("table_name", "")), str(node.get("schema_name", "")).lower()
    if node.get("catalog_name"):
        return False
    if schema == "nbd":
        return name.lower() in TABLES
    return (name.lower() in VIEWS and schema in ("", "main")) or (name in own and not schema)


def parsed_nodes(parsed: object) -> Iterator[dict[str, Any]]:
    """Yield every object inside JSON values, such as a parsed query."""
    stack = [parsed]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
