"""Measure the store beside its targets and its peers; print a Markdown table.

Exit code 1 when a target is missed. Name benchmarks to run only those: ``bench_store.py append``.
Whatever is compared is measured in turns, as the machine and its disk have moods. A peer that is
not installed is left out.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import string
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import large
from appenders import PEERS, Append
from bench_core import Benchmarks, Row, _bare_inserts, _synced_writes, percentile, report, timed
from bench_sharing import _appends, _process, be_idle

APPENDS = 300
BRANCHES = 60
PAYLOAD_BYTES = 2_000
MESSAGES = 1_000
DEPTHS = (10, 1_000, 10_000)
ENTRIES, SESSIONS = 1_000_000, 10_000
TRIES = 5


def bench_append(folder: Path) -> Iterator[Row]:
    """Time durable appends of 2 kB here and elsewhere, in turns."""
    with ExitStack() as stack:
        actions = _plain_appends(folder)
        for peer in PEERS:
            if peer.is_installed():
                actions[peer.name] = stack.enter_context(peer(folder, PAYLOAD_BYTES))
        actions |= _our_appends(folder, stack)
        seconds: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(APPENDS):
            for name, append in actions.items():
                seconds[name].append(timed(append))
    raw = percentile(seconds["write + fsync"], 50)
    for name, times in seconds.items():
        median = percentile(times, 50)
        yield Row(f"2 kB, {name}, p50", median, "ms")
        yield Row(f"2 kB, {name}, p99", percentile(times, 99), "ms")
        yield Row(f"2 kB, {name}, p50, in synced writes", median / raw, "")
    held = percentile(seconds["nbdurable, file kept"], 50)
    bare = percentile(seconds["duckdb execute, as wide"], 50)
    yield Row("2 kB append, file kept, against 5 synced writes", held, "ms", 5 * raw)
    yield Row("2 kB append, file kept, against an insert as wide + 0.4 ms", held, "ms", bare + 0.4)


def _plain_appends(folder: Path) -> dict[str, Append]:
    from nbdurable.stores.duckdb.schema import TABLES

    narrow = "n bigint, payload varchar"
    return {
        "write + fsync": _synced_writes(folder / "raw.log"),
        "sqlite3 FULL": _sqlite_inserts(folder / "plain.sqlite"),
        "duckdb execute, 2 columns": _bare_inserts(folder / "narrow.duckdb", narrow),
        "duckdb execute, as wide": _bare_inserts(folder / "wide.duckdb", TABLES["entries"]),
    }


def _sqlite_inserts(path: Path) -> Append:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table entries (n integer primary key, payload text)")
    payload = "x" * PAYLOAD_BYTES
    return lambda: connection.execute("insert into entries (payload) values (?)", [payload])


def _our_appends(folder: Path, stack: ExitStack) -> dict[str, Append]:
    from nbdurable.stores.duckdb import DuckDBStore

    kept = stack.enter_context(closing(DuckDBStore(folder / "kept.duckdb", exclusive=True)))
    shared = stack.enter_context(closing(DuckDBStore(folder / "shared.duckdb")))
    appends = {
        "nbdurable, file kept": _appends(kept),
        "nbdurable, file shared": _appends(shared),
    }
    stack.enter_context(_process(be_idle, folder / "shared.duckdb", 0))
    return appends


def bench_branch(folder: Path) -> Iterator[Row]:
    """Time a branch and one message after it, from near the root to the end of a long session."""
    from peers import AgentsSession, Ours, conversation

    turns = conversation(max(DEPTHS) + 2)
    medians: dict[str, list[float]] = {}
    for peer_type, count in ((Ours, BRANCHES), (AgentsSession, max(1, BRANCHES // 10))):
        try:
            medians[peer_type.name] = _branches(peer_type(folder), turns, count)
        except ImportError:
            continue
        for depth, median in zip(DEPTHS, medians[peer_type.name], strict=True):
            yield Row(f"branch at depth {depth:,}, {peer_type.name}, p50", median, "ms")
    ours = medians.pop(Ours.name)
    yield Row("branch, the slowest depth against the quickest", max(ours) / min(ours), "", 1.5)
    for name, theirs in medians.items():
        what = f"branch at depth {DEPTHS[-1]:,}, against {name}"
        yield Row(what, ours[-1], "ms", theirs[-1])


def _branches(peer: Any, turns: list[Any], count: int) -> list[float]:
    """Return the median milliseconds of a branch at each of `DEPTHS`."""
    peer.build(turns)
    opened = peer.open()
    seconds: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    peer.branch(opened, DEPTHS[0] // 2)  # what is done once is not counted
    for _ in range(count):
        for depth, times in seconds.items():
            peer.back(opened)
            times.append(timed(partial(peer.branch, opened, depth // 2)))
    peer.close(opened)
    return [statistics.median(times) * 1_000 for times in seconds.values()]


def bench_scale(folder: Path) -> Iterator[Row]:
    """Time what is done first with a session in a file of a million entries."""
    import nbdurable as nb
    from nbdurable.models.scripted import ScriptedModel

    path = folder / "large.duckdb"
    large.build(path, ENTRIES, SESSIONS)
    inside = f"inside {ENTRIES:,}"

    def open_and_view(session_id: str, length: int) -> None:
        with nb.open(session_id, store=path, model=ScriptedModel("ok")) as chat:
            assert len(chat.messages()) == length

    for name, length in large.LONG.items():
        best = min(timed(lambda: open_and_view(name, length)) for _ in range(TRIES))  # noqa: B023
        target = 150.0 if length == 10_000 else None
        what = f"open + model view of {length:,} entries {inside}"
        yield Row(what, best * 1_000, "ms", target)
    with nb.open("short", store=path, model=ScriptedModel("ok")) as chat:
        first = timed(lambda: chat.append("first"))
        later = [timed(lambda: chat.append("later")) for _ in range(100)]
        yield Row(f"first append {inside}", first * 1_000, "ms")
        yield Row(f"append {inside}, p50", percentile(later, 50), "ms")
    with nb.connect(path) as library:
        listing = min(timed(library.sessions) for _ in range(TRIES))
        yield Row(f"list of {SESSIONS:,} sessions {inside}", listing * 1_000, "ms")
        search = min(timed(lambda: library.search("of longest and")) for _ in range(TRIES))
        yield Row(f"search {inside}", search * 1_000, "ms")


def bench_disk(folder: Path) -> Iterator[Row]:
    """Weigh conversations that grew to many messages of random text, one durable step each."""
    given = MESSAGES * PAYLOAD_BYTES
    for name, grow in _growers().items():
        home = folder / f"disk {name}"
        home.mkdir()
        try:
            grow(home)
        except ImportError:
            continue
        weight = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
        target = 1.5 if name == "nbdurable" else None
        yield Row(
            f"bytes on disk per byte of {MESSAGES:,} messages, {name}", weight / given, "", target
        )


def _growers() -> dict[str, Callable[[Path], None]]:
    growers: dict[str, Callable[[Path], None]] = {"nbdurable": _grow_ours}
    for peer in PEERS:
        if peer.is_installed():
            growers[peer.name] = lambda home, peer=peer: _grow_peer(home, peer)
    return growers


def _grow_ours(home: Path) -> None:
    import nbdurable as nb

    chance = random.Random(7)
    with nb.open("grown", store=home / "grown.duckdb", model="local") as chat:
        for at in range(MESSAGES):
            text = random_text(chance)
            chat.append(nb.assistant(text) if at % 2 else nb.user(text))
    # the last handle closed, which checkpoints


def _grow_peer(home: Path, peer: Any) -> None:
    chance = random.Random(7)
    with peer(home, PAYLOAD_BYTES) as append:
        for _ in range(MESSAGES):
            append(random_text(chance))


def random_text(chance: random.Random) -> str:
    """Return text that hardly compresses."""
    return "".join(chance.choices(string.ascii_letters + string.digits + " ", k=PAYLOAD_BYTES))


BENCHMARKS: Benchmarks = {
    "append": bench_append,
    "branch": bench_branch,
    "scale": bench_scale,
    "disk": bench_disk,
}


if __name__ == "__main__":
    sys.exit(report(BENCHMARKS, sys.argv[1:]))
