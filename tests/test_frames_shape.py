"""Sums along paths, nearest marked ancestors and newest leaves, against walks one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.frames.chains import Chains


@st.composite
def forests(draw: st.DrawFn) -> list[int]:
    """Return the parent of each row: often the row before, else any earlier one, or none."""
    size = draw(st.integers(0, 24))
    return [draw(st.sampled_from([row - 1, row - 1, *range(-1, row)])) for row in range(size)]


def path(parents: list[int], row: int) -> list[int]:
    found = []
    while row >= 0:
        found.append(row)
        row = parents[row]
    return found


def chains(parents: list[int]) -> Chains:
    return Chains(np.array(parents, dtype=np.int64))


# B41
@given(forests(), st.integers(1, 5))
def test_a_sum_is_that_of_the_path(parents: list[int], step: int) -> None:
    values = [row % step for row in range(len(parents))]

    sums = chains(parents).sums(np.array(values, dtype=np.int64))

    assert sums.tolist() == [
        sum(values[above] for above in path(parents, row)) for row in range(len(parents))
    ]


@given(forests(), st.integers(1, 5))
def test_the_last_marked_row_is_the_nearest_on_the_path(parents: list[int], step: int) -> None:
    marked = [row % step == 0 for row in range(len(parents))]

    last = chains(parents).last(np.array(marked, dtype=bool))

    assert last.tolist() == [
        next((above for above in path(parents, row) if marked[above]), -1)
        for row in range(len(parents))
    ]


@given(forests())
def test_the_newest_leaf_is_the_last_row_below(parents: list[int]) -> None:
    rows = range(len(parents))

    newest = chains(parents).newest_leaf()

    assert newest.tolist() == [max(r for r in rows if row in path(parents, r)) for row in rows]


@given(forests(), st.data())
def test_the_rows_above_a_leaf_are_its_path(parents: list[int], data: st.DataObject) -> None:
    rows = range(len(parents))
    leaves = data.draw(st.lists(st.sampled_from(rows), max_size=3)) if parents else []

    above = chains(parents).is_above(np.array(leaves, dtype=np.int64))

    assert above.tolist() == [any(row in path(parents, leaf) for leaf in leaves) for row in rows]


# B41
def test_a_row_under_itself_or_under_a_later_one_is_a_root() -> None:
    depths = chains([0, 2, 1, 2]).sums(np.ones(4, dtype=np.int64))

    assert depths.tolist() == [1, 1, 2, 3]
