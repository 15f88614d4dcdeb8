"""The durable store: sessions in one DuckDB file; only this package imports DuckDB."""

from __future__ import annotations

from nbdurable.stores.duckdb.store import DuckDBStore

__all__ = ["DuckDBStore"]
