"""Who holds a file that several processes use, for how long, and what ends it (B68)."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sharing import Child, child

from nbdurable.errors import StoreLocked
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore, lease
from nbdurable.stores.duckdb.turns import Turns

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


# Says that it waits, and appends once it is its turn.
WAITER = """
from nbdurable.stores.duckdb import turns
store = DuckDBStore(path, timeout_s=60)
came = turns._Wait.came
turns._Wait.came = lambda wait, deadline: say("waits") or came(wait, deadline)
say("ready")
told()
say(store.append("s", [stored()])[0].n)
told()
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


# B24 B68
@pytest.mark.skipif(sys.platform == "win32", reason="there a waiter asks again and again")
def test_a_killed_waiter_is_passed_over(store: DuckDBStore, path: Path) -> None:
    with child(WAITER, path) as victim, child(WAITER, path) as next_one:
        with store._core.lease.held():
            for one in (victim, next_one):
                assert one.ask() == "waits"
            victim.kill()

        assert next_one.hear() == "1"
        assert store.append("s", [stored()])[0].n == 2


# B24 B68
@pytest.mark.skipif(sys.platform == "win32", reason="there a waiter asks again and again")
def test_a_holder_killed_while_two_wait_lets_both_in(store: DuckDBStore, path: Path) -> None:
    holder = """
store = DuckDBStore(path)
say("ready")
told()
held = store._core.lease.held()
held.__enter__()
say("holds")
told()
"""
    with child(holder, path) as other, child(WAITER, path) as one, child(WAITER, path) as two:
        assert other.ask() == "holds"
        assert one.ask() == two.ask() == "waits"

        other.kill()

        assert {one.hear(), two.hear()} == {"1", "2"}


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

        turns = Turns(store._core.spool.folder)
        has_turn = turns.enter(time.monotonic() + 5)
        turns.leave()
        store.append("s", [stored()])
        os.kill(forked, signal.SIGKILL)

    assert has_turn


# -- interrupts ----------------------------------------------------------------------------------


# B23 B68
def test_an_interrupted_read_stops_and_lets_the_file_go(store: DuckDBStore, path: Path) -> None:
    """Ctrl-C comes once the query runs, which would take hours."""
    main = threading.main_thread().ident
    assert main is not None
    store.append("s", [stored()])

    def count_for_hours(cursor: duckdb.DuckDBPyConnection) -> object:
        signal.pthread_kill(main, signal.SIGINT)
        return cursor.execute(
            "select count(*) from range(1000000000) a, range(1000000) b where a.range = b.range + 1"
        ).fetchall()

    with child(WRITER, path) as other:
        with pytest.raises(KeyboardInterrupt):
            store.read(count_for_hours)

        assert other.ask() == "2"
        assert len(store.load_entries("s")) == 2


# B68
def test_a_read_that_waits_for_its_turn_can_be_interrupted(store: DuckDBStore, path: Path) -> None:
    main = threading.main_thread().ident
    assert main is not None
    with child(
        """
store = DuckDBStore(path)
say("ready")
told()
with store._core.lease.held():
    say("holds")
    told()
say("free")
told()
""",
        path,
    ) as other:
        assert other.ask() == "holds"
        threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)).start()

        with pytest.raises(KeyboardInterrupt):
            store.load_entries("s")
        assert other.ask() == "free"

        assert store.append("s", [stored()])[0].n == 1


# B68
def test_a_turn_that_does_not_come_ends_at_the_deadline(store: DuckDBStore, path: Path) -> None:
    """A holder of our own that is stopped, or busy in C code, is named like any other."""
    impatient = DuckDBStore(path, timeout_s=60)
    with child(
        """
from nbdurable.errors import StoreLocked
store = DuckDBStore(path, timeout_s=0.1)
say("ready")
told()
try:
    store.append("s", [stored()])
except StoreLocked as exc:
    say(exc)
told()
say(store.append("s", [stored()])[0].n)
told()
""",
        path,
    ) as other:
        with store._core.lease.held():
            said = other.ask()

        assert f"PID {os.getpid()}" in said
        assert other.ask() == "1"
    impatient.close()
