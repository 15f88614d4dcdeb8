"""Measure the session tree in a browser beside its targets; print a Markdown table.

Exit code 1 when a target is missed. Name benchmarks to run only those: ``bench_ui.py paint``.
A page cannot be faster than its browser: what an empty page's frames take on this machine stands
beside what scrolling takes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench_core import Benchmarks, Row, percentile, report

sys.path.insert(0, str(Path(__file__).parents[1]))

import tree_page
import treeing
from browser.jupyter import open_browser

import nbdurable as nb
from nbdurable.models.base import Delta, Finish, ModelRequest, TextDelta
from nbdurable.notebook.tree import SessionTree
from nbdurable.testing import ScriptedModel

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZE = {"width": 1060, "height": 700}
TRIES = 5
FRAMES = 90
ENTRIES = 10_000
ENTRY = "All work and no play makes a dull day. " * 257  # 10 kB
TOKENS_PER_S = 2_000
STREAM_S = 3


@contextmanager
def opened_page() -> Iterator[Page]:
    """Yield the page of the tree in a browser."""
    with open_browser() as browser:
        page = browser.new_page(viewport=SIZE)
        thrown: list[str] = []
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.set_content(tree_page.html())
        page.wait_for_function("window.bench")
        yield page
    if thrown:
        raise RuntimeError(f"the page threw {thrown[0]}; its figures mean nothing")


def paint(_folder: Path) -> Iterator[Row]:
    """Time the first paint from the arrival of the data."""
    with opened_page() as page:
        page.evaluate("bench.open(10)")  # the first use of everything is the browser's own
        for count, target in ((2_000, 300.0), (100_000, 600.0)):
            times = [page.evaluate(f"bench.open({count})")["ms"] for _ in range(TRIES)]
            yield Row(f"first paint of {count:,} entries", median(times), "ms", target)


def scroll(_folder: Path) -> Iterator[Row]:
    """Time the frames while 100,000 entries are scrolled through, and those of an empty page."""
    with opened_page() as page:
        still = [page.evaluate("bench.still()")["p95"] for _ in range(TRIES)]
        yield Row("frame of an empty page, p95", median(still), "ms")
        page.evaluate("bench.open(100_000)")
        before = processor_s(page)
        times = [page.evaluate(f"bench.scroll({FRAMES})")["p95"] for _ in range(TRIES)]
        worked = (processor_s(page) - before) / (FRAMES * TRIES)
        yield Row("frame while 100,000 entries scroll, p95", median(times), "ms", 34.0)
        yield Row("the processor's work for such a frame, mean", worked * 1_000, "ms")


def processor_s(page: Page) -> float:
    """Return the processor time that pages have taken, which other programs do not lengthen."""
    assert page.context.browser is not None
    told = page.context.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    return sum(one["cpuTime"] for one in told["processInfo"] if one["type"] == "renderer")


def stream(_folder: Path) -> Iterator[Row]:
    """Time tokens from the model to the page's line, and from there to the drawn frame."""
    waits, lost = on_the_line()
    in_kernel = percentile(waits, 95)
    with opened_page() as page:
        page.evaluate("bench.open(2000)")
        shown = page.evaluate(f"bench.stream({TOKENS_PER_S}, {STREAM_S})")
    what = f"at {TOKENS_PER_S:,} tokens/s"
    yield Row(f"from the model to the line {what}, p95", in_kernel, "ms")
    yield Row(f"from the line to the drawn frame {what}, p95", shown["p95"], "ms")
    yield Row(f"lag {what}, p95 of both", in_kernel + shown["p95"], "ms", 100.0)
    yield Row(f"tokens lost {what}", lost + shown["lost"], "", 0)
    yield Row("layout shift while they stream", shown["shift"], "", 0)


class Clock(ScriptedModel):
    """A model whose tokens are the times at which it says them."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Say the time so often a second; what the event loop is late is caught up with."""
        began = time.monotonic()
        for at in range(TOKENS_PER_S * STREAM_S):
            while (wait := began + at / TOKENS_PER_S - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            yield TextDelta(f" {time.monotonic():.6f}")
        yield Finish(stop_reason="stop")


def on_the_line() -> tuple[list[float], int]:
    """Return the seconds from each token to its message, and how many never were in one."""
    waits: list[float] = []
    ended = threading.Event()

    def take(message: Any, buffers: object = None) -> None:
        now = time.monotonic()
        for op in message.get("ops", ()):
            if op["op"] == "text":
                waits.extend(now - float(said) for said in op["text"].split())
            elif op["op"] == "end":
                ended.set()

    with nb.open("s", store=":memory:", model=Clock()) as chat:
        with closing(SessionTree(chat)) as tree:
            tree.send = take
            chat.run("What time is it?", show=None)
            ended.wait(20)
    return waits, TOKENS_PER_S * STREAM_S - len(waits)


def size(folder: Path) -> Iterator[Row]:
    """Count the bytes that opening a long session sends."""
    with nb.open("long", store=folder / "long.duckdb", model=ScriptedModel("x")) as chat:
        for _ in range(0, ENTRIES, 500):
            chat.append(*(nb.user(ENTRY) for _ in range(500)))
        with treeing.Page(chat) as page:
            page.settled()
            sent = sum(len(json.dumps(message).encode()) for message in page.sent)
    what = f"sent to open {ENTRIES:,} entries of {len(ENTRY) // 1_000} kB"
    yield Row(what, sent / 1e6, "MB", 3.0)


BENCHMARKS: Benchmarks = {"paint": paint, "scroll": scroll, "stream": stream, "size": size}

if __name__ == "__main__":
    sys.exit(report(BENCHMARKS, sys.argv[1:]))
