"""The conversation that the pictures show: an engineer and two models look for a slow release.

Every answer, name and price is written here beforehand; no model is asked. `tell` writes the
conversation into a store, as a person would have had it: with branches, a failure and votes.
"""

from __future__ import annotations

import time
from pathlib import Path

import nbdurable as nb
from nbdurable.blocks import Usage
from nbdurable.errors import ModelError
from nbdurable.models.base import Finish
from nbdurable.models.scripted import Part, ScriptedModel, Step, calls, thinking

SESSION = "checkout-latency"
SYSTEM = "You help on-call engineers. Check before you claim, name your evidence, be brief."
USD_PER_TOKEN = {"openai/gpt-5-mini": (0.25e-6, 2e-6), "anthropic/claude-sonnet-5": (3e-6, 15e-6)}
QUESTION = "Checkout p95 went from 310 ms to 900 ms after release 2026.48. Where do I look first?"

PLAN = """Look at the **database pool** first: the release raised the worker count, and a pool that
is too small shows exactly this, a high p95 with a normal p50.

1. Compare p50 and p95 per endpoint, before and after 14:05.
2. Check `pool.wait_ms` on the checkout service.
3. Only then read the diff."""
SHORT_PLAN = "Start with `pool.wait_ms`; p50 is unchanged, so the code path itself is not slower."
FOUND = """The pool is the bottleneck, not the queries:

| | 2026.47 | 2026.48 |
| --- | --- | --- |
| workers | 8 | 24 |
| pool size | 10 | 10 |
| `pool.wait_ms` p95 | 4 | 571 |

Query time itself is flat. Raise the pool with the workers:

```python
engine = create_engine(DSN, pool_size=24, max_overflow=8, pool_timeout=2)
```

24 workers × 4 hosts = 96 connections, and Postgres allows 200 here."""
PATCH = "Raise `pool_size` to 24 and roll out to one host; watch `pool.wait_ms`."
NOTE_A = "Checkout was slow for 52 minutes because workers outnumbered database connections. Fixed."
NOTE_B = """Between 14:05 and 14:57 UTC, paying took up to a second longer than usual. No order was
lost. The cause was a connection pool that had not grown with the number of workers."""
NOTE_C = """From 14:05 to 14:57 UTC, paying took up to a second longer than usual. No order was
lost. We had tripled our workers without growing their connection pool; both now change together."""
REFUSED = (
    0.2,
    "Before a rollback, two things to know: ",
    ConnectionError("429: rate limit"),
)
GROWING = """Three checks would have caught this before customers did:

1. **A ratio alert.** Page when workers exceed pool size on any host; both are already exported.
2. **A load test at the new worker count**, as the staging run still used 8 workers.
3. **A canary** that compares `pool.wait_ms` with the old release for ten minutes before"""


@nb.tool
def query_metrics(metric: str, since: str) -> dict[str, object]:
    """Read a metric before and after a release."""
    time.sleep(0.2)
    return {
        "metric": metric,
        "since": since,
        "before": {"p50": 1, "p95": 4},
        "after": {"p50": 38, "p95": 571},
    }


@nb.tool
def release_diff(release: str, path: str = ".") -> str:
    """Show what a release changed."""
    time.sleep(0.1)
    return "deploy/checkout.yaml\n-  workers: 8\n+  workers: 24\n   pool_size: 10"


def model(name: str, *steps: Step) -> ScriptedModel:
    """Return a model with a name, whose steps report what they would have cost."""
    return ScriptedModel(*steps, name=name, repeat=False)


def says(name: str, text: Part, prompt: int, wait_s: float = 0.15) -> Step:
    """Return a step that pauses, streams a text and says its tokens and cost."""
    text = " ".join(text.split("\n")) if text in (NOTE_B, NOTE_C) else text
    words = len(str(text).split()) * 4 // 3
    prompt_usd, answer_usd = USD_PER_TOKEN[name]
    cost = prompt * prompt_usd + words * answer_usd
    stop = "stop" if isinstance(text, str) else "tool_calls"
    return (
        wait_s,
        text,
        wait_s,
        Finish(stop_reason=stop, usage=Usage(prompt, words), cost_usd=cost),
    )


def one(name: str, text: Part, prompt: int, wait_s: float = 0.15) -> ScriptedModel:
    """Return a model that gives one answer."""
    return model(name, says(name, text, prompt, wait_s))


def tell(store: str | Path) -> nb.Session:
    """Write the conversation into a store; return its session, open."""
    mini, sonnet = USD_PER_TOKEN
    chat = nb.open(
        SESSION, store=store, model=one(mini, "", 1), system=SYSTEM,
        tools=[query_metrics, release_diff], temperature=0.2,
    )  # fmt: skip
    first = chat.run(QUESTION, model=one(mini, PLAN, 212), show=None)
    chat.rerun(first, model=one(sonnet, SHORT_PLAN, 212, 0.3), show=None)
    chat.branch(first)
    look = model(
        sonnet,
        (thinking("p50 is flat and p95 is not, so requests wait for something shared."),
         *_called(sonnet, 431, ("query_metrics", {"metric": "pool.wait_ms", "since": "14:05"}),
                  ("release_diff", {"release": "2026.48", "path": "deploy/"}))),
        says(sonnet, FOUND, 688, 0.4),
    )  # fmt: skip
    found = chat.run(
        "Check the pool, and what the release changed around it.", model=look, show=None
    )
    chat.label(found, "root cause")
    chat.rate(found, 5, name="helpful")
    try:
        chat.run("Roll it back for me.", model=model(mini, REFUSED), show=None)
    except ModelError:
        chat.branch(found)
    chat.run("What do I change right now?", model=one(mini, PATCH, 1_204), show=None)
    draft = chat.run(
        "Write the status page note, two sentences, no jargon.",
        model=one(mini, NOTE_A, 1_260),
        show=None,
    )
    other = chat.rerun(draft, model=one(mini, NOTE_B, 1_260), temperature=0.7, show=None)
    best = chat.rerun(draft, model=one(sonnet, NOTE_C, 1_260, 0.4), temperature=0.7, show=None)
    chat.prefer(best, draft, other)
    wording(chat, mini, sonnet)
    chat.branch(best)
    return chat


def wording(chat: nb.Session, *names: str) -> nb.Experiment:
    """Run an experiment beside the conversation: how two models word a subject line."""
    same = "Slow checkout on Tuesday: what happened"
    lines = [same, "Checkout delays, 14:05 to 14:57 UTC", same, "Why checkout was slow"]
    asked = [
        ScriptedModel(*(says(name, line, 96, 0.05) for line in lines[at:] + lines), name=name)
        for at, name in enumerate(names)
    ]
    question = "A subject line for the post-mortem."
    axes = {"model": asked, "temperature": [0, 0.9]}
    return chat.grid(question, n=2, name="subject", show=None, concurrency=1, **axes)


def growing() -> ScriptedModel:
    """Return a model whose answer stays in its middle."""
    words = GROWING.split(" ")
    parts = [part for word in words for part in (word + " ", 0.02)]
    return model("anthropic/claude-sonnet-5", (0.3, *parts, 600.0))


def _called(name: str, prompt: int, *wanted: tuple[str, dict[str, str]]) -> tuple[Part, ...]:
    prompt_usd, answer_usd = USD_PER_TOKEN[name]
    cost = prompt * prompt_usd + 74 * answer_usd
    finish = Finish(stop_reason="tool_calls", usage=Usage(prompt, 74), cost_usd=cost)
    return (0.3, *calls(*wanted), finish)
