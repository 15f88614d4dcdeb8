"""Parquet files, which DuckDB writes from rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping

import duckdb


def write_parquet(
    path: str, columns: Mapping[str, str], rows: Iterable[tuple[object, ...]]
) -> None:
    """Write rows to a Parquet file, which is replaced.

    Parameters
    ----------
    path : str
        The file.
    columns : mapping
        DuckDB's type of each column, by name, in order.
    rows : iterable of tuple
        One value per column.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    named = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(os.path.join(folder, "rows.duckdb")) as connection,
    ):
        connection.execute("set timezone = 'UTC'")
        connection.execute(f"create table told ({named})")
        appender = connection.appender("told")
        for row in rows:
            appender.append_row(*row)
        appender.flush()
        try:
            connection.execute("copy told to $1 (format parquet)", [path])
        except duckdb.IOException as exc:
            raise OSError(str(exc).splitlines()[0]) from exc
