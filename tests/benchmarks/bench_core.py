"""Measure the core beside its targets; print a Markdown table.

Exit code 1 when a target is missed by more than its tolerance. Name benchmarks to run only those:
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNKS = 10_000
ENTRIES = 10_000
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
    tolerance: float = 0.25

    @property
    def is_missed(self) -> bool:
        """Whether the target is missed by more than the tolerance."""
        return self.target is not None and self.measured > self.target * (1 + self.tolerance)

    def __str__(self) -> str:
        cells = [self.what, f"{self.measured:.3g} {self.unit}"]
        if self.target is None:
            return f"| {' | '.join([*cells, '', '', '', ''])} |"
        cells += [f"{self.target:.3g} {self.unit}", f"{self.measured / self.target:.2f}"]
        cells += [f"{self.tolerance:.0%}", "missed" if self.is_missed else "met"]
        return f"| {' | '.join(cells)} |"


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
    import nbdurable as nb
    from nbdurable.models.scripted import ScriptedModel
    from nbdurable.stores.memory import MemoryStore

    model = ScriptedModel("ok")
    pairs = [e for n in range(ENTRIES // 2) for e in (nb.user(f"Q{n}"), nb.assistant(f"A{n}"))]

    def open_walk_view(store: object) -> None:
        with nb.open("long", store=store, model=model) as chat:
            assert len(chat.path(chat.leaf_id)) == ENTRIES
            assert len(chat.messages()) == ENTRIES

    for name, store in (("memory", MemoryStore()), ("DuckDB", folder / "long.duckdb")):
        with nb.open("long", store=store, model=model) as chat:
            chat.append(*pairs)
        best = min(timed(lambda store=store: open_walk_view(store)) for _ in range(7))
        yield Row(f"open, walk, view {ENTRIES:,} entries, {name}", best * 1_000, "ms", 300)


def bench_append(folder: Path) -> Iterator[Row]:
    """Time durable appends of 2 kB against a synced write and a bare insert."""
    fsync = _synced_writes(folder / "raw.log")
    bare = _bare_inserts(folder / "bare.duckdb")
    ours = _durable_appends(folder / "store.duckdb")
    yield Row("2 kB write + fsync, p50", percentile(fsync, 50), "ms")
    yield Row("2 kB write + fsync, p99", percentile(fsync, 99), "ms")
    yield Row("2 kB bare insert into DuckDB, p50", percentile(bare, 50), "ms")
    yield Row("2 kB bare insert into DuckDB, p99", percentile(bare, 99), "ms")
    yield Row("2 kB append to a DuckDBStore, p99", percentile(ours, 99), "ms")
    target = percentile(bare, 50) + 0.4
    yield Row("2 kB append to a DuckDBStore, p50", percentile(ours, 50), "ms", target)


def _synced_writes(path: Path) -> list[float]:
    data = b"x" * PAYLOAD_BYTES
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write() -> None:
        os.write(handle, data)
        os.fsync(handle)

    seconds = [timed(write) for _ in range(APPENDS)]
    os.close(handle)
    return seconds


def _bare_inserts(path: Path) -> list[float]:
    import duckdb

    with duckdb.connect(path) as connection:
        connection.execute("create table entries (n bigint, payload varchar)")
        data = "x" * PAYLOAD_BYTES
        return [
            timed(lambda n=n: connection.execute("insert into entries values (?, ?)", [n, data]))
            for n in range(APPENDS)
        ]


def _durable_appends(path: Path) -> list[float]:
    from nbdurable.ids import IdMaker, now_us
    from nbdurable.stored import SessionRecord, StoredEntry
    from nbdurable.stores.duckdb import DuckDBStore

    new_id, parent, seconds = IdMaker(), None, []
    payload = '{"text": "' + "x" * (PAYLOAD_BYTES - 13) + '"}'
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=now_us()))
    for _ in range(APPENDS):
        entry = StoredEntry(
            id=new_id(),
            session_id="s",
            parent_id=parent,
            kind="note",
            payload=payload,
            created_at=now_us(),
        )
        seconds.append(timed(lambda entry=entry: store.append("s", [entry])))
        parent = entry.id
    store.close()
    return seconds


BENCHMARKS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "import": bench_import,
    "append": bench_append,
    "chunks": bench_chunks,
    "long": bench_long,
    "overhead": bench_overhead,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; return 1 when a target was missed."""
    if unknown := [name for name in names if name not in BENCHMARKS]:
        print(f"no benchmark {unknown[0]!r}; there are {' '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print("| what | measured | target | ratio | tolerance | |\n|---|---|---|---|---|---|")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in names or BENCHMARKS:
            for row in BENCHMARKS[name](Path(folder)):
                print(row, flush=True)
                missed = missed or row.is_missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
