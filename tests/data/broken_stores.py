"""Stores that each break one promise; the contract must fail on every one but the first."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import Phase, settings

from nbdurable.errors import EntryError, SessionNotFound
from nbdurable.stored import (
    NOTHING,
    Annotation,
    Beside,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
)
from nbdurable.stores.conformance import StoreContract
from nbdurable.stores.memory import MemoryStore

settings.register_profile("without shrinking", phases=[Phase.generate])
settings.load_profile("without shrinking")


class Sound(MemoryStore):
    pass


class KeepsTheGoodPart(MemoryStore):
    def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry] = (),
        *,
        start: RunRecord | None = None,
        end: RunEnd | None = None,
    ) -> tuple[StoredEntry, ...]:
        rows = [super(KeepsTheGoodPart, self).append(session_id, [entry]) for entry in entries]
        super().append(session_id, start=start, end=end)
        return tuple(row for [row] in rows)


class OrdersByTheClock(MemoryStore):
    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        return sorted(super().load_entries(session_id, after_n), key=lambda e: e.created_at)


class BurnsNumbers(MemoryStore):
    def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry] = (),
        *,
        start: RunRecord | None = None,
        end: RunEnd | None = None,
    ) -> tuple[StoredEntry, ...]:
        try:
            return super().append(session_id, entries, start=start, end=end)
        except EntryError:
            self._seq += 1
            raise


class ForgetsMoves(MemoryStore):
    def move(self, session_id: str, entry_id: str | None, created_at: int) -> Move:
        session = self._session(session_id)
        before = session.position
        made = super().move(session_id, entry_id, created_at)
        session.position = before
        return made


class TakesTheLastEnd(MemoryStore):
    def end_run(self, end: RunEnd) -> None:
        super().end_run(end)
        self._ends[end.run_id] = end


class CutsTexts(MemoryStore):
    def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry] = (),
        *,
        start: RunRecord | None = None,
        end: RunEnd | None = None,
    ) -> tuple[StoredEntry, ...]:
        cut = [replace(entry, payload=entry.payload[:100_000]) for entry in entries]
        return super().append(session_id, cut, start=start, end=end)


class CreatesInPieces(MemoryStore):
    def create_session(
        self,
        session: SessionRecord,
        entries: Sequence[StoredEntry] = (),
        *,
        beside: Beside = NOTHING,
    ) -> tuple[StoredEntry, ...]:
        kept = super().create_session(session, entries)
        return kept + super().append(session.id, beside=beside)


class HandsOutItsList(MemoryStore):
    def load_moves(self, session_id: str, after_seq: int = 0) -> list[Move]:
        return self._session(session_id).moves


class LoadsAnything(MemoryStore):
    def load_annotations(self, session_id: str, after: int = 0) -> list[Annotation]:
        with contextlib.suppress(SessionNotFound):
            return super().load_annotations(session_id, after)
        return []


class AnswersAfterClose(MemoryStore):
    def close(self) -> None:
        pass


class KeepsAReference(MemoryStore):
    def put_blob(self, sha256: str, data: bytes) -> None:
        self._blobs[sha256] = data


class SkipsOrdinals(MemoryStore):
    """Wrong only in the sixth entry and later of a session."""

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        entries = super().load_entries(session_id, after_n)
        return [replace(entry, n=entry.n + 1) if entry.n > 5 else entry for entry in entries]


class _Contract(StoreContract):
    store_class: type[MemoryStore]

    def make_store(self, folder: Path) -> MemoryStore:
        return self.store_class()


def _contract(store_class: type[MemoryStore]) -> type[StoreContract]:
    return type(f"Test{store_class.__name__}", (_Contract,), {"store_class": store_class})


for _store_class in MemoryStore.__subclasses__():
    globals()[f"Test{_store_class.__name__}"] = _contract(_store_class)
