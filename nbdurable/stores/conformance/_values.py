"""Promises about values: every column and every text comes back as it was, and stays so."""

from __future__ import annotations

import json

import pytest

from nbdurable.stored import RunRecord, StoredEntry, digest_of
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    NOW,
    ContractBase,
    annotation_of,
    chain,
    new_id,
    plan_of,
    run_of,
    stored,
)
from nbdurable.wire import dumps

TRAPS = {
    "nul": "before\0after",
    "joined emoji": "family 👩‍👩‍👧‍👦 flag 🇳🇿 combining e\u0301",
    "line ends": "one\r\ntwo\rthree\nfour",
    "line separators": "a\u2028b\u2029c\u0085d\u000be",
    "html": '<script>window.__hit=1</script>"><svg/onload=1>',
    "dollars": "It costs $5 and then $7, not $$x^2$$",
    "blank": "\n\n",
    "empty": "",
    "quotes": 'it\'s "quoted" \\ \\u0000 `?` %s :1 $1',
    "right to left": "مرحبا بالعالم (1) hello",
    "byte order mark": "\ufeffabc\ufffe",
    "astral": "\U0010ffff𝔘",
    "replacement": "cut \ufffd here",
    "long line": "abcdefghij" * 20_000,
    "big prompt": "All work and no play. " * 70_000,
}

BIG_INTEGERS = ["9007199254740993", "-9223372036854775809", "1" + "0" * 40]


