"""Measure the core beside its targets; print a Markdown table.

Exit code 1 when a target is missed. Name benchmarks to run only those:
``bench_core.py import append``. Figures are the best or the median of several tries, so that a
busy machine disturbs them little; they still are this machine's.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNKS = 10_000
ENTRIES = 10_000
MOST_ENTRIES = 100_000
RUNS = 9
MESSAGES = 20  # a block
BLOCKS = 7
APPENDS = 500
PAYLOAD_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Without a target the line only informs."""

    what: str
    measured: float
    unit: str
    target: float | None = None

    @property
    def is_missed(self) -> bool:
        """Whether the target is missed."""
        return self.target is not None and self.measured > self.target

    def __str__(self) -> str:
        cells = [self.what, f"{self.measured:.3g} {self.unit}"]
        if self.target is None:
            return f"| {' | '.join([*cells, '', '', ''])} |"
        ratio = f"{self.measured / self.target:.2f}" if self.target else ""
        cells += [f"{self.target:.3g} {self.unit}", ratio]
        cells.append("missed" if self.is_missed else "met")
        return f"| {' | '.join(cells)} |"


Benchmarks = dict[str, Callable[[Path], Iterator[Row]]]


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def percentile(seconds: list[float], percent: int) -> float:
    """Return a percentile in milliseconds."""
    return statistics.quantiles(seconds, n=100)[percent - 1] * 1_000


# -- what the package costs ------------------------------------------------------------------------


def bench_import(folder: Path) -> Iterator[Row]:
    """Time ``import nbdurable`` against an empty interpreter."""

    def best_of(program: str) -> float:
        command = [sys.executable, "-c", program]
        return min(timed(lambda: subprocess.run(command, check=True)) for _ in range(9))

    added = best_of("import nbdurable") - best_of("pass")
    yield Row("import nbdurable, added to an empty interpreter", added, "s", 0.15)


# A provider is another process: in ours it would take turns with what is measured.
SERVER = """
import sys
from nbdurable.testing import FakeOpenAI, steps
with FakeOpenAI(steps.text("A short answer of the usual kind. " * 4)) as server:
    print(server.base_url, flush=True)
    sys.stdin.read()
"""


def bench_overhead(folder: Path) -> Iterator[Row]:
    """Time a run against a bare LiteLLM stream, on one server that answers at once."""
    import nbdurable as nb
    from nbdurable.stores.memory import MemoryStore

    with _provider() as provider, asyncio.Runner() as runner:
        with nb.open("overhead", store=MemoryStore(), model="openai/fake", **provider) as chat:
            ours, theirs = [], []
            for _ in range(BLOCKS):  # in turns, so that what disturbs one disturbs the other
                runner.run(_bare_streams(provider, 2))
                theirs.append(timed(lambda: runner.run(_bare_streams(provider, MESSAGES))))
                ours.append(timed(lambda: _run_messages(chat, MESSAGES)))
    bare, run = (min(seconds) * 1_000 / MESSAGES for seconds in (theirs, ours))
    yield Row("a message through LiteLLM alone", bare, "ms")
    yield Row("a message through run()", run, "ms")
    yield Row("what run() adds to a message", run - bare, "ms", 5.0)


@contextmanager
def _provider() -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-c", SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server:
        yield {"api_base": server.stdout.readline().strip(), "api_key": "x"}
        server.stdin.close()


def _run_messages(chat: Any, count: int) -> None:
    for _ in range(count):
        chat.run("Hello", at=None, show=None)


async def _bare_streams(provider: dict[str, Any], count: int) -> None:
    from nbdurable.models.litellm import load

    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    messages = [{"role": "user", "content": "Hello"}]
    for _ in range(count):
        stream = await load().acompletion(
            model="openai/fake", messages=messages, **provider, **options
        )
        async for _chunk in stream:
            pass


def bench_chunks(folder: Path) -> Iterator[Row]:
    """Time an answer of many chunks over the memory store."""
    import nbdurable as nb
    from nbdurable.models.base import TextDelta
    from nbdurable.models.scripted import ScriptedModel
    from nbdurable.stores.memory import MemoryStore

    model = ScriptedModel(tuple(TextDelta("word ") for _ in range(CHUNKS)))
    with nb.open("chunks", store=MemoryStore(), model=model) as chat:
        best = min(timed(lambda: chat.run("Go", at=None, show=None)) for _ in range(5))
    yield Row(f"a chunk of an answer of {CHUNKS:,}", best * 1_000 / CHUNKS, "ms", 0.1)


def bench_long(folder: Path) -> Iterator[Row]:
    """Time opening, walking and viewing a long linear session, in memory and in a file."""
    from nbdurable.stores.memory import MemoryStore

    def open_walk_view(store: object) -> None:
        with _opened(store) as chat:
            assert len(chat.path(chat.leaf_id)) == ENTRIES
            assert len(chat.messages()) == ENTRIES

    for name, store in (("memory", MemoryStore()), ("DuckDB", folder / "long.duckdb")):
        _fill(store, ENTRIES)
        best = min(timed(lambda store=store: open_walk_view(store)) for _ in range(7))
        yield Row(f"open, walk, view {ENTRIES:,} entries, {name}", best * 1_000, "ms", 300)


