"""Promises about what lies beside the tree: blobs, annotations, experiments, drafts."""

from __future__ import annotations

import hashlib

import pytest

from nbdurable.errors import SessionNotFound, StoreError
from nbdurable.stored import SpoolDraft
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    ContractBase,
    annotation_of,
    contents,
    end_of,
    ids_in,
    new_id,
    plan_of,
    run_of,
    stored,
)

BLOBS = {
    "every byte": bytes(range(256)) * 200,
    "zeros": bytes(40_000),
    "empty": b"",
    "text": "naïve \0 text".encode(),
}


class BesidePromises(ContractBase):
    """Blobs, annotations, experiments and answers in flight."""

    # B61
    @pytest.mark.parametrize("kind", BLOBS)
    def test_bytes_are_kept_under_their_hash(self, store: Store, kind: str) -> None:
        data = BLOBS[kind]

        store.put_blob(sha256(data), data)

        assert store.get_blob(sha256(data)) == data

    # B61
    def test_bytes_put_again_are_the_same(self, store: Store) -> None:
        data = BLOBS["every byte"]
        for _ in range(3):
            store.put_blob(sha256(data), data)

        assert store.get_blob(sha256(data)) == data

    # B10 B61
    def test_bytes_are_a_copy(self, store: Store) -> None:
        data = bytearray(b"before")
        store.put_blob(sha256(b"before"), data)  # type: ignore[arg-type]

        data[:] = b"after!"

        kept = store.get_blob(sha256(b"before"))
        assert kept == b"before"
        assert isinstance(kept, bytes)

    # B61
    def test_missing_bytes_are_refused_by_their_hash(self, store: Store) -> None:
        missing = sha256(b"never put")

        with pytest.raises(StoreError, match=missing[:12]):
            store.get_blob(missing)

    # -- annotations ---------------------------------------------------------------------------

    # B70
    def test_every_column_of_an_annotation_survives(self, store: Store) -> None:
        given = annotation_of(
            name="rating", value_json='{"score":0.5}', by="ann 'x'", note="why\n☃"
        )

        [kept] = store.annotate([given])

        assert store.load_annotations("s") == [kept]
        for name in ("id", "target_id", "name", "value_json", "created_at", "by", "note"):
            assert getattr(kept, name) == getattr(given, name)

    # B70
    def test_no_author_and_an_empty_one_stay_apart(self, store: Store) -> None:
        store.annotate([annotation_of(by=None, note=""), annotation_of(by="", note=None)])

        assert [(kept.by, kept.note) for kept in store.load_annotations("s")] == [
            (None, ""),
            ("", None),
        ]

    # B4 B70
    def test_annotations_are_ordered_by_their_counter(self, store: Store) -> None:
        given = [annotation_of(created_at=time) for time in (9, 5, 7)]
        store.annotate(given[:2])
        store.annotate(given[2:])

        kept = store.load_annotations("s")
        counters = [annotation.counter for annotation in kept]
        assert [annotation.id for annotation in kept] == [annotation.id for annotation in given]
        assert counters == sorted(set(counters)) and counters[0] > 0

    # B11 B70
    def test_annotations_after_a_counter_are_loaded(self, store: Store) -> None:
        kept = store.annotate([annotation_of() for _ in range(4)])

        assert store.load_annotations("s", kept[1].counter) == list(kept[2:])
        assert store.load_annotations("s", kept[3].counter) == []

    # B70
    def test_one_call_may_annotate_several_sessions(self, store: Store) -> None:
        first, second = store.annotate([annotation_of("s"), annotation_of("other")])

        assert store.load_annotations("s") == [first]
        assert store.load_annotations("other") == [second]

    # B4 B70
    def test_annotations_are_stored_all_or_nothing(self, store: Store) -> None:
        with pytest.raises(SessionNotFound, match="'lost'"):
            store.annotate([annotation_of("s"), annotation_of("lost")])

        assert store.load_annotations("s") == []

    # B70
    def test_annotating_nothing_returns_nothing(self, store: Store) -> None:
        assert store.annotate([]) == ()

    # B70
    def test_nothing_of_an_annotation_is_replaced_by_a_later_one(self, store: Store) -> None:
        target = new_id()
        for value_json in ('"draft"', '"final"', "null"):
            store.annotate([annotation_of(target_id=target, value_json=value_json)])

        values = [annotation.value_json for annotation in store.load_annotations("s")]
        assert values == ['"draft"', '"final"', "null"]

    # B3 B70
    def test_annotations_and_experiments_do_not_move_the_entries_counter(
        self, store: Store
    ) -> None:
        [first] = store.append("s", [stored()])
        store.annotate([annotation_of()])
        store.save_experiment(plan_of())

        assert store.append("s", [stored()])[0].seq == first.seq + 1

    # -- experiments ---------------------------------------------------------------------------

    # B43
    def test_every_column_of_a_plan_survives(self, store: Store) -> None:
        given = plan_of(name="models × tones", plan_json='{"axes":{"n":9007199254740993}}')

        kept = store.save_experiment(given)

        assert store.load_experiments("s") == [kept]
        assert (kept.id, kept.name, kept.plan_json) == (given.id, given.name, given.plan_json)

    # B4 B43
    def test_plans_are_ordered_by_their_counter(self, store: Store) -> None:
        kept = [store.save_experiment(plan_of(created_at=time)) for time in (9, 5, 7)]

        counters = [plan.counter for plan in kept]
        assert store.load_experiments("s") == kept
        assert counters == sorted(set(counters)) and counters[0] > 0

    # B11 B43
    def test_plans_after_a_counter_are_loaded(self, store: Store) -> None:
        kept = [store.save_experiment(plan_of()) for _ in range(3)]
        store.save_experiment(plan_of("other"))

        assert store.load_experiments("s", kept[0].counter) == kept[1:]
        assert store.load_experiments("s", kept[2].counter) == []

    # B43
    def test_a_plan_saved_again_with_more_cells_is_kept_beside_the_first(
        self, store: Store
    ) -> None:
        plan = plan_of(plan_json='{"cells":[1]}')
        store.save_experiment(plan)
        store.save_experiment(plan_of(id=plan.id, plan_json='{"cells":[1,2]}'))

        plans = [kept.plan_json for kept in store.load_experiments("s")]
        assert plans == ['{"cells":[1]}', '{"cells":[1,2]}']

    # -- answers in flight ---------------------------------------------------------------------

    # B24
    def test_an_answer_in_flight_is_not_an_entry(self, store: Store) -> None:
        before = contents(store)

        store.spool(SpoolDraft(entry=stored(text="half an ans")))

        assert contents(store) == before

    # B24
    def test_a_living_process_recovers_no_answer_of_its_own(self, store: Store) -> None:
        store.spool(SpoolDraft(entry=stored(text="half an ans")))

        assert store.recover() == ()
        assert ids_in(store) == []

    # B24
    def test_an_answer_in_flight_can_be_appended(self, store: Store) -> None:
        run = run_of()
        store.start_run(run)
        draft = stored(text="half", run_id=run.id)
        store.spool(SpoolDraft(entry=draft, end=end_of(run, outcome="aborted")))

        store.append("s", [stored(id=draft.id, text="whole")], end=end_of(run))

        assert ids_in(store) == [draft.id]
        assert store.load_runs("s") == [(run, end_of(run))]

    # B24
    def test_forgetting_an_unknown_answer_is_passed_over(self, store: Store) -> None:
        store.unspool(new_id())

    # B24
    def test_an_answer_that_was_appended_is_not_recovered(self, store: Store) -> None:
        draft = stored(text="half")
        store.spool(SpoolDraft(entry=draft))
        store.append("s", [stored(id=draft.id, text="whole")])

        again = self.reopened(store)

        assert again.recover() == ()
        assert ids_in(again) == [draft.id]
        again.close()

    # B24
    def test_an_answer_that_was_forgotten_is_not_recovered(self, store: Store) -> None:
        draft = stored(text="half")
        store.spool(SpoolDraft(entry=draft))
        store.unspool(draft.id)

        again = self.reopened(store)

        assert again.recover() == ()
        assert ids_in(again) == []
        again.close()


def sha256(data: bytes) -> str:
    """Return the hash under which `data` is kept."""
    return hashlib.sha256(data).hexdigest()
