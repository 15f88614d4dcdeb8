from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.ids import IdMaker, as_datetime, as_us, derived_id, now_us


def test_an_id_is_a_uuid_of_version_7() -> None:
    made = uuid.UUID(IdMaker()())

    assert (made.version, made.variant) == (7, uuid.RFC_4122)


def test_the_first_48_bits_are_milliseconds() -> None:
    made = IdMaker(lambda: 1_700_000_000_123_456)()

    assert uuid.UUID(made).int >> 80 == 1_700_000_000_123


# B4 case 12
def test_ids_of_a_frozen_clock_sort_in_the_order_they_were_made() -> None:
    make = IdMaker(lambda: 1_000_000)

    made = [make() for _ in range(10_000)]

    assert made == sorted(set(made))


# B4
@given(st.lists(st.integers(0, 2**50), min_size=2, max_size=50))
def test_ids_of_a_jumping_clock_sort_in_the_order_they_were_made(times: list[int]) -> None:
    make = IdMaker(iter(times).__next__)

    made = [make() for _ in times]

    assert made == sorted(set(made))


# B65
def test_ids_made_by_many_threads_are_all_different() -> None:
    make = IdMaker(lambda: 1_000_000)

    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [make() for _ in range(500)], range(8)))

    assert len({made for batch in batches for made in batch}) == 4_000
    assert all(batch == sorted(batch) for batch in batches)


def test_two_makers_of_one_clock_make_different_ids() -> None:
    first, second = IdMaker(lambda: 5), IdMaker(lambda: 5)

    assert first() != second()


def test_now_is_in_microseconds_since_the_epoch() -> None:
    before = time.time_ns() // 1000

    now = now_us()

    assert before <= now <= time.time_ns() // 1000


# B4
@given(st.integers(-(10**16), 10**16))
def test_microseconds_survive_the_trip_to_a_datetime_and_back(us: int) -> None:
    assert as_us(as_datetime(us)) == us


def test_a_datetime_of_ours_is_utc() -> None:
    assert as_datetime(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert as_datetime(0).tzinfo is UTC


def test_equal_instants_of_two_zones_give_the_same_microseconds() -> None:
    tokyo = timezone(timedelta(hours=9))

    assert as_us(datetime(2026, 1, 1, 9, tzinfo=tokyo)) == as_us(datetime(2026, 1, 1, tzinfo=UTC))


# B64
def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone; add one, such as"):
        as_us(datetime(2026, 1, 1))


# B2
def test_a_derived_id_is_the_same_for_the_same_parts_and_sorts_by_time() -> None:
    ids = [derived_id(at, "chatgpt", "s", "a1") for at in (0, 1_750_000_000_000_000)]

    assert ids == [derived_id(at, "chatgpt", "s", "a1") for at in (0, 1_750_000_000_000_000)]
    assert ids == sorted(ids)
    assert {uuid.UUID(id).version for id in ids} == {8}
    assert {uuid.UUID(id).variant for id in ids} == {uuid.RFC_4122}


# B60
def test_derived_ids_tell_parts_apart_wherever_they_are_cut() -> None:
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", ""), ("ab\0", "c"), ("\ud83d",)]

    assert len({derived_id(0, *of) for of in parts}) == len(parts)
