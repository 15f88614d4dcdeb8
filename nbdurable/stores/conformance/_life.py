"""Promises about a store's end and its next beginning."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from nbdurable.errors import EntryError, SessionExists, StoreClosed
from nbdurable.stored import Context, SpoolDraft
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
from nbdurable.stores.conformance._beside import BLOBS, sha256
from nbdurable.stores.conformance._runs import full_end, full_run
from nbdurable.stores.conformance._values import TRAPS, full_entry

CONTEXT = Context(digest="c" * 64, system="Be brief.", tools_json="[]")

METHODS: dict[str, Callable[[Store], object]] = {
    "create_session": lambda store: store.create_session(session_of("new")),
    "load_session": lambda store: store.load_session("s"),
    "list_sessions": lambda store: store.list_sessions(),
    "append": lambda store: store.append("s", [stored()]),
    "append nothing": lambda store: store.append("s"),
    "load_entries": lambda store: store.load_entries("s"),
    "move": lambda store: store.move("s", None, NOW),
    "load_moves": lambda store: store.load_moves("s"),
    "put_blob": lambda store: store.put_blob(sha256(b""), b""),
    "get_blob": lambda store: store.get_blob(sha256(b"")),
    "annotate": lambda store: store.annotate([annotation_of()]),
    "load_annotations": lambda store: store.load_annotations("s"),
    "start_run": lambda store: store.start_run(run_of()),
    "end_run": lambda store: store.end_run(end_of(run_of())),
    "load_runs": lambda store: store.load_runs("s"),
    "save_context": lambda store: store.save_context(CONTEXT),
    "load_context": lambda store: store.load_context(CONTEXT.digest),
    "save_experiment": lambda store: store.save_experiment(plan_of()),
    "load_experiments": lambda store: store.load_experiments("s"),
    "spool": lambda store: store.spool(SpoolDraft(entry=stored())),
    "unspool": lambda store: store.unspool(new_id()),
    "recover": lambda store: store.recover(),
}


class LifePromises(ContractBase):
    """Close, and open again."""

    # B54
    @pytest.mark.parametrize("method", METHODS)
    def test_a_closed_store_refuses(self, store: Store, method: str) -> None:
        store.close()

        with pytest.raises(StoreClosed, match="closed"):
            METHODS[method](store)

    # B54
    def test_closing_twice_does_nothing(self, store: Store) -> None:
        store.close()

        store.close()

    # B2
    def test_every_row_is_the_same_after_opening_again(self, store: Store) -> None:
        fill(store)
        before = contents(store)

        with closing(self.reopened(store)) as again:
            assert contents(again) == before

    # B2
    def test_the_listing_has_the_same_order_after_opening_again(self, store: Store) -> None:
        fill(store)
        before = [line.session.id for line in store.list_sessions()]

        with closing(self.reopened(store)) as again:
            assert [line.session.id for line in again.list_sessions()] == before

    # B2 B61
    def test_bytes_and_contexts_are_the_same_after_opening_again(self, store: Store) -> None:
        fill(store)

        with closing(self.reopened(store)) as again:
            assert again.load_context(CONTEXT.digest) == CONTEXT
            for data in BLOBS.values():
                assert again.get_blob(sha256(data)) == data

    # B2 B64
    @pytest.mark.parametrize("trap", TRAPS)
    def test_text_is_the_same_after_opening_again(self, store: Store, trap: str) -> None:
        store.append("s", [stored(text=TRAPS[trap])])
        before = contents(store)

        with closing(self.reopened(store)) as again:
            assert contents(again) == before

    # B4
    def test_counters_go_on_after_opening_again(self, store: Store) -> None:
        fill(store)
        last = store.append("s", [stored()])[0]
        noted = store.annotate([annotation_of()])[0]
        planned = store.save_experiment(plan_of())

        with closing(self.reopened(store)) as again:
            [entry] = again.append("s", [stored()])
            assert (entry.seq, entry.n) == (last.seq + 1, last.n + 1)
            assert again.annotate([annotation_of()])[0].counter > noted.counter
            assert again.save_experiment(plan_of()).counter > planned.counter

    # B3
    def test_a_move_just_before_the_end_is_the_position_after_opening_again(
        self, store: Store
    ) -> None:
        first, second = store.append("s", chain(2))
        store.move("s", first.id, NOW)

        with closing(self.reopened(store)) as again:
            assert position_of(again) == first.id
            [aside] = again.append("s", [stored(parent_id=second.id, moves_leaf=None)])
            [ahead] = again.append("s", [stored(parent_id=first.id, moves_leaf=None)])
            assert (aside.moves_leaf, ahead.moves_leaf) == (False, True)

    # B60
    def test_a_duplicate_is_refused_after_opening_again(self, store: Store) -> None:
        entry = stored()
        store.append("s", [entry])

        with closing(self.reopened(store)) as again:
            with pytest.raises(EntryError, match=entry.id):
                again.append("s", [entry])
            with pytest.raises(EntryError, match=entry.id):
                again.append("other", [stored("other", id=entry.id)])

    # B60
    def test_an_old_entry_is_a_parent_after_opening_again(self, store: Store) -> None:
        entries = store.append("s", chain(3))

        with closing(self.reopened(store)) as again:
            [child] = again.append("s", [stored(parent_id=entries[-1].id)])
            assert child.depth == 4

    # B8
    def test_a_session_is_taken_after_opening_again(self, store: Store) -> None:
        with (
            closing(self.reopened(store)) as again,
            pytest.raises(SessionExists, match="'s'"),
        ):
            again.create_session(session_of("s"))

    # B13 B24
    def test_runs_are_paired_with_their_first_end_after_opening_again(self, store: Store) -> None:
        run, interrupted = run_of(), run_of()
        store.append("s", start=run, end=end_of(run))
        store.start_run(interrupted)

        with closing(self.reopened(store)) as again:
            again.end_run(end_of(run, outcome="aborted"))
            again.end_run(end_of(interrupted, outcome="error"))
            with pytest.raises(EntryError, match=run.id):
                again.start_run(run)
            ends = [end and end.outcome for _, end in again.load_runs("s")]
            assert ends == ["done", "error"]


def fill(store: Store) -> None:
    """Store rows of every kind, some with every column filled."""
    entries = store.append("s", [*chain(3), full_entry()])
    store.append("s", [stored(parent_id=entries[0].id, moves_leaf=None)])
    store.create_session(
        session_of("child", parent_session_id="s", parent_entry_id=entries[1].id),
        chain(2, "child"),
    )
    store.move("s", entries[1].id, NOW)
    store.move("child", None, NOW)
    run = full_run()
    store.start_run(run, CONTEXT)
    store.append("s", [stored(parent_id=entries[1].id)], end=full_end(run))
    store.append("other", [stored("other", cost_usd=0.5, model="local")], start=run_of("other"))
    store.annotate([annotation_of(by="ann", note="good"), annotation_of("child")])
    store.save_experiment(plan_of())
    for data in BLOBS.values():
        store.put_blob(sha256(data), data)
