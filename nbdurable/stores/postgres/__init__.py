"""The shared store: sessions in a PostgreSQL database; only this package imports psycopg.

Rows are written by plain INSERT under a lock on the session's row (SELECT FOR UPDATE), numbered by
sequences, and never changed; no session setting, prepared statement or advisory lock is kept, so
that a pooler may stand in between. Beyond standard SQL are used: arrays as parameters (``any``,
``unnest with ordinality``), ``on conflict do nothing``, ``distinct on``, ``string_agg``, ``json``
and its functions, two functions in PL/pgSQL that tell what is no JSON, ``explain (format json)``,
which says what a user's query would read, and LISTEN and ``pg_notify``, without which a shown tree
asks every second.
"""

from __future__ import annotations

from nbdurable.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
