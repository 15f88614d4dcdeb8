"""Promises about appends: all or nothing, numbered without holes, ordered by ``seq``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from nbdurable.errors import EntryError
from nbdurable.stored import StoredEntry, digest_of
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    chain,
    contents,
    end_of,
    ids_in,
    run_of,
    stored,
)

CLOCKS = {
    "equal": [NOW] * 6,
    "backward": [NOW - i for i in range(6)],
    "future": [NOW, NOW + 10**15, NOW + 1, NOW + 10**14, NOW, 0],
}

REFUSED = [
    "id twice in one call",
    "id of an earlier call",
    "id in another session",
    "unknown parent",
    "parent in another session",
    "parent later in the call",
    "parent of itself",
    "entry of another session",
]


class EntryPromises(ContractBase):
    """Appends and loads of entries."""

    # B2
    def test_entries_are_loaded_as_they_were_returned(self, store: Store) -> None:
        returned = store.append("s", chain(3))

        assert store.load_entries("s") == list(returned)

    # B2
    def test_what_the_author_filled_in_is_kept(self, store: Store) -> None:
        given = stored(text="kept", run_id=new_run_id(), source_id="abc", stop_reason="stop")

        [entry] = store.append("s", [given])

        for name in ("id", "session_id", "parent_id", "kind", "payload", "created_at", "run_id"):
            assert getattr(entry, name) == getattr(given, name)

    # B2
    def test_a_seq_n_depth_or_digest_given_by_the_caller_is_not_used(self, store: Store) -> None:
        [entry] = store.append("s", [stored(seq=99, n=99, depth=99, digest="f" * 64)])

        assert (entry.n, entry.depth) == (1, 1)
        assert entry.digest == digest_of(entry)

    # B66
    def test_every_entry_carries_the_digest_of_its_columns(self, store: Store) -> None:
        store.append("s", chain(3))

        assert all(entry.digest == digest_of(entry) for entry in store.load_entries("s"))

    # B8
    def test_an_append_of_nothing_returns_nothing(self, store: Store) -> None:
        assert store.append("s") == ()

    # B4
    def test_ordinals_count_from_one_in_each_session(self, store: Store) -> None:
        for session_id in ("s", "other", "s", "s", "other"):
            store.append(session_id, [stored(session_id), stored(session_id)])

        assert [entry.n for entry in store.load_entries("s")] == [1, 2, 3, 4, 5, 6]
        assert [entry.n for entry in store.load_entries("other")] == [1, 2, 3, 4]

    # B4
    def test_seq_grows_over_entries_and_moves_of_all_sessions(self, store: Store) -> None:
        seqs = []
        for session_id in ("s", "other", "s"):
            seqs += [entry.seq for entry in store.append(session_id, chain(2, session_id))]
            seqs.append(store.move(session_id, None, NOW).seq)

        assert seqs == sorted(set(seqs))

    # B4 case 12
    @pytest.mark.parametrize("clock", CLOCKS)
    def test_entries_are_ordered_by_seq_whatever_the_clock_says(
        self, store: Store, clock: str
    ) -> None:
        entries = [stored(created_at=time) for time in CLOCKS[clock]]
        for entry in entries:
            store.append("s", [entry])

        assert ids_in(store) == [entry.id for entry in entries]

    # B4
    def test_entries_are_ordered_by_seq_whatever_their_ids_are(self, store: Store) -> None:
        entries = sorted(chain(1) + chain(1) + chain(1), key=lambda entry: entry.id, reverse=True)
        store.append("s", entries)

        assert ids_in(store) == [entry.id for entry in entries]

    # B11
    def test_entries_after_an_ordinal_are_loaded(self, store: Store) -> None:
        entries = store.append("s", chain(5))

        assert store.load_entries("s", 3) == list(entries[3:])

    # B11
    @pytest.mark.parametrize("after_n", [5, 6, 1000])
    def test_nothing_is_loaded_after_the_newest(self, store: Store, after_n: int) -> None:
        store.append("s", chain(5))

        assert store.load_entries("s", after_n) == []

    # B41
    def test_depth_counts_the_entries_on_the_path(self, store: Store) -> None:
        root, second, third = chain(3)
        store.append("s", [root, second])
        store.append("s", [third, stored(parent_id=root.id), stored()])

        assert [entry.depth for entry in store.load_entries("s")] == [1, 2, 3, 2, 1]

    # B39
    def test_several_roots_and_siblings_are_legal(self, store: Store) -> None:
        first, second = stored(), stored()
        store.append("s", [first, second, stored(parent_id=first.id), stored(parent_id=first.id)])

        parents = [entry.parent_id for entry in store.load_entries("s")]
        assert parents == [None, None, first.id, first.id]

    # B60
    def test_a_parent_earlier_in_the_call_is_accepted(self, store: Store) -> None:
        entries = chain(3)

        store.append("s", entries)

        assert ids_in(store) == [entry.id for entry in entries]

    # B60
    def test_a_parent_of_an_earlier_call_is_accepted(self, store: Store) -> None:
        [root] = store.append("s", [stored()])

        [child] = store.append("s", [stored(parent_id=root.id)])

        assert child.parent_id == root.id

    # B60
    @pytest.mark.parametrize("case", REFUSED)
    def test_a_bad_entry_is_refused_by_name(self, store: Store, case: str) -> None:
        batch, bad_id = refused_batch(store, case)

        with pytest.raises(EntryError, match=re.escape(bad_id)):
            store.append("s", batch)

    # B4 B60
    @pytest.mark.parametrize("case", REFUSED)
    def test_a_refused_append_writes_nothing(self, store: Store, case: str) -> None:
        batch, _ = refused_batch(store, case)
        before = contents(store)

        with pytest.raises(EntryError):
            store.append("s", batch)

        assert contents(store) == before

    # B4 B60
    @pytest.mark.parametrize("case", REFUSED)
    def test_a_refused_append_moves_no_counter(self, store: Store, case: str) -> None:
        batch, _ = refused_batch(store, case)
        [last] = store.append("s", [stored()])

        with pytest.raises(EntryError):
            store.append("s", batch)

        [following] = store.append("s", [stored()])
        assert (following.seq, following.n) == (last.seq + 1, last.n + 1)

    # B60
    @pytest.mark.parametrize("case", REFUSED)
    def test_the_good_entries_of_a_refused_append_can_be_appended_later(
        self, store: Store, case: str
    ) -> None:
        batch, _ = refused_batch(store, case)
        with pytest.raises(EntryError):
            store.append("s", batch)

        [entry] = store.append("s", batch[:1])

        assert entry.id == batch[0].id

    # B60
    def test_an_equal_entry_appended_again_is_refused(self, store: Store) -> None:
        entry = stored()
        store.append("s", [entry])

        with pytest.raises(EntryError, match=entry.id):
            store.append("s", [entry])

        assert len(store.load_entries("s")) == 1

    # B13 B60
    def test_a_refused_append_does_not_store_the_start(self, store: Store) -> None:
        run = run_of()

        with pytest.raises(EntryError):
            store.append("s", refused_batch(store, "unknown parent")[0], start=run)

        assert store.load_runs("s") == []
        store.append("s", start=run)

    # B13 B60
    def test_a_refused_append_does_not_store_the_end(self, store: Store) -> None:
        run = run_of()
        store.start_run(run)

        with pytest.raises(EntryError):
            store.append("s", refused_batch(store, "unknown parent")[0], end=end_of(run))

        assert store.load_runs("s") == [(run, None)]

    # B60
    @pytest.mark.parametrize("case", ["start", "end", "start elsewhere", "end elsewhere"])
    def test_a_refused_run_record_leaves_no_entries(self, store: Store, case: str) -> None:
        run, elsewhere = run_of(), run_of("other")
        store.start_run(run)
        store.start_run(elsewhere)
        before = contents(store)

        with pytest.raises(EntryError):
            if case.startswith("start"):
                start = run if case == "start" else run_of("other")
                store.append("s", [stored()], start=start)
            else:
                end = end_of(run_of() if case == "end" else elsewhere)
                store.append("s", [stored()], end=end)

        assert contents(store) == before

    # B41
    def test_ten_thousand_linear_entries_are_stored(self, store: Store) -> None:
        store.append("s", chain(10_000))

        entries = store.load_entries("s", 9_998)

        assert [(entry.n, entry.depth) for entry in entries] == [(9_999, 9_999), (10_000, 10_000)]


def new_run_id() -> str:
    """Return the id of a run."""
    return run_of().id


def refused_batch(store: Store, case: str) -> tuple[Sequence[StoredEntry], str]:
    """Return a batch for session ``s`` that begins with a good entry, and the id to be named."""
    good, extra = stored(), stored()
    [here] = store.append("s", [stored()])
    [elsewhere] = store.append("other", [stored("other")])
    unknown = stored()
    child = stored(parent_id=extra.id)
    batches: dict[str, tuple[Sequence[StoredEntry], str]] = {
        "id twice in one call": ([good, extra, extra], extra.id),
        "id of an earlier call": ([good, stored(id=here.id)], here.id),
        "id in another session": ([good, stored(id=elsewhere.id)], elsewhere.id),
        "unknown parent": ([good, stored(parent_id=unknown.id)], unknown.id),
        "parent in another session": ([good, stored(parent_id=elsewhere.id)], elsewhere.id),
        "parent later in the call": ([good, child, extra], extra.id),
        "parent of itself": ([good, stored(extra.session_id, extra.id, id=extra.id)], extra.id),
        "entry of another session": ([good, replaced_session(extra)], extra.id),
    }
    return batches[case]


def replaced_session(entry: StoredEntry) -> StoredEntry:
    """Return `entry` as one of session ``other``."""
    return stored("other", entry.parent_id, id=entry.id)
