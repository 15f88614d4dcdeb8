"""The shared store: sessions in a PostgreSQL database; only this package imports psycopg."""

from __future__ import annotations

from nbdurable.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
