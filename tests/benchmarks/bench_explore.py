"""Measure a grid over HTTP beside its ideal; print a Markdown table.

4 models, 3 temperatures and 5 samples from the middle of a conversation; the server, a process of
its own, takes 200 ms for each answer and refuses every tenth call at random. The ideal is what the
waiting alone takes with so many calls at once; beside it stands what LiteLLM takes for 60 calls
without a refusal. Exit code 1 when the wall time is more than twice the ideal.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbdurable as nb
from nbdurable.models.litellm import load
from nbdurable.testing import FakeOpenAI, steps

REPLY_S = 0.2
REFUSED = 0.1
CONCURRENCIES = (4, 8)
TRIES = 3
MODELS = [f"openai/model-{letter}" for letter in "abcd"]


def serve(seed: int, refused: float, retry_after_s: float | None) -> None:
    """Answer until the input ends."""
    rng, lock = random.Random(seed), threading.Lock()

    def step(_: object) -> object:
        with lock:
            is_refused = rng.random() < refused
        if is_refused:
            return steps.status(429, retry_after_s=retry_after_s)
        return [steps.sleep(REPLY_S), *steps.text("An answer of some words.")]

    with FakeOpenAI(step) as fake:  # type: ignore[arg-type]
        print(fake.base_url, flush=True)
        sys.stdin.read()


@contextmanager
def server(seed: int, refused: float, retry_after_s: float | None) -> Iterator[str]:
    """Run `serve` in a process of its own; give its address."""
    command = [sys.executable, __file__, "serve", str(seed), str(refused), str(retry_after_s)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        yield child.stdout.readline().strip()


def once(seed: int, retry_after_s: float | None, concurrency: int) -> float:
    """Return the seconds that one grid took."""
    with server(seed, REFUSED, retry_after_s) as url, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.duckdb"
        with nb.open("s", store=path, model=MODELS[0], api_base=url, api_key="x") as chat:
            chat.append(nb.user("Hello"), nb.assistant("Hello."), nb.user("Q"), nb.assistant("A"))
            chat.branch(2)
            began = time.perf_counter()
            exp = chat.grid(
                {"q": "Which?"},
                model=MODELS,
                temperature=[0, 0.5, 1],
                n=5,
                concurrency=concurrency,
                show=None,
            )
            seconds = time.perf_counter() - began
            assert [cell.state for cell in exp] == ["done"] * 60
        return seconds


def bare(concurrency: int) -> float:
    """Return the seconds that LiteLLM alone takes for 60 calls, none refused."""
    litellm = load()

    async def call(url: str, places: asyncio.Semaphore) -> None:
        async with places:
            stream = await litellm.acompletion(
                model=MODELS[0],
                messages=[{"role": "user", "content": "Which?"}],
                api_base=url,
                api_key="x",
                stream=True,
            )
            async for _ in stream:
                pass

    async def all_calls(url: str) -> float:
        places = asyncio.Semaphore(concurrency)
        began = time.perf_counter()
        await asyncio.gather(*(call(url, places) for _ in range(60)))
        return time.perf_counter() - began

    with server(0, 0.0, None) as url:
        return asyncio.run(all_calls(url))


def main() -> int:
    """Print the table; return the exit code."""
    once(0, 0.0, 8)  # imports what is heavy
    print(
        "| calls at once | Retry-After | ideal | LiteLLM alone | wall (median) | to the ideal | |"
    )
    print("|---|---|---|---|---|---|---|")
    is_missed = False
    for concurrency in CONCURRENCIES:
        ideal_s = math.ceil(60 / concurrency) * REPLY_S
        bare_s = statistics.median(bare(concurrency) for _ in range(TRIES))
        for retry_after_s in (None, 0.0, 0.5):
            tries = [once(seed, retry_after_s, concurrency) for seed in range(1, TRIES + 1)]
            wall_s = statistics.median(tries)
            is_missed |= wall_s > 2 * ideal_s
            name = "none" if retry_after_s is None else f"{retry_after_s:g} s"
            state = "missed" if wall_s > 2 * ideal_s else "met"
            cells = [f"{bare_s:.2f} s", f"{wall_s:.2f} s", f"{wall_s / ideal_s:.2f}", state]
            print(f"| {concurrency} | {name} | {ideal_s:.2f} s | {' | '.join(cells)} |", flush=True)
    return int(is_missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(
            int(sys.argv[2]),
            float(sys.argv[3]),
            None if sys.argv[4] == "None" else float(sys.argv[4]),
        )
    else:
        sys.exit(main())
