"""PostgreSQL in trouble: backends and server killed in mid-append, outcomes unknown, locks held."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from postgres_proxy import Proxy
from postgres_server import Server

from nbdurable.errors import StoreError, StoreLocked
from nbdurable.stored import SessionRecord
from nbdurable.stores.base import Store
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.postgres import PostgresStore, line

pytestmark = pytest.mark.postgres

COMMIT = b"\0commit\0"  # the statement, as the protocol has it

# Waits for a line, then appends to one session and tells of each entry once it is stored.
APPENDING = """
import sys
from nbdurable.stores.conformance import stored
from nbdurable.stores.postgres import PostgresStore
store = PostgresStore(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[2])):
    [entry] = store.append("s", [stored(text=f"{sys.argv[3]} {i}")])
    print(entry.id, entry.n, flush=True)
store.close()
"""


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.emptied()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    made = PostgresStore(url)
    made.create_session(SessionRecord(id="s", created_at=1))
    yield made
    made.close()


def started(url: str, appends: int, name: str) -> subprocess.Popen[str]:
    """Start a process that appends; it has the store open and waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", APPENDING, url, str(appends), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    return process


def n_of(store: Store) -> list[int]:
    return [entry.n for entry in store.load_entries("s")]


# -- connections that are lost ---------------------------------------------------------------------


# B67
def test_a_backend_that_was_ended_is_replaced_before_the_next_call(
    store: PostgresStore, postgres: Server, url: str
) -> None:
    store.append("s", [stored()])
    postgres.kill_backends(url)

    assert store.append("s", [stored()])[0].n == 2
    postgres.kill_backends(url)
    assert n_of(store) == [1, 2]


# B67
def test_a_server_that_restarts_is_waited_for(store: PostgresStore, postgres: Server) -> None:
    store.append("s", [stored()])
    postgres.stop("immediate")
    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(store.append, "s", [stored()])
        postgres.start()

        [entry] = appended.result(60)

    assert entry.n == 2 and n_of(store) == [1, 2]


# B63
def test_a_server_that_stays_away_is_told_after_a_while(
    store: PostgresStore, postgres: Server, url: str
) -> None:
    impatient = PostgresStore(url, timeout_s=0.2)
    postgres.stop()
    try:
        with pytest.raises(StoreError, match=r"cannot be reached \(.*refused.*\); check the addr"):
            impatient.append("s", [stored()])
    finally:
        postgres.start()

    assert impatient.append("s", [stored()])[0].n == 1
    impatient.close()


# B67
@pytest.mark.parametrize("fate", ["kept", "lost"])
def test_an_append_whose_answer_is_lost_is_written_once(
    postgres: Server, url: str, store: PostgresStore, fate: str
) -> None:
    """The proxy cuts the line at the commit: after the server has it, or before."""
    with Proxy(postgres.port) as proxy:
        cut_off = PostgresStore(proxy.through(url))
        cut_off.append("s", [stored()])
        proxy.cut_at(COMMIT, deliver=fate == "kept")
        entries = chain(3)

        kept = cut_off.append("s", entries)

        assert proxy.cuts == 1
        cut_off.close()
    assert [entry.id for entry in kept] == [entry.id for entry in entries]
    assert store.load_entries("s")[1:] == list(kept)
    assert n_of(store) == [1, 2, 3, 4]


# B5 B67
def test_a_session_whose_creation_was_not_answered_is_made_once(
    postgres: Server, url: str, store: PostgresStore
) -> None:
    with Proxy(postgres.port) as proxy:
        cut_off = PostgresStore(proxy.through(url))
        proxy.cut_at(COMMIT, deliver=True)

        kept = cut_off.create_session(SessionRecord(id="new", created_at=1), chain(2, "new"))

        assert proxy.cuts == 1
        cut_off.close()
    assert store.load_entries("new") == list(kept)


# B67
def test_an_outcome_that_cannot_be_looked_up_is_told_as_unknown(
    postgres: Server, url: str, store: PostgresStore
) -> None:
    with Proxy(postgres.port) as proxy:
        cut_off = PostgresStore(proxy.through(url), timeout_s=0.2)
        proxy.cut_at(COMMIT, deliver=True, for_good=True)

        with pytest.raises(StoreError, match=r"outcome of a write .* not known .*; look before"):
            cut_off.append("s", [stored()])

        cut_off.close()
    assert n_of(store) == [1]


# B68
def test_a_session_locked_for_long_is_told(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "_BEGIN", ("begin", "set local lock_timeout = '100ms'"))
    with psycopg.connect(url) as other:
        other.execute("select 1 from nbd.sessions where id = 's' for update")

        with pytest.raises(StoreLocked, match=r"another connection has been writing .*; try again"):
            store.append("s", [stored()])

    assert n_of(store) == []


