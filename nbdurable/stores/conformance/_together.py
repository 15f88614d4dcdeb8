"""Promises about what is stored together with entries: one transaction, one order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from nbdurable.errors import NbDurableError, SessionNotFound
from nbdurable.stored import Beside, Context, Move, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    annotation_of,
    chain,
    contents,
    end_of,
    new_id,
    plan_of,
    position_of,
    run_of,
    session_of,
    stored,
)
from nbdurable.stores.together import HeldEntry, outlines

CONTEXT = Context(digest="c" * 64, system="Be brief.", tools_json="[]")


def all_beside(session_id: str, entries: list[StoredEntry]) -> Beside:
    """Return one or two of everything that goes with `entries`."""
    first = run_of(session_id, context_digest=CONTEXT.digest, input_ids=(entries[0].id,))
    second = run_of(session_id)
    return Beside(
        moves=(_move(session_id, None, 2), _move(session_id, entries[0].id, 99)),
        runs=(first, second),
        ends=(end_of(second, outcome="error"), end_of(first)),
        contexts=(CONTEXT,),
        annotations=tuple(annotation_of(session_id, target_id=entry.id) for entry in entries),
        experiments=(plan_of(session_id), plan_of(session_id, name="other")),
    )


def _move(session_id: str, entry_id: str | None, seq: int = 0) -> Move:
    return Move(session_id=session_id, entry_id=entry_id, seq=seq, created_at=NOW)


def _held(entry: StoredEntry) -> HeldEntry:
    return HeldEntry(**{name: getattr(entry, name) for name in HeldEntry._fields})


def _other_run(store: Store) -> str:
    run = run_of("other")
    store.start_run(run)
    return run.id


# How each is refused: what stands beside a chain of two entries of session "new".
REFUSED: dict[str, Callable[[Store, list[StoredEntry]], Beside]] = {
    "a move of another session": lambda _, entries: Beside(moves=(_move("s", None),)),
    "a run of another session": lambda _, entries: Beside(runs=(run_of("s"),)),
    "an end of another session": lambda _, entries: Beside(ends=(end_of(run_of("s")),)),
    "an annotation of another session": lambda _, entries: Beside(
        annotations=(annotation_of("s", target_id=entries[0].id),)
    ),
    "a plan of another session": lambda _, entries: Beside(experiments=(plan_of("s"),)),
    "a move to an unknown entry": lambda _, entries: Beside(moves=(_move("new", new_id()),)),
    "a move to a later entry": lambda _, entries: Beside(moves=(_move("new", entries[1].id, 1),)),
    "a label of an unknown entry": lambda _, entries: Beside(annotations=(annotation_of("new"),)),
    "a run ended unstarted": lambda _, entries: Beside(ends=(end_of(run_of("new")),)),
    "a run started twice": lambda _, entries: Beside(runs=(run_of("new", id="r"),) * 2),
    "a run of the store": lambda store, entries: Beside(
        runs=(run_of("new", id=_other_run(store)),)
    ),
    "an end of another session's run": lambda store, entries: Beside(
        ends=(end_of(run_of("new", id=_other_run(store))),)
    ),
}


class TogetherPromises(ContractBase):
    """What is stored beside entries, at the creation of a session and later."""

    # B2
    def test_a_session_is_created_with_all_that_belongs_to_it(self, store: Store) -> None:
        entries = [entry._replace(seq=i) for i, entry in enumerate(chain(3, "new"), 1)]
        beside = all_beside("new", entries)

        store.create_session(session_of("new"), entries, beside=beside)

        first, second = beside.runs
        assert [entry.id for entry in store.load_entries("new")] == [e.id for e in entries]
        assert store.load_runs("new") == [(first, beside.ends[1]), (second, beside.ends[0])]
        assert store.load_context(CONTEXT.digest) == CONTEXT
        kept = store.load_annotations("new")
        assert [replace(annotation, counter=0) for annotation in kept] == [*beside.annotations]
        plans = store.load_experiments("new")
        assert [replace(plan, counter=0) for plan in plans] == [*beside.experiments]

    # B3
    def test_entries_and_moves_are_numbered_in_the_order_of_where_they_came_from(
        self, store: Store
    ) -> None:
        [last] = store.append("s", [stored()])
        entries = [
            entry._replace(seq=seq)
            for entry, seq in zip(chain(3, "new"), (10, 20, 30), strict=True)
        ]
        moves = tuple(_move("new", entries[0].id, seq) for seq in (15, 25, 40))

        kept = store.create_session(session_of("new"), entries, beside=Beside(moves=moves))

        offsets = [entry.seq - last.seq for entry in kept]
        assert offsets == [1, 3, 5]
        assert [move.seq - last.seq for move in store.load_moves("new")] == [2, 4, 6]
        assert position_of(store, "new") == entries[0].id
        assert store.append("s", [stored()])[0].seq == last.seq + 7

    # B3
    def test_an_entry_after_a_move_is_the_position(self, store: Store) -> None:
        entries = [entry._replace(seq=seq) for seq, entry in enumerate(chain(3, "new"), 1)]
        moves = (_move("new", entries[0].id, 2), _move("new", None, 2))
        store.create_session(session_of("new"), entries, beside=Beside(moves=moves))

        note = stored("new", entries[2].id, kind="note", role=None, moves_leaf=None)
        [kept] = store.append("new", [note])

        assert kept.moves_leaf is True
        assert position_of(store, "new") == note.id

    # B3
    def test_a_custom_entry_moves_the_position_only_from_it(self, store: Store) -> None:
        first, second = chain(2, "new")
        note = stored("new", second.id, kind="note", role=None, moves_leaf=None)
        entries = [
            entry._replace(seq=seq)
            for entry, seq in zip((first, second, note), (1, 3, 4), strict=True)
        ]
        beside = Beside(moves=(_move("new", first.id, 2),))

        kept = store.create_session(session_of("new"), entries, beside=beside)
        assert kept[2].moves_leaf is True

        beside = Beside(moves=(_move("new", first.id),))
        later = stored("new", note.id, kind="note", role=None, moves_leaf=None, seq=1)
        [kept_later] = store.append("new", [later], beside=beside)
        assert kept_later.moves_leaf is False

    # B4
    def test_entries_keep_their_order_whatever_their_numbers(self, store: Store) -> None:
        entries = [entry._replace(seq=9 - i) for i, entry in enumerate(chain(3, "new"))]

        kept = store.create_session(session_of("new"), entries)

        assert [entry.id for entry in kept] == [entry.id for entry in entries]
        assert [entry.n for entry in kept] == [1, 2, 3]

    # B2
    def test_what_was_created_together_is_there_after_a_reopening(self, store: Store) -> None:
        entries = chain(2, "new")
        store.create_session(session_of("new"), entries, beside=all_beside("new", entries))
        before = contents(store)

        again = self.reopened(store)

        assert contents(again) == before
        again.close()

    # B4
    def test_a_session_grows_by_all_that_belongs_to_an_append(self, store: Store) -> None:
        entries = chain(2)
        store.append("s", entries[:1])
        beside = all_beside("s", entries)

        store.append("s", entries[1:], beside=beside)

        assert [entry.id for entry in store.load_entries("s")] == [e.id for e in entries]
        assert [run for run, _ in store.load_runs("s")] == [*beside.runs]
        assert len(store.load_annotations("s")) == len(store.load_experiments("s")) == 2
        assert position_of(store) == entries[0].id

    # B13
    def test_a_run_stored_before_is_ended_beside_entries(self, store: Store) -> None:
        run = run_of()
        store.start_run(run)

        store.append("s", [stored(run_id=run.id)], beside=Beside(ends=(end_of(run),)))
        store.append("s", beside=Beside(ends=(end_of(run, outcome="error"),)))

        assert store.load_runs("s") == [(run, end_of(run))]

    # B4 B60
    @pytest.mark.parametrize("bad", REFUSED)
    def test_a_session_with_a_bad_record_is_not_created(self, store: Store, bad: str) -> None:
        entries = [
            entry._replace(seq=seq) for entry, seq in zip(chain(2, "new"), (1, 2), strict=True)
        ]
        beside = REFUSED[bad](store, entries)
        before = contents(store)

        with pytest.raises(NbDurableError, match=r"session|already"):
            store.create_session(session_of("new"), entries, beside=beside)

        assert contents(store) == before
        with pytest.raises(SessionNotFound, match="'new'"):
            store.load_session("new")
        assert store.create_session(session_of("new"), entries)[0].n == 1

    # B4 B60
    @pytest.mark.parametrize("bad", REFUSED)
    def test_a_bad_record_leaves_nothing_of_an_append(self, store: Store, bad: str) -> None:
        store.create_session(session_of("new"))
        entries = [
            entry._replace(seq=seq) for entry, seq in zip(chain(2, "new"), (1, 2), strict=True)
        ]
        beside = REFUSED[bad](store, entries)
        before = contents(store)

        with pytest.raises(NbDurableError, match=r"session|already"):
            store.append("new", entries, beside=beside)

        assert contents(store) == before
        [kept] = store.append("new", entries[:1])
        assert kept.n == 1

    # B59
    def test_outlines_say_of_sessions_what_reading_them_says(self, store: Store) -> None:
        store.create_session(session_of("a"), [stored("a", text="nul \0"), stored("a")])
        [first, second] = store.append("s", chain(2))
        store.move("s", second.id, NOW)
        moved = store.move("s", first.id, NOW)
        [note] = store.annotate([annotation_of("s", target_id=first.id)])

        found = outlines(store, ["a", "s"])

        for session_id in ("a", "s"):
            told = list(found[session_id].entries.values())
            read = store.load_entries(session_id)
            assert told == [_held(entry) for entry in read]
        assert (found["s"].move, found["s"].note_ids) == (moved, frozenset({note.id}))
        assert (found["a"].move, found["a"].note_ids) == (None, frozenset())
