"""The tables of a store's file, how it is created, and which versions are read.

Owns the v1 schema ``nbd`` and the columns' order. Does not own the views (`views`). The one idea:
tables without key, index or later DDL, made and checkpointed before the file has its name, because
replayed DDL and indexes are where DuckDB's recovery fails.
"""

from __future__ import annotations

import contextlib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from nbdurable.errors import StoreError, StoreTooNew, shown
from nbdurable.stored import (
    Annotation,
    Context,
    ExperimentRecord,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
)
from nbdurable.stores.duckdb.views import VIEWS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA_VERSION = 1
# What makes of a version the next one, as statements: new tables and views, and what fills them.
MIGRATIONS: dict[int, tuple[str, ...]] = {}
ALIAS = "nbd_file"  # the catalog under which this package attaches the file
STORAGE_VERSION = "v1.5.0"  # read and written by DuckDB 1.5 too
# Rows that DuckDB compresses together. A checkpoint rewrites the last group of each column, of
# which DuckDB's own size (122,880) makes hundreds of megabytes; and as many rows at once go
# straight to the file, not through the log. It may be another at each attach.
ROW_GROUP_SIZE = 2048
# Each column of a table begins in blocks of its own: with DuckDB's size of 256 KiB a short file is
# mostly empty, with 64 and less a long one is slower to open and to append to.
BLOCK_BYTES = 131_072
NEW_FILE = f"storage_version '{STORAGE_VERSION}', block_size {BLOCK_BYTES}"  # options of an attach

# Ids that the store checks are UUID; references that nothing checks are text.
TABLES: dict[str, str] = {
    "meta": "key varchar not null, value varchar not null",
    "sessions": (
        "id varchar not null, created_at bigint not null, parent_session_id varchar, "
        "parent_entry_id varchar, counter bigint not null, created_after bigint not null"
    ),
    "entries": (
        "seq bigint not null, id uuid not null, session_id varchar not null, n bigint not null, "
        "parent_id uuid, depth bigint not null, run_id varchar, kind varchar not null, "
        "role varchar, meta boolean not null, model varchar, stop_reason varchar, "
        "input_tokens bigint, output_tokens bigint, cache_read_tokens bigint, "
        "cache_write_tokens bigint, reasoning_tokens bigint, cost_usd double, seconds double, "
        "ttft_s double, preview varchar not null, moves_leaf boolean not null, "
        "source_id varchar, created_at bigint not null, payload varchar not null, "
        "digest varchar not null"
    ),
    "moves": (
        "session_id varchar not null, entry_id uuid, seq bigint not null, "
        "created_at bigint not null"
    ),
    "blobs": "sha256 varchar not null, size_bytes bigint not null, data blob not null",
    "contexts": "digest varchar not null, system varchar, tools_json varchar not null",
    "runs": (
        "id varchar not null, session_id varchar not null, kind varchar not null, "
        "created_at bigint not null, start_leaf_id varchar, input_ids varchar[] not null, "
        "request_digest varchar not null, context_digest varchar, model varchar, "
        "params_json varchar not null, ephemeral_json varchar not null, moves boolean not null, "
        "rerun_of varchar, experiment_id varchar, cell varchar, origin varchar, owner varchar, "
        "counter bigint not null"
    ),
    "run_ends": (
        "run_id varchar not null, session_id varchar not null, outcome varchar not null, "
        "created_at bigint not null, leaf_id varchar, error varchar, steps bigint not null, "
        "seconds double, usage_json varchar not null, cost_usd double"
    ),
    "experiments": (
        "id varchar not null, session_id varchar not null, name varchar not null, "
        "plan_json varchar not null, created_at bigint not null, counter bigint not null"
    ),
    "annotations": (
        "id varchar not null, session_id varchar not null, target_id varchar not null, "
        "name varchar not null, value_json varchar not null, created_at bigint not null, "
        '"by" varchar, note varchar, counter bigint not null'
    ),
}


