"""Whatever is said in whatever order, Python, a plain rule and SQL agree on what counts."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.annotations import Annotations
from nbdurable.stored import Annotation, SessionRecord
from nbdurable.stores.duckdb import DuckDBStore

VALUES = ["a", "b", "", 0, 1, True, None, 2.5, [1], {"over": ["e2", 3]}, {"over": "e2"}, {}]


def annotations() -> st.SearchStrategy[list[Annotation]]:
    one = st.tuples(
        st.sampled_from(["e1", "e2", "e3"]),
        st.sampled_from(["label", "rating", "prefer", "confirm"]),
        st.sampled_from([None, "", "ana"]),
        st.sampled_from(VALUES),
    )
    return st.lists(one, max_size=40).map(
        lambda said: [
            Annotation(
                id=f"a{counter}",
                session_id="s",
                target_id=target,
                name=name,
                by=by,
                value_json=json.dumps(value),
                created_at=0,
                counter=counter,
            )
            for counter, (target, name, by, value) in enumerate(said, 1)
        ]
    )


def plain_rule(said: list[Annotation]) -> list[Annotation]:
    latest = {(a.target_id, a.name, a.by): a for a in said}
    return sorted((a for a in latest.values() if a.value is not None), key=lambda a: a.counter)


# B70
@given(annotations(), st.integers(0, 40))
def test_what_counts_is_the_latest_of_each_key(said: list[Annotation], cut: int) -> None:
    known = Annotations(said[:cut])
    known.add(said[: cut + 3])  # some are known already
    known.add(said)

    counting = plain_rule(said)

    assert known.counting() == counting
    assert known.history() == said
    for label in ("a", "b", ""):
        targets = {a.target_id for a in counting if a.name == "label" and a.value == label}
        assert set(known.labelled(label)) == targets
    assert all(pair.loser_id == "e2" != pair.winner_id for pair in known.preferences())
    for marks in known.marks().values():
        assert all(isinstance(label, str) for label in marks.labels)
        assert all(isinstance(rating.score, int | float) for rating in marks.ratings)


# B70
def test_the_view_in_the_file_has_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=0))
    said = [
        Annotation(
            id=f"a{i}",
            session_id="s",
            target_id=f"e{i % 3}",
            name=("label", "rating")[i % 2],
            by=(None, "", "ana")[i // 2 % 3],
            value_json=json.dumps((None, "x", 3)[i // 5 % 3]),
            created_at=0,
        )
        for i in range(40)
    ]
    kept = store.annotate(said)
    store.close()

    with duckdb.connect(path, read_only=True) as connection:
        rows = connection.execute("select counter from annotations").fetchall()

    assert [counter for (counter,) in rows] == [a.counter for a in Annotations(kept).counting()]
    assert 0 < len(rows) < 18


# B70
def test_values_that_no_version_of_ours_wrote_are_passed_over() -> None:
    odd = ["", "{", "NaN", "1e999", "[" * 100_000, '{"over":[null]}']
    said = [
        Annotation(
            id=f"a{i}",
            session_id="s",
            target_id="e1",
            name=name,
            value_json=value,
            created_at=0,
            counter=i,
        )
        for i, (name, value) in enumerate(
            [(name, value) for name in ("label", "rating", "prefer") for value in odd], 1
        )
    ]

    for one in said:
        known = Annotations([one])
        assert known.labels() == []
        assert known.preferences() == []
        assert not any(marks.labels or marks.ratings for marks in known.marks().values())
