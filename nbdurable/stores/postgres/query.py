"""Questions in SQL: one snapshot, read only, fully materialised.

Owns how answers become arrays and rows, and which statements of a user are let through. Does not
own what they are made into (`frames`). The one idea: the server itself says what a statement
reads, before it is run; a read-only transaction stops what it could still write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from nbdurable.errors import QueryError, shown
from nbdurable.stores.duckdb.query import Columns, Params, parsed_nodes, python_params
from nbdurable.stores.postgres.line import Rows
from nbdurable.stores.postgres.views import POSITIONS, VIEWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Functions that give rows without reading anything outside the query.
_ROW_FUNCTIONS = re.compile(r"generate_series|unnest|jsonb?_\w+|regexp_\w+|string_to_table")

# Functions that reach beyond the snapshot, wherever they are called.
_REACHING = re.compile(
    r"\b(pg_read_\w+|pg_ls_\w+|pg_stat_file|pg_\w*import\w*|lo_\w+|dblink\w*|\w+_to_xml\w*"
    r"|pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_rotate_logfile|pg_notify"
    r"|pg_(?:try_)?advisory_\w+|pg_sleep\w*|set_config|nextval|setval)\("
)
_LITERAL = re.compile(r"'(?:[^']|'')*'")

# What DuckDB calls a type, by PostgreSQL's name: `frames` knows these.
_KINDS = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "numeric": "DECIMAL",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
    "interval": "INTERVAL",
    "bytea": "BLOB",
}
_WHOLE = frozenset({"int2", "int4", "int8"})
_REAL = frozenset({"numeric", "float4", "float8"})
_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/ | ::
    | (?P<place>\?) | \$(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


class PostgresQuestion:
    """What is asked of one snapshot of a database; good inside `PostgresStore.ask` only."""

    positions = POSITIONS
    # The payload holds every text, escaped as JSON: looking there first is far quicker.
    found = r"""
        (contains(nbd.folded(e.payload), nbd.folded($escaped)) or contains(e.payload, '\u')
            or contains(e.payload, '\/'))
        and contains(nbd.folded(e.text), nbd.folded($wanted))
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def columns(self, query: str, params: Params = ()) -> Columns:
        """Return the answer as arrays by column."""
        cursor = self._connection.execute(*_placed(query, params))
        rows = cursor.fetchall()
        described = cursor.description or ()
        values = zip(*rows, strict=True) if rows else [()] * len(described)
        return {
            column.name: _array(list(held), _type_of(column.type_code))
            for column, held in zip(described, values, strict=True)
        }

    def rows(self, query: str, params: Params = ()) -> Rows:
        """Return the answer as rows."""
        return self._connection.execute(*_placed(query, params)).fetchall()

    def select(self, query: str, params: Params = ()) -> tuple[list[tuple[str, str]], Rows]:
        """Run a query of the user's; return names and types of its columns, and its rows.

        Raises
        ------
        QueryError
            It is no single SELECT over the store's views and tables, or the server refuses it.
        """
        text, values = _placed(query, python_params(params))
        try:
            self._check(query, text, values)
            cursor = self._connection.execute(text, values)
            described = [(one.name, _kind(one.type_code)) for one in cursor.description or ()]
            return described, cursor.fetchall()
        except psycopg.Error as exc:
            if self._connection.closed:
                raise  # the line is made anew, and the question asked again
            line = str(exc).splitlines()[0]
            raise QueryError(
                f"query {shown(query)} failed ({line}); see the data dictionary for views "
                "and columns"
            ) from exc

    def _check(self, query: str, text: str, values: Sequence[object]) -> None:
        """Refuse all but one SELECT that reads the store's own views and tables."""
        try:
            with self._connection.pipeline():  # which takes one statement, and no second
                asked = self._connection.execute(
                    f"explain (verbose, costs off, format json) {text}", values
                )
            plan = asked.fetchall()
        except psycopg.errors.SyntaxError as exc:
            line = str(exc).splitlines()[0]
            raise QueryError(
                f"query {shown(query)} is no SELECT ({line}); "
                "the library only reads, write with session verbs"
            ) from exc
        for node in parsed_nodes(json.loads(plan[0][0])):
            _check_node(node, query)


def _check_node(node: Mapping[str, Any], query: str) -> None:
    kind, schema = node.get("Node Type"), node.get("Schema")
    if kind in ("ModifyTable", "LockRows"):
        raise QueryError(
            f"query {shown(query)} is no SELECT ({kind}); "
            "the library only reads, write with session verbs"
        )
    found = ""
    if "Relation Name" in node and schema != "nbd":
        found = f"{schema}.{node['Relation Name']}"
    elif kind == "Function Scan" and not _is_harmless(str(node.get("Function Name", "")), schema):
        found = f"{node.get('Function Name')}()"
    elif reaching := _REACHING.search(_LITERAL.sub("''", json.dumps(_expressions(node)))):
        found = f"{reaching[1]}()"
    if found:
        raise QueryError(
            f"query {shown(query)} reads {shown(found)}, which is no view of the store; "
            f"ask {', '.join(VIEWS)}"
        )


def _expressions(node: Mapping[str, Any]) -> list[object]:
    """Return what a node of a plan computes, without the nodes below it."""
    return [value for value in node.values() if isinstance(value, str) or _is_texts(value)]


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_harmless(name: str, schema: object) -> bool:
    return schema in ("nbd", "nbdurable") or (
        schema == "pg_catalog" and _ROW_FUNCTIONS.fullmatch(name) is not None
    )


# -- parameters ------------------------------------------------------------------------------------


def _placed(query: str, params: Params) -> tuple[str, list[object]]:
    """Return a query with ``?`` and ``$name`` as ``$1``, and the values by place.

    A ``?`` is an operator of PostgreSQL where no values are given by place.
    """
    named = params if isinstance(params, Mapping) else {}
    values: list[object] = [] if isinstance(params, Mapping) else list(params)
    places: dict[str, int] = {}
    count = 0

    def place(found: re.Match[str]) -> str:
        nonlocal count
        name = found["name"]
        if name is not None and name in named:
            if name not in places:
                values.append(named[name])
                places[name] = len(values)
            return f"${places[name]}"
        if found["place"] and values and not named:
            count += 1
            return f"${count}"
        return found[0]

    return _TOKEN.sub(place, query), values


# -- answers ---------------------------------------------------------------------------------------


def _type_of(oid: int) -> str:
    known = psycopg.adapters.types.get(oid)
    return known.name if known else ""


def _kind(oid: int) -> str:
    """Return DuckDB's name for a type: of those it lacks, values come as text."""
    known = psycopg.adapters.types.get(oid)
    if known is not None and known.array_oid == oid:
        return f"{known.name.upper()}[]"
    return _KINDS.get(known.name if known else "", "VARCHAR")


def _array(values: list[Any], kind: str) -> NDArray[Any]:
    """Return the values of one column, missing ones masked."""
    import numpy as np

    missing = [value is None for value in values]
    if kind in _WHOLE or kind in _REAL or kind == "bool":
        dtype: Any = np.int64 if kind in _WHOLE else np.bool_ if kind == "bool" else np.float64
        held: NDArray[Any] = np.array(
            [0 if value is None else value for value in values], dtype=dtype
        )
        return np.ma.masked_array(held, missing)
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return np.ma.masked_array(texts, missing)