def columns_of(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in order."""
    return tuple(column.split()[0].strip('"') for column in TABLES[table].split(", "))


COLUMNS: dict[str, tuple[str, ...]] = {table: columns_of(table) for table in TABLES}

# By which columns a row is found again when the outcome of its commit is unknown (B67). A counter
# alone will not do: what failed here leaves it to the next one, who may be another process.
KEYS: dict[str, tuple[str, ...]] = {
    "sessions": ("id", "created_at", "counter"),
    "entries": ("id",),
    "moves": ("seq", "session_id", "entry_id", "created_at"),
    "blobs": ("sha256",),
    "contexts": ("digest",),
    "runs": ("id",),
    "run_ends": ("run_id", "session_id", "created_at"),
    "experiments": ("id", "counter", "plan_json"),
    "annotations": ("id", "counter"),
}

RECORDS: dict[str, type[Any]] = {
    "sessions": SessionRecord,
    "entries": StoredEntry,
    "moves": Move,
    "contexts": Context,
    "runs": RunRecord,
    "run_ends": RunEnd,
    "experiments": ExperimentRecord,
    "annotations": Annotation,
}
FIELDS: dict[str, tuple[str, ...]] = {
    table: getattr(record, "_fields", None) or tuple(f.name for f in fields(record))
    for table, record in RECORDS.items()
}


def create(connection: DuckDBPyConnection, created_by: str) -> None:
    """Make tables and views in the attached file, all or nothing, and checkpoint them."""
    connection.execute("begin")
    create_tables(connection, ALIAS)
    connection.execute(
        "insert into nbd.meta values ('schema_version', ?), ('created_by', ?)",
        [str(SCHEMA_VERSION), created_by],
    )
    connection.execute("commit")
    connection.execute("use memory")
    connection.execute(f"checkpoint {ALIAS}")


def create_tables(connection: DuckDBPyConnection, alias: str) -> None:
    """Make tables and views in the file attached as `alias`, and use it."""
    connection.execute(f"use {alias}")
    connection.execute("create schema nbd")
    for table, columns in TABLES.items():
        connection.execute(f"create table nbd.{table} ({columns})")
    for view, query in VIEWS.items():
        connection.execute(f"create view main.{view} as {query}")


def is_empty(connection: DuckDBPyConnection) -> bool:
    """Whether the attached file is a DuckDB database without a table or view."""
    query = "select count(*) from duckdb_tables() where database_name = ?"
    views = "select count(*) from duckdb_views() where database_name = ? and not internal"
    return not any(_one(connection, text) for text in (query, views))


def check_version(connection: DuckDBPyConnection, name: str) -> int:
    """Return the version of the attached file's tables, which is one known here.

    Raises
    ------
    StoreError
        The file is a DuckDB database of something else.
    StoreTooNew
        The tables are of a newer version (B62).
    """
    has_meta = (
        "select count(*) from duckdb_tables() "
        "where database_name = ? and schema_name = 'nbd' and table_name = 'meta'"
    )
    if not _one(connection, has_meta):
        raise StoreError(
            f"file {name!r} is a DuckDB database without the tables of a store; choose another file"
        )
    query = f"select value from {ALIAS}.nbd.meta where key = 'schema_version'"
    told = [str(value) for (value,) in connection.execute(query).fetchall()]
    version = max((int(value) if value.isdecimal() else 0 for value in told), default=0)
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"store {name!r} has schema version {version} and this nbdurable reads up to "
            f"{SCHEMA_VERSION}; install a newer nbdurable (the file was not changed)"
        )
    if version < 1:
        raise StoreError(
            f"store {name!r} has no legal schema version ({shown(told and told[-1])}); "
            "restore the file from a copy (it was not changed)"
        )
    return version


def migrate(connection: DuckDBPyConnection, version: int) -> None:
    """Bring the attached file from an older version to this one, all or nothing (B62).

    The version it had stays on record: the highest counts.
    """
    if version == SCHEMA_VERSION:
        return
    connection.execute("begin")
    try:
        connection.execute(f"use {ALIAS}")
        for step in range(version, SCHEMA_VERSION):
            for statement in MIGRATIONS[step]:
                connection.execute(statement)
        connection.execute(
            "insert into nbd.meta values ('schema_version', ?)", [str(SCHEMA_VERSION)]
        )
        connection.execute("commit")
    except BaseException:
        with contextlib.suppress(Exception):  # a commit that failed has rolled back already
            connection.execute("rollback")
        raise
    finally:
        connection.execute("use memory")
    # Replayed DDL is where DuckDB's recovery fails.
    connection.execute(f"checkpoint {ALIAS}")


def _one(connection: DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query, [ALIAS]).fetchone()
    return int(row[0]) if row else 0
