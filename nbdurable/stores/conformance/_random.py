"""The promise that any sequence of calls leaves what it leaves in a `MemoryStore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from nbdurable.errors import NbDurableError
from nbdurable.stored import StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    annotation_of,
    contents,
    end_of,
    new_id,
    plan_of,
    run_of,
    session_of,
    stored,
)
from nbdurable.stores.memory import MemoryStore

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Draft: TypeAlias = tuple[int, int, bool | None]  # which id, which parent, moves_leaf
Step: TypeAlias = tuple[str, int, int, list[Draft]]  # verb, which session, which row, entries

SESSION_IDS = ("a", "b'\"", "🇳🇿")
VERBS = (
    "create append append append start append_start end append_end "
    "move root annotate plan load reopen"
).split()


class RandomPromises(ContractBase):
    """Random calls."""

    examples = 25
    """How many sequences of calls are tried."""

    # B59
    def test_random_calls_leave_what_they_leave_in_memory(self, tmp_path: Path) -> None:
        pytest.importorskip("hypothesis")
        from hypothesis import given, settings

        folders = (tmp_path / str(i) for i in count())

        @settings(max_examples=self.examples, deadline=None, database=None, print_blob=False)
        @given(_steps())
        def check(steps: list[Step]) -> None:
            folder = next(folders)
            folder.mkdir()
            twins = _Twins(self.make_store(folder), self.reopen)
            with closing(twins):
                for step in steps:
                    twins.take(step)
                assert contents(twins.store) == contents(twins.memory)

        check()


def _steps() -> SearchStrategy[list[Step]]:
    from hypothesis import strategies as st

    small = st.sampled_from(range(13))
    draft = st.tuples(small, small, st.sampled_from([True, False, None]))
    step = st.tuples(st.sampled_from(VERBS), small, small, st.lists(draft, max_size=4))
    return st.lists(step, min_size=10, max_size=40)


class _Twins:
    """A store and a memory store that are told the same, from two sessions on."""

    def __init__(self, store: Store, reopen: Callable[[Store], Store | None]) -> None:
        self.store = store
        self.memory = MemoryStore()
        self._reopen = reopen
        self._entry_ids: dict[str, list[str]] = {name: [new_id()] for name in SESSION_IDS}
        self._runs = {session_id: [run_of(session_id)] for session_id in SESSION_IDS}
        for session_id in SESSION_IDS[:2]:
            for twin in (self.store, self.memory):
                twin.create_session(session_of(session_id))

    def take(self, step: Step) -> None:
        """Do one step on both and compare what they answer."""
        verb, which_session, which, drafts = step
        if verb == "reopen":
            self.store = self._reopen(self.store) or self.store
            return
        session_id = SESSION_IDS[which_session % len(SESSION_IDS)]
        call = self._call(verb, session_id, which, drafts)
        assert _answer(call, self.store) == _answer(call, self.memory)

    def close(self) -> None:
        """Close both."""
        self.store.close()
        self.memory.close()

    def _call(
        self, verb: str, session_id: str, which: int, drafts: list[Draft]
    ) -> Callable[[Store], object]:
        runs = self._runs[session_id if which else SESSION_IDS[0]]
        if verb in ("start", "append_start") and which < 9:
            runs.append(run_of(session_id))
        run = runs[-1 - which % min(3, len(runs))]
        entry_id = self._entry_id(session_id, which)
        entries = self._entries(session_id, drafts)
        calls: dict[str, Callable[[Store], object]] = {
            "create": lambda store: store.create_session(session_of(session_id), entries),
            "append": lambda store: store.append(session_id, entries),
            "start": lambda store: store.start_run(run),
            "append_start": lambda store: store.append(session_id, entries, start=run),
            "end": lambda store: store.end_run(end_of(run, steps=which)),
            "append_end": lambda store: store.append(session_id, entries, end=end_of(run)),
            "move": lambda store: store.move(session_id, entry_id, NOW),
            "root": lambda store: store.move(session_id, None, NOW),
            "load": lambda store: store.load_entries(session_id, which),
        }
        note, plan = annotation_of(session_id, target_id=entry_id), plan_of(session_id)
        calls["annotate"] = lambda store: store.annotate([note])
        calls["plan"] = lambda store: store.save_experiment(plan)
        return calls[verb]

    def _entry_id(self, session_id: str, which: int) -> str:
        """Return a stored id of the session, or now and then one that is not."""
        if which == 12:
            return self._entry_ids[SESSION_IDS[0]][-1]
        stored_ids = [row.id for row in self._rows(session_id)] or self._entry_ids[session_id]
        return stored_ids[-1 - which % min(5, len(stored_ids))]

    def _rows(self, session_id: str) -> list[StoredEntry]:
        known = {line.session.id for line in self.memory.list_sessions()}
        return self.memory.load_entries(session_id) if session_id in known else []

    def _entries(self, session_id: str, drafts: Sequence[Draft]) -> list[StoredEntry]:
        """Return entries of mostly new ids under mostly legal parents."""
        entries: list[StoredEntry] = []
        for which_id, which_parent, moves_leaf in drafts:
            parent_id: str | None = self._entry_id(session_id, which_parent)
            if which_parent in (0, 1) and entries:
                parent_id = entries[-1].id
            elif which_parent in (2, 3) or not self._rows(session_id):
                parent_id = None
            entry_id = self._entry_id(session_id, which_parent) if which_id == 12 else new_id()
            entry = stored(
                session_id,
                parent_id,
                id=entry_id,
                moves_leaf=moves_leaf,
                cost_usd=which_id / 4,
                model=f"model {which_parent}",
                created_at=NOW - which_id,
                meta=which_parent % 5 == 0,
            )
            entries.append(entry)
            self._entry_ids[session_id].append(entry_id)
        return entries


def _answer(call: Callable[[Store], object], store: Store) -> object:
    """Return what a call returned, or that it was refused: which error comes first is open."""
    try:
        return call(store)
    except NbDurableError:
        return "refused"
