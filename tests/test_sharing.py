"""Several processes share one file (B68): in turn, in order, and without waiting for the idle."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sharing import APPENDER, Child, child

from nbdurable.errors import EntryError, StoreLocked
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore, lease

# Appends to session "s" whenever it is told to.
WRITER = """
store = DuckDBStore(path)
say("ready")
while word := told():
    say(store.append("s", [stored(preview=word)])[0].seq)
"""

# Has the store open and does nothing.
IDLE = """
store = DuckDBStore(path)
say("ready")
told()
store.close()
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


# -- who has the file ----------------------------------------------------------------------------


# B68
def test_a_file_that_nobody_uses_is_free_for_other_tools(store: DuckDBStore, path: Path) -> None:
    store.append("s", [stored()])
    with child(IDLE, path):
        store.append("s", [stored()])

        with duckdb.connect(path, read_only=True) as tool:  # another connection of this process
            rows = tool.execute("select count(*) from nbd.entries").fetchall()

    assert rows == [(2,)]
    store.append("s", [stored()])


# B68
def test_a_file_stays_attached_while_it_is_used_alone(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_LINGER_S", 3600.0)
    store.append("s", [stored()])
    before = store._core.lease.generation

    for _ in range(5):
        store.append("s", [stored()])
        store.load_entries("s")

    assert store._core.lease.generation == before


# B68
def test_a_file_used_alone_is_let_go_once_another_process_comes(
    store: DuckDBStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one that computes for a long time would keep everybody waiting."""
    monkeypatch.setattr(lease, "_LINGER_S", 3600.0)
    newcomer = Child(WRITER, path)
    while not store._core.spool.others():
        store.append("s", [stored()])

    store.append("s", [stored()])  # the last hold ends with the file let go

    newcomer.hear("ready")
    assert int(newcomer.ask()) == len(store.load_entries("s"))
    newcomer.end()


# B68
def test_a_process_busy_in_c_code_keeps_nobody_waiting(store: DuckDBStore, path: Path) -> None:
    """It appends, and then holds the interpreter's lock, so that no thread of it can run."""
    with child(
        """
import ctypes
store = DuckDBStore(path)
say("ready")
told()
store.append("s", [stored()])
say("busy")
ctypes.PyDLL(None).sleep(5)
say("done")
told()
""",
        path,
    ) as other:
        assert other.ask() == "busy"

        for _ in range(10):
            store.append("s", [stored()])
        is_done = other.has_said()

    assert not is_done


# B68
def test_an_exclusive_store_keeps_the_file(path: Path) -> None:
    store = DuckDBStore(path, exclusive=True)
    with child(
        """
from nbdurable.errors import StoreLocked
say("ready")
told()
try:
    DuckDBStore(path, timeout_s=0)
except StoreLocked as exc:
    say(exc)
""",
        path,
    ) as other:
        said = other.ask()

    holder = rf"'{re.escape(str(path))}' is locked by another process \(.*PID {os.getpid()}\)"
    assert re.search(holder + "; close it there, or work on a copy", said)
    store.close()


# B68
def test_an_exclusive_store_waits_for_its_turn_and_then_keeps_it(path: Path) -> None:
    shared = DuckDBStore(path)
    shared.create_session(SessionRecord(id="s", created_at=1))
    with child(IDLE, path):
        own = DuckDBStore(path, exclusive=True)
        before = own._core.lease.generation

        shared.append("s", [stored()])
        shared.load_entries("s")

        assert own._core.lease.generation == before  # though another process has it open
        own.close()
        shared.append("s", [stored()])
        assert own._core.lease.generation > before or not own._core.lease._is_attached
    shared.close()


# B68 case 28
def test_a_foreign_holder_is_named_after_a_deadline(path: Path) -> None:
    store = DuckDBStore(path, timeout_s=0.2)
    store.create_session(SessionRecord(id="s", created_at=1))
    with child(
        """
import duckdb, time
say("ready")
while True:
    try:
        held = duckdb.connect(path)
        break
    except duckdb.IOException:
        time.sleep(0.01)  # until the store lets it go
say("holds")
told()
""",
        path,
    ) as tool:
        tool.hear("holds")

        with pytest.raises(
            StoreLocked, match=rf"locked by another process \(.*PID {tool.process.pid}\); close it"
        ) as caught:
            store.append("s", [stored()])
        assert (caught.value.path, caught.value.pid) == (str(path), tool.process.pid)

    assert store.append("s", [stored()])[0].n == 1  # nothing of the refused call is left
    store.close()


# B68
def test_a_killed_holder_leaves_nothing_to_clean_up(store: DuckDBStore, path: Path) -> None:
    """It is killed with the file attached and the turn taken."""
    with child(
        """
store = DuckDBStore(path)
say("ready")
told()
held = store._core.lease.held()
held.__enter__()
say("holds")
told()
""",
        path,
    ) as other:
        assert other.ask() == "holds"
        other.kill()

        store.append("s", [stored()])

    store.close()
    assert os.listdir(path.parent) == [path.name]


# B65 B68
def test_a_fork_that_outlives_its_parent_keeps_nothing(store: DuckDBStore, path: Path) -> None:
    """The parent forks with the file attached and the turn taken, and is killed."""
    with child(
        """
store = DuckDBStore(path)
say("ready")
told()
with store._core.lease.held():
    if os.fork() == 0:
        say("forked", os.getpid())
        import time
        time.sleep(600)
    told()
""",
        path,
    ) as other:
        forked = int(other.ask().split()[1])
        other.process.kill()
        other.process.wait()

        store.append("s", [stored()])
        os.kill(forked, 9)
