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

    small = st.integers(0, 12)
    draft = st.tuples(small, small, st.sampled_from([True, False, None]))
    step = st.tuples(st.sampled_from(VERBS), small, small, st.lists(draft, max_size=4))
    return st.lists(step, min_size=5, max_size=40)


class _Twins:
    """A store and a memory store that are told the same."""

    def __init__(self, store: Store, reopen: Callable[[Store], Store | None]) -> None:
        self.store = store
        self.memory = MemoryStore()
        self._reopen = reopen
        self._entry_ids = [new_id() for _ in range(2)]
        self._runs = [run_of(session_id) for session_id in SESSION_IDS[:2]]

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
        entry_id = self._entry_ids[which % len(self._entry_ids)]
        if verb in ("start", "append_start") and which < 9:
            self._runs.append(run_of(session_id))
        run = self._runs[-1 - which % 3 % len(self._runs)]
        entries = self._entries(session_id, drafts) if drafts else []
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

    def _entries(self, session_id: str, drafts: Sequence[Draft]) -> list[StoredEntry]:
        """Return entries of mostly new ids under mostly recent parents, some of them illegal."""
        entries = []
        for which_id, which_parent, moves_leaf in drafts:
            known = self._entry_ids
            entry_id = known[-1] if which_id == 12 else new_id()
            parent_id = None if which_parent > 9 else known[-1 - which_parent % 4 % len(known)]
            entries.append(
                stored(
                    session_id,
                    parent_id,
                    id=entry_id,
                    moves_leaf=moves_leaf,
                    cost_usd=which_id / 4,
                    model=f"model {which_parent}",
                    created_at=NOW - which_id,
                    meta=which_parent % 5 == 0,
                )
            )
            known.append(entry_id)
        return entries


def _answer(call: Callable[[Store], object], store: Store) -> object:
    """Return what a call returned, or that it was refused: which error comes first is open."""
    try:
        return call(store)
    except NbDurableError:
        return "refused"
