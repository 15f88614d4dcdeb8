"""Several processes share one file (B68): in turn, in order, and without waiting for the idle."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sharing import APPENDER, Child, child

from nbdurable.errors import EntryError, StoreLocked
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.together import NewSession

# Appends to session "s" whenever it is told to.
WRITER = """
store = DuckDBStore(path)
say("ready")
while word := told():
    say(store.append("s", [stored(preview=word)])[0].seq)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "files"  # nothing but the store's own
    folder.mkdir()
    return folder / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SessionRecord(id="s", created_at=1))
    yield made
    made.close()


def check_whole(store: DuckDBStore, acknowledged: set[str]) -> None:
    """Check that nothing is missing, no ordinal is left out, and no number is given twice."""
    entries = store.load_entries("s")
    assert acknowledged <= {entry.id for entry in entries}
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    assert len({entry.seq for entry in entries}) == len(entries)
    depths = {entry.id: entry.depth for entry in entries}
    assert all(entry.depth == depths.get(entry.parent_id or "", 0) + 1 for entry in entries)


# -- in turn -------------------------------------------------------------------------------------


# B4 B68
def test_two_processes_append_in_turn_and_count_on(store: DuckDBStore, path: Path) -> None:
    with child(WRITER, path) as other:
        seqs = []
        for _ in range(5):
            seqs.append(store.append("s", [stored()])[0].seq)
            seqs.append(int(other.ask("theirs")))

    assert seqs == list(range(1, 11))
    check_whole(store, set())


# B3 B68
def test_a_process_appends_where_another_left_the_position(store: DuckDBStore, path: Path) -> None:
    first, second = store.append("s", chain(2))
    with child(
        """
store = DuckDBStore(path)
say("ready")
told()
store.move("s", store.load_entries("s")[0].id, 5)
say("moved")
""",
        path,
    ) as other:
        assert other.ask() == "moved"

        [below_first] = store.append("s", [stored(parent_id=first.id, moves_leaf=None)])
        [below_second] = store.append("s", [stored(parent_id=second.id, moves_leaf=None)])

    assert (below_first.seq, below_first.moves_leaf) == (4, True)
    assert below_second.moves_leaf is False


# B60 B68
def test_an_id_that_another_process_stored_is_refused(store: DuckDBStore, path: Path) -> None:
    store.append("s", [stored()])
    with child(WRITER, path) as other:
        other.ask()
        theirs = store.load_entries("s")[-1]

        with pytest.raises(EntryError, match=f"{theirs.id}' is already in session"):
            store.append("s", [stored(id=theirs.id)])


def shared_by_three(path: Path, *, each: int, kills: int) -> None:
    """Have three processes append, one of them killed and started again, and check the store."""
    store = DuckDBStore(path, timeout_s=120)
    store.create_session(SessionRecord(id="s", created_at=1))
    steady = [Child(APPENDER, path, each) for _ in range(2)]
    acknowledged: set[str] = set()
    try:
        for one in steady:
            one.hear("ready")
            one.tell()
        for _ in range(kills):
            with child(APPENDER, path, each) as victim:
                victim.tell()
                acknowledged |= {victim.hear() for _ in range(each // (2 * kills))}
                acknowledged |= set(victim.kill())
        with child(APPENDER, path, each) as last:
            last.tell()
            acknowledged |= set(last.finish())
        for one in steady:
            acknowledged |= set(one.finish())
    finally:
        for one in steady:
            one.end()

    assert len(acknowledged) >= 3 * each
    check_whole(store, acknowledged)
    store.close()
    assert os.listdir(path.parent) == [path.name]


# B24 B68 case 28
def test_three_processes_append_while_one_of_them_is_killed(path: Path) -> None:
    shared_by_three(path, each=40, kills=2)


# B24 B68 case 28
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_processes_append_a_thousand_each_while_one_is_killed(path: Path) -> None:
    shared_by_three(path, each=1_000, kills=5)


# B5 B68
def test_processes_that_make_one_file_at_once_share_it(path: Path) -> None:
    program = """
say("ready")
told()
store = DuckDBStore(path)
try:
    store.create_session(SessionRecord(id="s", created_at=1))
except ValueError:
    pass
say(store.append("s", [stored()])[0].id)
store.close()
"""
    children = [Child(program, path) for _ in range(3)]
    for one in children:
        one.hear("ready")
    for one in children:
        one.tell()
    acknowledged = {one.hear() for one in children}
    for one in children:
        one.finish()
        one.end()

    store = DuckDBStore(path)
    assert len(acknowledged) == 3
    check_whole(store, acknowledged)
    store.close()


# B65 B68
def test_threads_of_two_processes_append_and_read_at_once(store: DuckDBStore, path: Path) -> None:
    found: list[int] = []

    def work() -> None:
        for _ in range(10):
            store.append("s", [stored()])
            found.append(len(store.load_entries("s")))

    with child(APPENDER, path, 30) as other:
        other.tell()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        acknowledged = set(other.finish())

    assert len(found) == 40
    assert len(store.load_entries("s")) == 70
    check_whole(store, acknowledged)


# B68
def test_many_who_wait_for_a_holder_are_told_at_one_deadline(
    store: DuckDBStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one after the other, each after a deadline of its own."""
    attach, attempts = store._core.lease._attach, []

    def counted(*given: object, **more: object) -> None:
        attempts.append(given)
        attach(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(store._core.lease, "_attach", counted)
    monkeypatch.setattr(store._core.lease, "_timeout_s", 0.1)
    sessions = [NewSession(session=SessionRecord(id=f"s{n}", created_at=1)) for n in range(5)]
    with child(KEEPER, path), pytest.raises(StoreLocked, match="is locked by another process"):
        store.create_sessions(sessions)

    assert len(attempts) == 1


KEEPER = """
store = DuckDBStore(path, exclusive=True)
say("ready")
told()
"""
