"""Promises about run records: a start, at most one end, and the context they share."""

from __future__ import annotations

import pytest

from nbdurable.errors import EntryError, StoreError
from nbdurable.stored import Context, RunEnd, RunRecord
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    contents,
    end_of,
    new_id,
    run_of,
    stored,
)


class RunPromises(ContractBase):
    """Starts, ends and contexts."""

    # B13
    def test_every_column_of_a_start_survives(self, store: Store) -> None:
        run = full_run()

        store.start_run(run)

        assert store.load_runs("s") == [(run, None)]

    # B13
    def test_every_column_of_an_end_survives(self, store: Store) -> None:
        run = run_of()
        end = full_end(run)
        store.start_run(run)

        store.end_run(end)

        assert store.load_runs("s") == [(run, end)]

    # B13
    def test_a_start_is_stored_with_its_input(self, store: Store) -> None:
        entry = stored()
        run = run_of(input_ids=(entry.id,))

        store.append("s", [entry], start=run)

        assert store.load_runs("s") == [(run, None)]
        assert [kept.id for kept in store.load_entries("s")] == [entry.id]

    # B13
    def test_an_end_is_stored_with_the_last_entry(self, store: Store) -> None:
        run = run_of()
        store.start_run(run)
        end = end_of(run)

        store.append("s", [stored(run_id=run.id)], end=end)

        assert store.load_runs("s") == [(run, end)]

    # B13
    def test_a_start_and_its_end_may_come_in_one_call(self, store: Store) -> None:
        run = run_of()

        store.append("s", [stored(run_id=run.id)], start=run, end=end_of(run))

        assert store.load_runs("s") == [(run, end_of(run))]

    # B13
    def test_a_start_and_an_end_need_no_entries(self, store: Store) -> None:
        run = run_of()

        assert store.append("s", start=run) == ()
        assert store.append("s", end=end_of(run)) == ()

        assert store.load_runs("s") == [(run, end_of(run))]

    # B4
    def test_runs_are_loaded_in_the_order_they_started(self, store: Store) -> None:
        runs = [run_of(created_at=NOW - i) for i in range(4)]
        store.start_run(runs[0])
        store.append("s", [stored()], start=runs[1])
        store.start_run(runs[2])
        store.append("s", start=runs[3])
        for run in reversed(runs):
            store.end_run(end_of(run))

        assert [run.id for run, _ in store.load_runs("s")] == [run.id for run in runs]

    # B13
    def test_each_run_is_loaded_with_its_own_end(self, store: Store) -> None:
        first, second, third = run_of(), run_of(), run_of()
        for run in (first, second, third):
            store.start_run(run)
        store.end_run(end_of(third, outcome="aborted"))
        store.end_run(end_of(first, outcome="error", error="no"))

        outcomes = [end and end.outcome for _, end in store.load_runs("s")]
        assert outcomes == ["error", None, "aborted"]

    # B13
    def test_runs_of_another_session_are_not_loaded(self, store: Store) -> None:
        store.start_run(run_of("other"))

        assert store.load_runs("s") == []

    # B24
    @pytest.mark.parametrize("second_by", ["end_run", "append"])
    @pytest.mark.parametrize("first_by", ["end_run", "append"])
    def test_the_first_end_of_a_run_is_kept(
        self, store: Store, first_by: str, second_by: str
    ) -> None:
        run = run_of()
        store.start_run(run)
        first, second = end_of(run, outcome="aborted"), end_of(run, outcome="done", steps=3)

        for by, end in ((first_by, first), (second_by, second)):
            if by == "end_run":
                store.end_run(end)
            else:
                store.append("s", [stored()], end=end)

        assert store.load_runs("s") == [(run, first)]

    # B24
    def test_entries_beside_a_late_end_are_stored(self, store: Store) -> None:
        run = run_of()
        store.append("s", start=run, end=end_of(run))

        store.append("s", [stored()], end=end_of(run, outcome="error"))

        assert len(store.load_entries("s")) == 1

    # B13
    @pytest.mark.parametrize("session_id", ["s", "other"])
    def test_a_run_id_is_used_once(self, store: Store, session_id: str) -> None:
        run = run_of()
        store.start_run(run)

        with pytest.raises(EntryError, match=run.id):
            store.start_run(run_of(session_id, id=run.id, kind="rerun"))

        assert store.load_runs("s") == [(run, None)]
        assert store.load_runs("other") == []

    # B13
    @pytest.mark.parametrize("session_id", ["s", "other"])
    def test_an_end_without_a_start_in_its_session_is_refused(
        self, store: Store, session_id: str
    ) -> None:
        store.start_run(run_of())
        unstarted = run_of(session_id)
        before = contents(store)

        with pytest.raises(EntryError, match=unstarted.id):
            store.end_run(end_of(unstarted))

        assert contents(store) == before

    # B4
    def test_run_records_do_not_move_the_counter(self, store: Store) -> None:
        [first] = store.append("s", [stored()])
        run = run_of()
        store.start_run(run)
        store.end_run(end_of(run))

        assert store.append("s", [stored()])[0].seq == first.seq + 1

    # -- contexts ------------------------------------------------------------------------------

    # B13
    def test_a_context_is_loaded_by_its_digest(self, store: Store) -> None:
        context = context_of("Be brief. \u2028 👩‍👧")

        store.save_context(context)

        assert store.load_context(context.digest) == context

    # B13
    def test_no_system_text_and_an_empty_one_stay_apart(self, store: Store) -> None:
        for context in (context_of(None), context_of("")):
            store.save_context(context)

            assert store.load_context(context.digest) == context

    # B13
    def test_a_context_is_kept_once_per_digest(self, store: Store) -> None:
        context = context_of("Be brief.")
        store.save_context(context)
        store.save_context(context)
        store.start_run(run_of(context_digest=context.digest), context)

        assert store.load_context(context.digest) == context

    # B13
    def test_a_context_given_with_a_start_is_kept(self, store: Store) -> None:
        context = context_of("Be brief.")

        store.start_run(run_of(context_digest=context.digest), context)

        assert store.load_context(context.digest) == context

    # B4
    def test_a_refused_start_does_not_keep_its_context(self, store: Store) -> None:
        run, context = run_of(), context_of("Be brief.")
        store.start_run(run)

        with pytest.raises(EntryError, match=run.id):
            store.start_run(run, context)

        with pytest.raises(StoreError):
            store.load_context(context.digest)

    # B6
    def test_an_unknown_context_is_refused_by_its_digest(self, store: Store) -> None:
        with pytest.raises(StoreError, match="0123456789abcdef"):
            store.load_context("0123456789abcdef" * 4)


def context_of(system: str | None) -> Context:
    """Return a context; its digest needs to be one only of its text."""
    return Context(
        digest=(new_id() + new_id()).replace("-", ""),
        system=system,
        tools_json='[{"name":"lookup"}]',
    )


def full_run() -> RunRecord:
    """Return a start in which no column has its default."""
    return run_of(
        kind="rerun",
        start_leaf_id=new_id(),
        input_ids=(new_id(), new_id()),
        request_digest="a" * 64,
        context_digest="b" * 64,
        model="openai/gpt-5-mini",
        params_json='{"temperature":0.2,"seed":9007199254740993}',
        ephemeral_json='["c"]',
        moves=False,
        rerun_of=new_id(),
        experiment_id=new_id(),
        cell="2/☃",
        origin="cell-17",
        owner="host:4711",
    )


def full_end(run: RunRecord) -> RunEnd:
    """Return an end of `run` in which no column has its default."""
    return end_of(
        run,
        outcome="max_steps",
        leaf_id=new_id(),
        error="line one\nline 'two'",
        steps=25,
        seconds=0.1 + 0.2,
        usage_json='{"input_tokens":9007199254740993}',
        cost_usd=0.000123,
    )
