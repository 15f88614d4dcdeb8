"""The tables in a database, how they are made, and which versions are read.

Owns schema ``nbd``: the tables of a DuckDB store with the same columns, and sequences, indexes and
functions of its own. Does not own the views (`views`). The one idea: nothing is made beside what is
there: a schema that somebody else made is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psycopg
from psycopg import errors

from nbdurable.errors import StoreError, StoreTooNew, shown
from nbdurable.stores.duckdb.schema import SCHEMA_VERSION, TABLES
from nbdurable.stores.postgres.line import Line
from nbdurable.stores.postgres.views import FUNCTIONS, VIEWS, folded

Connection = psycopg.Connection[tuple[Any, ...]]

_OLDEST_SERVER = 14_00_00  # whose numbers of seconds are exact
_TYPES = {"varchar": "text", "double": "double precision", "blob": "bytea", "varchar[]": "text[]"}
# Compared by their bytes, as DuckDB does, whatever the database's language; texts are not.
_KEY_COLUMNS = frozenset(
    "id session_id parent_session_id key run_id kind role model stop_reason digest sha256 name by "
    "source_id start_leaf_id context_digest experiment_id cell origin leaf_id target_id".split()
)
SEQUENCES = "seq session_counter run_counter annotation_counter experiment_counter".split()
INDEXES = (
    "alter table nbd.sessions add primary key (id)",
    "alter table nbd.entries add primary key (id)",
    "alter table nbd.moves add primary key (seq)",
    "alter table nbd.blobs add primary key (sha256)",
    "alter table nbd.contexts add primary key (digest)",
    "alter table nbd.runs add primary key (id)",
    "alter table nbd.run_ends add primary key (run_id)",
    "alter table nbd.annotations add primary key (counter)",
    "alter table nbd.experiments add primary key (counter)",
    "create unique index entries_n on nbd.entries (session_id, n)",
    "create unique index entries_seq on nbd.entries (seq)",
    "create index entries_session_seq on nbd.entries (session_id, seq)",
    "create index entries_run on nbd.entries (run_id)",
    "create index moves_session on nbd.moves (session_id, seq)",
    "create index runs_session on nbd.runs (session_id, counter)",
    "create index run_ends_session on nbd.run_ends (session_id)",
    "create index annotations_session on nbd.annotations (session_id, counter)",
    "create index experiments_session on nbd.experiments (session_id, counter)",
)

_HAS_ICU = "select 1 from pg_collation where collname = 'und-x-icu' limit 1"
_HAS_META = "select to_regclass('nbd.meta') is not null"
_SERVER = "select current_setting('server_version_num')::int, getdatabaseencoding()"
_META = "select key, value from nbd.meta"


def prepare(line: Line, name: str, *, must_exist: bool) -> str:
    """Make the tables unless they are there, and check their version; return the store's id.

    Raises
    ------
    StoreError
        The database is of a kind that cannot hold a store, holds none although it must, or its
        schemas are taken.
    StoreTooNew
        The tables are of a newer version (B62).
    """
    _check_server(line, name)
    if not _one(line, _HAS_META):
        if must_exist:
            raise StoreError(
                f"database {name!r} holds no store; make it with open(), or give another database"
            )
        line.read(_made(name))
    meta = dict(line.read(lambda connection: connection.execute(_META).fetchall()))
    _check_version(meta, name)
    return str(meta.get("store_id", name))


def _check_server(line: Line, name: str) -> None:
    [(number, encoding)] = line.read(lambda connection: connection.execute(_SERVER).fetchall())
    if number < _OLDEST_SERVER:
        raise StoreError(
            f"store {name!r} is on PostgreSQL {number // 10_000}; use a server of version 14 or "
            "newer"
        )
    if encoding != "UTF8":
        raise StoreError(
            f"database {name!r} has encoding {encoding}, which cannot hold all text; make one with "
            "create database … encoding 'UTF8' template template0"
        )


def _made(name: str) -> Callable[[Connection], None]:
    def make(connection: Connection) -> None:
        try:
            has_icu = bool(connection.execute(_HAS_ICU).fetchall())
            with connection.transaction(), connection.pipeline():
                for statement in _statements(has_icu):
                    connection.execute(statement)
                connection.execute(
                    "insert into nbd.meta values ('schema_version', $1), ('created_by', $2), "
                    "('store_id', $3)",
                    [str(SCHEMA_VERSION), _made_by(), secrets.token_hex(16)],
                )
        except (errors.DuplicateSchema, errors.UniqueViolation) as exc:
            # Where another process made it at the same time, all of it is there now.
            row = connection.execute(_HAS_META).fetchone()
            if not (row and row[0]):
                raise StoreError(
                    f"database {name!r} has a schema nbd or nbdurable that is not ours; "
                    "give a database of its own"
                ) from exc

    return make


def _statements(has_icu: bool) -> list[str]:
    tables = [f"create table nbd.{table} ({_columns(table)})" for table in TABLES]
    sequences = [f"create sequence nbd.{sequence}" for sequence in SEQUENCES]
    views = [f"create view nbdurable.{view} as {query}" for view, query in VIEWS.items()]
    schemas = ["create schema nbd", "create schema nbdurable"]
    functions = [folded(has_icu), *FUNCTIONS]
    return [*schemas, *tables, *INDEXES, *sequences, *functions, *views]


def _columns(table: str) -> str:
    made = []
    for column in TABLES[table].split(", "):
        name, kind, *rest = column.split()
        place = ' collate "C"' if kind == "varchar" and name.strip('"') in _KEY_COLUMNS else ""
        made.append(" ".join([name, _TYPES.get(kind, kind) + place, *rest]))
    return ", ".join(made)


def _check_version(meta: dict[str, str], name: str) -> None:
    given = meta.get("schema_version", "")
    found = int(given) if given.isdecimal() else 0
    if found > SCHEMA_VERSION:
        raise StoreTooNew(
            f"store {name!r} has schema version {found} and this nbdurable reads up to "
            f"{SCHEMA_VERSION}; install a newer nbdurable (nothing was changed)"
        )
    if found < 1:
        raise StoreError(
            f"store {name!r} has no legal schema version ({shown(given)}); restore the database "
            "from a copy (nothing was changed)"
        )


def _made_by() -> str:
    try:
        return f"nbdurable {version('nbdurable')}"
    except PackageNotFoundError:
        return "nbdurable from source"


def _one(line: Line, query: str) -> object:
    return line.read(lambda connection: connection.execute(query).fetchall())[0][0]
