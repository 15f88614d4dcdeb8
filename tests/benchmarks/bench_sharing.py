"""Measure a store that several processes use, beside its targets; print a Markdown table.

Exit code 1 when a target is missed. Name benchmarks to run only those: ``bench_sharing.py busy``.
Whatever is compared is measured in turns, as the machine and its disk have moods.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from bench_core import Benchmarks, Row, percentile, report, timed

APPENDS = 300
EACH = 150  # of a process among several
ROUNDS = 3
PAYLOAD_BYTES = 2_000
LOG_BYTES = 110_000  # after which the bare lease checkpoints
LEAST_SHARE = 0.6  # of what bare leases do in the same time

# -- what a process does ---------------------------------------------------------------------------


def append_in_turn(path: str, count: int) -> list[float]:
    """Append to a store; return the seconds of each."""
    from nbdurable.stores.duckdb import DuckDBStore

    with closing(DuckDBStore(path, timeout_s=120)) as store:
        append = _appends(store)
        append()
        _wait()
        return [timed(append) for _ in range(count)]


def insert_in_turn(path: str, count: int) -> list[float]:
    """Insert three columns under a bare lease: flock, attach, insert, detach."""
    import fcntl

    import duckdb

    lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR)
    connection = duckdb.connect()
    connection.execute("set checkpoint_on_detach = 'DISABLED'")

    def insert() -> None:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection.execute(f"attach '{path}' as s")
        values = [time.time_ns(), "s", "x" * PAYLOAD_BYTES]
        connection.execute("insert into s.entries values (?, ?, ?)", values)
        if os.path.getsize(f"{path}.wal") > LOG_BYTES:
            connection.execute("checkpoint s")
        connection.execute("detach s")
        fcntl.flock(lock, fcntl.LOCK_UN)

    _wait()
    return [timed(insert) for _ in range(count)]


def be_busy(path: str, count: int) -> list[float]:
    """Append, then keep every thread of this process from running for five seconds."""
    import ctypes

    from nbdurable.stores.duckdb import DuckDBStore

    with closing(DuckDBStore(path)) as store:
        append = _appends(store)
        append()
        _wait()
        append()
        ctypes.PyDLL(None).sleep(count)
    return []


def be_idle(path: str, count: int) -> list[float]:
    """Have the store open and do nothing."""
    from nbdurable.stores.duckdb import DuckDBStore

    with closing(DuckDBStore(path)):
        _wait()
        _wait()
    return []


WORKS = {work.__name__: work for work in (append_in_turn, insert_in_turn, be_busy, be_idle)}


def _wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _appends(store: Any) -> Callable[[], object]:
    from nbdurable.errors import SessionExists
    from nbdurable.ids import IdMaker, now_us
    from nbdurable.stored import SessionRecord, StoredEntry

    new_id = IdMaker()
    payload = '{"text": "' + "x" * (PAYLOAD_BYTES - 12) + '"}'
    try:
        store.create_session(SessionRecord(id="s", created_at=now_us()))
    except SessionExists:
        pass

    def append() -> None:
        entry = StoredEntry(
            id=new_id(), session_id="s", parent_id=None, kind="note",
            payload=payload, created_at=now_us(),
        )  # fmt: skip
        store.append("s", [entry])

    return append


# -- processes -------------------------------------------------------------------------------------


@contextmanager
def _process(work: Callable[..., object], path: Path, count: int) -> Iterator[Any]:
    command = [sys.executable, __file__, "--work", work.__name__, str(path), str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.communicate()


def _at_once(work: Callable[..., object], path: Path, processes: int) -> tuple[float, list[float]]:
    """Return the rate per second of processes that work at once, and the seconds of each call."""
    with ExitStack() as stack:
        running = [stack.enter_context(_process(work, path, EACH)) for _ in range(processes)]
        began = time.perf_counter()
        for one in running:
            one.stdin.write("go\n")
            one.stdin.flush()
        seconds = [s for one in running for s in json.loads(one.stdout.readline())]
        rate = len(seconds) / (time.perf_counter() - began)
    return rate, seconds


# -- benchmarks ------------------------------------------------------------------------------------


def bench_alone(folder: Path) -> Iterator[Row]:
    """Time appends of one process that keeps the file, and of one that would share it."""
    from nbdurable.stores.duckdb import DuckDBStore

    with ExitStack() as stack:
        actions = {}
        for is_exclusive in (True, False):
            path = folder / f"{is_exclusive}.duckdb"
            store = stack.enter_context(closing(DuckDBStore(path, exclusive=is_exclusive)))
            actions[is_exclusive] = _appends(store)
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(APPENDS):
            for is_exclusive, append in actions.items():
                seconds[is_exclusive].append(timed(append))
    kept, shared = (percentile(seconds[key], 50) for key in (True, False))
    yield Row("append, file kept, p50", kept, "ms")
    yield Row("append, file not kept but wanted by nobody else, p50", shared, "ms", 1.1 * kept)


def bench_leased(folder: Path) -> Iterator[Row]:
    """Time appends and reads while another process has the store open."""
    from nbdurable.stores.duckdb import DuckDBStore

    path = folder / "leased.duckdb"
    with closing(DuckDBStore(path)) as store:
        append = _appends(store)
        append()
        with _process(be_idle, path, 0):
            appends = [timed(append) for _ in range(APPENDS)]
            reads = [timed(lambda: store.load_entries("s", 1)) for _ in range(EACH)]
            looks = [timed(lambda: store.changes("s")) for _ in range(EACH)]
    yield Row("append, another process there, p50", percentile(appends, 50), "ms")
    yield Row("append, another process there, p99", percentile(appends, 99), "ms")
    yield Row("read of the session, another process there, p50", percentile(reads, 50), "ms")
    yield Row("whether another wrote, p50", percentile(looks, 50) * 1_000, "us")


def bench_together(folder: Path) -> Iterator[Row]:
    """Compare processes that append at once with as many bare leases."""
    import duckdb

    bare, ours = folder / "bare.duckdb", folder / "ours.duckdb"
    with duckdb.connect(bare) as connection:
        table = "entries(seq bigint, session_id varchar, payload varchar)"
        connection.execute(f"create table {table}")
    for processes in (1, 2, 3):
        rounds = [
            (_at_once(insert_in_turn, bare, processes), _at_once(append_in_turn, ours, processes))
            for _ in range(ROUNDS)
        ]
        (bare_rate, _), (our_rate, seconds) = max(rounds, key=lambda both: both[1][0] / both[0][0])
        yield Row(f"appends of {processes} processes", our_rate, "/s")
        yield Row(f"append of {processes} processes, p50", percentile(seconds, 50), "ms")
        target = 1 / LEAST_SHARE if processes == 3 else None
        what = f"bare leases of {processes} processes in the time of an append"
        yield Row(what, bare_rate / our_rate, "", target)


def bench_busy(folder: Path) -> Iterator[Row]:
    """Time appends while the main thread of another process sits in C code for five seconds."""
    from nbdurable.stores.duckdb import DuckDBStore

    path = folder / "busy.duckdb"
    with closing(DuckDBStore(path, timeout_s=60)) as store, _process(be_busy, path, 5) as other:
        append = _appends(store)
        other.stdin.write("go\n")
        other.stdin.flush()
        until, seconds = time.monotonic() + 4.5, []
        while time.monotonic() < until:
            seconds.append(timed(append))
            time.sleep(0.02)
    yield Row("append beside a busy process, p95", percentile(seconds, 95), "ms", 100.0)
    yield Row("append beside a busy process, worst", max(seconds) * 1_000, "ms")


BENCHMARKS: Benchmarks = {
    "alone": bench_alone,
    "leased": bench_leased,
    "together": bench_together,
    "busy": bench_busy,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        name, where, times = sys.argv[2:]
        print(json.dumps(WORKS[name](where, int(times))))
        sys.exit()
    sys.exit(report(BENCHMARKS, sys.argv[1:]))
