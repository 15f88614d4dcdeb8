"""Promises about the position: by ``seq`` the later of the last move and the last mover (B3)."""

from __future__ import annotations

import pytest

from nbdurable.errors import EntryNotFound
from nbdurable.stored import Move
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    chain,
    contents,
    new_id,
    position_of,
    stored,
)


class PositionPromises(ContractBase):
    """Moves, and entries that move."""

    # B3
    def test_a_new_session_is_at_the_root(self, store: Store) -> None:
        assert position_of(store) is None

    # B3
    def test_an_entry_that_moves_the_leaf_is_the_position(self, store: Store) -> None:
        entries = store.append("s", chain(2))

        assert position_of(store) == entries[-1].id

    # B3
    def test_an_entry_that_does_not_move_leaves_the_position(self, store: Store) -> None:
        [first] = store.append("s", [stored()])
        [second] = store.append("s", [stored(parent_id=first.id, moves_leaf=False)])

        assert second.moves_leaf is False
        assert position_of(store) == first.id

    # B3
    def test_a_stale_append_that_moves_wins(self, store: Store) -> None:
        first, _, _ = store.append("s", chain(3))
        [late] = store.append("s", [stored(parent_id=first.id)])

        assert position_of(store) == late.id

    # B3
    def test_a_move_is_the_position(self, store: Store) -> None:
        first, _, _ = store.append("s", chain(3))
        store.move("s", first.id, NOW)

        assert position_of(store) == first.id

    # B3 B39
    def test_a_move_to_the_root_is_the_position(self, store: Store) -> None:
        store.append("s", chain(3))
        store.move("s", None, NOW)

        assert position_of(store) is None

    # B3
    def test_an_entry_after_a_move_is_the_position(self, store: Store) -> None:
        first, _, _ = store.append("s", chain(3))
        store.move("s", first.id, NOW + 10**12)
        [late] = store.append("s", [stored(parent_id=first.id, created_at=0)])

        assert position_of(store) == late.id

    # B3
    def test_a_move_is_returned_and_loaded_alike(self, store: Store) -> None:
        [entry] = store.append("s", [stored()])

        move = store.move("s", entry.id, NOW + 7)

        expected = Move(session_id="s", entry_id=entry.id, seq=entry.seq + 1, created_at=NOW + 7)
        assert move == expected
        assert store.load_moves("s") == [move]

    # B11
    def test_moves_after_a_seq_are_loaded_in_order(self, store: Store) -> None:
        first, second = store.append("s", chain(2))
        moves = [store.move("s", entry_id, 0) for entry_id in (first.id, None, second.id)]

        assert store.load_moves("s", moves[0].seq) == moves[1:]
        assert store.load_moves("s", moves[-1].seq) == []

    # B3
    def test_moves_of_another_session_are_not_loaded(self, store: Store) -> None:
        store.append("s", chain(2))
        store.move("other", None, NOW)

        assert store.load_moves("s") == []

    # B39
    def test_a_move_to_an_unknown_entry_is_refused(self, store: Store) -> None:
        unknown = new_id()
        store.append("s", chain(2))
        before = contents(store)

        with pytest.raises(EntryNotFound, match=unknown):
            store.move("s", unknown, NOW)

        assert contents(store) == before

    # B39
    def test_a_move_to_an_entry_of_another_session_is_refused(self, store: Store) -> None:
        [foreign] = store.append("other", [stored("other")])

        with pytest.raises(EntryNotFound, match=foreign.id) as caught:
            store.move("s", foreign.id, NOW)

        assert caught.value.entry_id == foreign.id

    # B3 B39
    def test_a_refused_move_does_not_move_the_counter(self, store: Store) -> None:
        [first] = store.append("s", [stored()])

        with pytest.raises(EntryNotFound):
            store.move("s", new_id(), NOW)

        assert store.append("s", [stored()])[0].seq == first.seq + 1

    # -- moves_leaf None: only if the parent is the position when stored -----------------------

    # B3
    def test_an_open_entry_under_the_position_moves_it(self, store: Store) -> None:
        [first] = store.append("s", [stored()])

        [note] = store.append("s", [stored(parent_id=first.id, moves_leaf=None)])

        assert note.moves_leaf is True
        assert store.load_entries("s")[-1].moves_leaf is True

    # B3
    def test_an_open_entry_elsewhere_does_not_move_the_position(self, store: Store) -> None:
        first, second = store.append("s", chain(2))

        [note] = store.append("s", [stored(parent_id=first.id, moves_leaf=None)])

        assert note.moves_leaf is False
        assert position_of(store) == second.id

    # B3
    def test_an_open_root_moves_the_position_only_from_the_root(self, store: Store) -> None:
        [first] = store.append("s", [stored(moves_leaf=None)])
        [second] = store.append("s", [stored(moves_leaf=None)])

        assert (first.moves_leaf, second.moves_leaf) == (True, False)

    # B3
    def test_an_open_entry_counts_the_moves_before_it(self, store: Store) -> None:
        first, second = store.append("s", chain(2))
        store.move("s", first.id, NOW)

        [here] = store.append("s", [stored(parent_id=first.id, moves_leaf=None)])
        [there] = store.append("s", [stored(parent_id=second.id, moves_leaf=None)])

        assert (here.moves_leaf, there.moves_leaf) == (True, False)

    # B3
    def test_an_open_entry_counts_a_move_to_the_root(self, store: Store) -> None:
        store.append("s", chain(2))
        store.move("s", None, NOW)

        [note] = store.append("s", [stored(moves_leaf=None)])

        assert note.moves_leaf is True

    # B3
    def test_open_entries_of_one_call_see_each_other(self, store: Store) -> None:
        entries = store.append("s", chain(3, moves_leaf=None))
        [aside] = store.append("s", [stored(parent_id=entries[0].id, moves_leaf=None)])

        assert [entry.moves_leaf for entry in entries] == [True, True, True]
        assert aside.moves_leaf is False

    # B3
    def test_open_entries_do_not_follow_one_that_did_not_move(self, store: Store) -> None:
        still = stored(moves_leaf=False)

        entries = store.append("s", [still, stored(parent_id=still.id, moves_leaf=None)])

        assert [entry.moves_leaf for entry in entries] == [False, False]

    # B3
    def test_a_refused_append_leaves_the_position(self, store: Store) -> None:
        [first] = store.append("s", [stored()])
        with pytest.raises(ValueError, match=r"parent|entry"):
            store.append("s", [stored(parent_id=first.id), stored(parent_id=new_id())])

        [note] = store.append("s", [stored(parent_id=first.id, moves_leaf=None)])

        assert note.moves_leaf is True