def bench_longest(folder: Path) -> Iterator[Row]:
    """Time opening a very long session, and what its length adds to a run at its end."""
    path = folder / "longest.duckdb"
    _fill(path, MOST_ENTRIES)
    best = min(timed(lambda: _opened(path).close()) for _ in range(3))
    yield Row(f"open {MOST_ENTRIES:,} entries", best, "s", 1.5)
    with _opened(path) as chat:
        first = timed(lambda: chat.run("Go on.", show=None))
        at_end, at_root = [], []
        for _ in range(RUNS):  # in turns, so that what disturbs one disturbs the other
            end = chat.leaf_id
            at_root.append(timed(lambda: chat.run("Start.", at=None, show=None)))
            at_end.append(timed(lambda end=end: chat.run("Go on.", at=end, show=None)))
    added = (min(at_end) - min(at_root)) * 1_000
    yield Row(f"the first run at the end of {MOST_ENTRIES:,} entries", first, "s")
    yield Row(f"what {MOST_ENTRIES:,} entries add to each later run", added, "ms", 50)


def _opened(store: object) -> Any:
    import nbdurable as nb
    from nbdurable.models.scripted import ScriptedModel

    return nb.open("long", store=store, model=ScriptedModel("ok"))


def _fill(store: object, count: int) -> None:
    import nbdurable as nb

    pairs = [e for n in range(count // 2) for e in (nb.user(f"Q{n}"), nb.assistant(f"A{n}"))]
    with _opened(store) as chat:
        chat.append(*pairs)


def bench_append(folder: Path) -> Iterator[Row]:
    """Time durable appends of 2 kB against a synced write and bare inserts, in turns.

    What an insert costs grows with its columns, whatever they hold: an entry has 26.
    """
    from nbdurable.stores.duckdb import DuckDBStore
    from nbdurable.stores.duckdb.schema import TABLES

    columns = {"2 columns": "n bigint, payload varchar", "26 columns": TABLES["entries"]}
    actions = {"write + fsync": _synced_writes(folder / "raw.log")}
    for width, table in columns.items():
        path = folder / f"{width}.duckdb"
        actions[f"bare insert of {width}"] = _bare_inserts(path, table)
    seconds: dict[str, list[float]] = {}
    with closing(DuckDBStore(folder / "store.duckdb")) as store:
        actions["append to a DuckDBStore"] = _durable_appends(store)
        for _ in range(APPENDS):
            for name, action in actions.items():
                seconds.setdefault(name, []).append(timed(action))
    for name in actions:
        yield Row(f"2 kB {name}, p99", percentile(seconds[name], 99), "ms")
    *others, ours = (percentile(times, 50) for times in seconds.values())
    for name, median in zip(actions, others, strict=False):
        yield Row(f"2 kB {name}, p50", median, "ms")
    synced, narrow, wide = others
    yield Row("2 kB append, p50, against 5 synced writes", ours, "ms", 5 * synced)
    yield Row("2 kB append, p50, against an insert as wide + 0.4 ms", ours, "ms", wide + 0.4)
    yield Row("2 kB append, p50, against an insert of 2 + 0.4 ms", ours, "ms", narrow + 0.4)


def _synced_writes(path: Path) -> Callable[[], object]:
    data = b"x" * PAYLOAD_BYTES
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write() -> None:
        os.write(handle, data)
        os.fsync(handle)

    return write


def _bare_inserts(path: Path, columns: str) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(path)
    connection.execute(f"create table entries ({columns})")
    names = [column.split()[0] for column in columns.split(", ")]
    ours = _entry(None)._asdict()
    values = [1 if name == "n" else ours[name] for name in names]
    marks = ", ".join("?" * len(names))
    return lambda: connection.execute(f"insert into entries values ({marks})", values)


def _durable_appends(store: Any) -> Callable[[], object]:
    from nbdurable.ids import now_us
    from nbdurable.stored import SessionRecord

    parent_id = None
    store.create_session(SessionRecord(id="s", created_at=now_us()))

    def append() -> None:
        nonlocal parent_id
        (entry,) = store.append("s", [_entry(parent_id)])
        parent_id = entry.id

    return append


def _entry(parent_id: str | None) -> Any:
    from nbdurable.ids import IdMaker, now_us
    from nbdurable.stored import StoredEntry

    return StoredEntry(
        id=IdMaker()(),
        session_id="s",
        parent_id=parent_id,
        kind="note",
        payload='{"text": "' + "x" * (PAYLOAD_BYTES - 12) + '"}',
        created_at=now_us(),
    )


BENCHMARKS: Benchmarks = {
    "import": bench_import,
    "append": bench_append,
    "chunks": bench_chunks,
    "long": bench_long,
    "longest": bench_longest,
    "overhead": bench_overhead,
}


def report(benchmarks: Benchmarks, names: list[str]) -> int:
    """Run the named benchmarks, or all, and print a table; return 1 when a target was missed."""
    if unknown := [name for name in names if name not in benchmarks]:
        print(f"no benchmark {unknown[0]!r}; there are {' '.join(benchmarks)}", file=sys.stderr)
        return 2
    print("| what | measured | target | ratio | |\n|---|---|---|---|---|")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in names or benchmarks:
            for row in benchmarks[name](Path(folder)):
                print(row, flush=True)
                missed = missed or row.is_missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(report(BENCHMARKS, sys.argv[1:]))