# B24 B68
def test_a_killed_writer_leaves_no_lock(store: PostgresStore, url: str) -> None:
    with started(url, 1_000_000, "a") as writer:
        assert writer.stdin is not None and writer.stdout is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
        told = [writer.stdout.readline()]
        writer.kill()
        told += writer.stdout.readlines()

    [entry] = store.append("s", [stored()])

    kept = [entry.id for entry in store.load_entries("s")]
    ids = {line.split()[0] for line in told if line.endswith("\n")}
    assert ids and ids <= set(kept) and entry.n == len(kept)


# -- order -----------------------------------------------------------------------------------------


# B4 B11
def test_a_reader_never_misses_what_is_committed_later(store: PostgresStore, url: str) -> None:
    """Each of two readers asks for what is above the last number it saw, as handles do."""
    done = threading.Event()
    writers = [PostgresStore(url) for _ in range(3)]

    def write(writer: PostgresStore) -> None:
        for _ in range(40):
            writer.append("s", chain(2))
            writer.move("s", None, 1)

    def follow() -> list[int]:
        seen: list[int] = []
        while True:
            is_last = done.is_set()
            seen += [entry.n for entry in store.load_entries("s", seen[-1] if seen else 0)]
            moves.extend(store.load_moves("s", moves[-1].seq if moves else 0))
            if is_last:
                return seen

    moves: list[object] = []
    with ThreadPoolExecutor(4) as pool:
        reader = pool.submit(follow)
        for writing in [pool.submit(write, writer) for writer in writers]:
            writing.result()
        done.set()
        seen = reader.result()

    assert seen == list(range(1, 241))
    assert moves == store.load_moves("s") and len(moves) == 120
    for writer in writers:
        writer.close()


# B11
def test_changes_count_what_others_wrote(store: PostgresStore, url: str) -> None:
    before = store.changes("s")
    other = PostgresStore(url)

    other.append("s", chain(2))
    other.move("s", None, 1)

    assert store.changes("s") == before + 3
    other.close()


# -- many processes --------------------------------------------------------------------------------


def appended_by_many(postgres: Server, url: str, appends: int) -> tuple[set[str], list[int]]:
    """Append from four processes, two of them killed and the server restarted once.

    Returns the ids that were told as stored, and how each process ended.
    """
    told: list[str] = []
    progress = threading.Condition()

    def listen(process: subprocess.Popen[str]) -> int:
        assert process.stdout is not None
        for text in process.stdout:
            with progress:
                told.append(text.split()[0])
                progress.notify_all()
        return process.wait()

    def reached(count: int) -> None:
        with progress:
            assert progress.wait_for(lambda: len(told) >= count, timeout=100)

    with ExitStack() as stack:
        processes = [stack.enter_context(started(url, appends, str(who))) for who in range(4)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        pool = stack.enter_context(ThreadPoolExecutor(4))
        ends = [pool.submit(listen, process) for process in processes]
        reached(appends // 2)
        processes[0].kill()
        reached(appends)
        postgres.restart("immediate")
        reached(appends + appends // 2)
        processes[1].kill()
        codes = [end.result() for end in ends]
    return set(told), codes


def check_many(postgres: Server, url: str, appends: int) -> list[int]:
    store = PostgresStore(url)
    store.create_session(SessionRecord(id="s", created_at=1))

    told, codes = appended_by_many(postgres, url, appends)

    entries = store.load_entries("s")
    kept = [entry.id for entry in entries]
    print(f"{len(told)} appends told, {len(kept)} entries kept, processes ended by {codes}")
    assert codes.count(0) >= 2  # one may have been done before it was to be killed
    assert told <= set(kept)
    assert len(set(kept)) == len(kept) <= len(told) + 2  # a killed one may not have told its last
    assert [entry.n for entry in entries] == list(range(1, len(kept) + 1))
    assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})
    for who in (2, 3):
        mine = [entry for entry in entries if entry.preview.startswith(f"{who} ")]
        assert [entry.preview for entry in mine] == [f"{who} {i}" for i in range(appends)]
    store.close()
    return codes


# B24 B67 B68
def test_nothing_told_is_lost_when_processes_and_server_die(postgres: Server, url: str) -> None:
    check_many(postgres, url, 25)


# B24 B67 B68
@pytest.mark.slow
def test_nothing_told_is_lost_of_many_appends_when_processes_and_server_die(
    postgres: Server, url: str
) -> None:
    codes = check_many(postgres, url, 250)

    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0, 0]
