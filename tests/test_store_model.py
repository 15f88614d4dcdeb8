"""Whatever is done to a store, in any order, it holds what a store in memory holds (B59)."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from nbdurable.errors import NbDurableError
from nbdurable.stored import Context, Move, RunRecord, SpoolDraft, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.conformance import contents, new_id, stored
from nbdurable.stores.conformance._base import annotation_of, end_of, plan_of, run_of, session_of
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check
from nbdurable.stores.memory import MemoryStore
from nbdurable.wire import digest

T = TypeVar("T")

SESSIONS = ("s", 'it\'s "quoted"', "🇳🇿")
TEXTS = st.sampled_from(["hello", "", "line\nline", "\u2028", "nul \0", "x" * 2_000, "'; --"])
sessions = st.sampled_from(SESSIONS)


class StoreMachine(RuleBasedStateMachine):
    """A DuckDB store and a memory store that are told the same."""

    entries: Bundle[StoredEntry] = Bundle("entries")
    runs: Bundle[RunRecord] = Bundle("runs")
    drafts: Bundle[SpoolDraft] = Bundle("drafts")
    blobs: Bundle[bytes] = Bundle("blobs")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="model"))
        self.lives = 0
        self.in_flight: set[str] = set()
        self.memory = MemoryStore()
        self.store = DuckDBStore(self._home() / "chats.duckdb")

    def teardown(self) -> None:
        path = Path(self.store.name)
        self.store.close()
        assert check(path).is_sound
        self.memory.close()
        shutil.rmtree(self.folder)

    def _home(self) -> Path:
        self.lives += 1
        home = self.folder / str(self.lives)
        home.mkdir()
        return home

    def _both(self, call: Callable[[Store], T]) -> T | None:
        """Do the same to both and compare; None when it is refused, which changes nothing."""
        answers: list[T | None] = []
        for twin in (self.store, self.memory):
            try:
                answers.append(call(twin))
            except NbDurableError:
                answers.append(None)
        assert answers[0] == answers[1]
        return answers[0]

    # -- what is done --------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self._both(lambda store: store.create_session(session_of("s")))

    @rule(session=sessions)
    def create(self, session: str) -> None:
        self._both(lambda store: store.create_session(session_of(session)))

    @rule(
        target=entries,
        session=sessions,
        texts=st.lists(TEXTS, min_size=1, max_size=3),
        moves=st.sampled_from([True, False, None]),
    )
    def append_roots(self, session: str, texts: list[str], moves: bool | None) -> object:
        given = [stored(session, text=text, moves_leaf=moves) for text in texts]
        return multiple(*(self._both(lambda store: store.append(session, given)) or ()))

    @rule(target=entries, parent=entries, count=st.integers(1, 3), moves=st.booleans())
    def append(self, parent: StoredEntry, count: int, moves: bool) -> object:
        above, given = parent.id, list[StoredEntry]()
        for _ in range(count):
            given.append(stored(parent.session_id, above, moves_leaf=moves, cost_usd=0.25))
            above = given[-1].id
        return multiple(*(self._both(lambda store: store.append(parent.session_id, given)) or ()))

    @rule(entry=entries)
    def append_again(self, entry: StoredEntry) -> None:
        assert self._both(lambda store: store.append(entry.session_id, [entry])) is None

    @rule(session=sessions)
    def append_under_nothing(self, session: str) -> None:
        lost = stored(session, new_id())
        assert self._both(lambda store: store.append(session, [stored(session), lost])) is None

    @rule(entry=entries)
    def move(self, entry: StoredEntry) -> None:
        moved = self._both(lambda store: store.move(entry.session_id, entry.id, 7))
        assert isinstance(moved, Move)

    @rule(session=sessions)
    def move_to_root(self, session: str) -> None:
        self._both(lambda store: store.move(session, None, 7))

    @rule(entry=entries, value=st.sampled_from(['"best"', "null", "0.5"]))
    def annotate(self, entry: StoredEntry, value: str) -> None:
        note = annotation_of(entry.session_id, target_id=entry.id, value_json=value)
        self._both(lambda store: store.annotate([note]))

    @rule(session=sessions)
    def plan(self, session: str) -> None:
        made = plan_of(session)
        self._both(lambda store: store.save_experiment(made))

    @rule(target=runs, entry=entries, system=st.sampled_from(["Be brief.", None]))
    def start_run(self, entry: StoredEntry, system: str | None) -> RunRecord:
        context = Context(digest=digest([system, "[]"]), system=system, tools_json="[]")
        run = run_of(entry.session_id, start_leaf_id=entry.id, context_digest=context.digest)
        self._both(lambda store: store.start_run(run, context))
        assert self.store.load_context(context.digest) == context
        return run

    @rule(run=runs, steps=st.integers(0, 3))
    def end_run(self, run: RunRecord, steps: int) -> None:
        self._both(lambda store: store.end_run(end_of(run, steps=steps)))

    @rule(target=blobs, data=st.binary(min_size=1, max_size=40))
    def put_blob(self, data: bytes) -> bytes:
        sha256 = hashlib.sha256(data).hexdigest()
        self._both(lambda store: store.put_blob(sha256, data))
        return data

    @rule(data=blobs)
    def get_blob(self, data: bytes) -> None:
        assert self.store.get_blob(hashlib.sha256(data).hexdigest()) == data

    @rule(target=drafts, parent=entries)
    def begin_an_answer(self, parent: StoredEntry) -> SpoolDraft:
        return self._in_flight(parent)

    def _in_flight(self, parent: StoredEntry) -> SpoolDraft:
        draft = SpoolDraft(entry=stored(parent.session_id, parent.id, stop_reason="aborted"))
        self.store.spool(draft)
        self.in_flight.add(draft.entry.id)
        return draft

    @rule(target=entries, draft=consumes(drafts))
    def finish_an_answer(self, draft: SpoolDraft) -> object:
        entry = draft.entry
        if entry.id not in self.in_flight:
            return multiple()  # its process is gone, and it was recovered
        self.in_flight.remove(entry.id)
        return multiple(*(self._both(lambda store: store.append(entry.session_id, [entry])) or ()))

    # -- what becomes of the process -----------------------------------------------------------

    @rule()
    def reopen(self) -> None:
        path = self.store.name
        self.store.close()
        self.store = DuckDBStore(path)
        self._recover()

    @rule()
    def kill(self) -> None:
        self._go_on_after_a_kill()

    def _go_on_after_a_kill(self) -> None:
        """Go on in what a kill would leave at this moment."""
        home, path = self._home(), Path(self.store.name)
        for left in path.parent.iterdir():
            copy = shutil.copytree if left.is_dir() else shutil.copy
            copy(left, home / left.name)
        self.store.close()
        self.store = DuckDBStore(home / path.name)
        self._recover()

    @rule(parent=entries)
    def kill_in_mid_answer(self, parent: StoredEntry) -> None:
        self._in_flight(parent)
        self._go_on_after_a_kill()

    @rule()
    def back_up(self) -> None:
        copy = DuckDBStore(self.store.backup(self._home() / "copy.duckdb"))
        assert contents(copy) == contents(self.store)
        copy.close()

    def _recover(self) -> None:
        recovered = self.store.recover()
        assert {entry.id for entry in recovered} == self.in_flight
        self.in_flight.clear()
        for entry in recovered:
            assert self.memory.append(entry.session_id, [entry]) == (entry,)
        assert self.store.recover() == ()

    @invariant()
    def both_hold_the_same(self) -> None:
        assert contents(self.store) == contents(self.memory)


# B59 B24 B61
@pytest.mark.timeout(600)  # a failure is made small first
class TestStoreModel(StoreMachine.TestCase):
    settings = settings(max_examples=2, stateful_step_count=25, deadline=None)
