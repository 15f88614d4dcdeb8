"""What tests of foreign formats share: a session as plain values, by the source's own ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbdurable as nb
from nbdurable.codec import decode
from nbdurable.entries import Entry
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import Annotation, StoredEntry
from nbdurable.stores import Store
from nbdurable.tree import Tree
from nbdurable.views import View, model_view

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Talk:
    """One imported session, its entries by the ids of their source."""

    store: Store
    id: str

    @property
    def entries(self) -> list[StoredEntry]:
        return self.store.load_entries(self.id)

    @property
    def keys(self) -> list[str]:
        return [str(entry.source_id) for entry in self.entries]

    @property
    def parents(self) -> dict[str, str | None]:
        by_id = {entry.id: entry.source_id for entry in self.entries}
        return {str(e.source_id): e.parent_id and by_id[e.parent_id] for e in self.entries}

    @property
    def leaves(self) -> set[str]:
        return {str(entry.source_id) for entry in Tree(self.entries).leaves()}

    @property
    def position(self) -> str | None:
        moves = self.store.load_moves(self.id)
        at = moves[-1].entry_id if moves else None
        return next((e.source_id for e in self.entries if e.id == at), None)

    def stored(self, key: str) -> StoredEntry:
        return next(entry for entry in self.entries if entry.source_id == key)

    def entry(self, key: str) -> Any:
        return decode(self.stored(key), self.store.get_blob)

    def path(self, key: str) -> list[Entry]:
        path = Tree(self.entries).path(self.stored(key).id)
        return [decode(entry, self.store.get_blob) for entry in path]

    def view(self, key: str, model: str | None = None) -> View:
        return model_view(self.path(key), model=model)

    def said(self, name: str) -> list[tuple[str | None, object]]:
        keys = {entry.id: entry.source_id for entry in self.entries}
        found: list[Annotation] = self.store.load_annotations(self.id)
        return [(keys[note.target_id], note.value) for note in found if note.name == name]

    def open(self, *answers: str) -> nb.Session:
        return nb.open(self.id, store=self.store, model=ScriptedModel(*answers or ("ok",)))


def talks(store: Store) -> dict[str, Talk]:
    """All sessions of a store."""
    ids = sorted(summary.session.id for summary in store.list_sessions())
    return {id: Talk(store, id) for id in ids}


def outcomes(report: Any) -> list[tuple[str, str, int]]:
    """What became of each session: its id without the format, the outcome, new entries."""
    return [(s.id.partition(":")[2], s.outcome, s.entries) for s in report.sessions]


def told(report: Any) -> str:
    """All oddities, one a line."""
    return "\n".join(map(str, report.oddities))
