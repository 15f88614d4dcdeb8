"""A copy of any store's records in a DuckDB in memory, so that it answers SQL too.

Owns how the records of the `Store` protocol become rows. The one idea: the same tables and views
as in a file, so that one implementation of frames serves all stores; bytes stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count

import duckdb

from nbdurable.errors import StoreError
from nbdurable.stored import SessionRecord
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import faults, instances, schema
from nbdurable.stores.duckdb.batch import Batch, Inserter
from nbdurable.stores.duckdb.schema import ALIAS


@contextmanager
def mirrored(store: Store, session_id: str | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor on a copy of one session of a store, or of all of them.

    Raises
    ------
    StoreError
        A record does not fit the tables.
    """
    batch, contexts = Batch(), set[str]()
    for session in _sessions(store, session_id):
        _stage(batch, contexts, store, session)
    base = instances.take()
    try:
        base.execute(f"attach ':memory:' as {ALIAS}")
        schema.create(base, f"copy of {store.name}")
        _fill(base, batch, store.name)
        with base.cursor() as cursor:
            yield cursor
        base.execute(f"detach {ALIAS}")
    finally:
        instances.give_back(base)  # which ends it where the copy is still attached


def _sessions(store: Store, session_id: str | None) -> Sequence[SessionRecord]:
    if session_id is not None:
        return [store.load_session(session_id)]
    found = [summary.session for summary in store.list_sessions()]
    return sorted(found, key=lambda session: (session.created_at, session.id))


def _stage(batch: Batch, contexts: set[str], store: Store, session: SessionRecord) -> None:
    kept = batch.rows
    batch.stage("sessions", session, counter=len(kept.get("sessions", ())) + 1, created_after=0)
    batch.stage_entries(store.load_entries(session.id))
    for move in store.load_moves(session.id):
        batch.stage("moves", move)
    for counter, (run, end) in zip(
        count(len(kept.get("runs", ())) + 1), store.load_runs(session.id)
    ):
        batch.stage("runs", run, counter=counter)
        if end is not None:
            batch.stage("run_ends", end)
        if run.context_digest is not None and run.context_digest not in contexts:
            contexts.add(run.context_digest)
            with suppress(StoreError):  # a run whose context is gone is a run all the same
                batch.stage("contexts", store.load_context(run.context_digest))
    for annotation in store.load_annotations(session.id):
        batch.stage("annotations", annotation)
    for experiment in store.load_experiments(session.id):
        batch.stage("experiments", experiment)


def _fill(base: duckdb.DuckDBPyConnection, batch: Batch, name: str) -> None:
    entries = batch.rows.get("entries")
    if entries:
        entries.sort(key=lambda row: row[0])  # type: ignore[arg-type, return-value]  # by seq
    if not batch:
        return
    inserter = Inserter(base.cursor())
    try:
        inserter.write(batch)
    except duckdb.Error as exc:
        raise faults.told_of_call(exc, name) from exc
    finally:
        inserter.close()