class ValuePromises(ContractBase):
    """Bytes, numbers and immutability."""

    # B64 case 31
    @pytest.mark.parametrize("trap", TRAPS)
    def test_text_survives_in_a_payload(self, store: Store, trap: str) -> None:
        given = stored(text=TRAPS[trap])

        store.append("s", [given])

        [entry] = store.load_entries("s")
        assert entry.payload == given.payload
        assert json.loads(entry.payload)["blocks"][0]["text"] == TRAPS[trap]

    # B64 case 31
    @pytest.mark.parametrize("trap", TRAPS)
    def test_text_survives_in_a_preview(self, store: Store, trap: str) -> None:
        preview = TRAPS[trap].replace("\0", "")[:120]

        store.append("s", [stored(preview=preview)])

        assert store.load_entries("s")[0].preview == preview
        titles = {line.session.id: line.title for line in store.list_sessions()}
        assert titles["s"] == preview

    # B37 B64
    def test_a_payload_is_kept_byte_for_byte(self, store: Store) -> None:
        payload = '{ "b": 1.0,\t"a" : [ ], "b": 1e2, "\\u00e9": "\\ud83d\\ude00" }'

        store.append("s", [stored(payload=payload)])

        assert store.load_entries("s")[0].payload == payload

    # case 38
    def test_unlike_payloads_in_one_call_are_kept_apart(self, store: Store) -> None:
        payloads = ["null", '{"a":1}', '{"b":"x"}', "[]", '"text"', "3", '{"a":null}']

        store.append("s", [stored(payload=payload) for payload in payloads])

        assert [entry.payload for entry in store.load_entries("s")] == payloads

    # B33
    @pytest.mark.parametrize("digits", BIG_INTEGERS)
    def test_integers_beyond_2_to_the_53_survive(self, store: Store, digits: str) -> None:
        store.append("s", [stored(payload=dumps({"v": 1, "n": int(digits)}))])

        assert json.loads(store.load_entries("s")[0].payload)["n"] == int(digits)

    # B33
    def test_large_counts_survive_in_columns(self, store: Store) -> None:
        store.append("s", [stored(input_tokens=2**53 + 1, output_tokens=2**62)])

        [entry] = store.load_entries("s")
        assert (entry.input_tokens, entry.output_tokens) == (2**53 + 1, 2**62)

    # B64
    @pytest.mark.parametrize("created_at", [0, -1, NOW, NOW + 10**15])
    def test_times_survive_to_the_microsecond(self, store: Store, created_at: int) -> None:
        store.append("s", [stored(created_at=created_at)])
        move = store.move("s", None, created_at)

        assert store.load_entries("s")[0].created_at == created_at
        assert store.load_moves("s") == [move]

    # B2
    @pytest.mark.parametrize("number", [0.1 + 0.2, 1e-12, 5e-324, 1.7e308, 0.0])
    def test_numbers_survive_to_the_last_bit(self, store: Store, number: float) -> None:
        store.append("s", [stored(cost_usd=number, seconds=number, ttft_s=number)])

        [entry] = store.load_entries("s")
        assert (entry.cost_usd, entry.seconds, entry.ttft_s) == (number, number, number)

    # B66
    def test_a_whole_number_of_dollars_keeps_its_digest(self, store: Store) -> None:
        store.append("s", [stored(cost_usd=1, seconds=2, ttft_s=0)])

        [entry] = store.load_entries("s")
        assert entry.digest == digest_of(entry)

    # B2
    def test_every_column_survives(self, store: Store) -> None:
        given = full_entry()

        store.append("s", [given])

        [entry] = store.load_entries("s")
        assert entry._replace(seq=0, n=0, depth=0, digest="") == given

    # B2
    def test_an_absent_value_and_an_empty_text_stay_apart(self, store: Store) -> None:
        store.append("s", [stored(model="", source_id="", stop_reason=""), stored(preview="")])

        first, second = store.load_entries("s")
        assert (first.model, first.source_id, first.stop_reason) == ("", "", "")
        assert (second.model, second.source_id, second.stop_reason) == (None, None, None)

    # B2
    @pytest.mark.parametrize("is_meta", [True, False])
    def test_flags_come_back_as_booleans(self, store: Store, is_meta: bool) -> None:
        store.append("s", [stored(meta=is_meta, moves_leaf=is_meta)])

        [entry] = store.load_entries("s")
        assert entry.meta is is_meta
        assert entry.moves_leaf is is_meta

    # -- what is handed out or in cannot reach into the store ----------------------------------

    # B10
    def test_entries_are_immutable(self, store: Store) -> None:
        [entry] = store.append("s", [stored()])

        for value in (entry, store.load_entries("s")[0]):
            with pytest.raises(AttributeError):
                value.payload = "changed"  # type: ignore[misc]

    # B10
    def test_changing_a_loaded_list_changes_nothing(self, store: Store) -> None:
        store.append("s", chain(2), start=run_of())
        store.move("s", None, NOW)
        store.annotate([annotation_of()])
        store.save_experiment(plan_of())

        for load in (
            store.load_entries,
            store.load_moves,
            store.load_runs,
            store.load_annotations,
            store.load_experiments,
        ):
            before = list(load("s"))
            load("s").clear()
            assert load("s") == before
            assert before

    # B10
    def test_changing_the_listing_changes_nothing(self, store: Store) -> None:
        store.list_sessions().clear()

        assert len(store.list_sessions()) == 2

    # B10
    def test_changing_the_list_that_was_appended_changes_nothing(self, store: Store) -> None:
        entries = chain(2)
        returned = store.append("s", entries)

        entries.clear()

        assert store.load_entries("s") == list(returned)

    # B10
    def test_sequences_inside_records_are_tuples(self, store: Store) -> None:
        store.append("s", [stored(model="local")], start=run_of(input_ids=(new_id(), new_id())))

        [(run, _)] = store.load_runs("s")
        assert isinstance(run, RunRecord) and isinstance(run.input_ids, tuple)
        assert all(isinstance(line.models, tuple) for line in store.list_sessions())


def full_entry() -> StoredEntry:
    """Return an entry of ``s`` in which no column that its author fills has its default."""
    return stored(
        kind="message",
        created_at=NOW + 123_456,
        run_id=new_id(),
        role="assistant",
        meta=True,
        model="openai/gpt-5-mini",
        stop_reason="tool_calls",
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=5,
        cost_usd=0.000123,
        seconds=1.25,
        ttft_s=0.5,
        preview="a preview",
        moves_leaf=False,
        source_id="source/1",
    )
