from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nbdurable.errors import EntryError, StoreError
from nbdurable.stored import SessionRecord
from nbdurable.stores.base import Store
from nbdurable.stores.conformance import StoreContract, chain, new_id, stored
from nbdurable.stores.memory import MemoryStore

ROWS = (
    "_seq",
    "_annotation_count",
    "_experiment_count",
    "_sessions",
    "_home",
    "_runs",
    "_ends",
    "_contexts",
    "_blobs",
)


class TestMemoryStore(StoreContract):
    def make_store(self, folder: Path) -> MemoryStore:
        return MemoryStore()


class PickledStore(MemoryStore):
    """A memory store that outlives its close, so that every promise about reopening is run."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        if path.exists():
            vars(self).update(pickle.loads(path.read_bytes()))

    def close(self) -> None:
        if not self._is_closed:
            self.path.write_bytes(pickle.dumps({name: vars(self)[name] for name in ROWS}))
        super().close()


class TestPickledStore(StoreContract):
    def make_store(self, folder: Path) -> PickledStore:
        return PickledStore(folder / "rows.pickle")

    def reopen(self, store: Store) -> PickledStore:
        assert isinstance(store, PickledStore)
        store.close()
        return PickledStore(store.path)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.create_session(SessionRecord(id="s", created_at=1))
    return made


# B1
def test_a_memory_store_is_named_so(store: MemoryStore) -> None:
    assert store.name == ":memory:"


# B69
def test_the_repr_shows_no_row(store: MemoryStore) -> None:
    store.append("s", [stored(text="a secret")])

    assert repr(store) == "MemoryStore(1 sessions)"


# B60
def test_a_refused_parent_is_explained_in_one_line(store: MemoryStore) -> None:
    store.append("s", chain(2))
    parent_id, entry = new_id(), stored()

    with pytest.raises(EntryError) as caught:
        store.append("s", [stored("s", parent_id, id=entry.id)])

    assert str(caught.value) == (
        f"parent '{parent_id}' of entry '{entry.id}' is not in session 's' (2 entries); "
        "append the parent first"
    )


# B60
def test_a_refused_duplicate_names_the_session_that_has_it(store: MemoryStore) -> None:
    [entry] = store.append("s", [stored()])
    store.create_session(SessionRecord(id="t", created_at=1))

    with pytest.raises(EntryError, match=f"entry '{entry.id}' is already in session 's'; give"):
        store.append("t", [stored("t", id=entry.id)])


# B61
def test_missing_bytes_are_explained_in_one_line(store: MemoryStore) -> None:
    with pytest.raises(StoreError, match="blob 'abc' is not in store ':memory:'; put_blob"):
        store.get_blob("abc")


# B10
def test_a_copy_of_the_callers_bytes_is_not_made_twice(store: MemoryStore) -> None:
    data = b"immutable already"

    store.put_blob("abc", data)

    assert store.get_blob("abc") is data


# B59
def test_the_contract_is_part_of_the_package_only_where_it_is_asked_for() -> None:
    code = "import sys, nbdurable.stores.memory; print('pytest' in sys.modules)"

    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert told.stdout.strip() == "False"


# -- the contract can fail ---------------------------------------------------------------------

CAUGHT_BY = {
    "KeepsTheGoodPart": "test_a_refused_append_writes_nothing",
    "OrdersByTheClock": "test_entries_are_ordered_by_seq_whatever_the_clock_says",
    "BurnsNumbers": "test_a_refused_append_moves_no_counter",
    "ForgetsMoves": "test_an_open_entry_counts_the_moves_before_it",
    "TakesTheLastEnd": "test_the_first_end_of_a_run_is_kept",
    "CutsTexts": "test_text_survives_in_a_payload",
    "HandsOutItsList": "test_changing_a_loaded_list_changes_nothing",
    "LoadsAnything": "test_an_unknown_session_is_refused",
    "AnswersAfterClose": "test_a_closed_store_refuses",
    "CreatesInPieces": "test_a_session_with_a_bad_record_is_not_created",
    "KeepsAReference": "test_bytes_are_a_copy",
    "SkipsOrdinals": "test_random_calls_leave_what_they_leave_in_memory",
}


@pytest.fixture(scope="module")
def failures() -> set[tuple[str, str]]:
    """Return the broken stores and the promises that each was caught breaking."""
    root = Path(__file__).parent.parent
    stores = Path(__file__).parent / "data" / "broken_stores.py"
    options = ["-q", "--tb=no", "-rf", "-p", "no:cacheprovider", "-p", "no:randomly"]
    pairs = [f"(Test{name} and {promise})" for name, promise in CAUGHT_BY.items()]
    pairs += [f"(TestSound and {promise})" for promise in CAUGHT_BY.values()]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", str(stores), *options, "-k", " or ".join(pairs)],
        capture_output=True,
        text=True,
        cwd=root,
        timeout=100,
    )
    return set(re.findall(r"^FAILED .*::Test(\w+)::(\w+)", told.stdout, re.MULTILINE))


# B59
@pytest.mark.parametrize("broken", CAUGHT_BY)
def test_the_contract_catches_a_broken_store(failures: set[tuple[str, str]], broken: str) -> None:
    assert (broken, CAUGHT_BY[broken]) in failures


# B59
def test_the_contract_passes_a_sound_store_where_it_fails_the_broken(
    failures: set[tuple[str, str]],
) -> None:
    assert failures
    assert "Sound" not in {name for name, _ in failures}
