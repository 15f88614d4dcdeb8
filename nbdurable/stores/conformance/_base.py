"""What the promises share: how to get a store, how to make rows, how to read all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nbdurable.codec import one_line
from nbdurable.ids import IdMaker
from nbdurable.stored import (
    Annotation,
    ExperimentRecord,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
)
from nbdurable.stores.base import Store
from nbdurable.wire import dumps

NOW = 1_750_000_000_000_000  # microseconds UTC

new_id = IdMaker()


class ContractBase:
    """Makes, reopens and closes the store under test."""

    def make_store(self, folder: Path) -> Store:
        """Return a new, empty store; its files, if any, in `folder`."""
        raise NotImplementedError("say how to make a store: override make_store(self, folder)")

    def reopen(self, store: Store) -> Store | None:
        """Close `store` and return a fresh one over its medium; None when that dies with it."""
        return None

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """Return the store under test, with an empty session ``s`` and another, ``other``."""
        made = self.make_store(tmp_path)
        made.create_session(session_of("s"))
        made.create_session(session_of("other"))
        yield made
        made.close()

    def reopened(self, store: Store) -> Store:
        """Return the store opened again, or skip the test."""
        fresh = self.reopen(store)
        if fresh is None:
            pytest.skip("the medium dies with the store")
        return fresh


def session_of(session_id: str, **columns: object) -> SessionRecord:
    """Return a session record."""
    return SessionRecord(id=session_id, **{"created_at": NOW, **columns})  # type: ignore[arg-type]


def stored(
    session_id: str = "s", parent_id: str | None = None, *, text: str = "hello", **columns: object
) -> StoredEntry:
    """Return a user message ready to be appended, with a fresh id; `columns` replace any."""
    blocks = [{"type": "text", "text": text}]
    given: dict[str, object] = {
        "id": new_id(),
        "kind": "message",
        "payload": dumps({"v": 1, "role": "user", "blocks": blocks}),
        "created_at": NOW,
        "role": "user",
        "preview": one_line(text),
    }
    given |= columns
    return StoredEntry(session_id=session_id, parent_id=parent_id, **given)  # type: ignore[arg-type]


def chain(
    length: int, session_id: str = "s", parent_id: str | None = None, **columns: object
) -> list[StoredEntry]:
    """Return entries each the parent of the next."""
    entries: list[StoredEntry] = []
    for i in range(length):
        entry = stored(session_id, parent_id, text=f"message {i}", **columns)
        entries.append(entry)
        parent_id = entry.id
    return entries


def run_of(session_id: str = "s", **columns: object) -> RunRecord:
    """Return a run's start with a fresh id."""
    given = {"id": new_id(), "kind": "run", "created_at": NOW, **columns}
    return RunRecord(session_id=session_id, **given)  # type: ignore[arg-type]


def end_of(run: RunRecord, **columns: object) -> RunEnd:
    """Return an end of `run`."""
    given = {"session_id": run.session_id, "outcome": "done", "created_at": NOW + 1, **columns}
    return RunEnd(run_id=run.id, **given)  # type: ignore[arg-type]


def annotation_of(session_id: str = "s", **columns: object) -> Annotation:
    """Return a label with a fresh id."""
    given = {"target_id": new_id(), "name": "label", "value_json": '"best"', "created_at": NOW}
    return Annotation(
        session_id=session_id,
        **{"id": new_id(), **given, **columns},  # type: ignore[arg-type]
    )


def plan_of(session_id: str = "s", **columns: object) -> ExperimentRecord:
    """Return an experiment's plan with a fresh id."""
    given = {"id": new_id(), "name": "grid", "plan_json": "{}", "created_at": NOW, **columns}
    return ExperimentRecord(session_id=session_id, **given)  # type: ignore[arg-type]


def ids_in(store: Store, session_id: str = "s") -> list[str]:
    """Return the ids of a session's entries, as loaded."""
    return [entry.id for entry in store.load_entries(session_id)]


def position_of(store: Store, session_id: str = "s") -> str | None:
    """Return where a session resumes, read from its rows (B3)."""
    moves = [(move.seq, move.entry_id) for move in store.load_moves(session_id)]
    entries = store.load_entries(session_id)
    moved = [(entry.seq, entry.id) for entry in entries if entry.moves_leaf]
    return max([(0, None), *moves, *moved], key=lambda place: place[0])[1]


def contents(store: Store) -> dict[str, object]:
    """Return every row of every session, for comparing one store with another or with later."""
    listing = store.list_sessions()
    found: dict[str, object] = {}
    for summary in sorted(listing, key=lambda line: line.session.id):
        session_id = summary.session.id
        found[session_id] = {
            "summary": (
                summary.session,
                summary.title,
                summary.entries,
                summary.leaves,
                summary.last_at,
                sorted(summary.models),
                summary.cost_usd,
            ),
            "record": store.load_session(session_id),
            "entries": store.load_entries(session_id),
            "moves": store.load_moves(session_id),
            "runs": store.load_runs(session_id),
            "annotations": store.load_annotations(session_id),
            "experiments": store.load_experiments(session_id),
        }
    return found
