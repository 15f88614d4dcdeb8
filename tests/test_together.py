"""Many sessions at once: each whole or not at all, none in the way of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbdurable.errors import EntryError, SessionExists, StoreError
from nbdurable.ids import derived_id
from nbdurable.stored import Annotation, Beside, Move, SessionRecord, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.schema import ALIAS
from nbdurable.stores.memory import MemoryStore
from nbdurable.stores.together import NewSession, _outline, create_sessions, outlines


def entry(session_id: str, name: str, parent: str | None = None) -> StoredEntry:
    return StoredEntry(
        id=derived_id(1_000, name),
        session_id=session_id,
        parent_id=None if parent is None else derived_id(1_000, parent),
        kind="message",
        payload='{"v":1,"role":"user","blocks":[]}',
        created_at=1_000,
    )


def session(session_id: str, *names: str) -> NewSession:
    entries = [
        entry(session_id, name, above)
        for name, above in zip(names, (None, *names[:-1]), strict=False)
    ]
    return NewSession(session=SessionRecord(id=session_id, created_at=1), entries=entries)


# B4
def test_sessions_created_together_are_what_each_alone_would_be(store: Store) -> None:
    reference = MemoryStore()
    given = [session("s1", "a", "b"), session("s2", "c"), session("s3", "d", "e", "f")]

    assert create_sessions(store, given) == [None, None, None]

    for one in given:
        reference.create_session(one.session, one.entries, beside=one.beside)
        id = one.session.id
        assert store.load_entries(id) == reference.load_entries(id)


# B60
def test_an_entry_that_another_session_of_the_call_has_refuses_its_session_alone(
    store: Store,
) -> None:
    given = [session("s1", "a"), session("s2", "b", "a"), session("s3", "c")]

    first, second, third = create_sessions(store, given)

    assert (first, third) == (None, None)
    assert isinstance(second, EntryError)
    assert "is already in session 's1'" in str(second)
    assert {summary.session.id for summary in store.list_sessions()} == {"s1", "s3"}


# B8 B60
def test_what_was_stored_before_refuses_only_what_repeats_it(store: Store) -> None:
    create_sessions(store, [session("s1", "a")])

    taken, repeated, fine = create_sessions(
        store, [session("s1", "x"), session("s2", "a"), session("s3", "b")]
    )

    assert isinstance(taken, SessionExists)
    assert "session 's1' exists" in str(taken)
    assert "is already in session 's1'" in str(repeated)
    assert fine is None


# B60
def test_a_session_whose_move_leads_nowhere_leaves_no_trace(store: Store) -> None:
    nowhere = Move(session_id="s1", entry_id=derived_id(1, "none"), seq=9, created_at=1)
    bad = NewSession(session=SessionRecord(id="s1", created_at=1), beside=Beside(moves=(nowhere,)))

    refusal, fine = create_sessions(store, [bad, session("s2", "a")])

    assert "of a move is not in session 's1'" in str(refusal)
    assert fine is None
    assert [summary.session.id for summary in store.list_sessions()] == ["s2"]


# B61
def test_bytes_are_stored_with_the_session_that_names_them(store: Store) -> None:
    one = NewSession(session=SessionRecord(id="s1", created_at=1), blobs=[("f" * 64, b"picture")])

    create_sessions(store, [one])

    assert store.get_blob("f" * 64) == b"picture"


# B68
def test_what_another_process_created_meanwhile_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    store = DuckDBStore(path)
    create_sessions(store, [session("s1", "a")])
    with store._core.lease.held() as cursor:  # as if by another process
        cursor.execute(f"insert into {ALIAS}.nbd.sessions values ('s2', 1, null, null, 2, 1)")
    store._core.lease.witness._foreign += 1

    (refusal,) = create_sessions(store, [session("s2", "b")])

    assert isinstance(refusal, SessionExists)
    store.close()


def test_what_the_writer_knows_of_entries_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbdurable.stores.duckdb.state._MOST_HOMES", 3)
    store = DuckDBStore(tmp_path / "s.duckdb")

    for number in range(4):
        create_sessions(store, [session(f"s{number}", f"a{number}", f"b{number}")])
    (refusal,) = create_sessions(store, [session("late", "a0")])

    assert len(store._core.writer._state._homes) <= 4
    assert "is already in session 's0'" in str(refusal)
    store.close()


def test_a_closed_store_takes_none(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "s.duckdb")
    store.close()

    with pytest.raises(StoreError, match="is closed; open it again"):
        create_sessions(store, [session("s1", "a")])


def test_rows_stored_in_bulk_go_to_the_file_and_not_through_the_log(tmp_path: Path) -> None:
    store = DuckDBStore(tmp_path / "s.duckdb", exclusive=True)
    given = session("s1", *(f"e{number}" for number in range(2_100)))
    heavy = [one._replace(payload='{"v":1,"x":"' + "y" * 1_000 + '"}') for one in given.entries]

    create_sessions(store, [NewSession(session=given.session, entries=heavy)])

    assert store._core.lease.wal_bytes() < 500_000
    store.close()


# B59
def test_outlines_say_of_each_session_what_it_holds(store: Store) -> None:
    create_sessions(store, [session("a", "a1", "a2"), session("b", "b1"), session("c", "c1")])
    store.move("b", None, 5)
    note = Annotation(
        id=derived_id(1, "note"),
        session_id="b",
        target_id=derived_id(1_000, "b1"),
        name="label",
        value_json='"x"',
        created_at=1,
    )
    store.annotate([note])

    found = outlines(store, ["a", "b"])

    assert found == {id: _outline(store, id) for id in ("a", "b")}
    assert found["b"].move is not None and found["b"].note_ids == {note.id}
    assert [held.n for held in found["a"].entries.values()] == [1, 2]
