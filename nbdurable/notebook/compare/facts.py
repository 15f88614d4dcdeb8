"""Facts of the columns of a comparison: models, settings, tokens, cost, time; the best marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nbdurable.annotations import Score
from nbdurable.blocks import Json, Reply, Usage
from nbdurable.entries import CompactionEntry, Entry, MessageEntry
from nbdurable.notebook.compare.columns import Column, varying_axes
from nbdurable.reprs import duration, model_names, money, one_line
from nbdurable.wire import dumps

UNKNOWN = "–"
TEXT_CHARS = 120

Fact = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted over a column's own entries; None is unknown, as of no answer."""

    models: tuple[str, ...] = ()
    params: Mapping[str, Json] = field(default_factory=dict)
    usage: Usage | None = None
    cost_usd: float | None = None
    ttft_s: float | None = None
    seconds: float | None = None
    stop_reason: str | None = None


def figures_of(entries: Sequence[Entry]) -> Figures:
    """Return what is known of the answers among some entries."""
    replies = [
        entry.message.reply
        for entry in entries
        if isinstance(entry, MessageEntry) and entry.message.reply is not None
    ]
    summaries = [entry for entry in entries if isinstance(entry, CompactionEntry)]
    paid: list[Reply | CompactionEntry] = [*replies, *summaries]
    if not replies:
        return Figures()
    last = replies[-1]
    return Figures(
        models=tuple(dict.fromkeys(r.model for r in replies if r.model)),
        params=last.params,
        usage=_sum(Usage(), (one.usage for one in paid)),
        cost_usd=_sum(0.0, (one.cost_usd for one in paid)),
        ttft_s=replies[0].ttft_s,
        seconds=_sum(0.0, (reply.seconds for reply in replies)),
        stop_reason=_stop_reason(last),
    )


def _stop_reason(reply: Reply) -> str | None:
    return None if reply.stop_reason == "stop" else reply.stop_reason


def _sum(nothing: T, values: Iterable[T | None]) -> T | None:
    """Return the sum, or None where one is unknown."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known, nothing) if len(known) == len(found) else None  # type: ignore[call-overload]


def facts_of(columns: Sequence[Column], figures: Sequence[Figures]) -> list[list[Fact]]:
    """Return the facts of each column: the same names, in the same order.

    What no column has is left out; settings that all share are, too.
    """
    rows: list[list[Fact]] = []
    axes = varying_axes(columns)
    for axis in axes:
        rows.append(_texts(axis, [_value(column.axes.get(axis)) for column in columns]))
    short = model_names(name for f in figures for name in f.models)
    models = [", ".join(short[name] for name in f.models) for f in figures]
    if "model" not in axes:
        rows.append(_texts("model", models))
    systems = [column.system or "" for column in columns]
    if any(systems) and "system" not in axes:
        rows.append(_texts("system", [one_line(text, TEXT_CHARS) or "none" for text in systems]))
    for name in dict.fromkeys(name for f in figures for name in f.params if name not in axes):
        values = [_value(f.params.get(name)) for f in figures]
        if len(set(values)) > 1:
            rows.append(_texts(name, values))
    tokens = [f.usage.total_tokens if f.usage else None for f in figures]
    rows.append(_numbers("tokens", tokens, "{:,}".format))
    rows.append(_numbers("cost", [f.cost_usd for f in figures], money))
    rows.append(_times(figures))
    for name in dict.fromkeys(rating.name for column in columns for rating in column.ratings):
        scores = [_score(column, name) for column in columns]
        rows.append(_numbers(name, scores, "{:.4g}".format, best=max))
    if any(f.stop_reason for f in figures):
        rows.append(_texts("ended", [f.stop_reason or "stop" for f in figures]))
    kept = [row for row in rows if any(fact["text"] != UNKNOWN for fact in row)]
    return [[row[at] for row in kept] for at in range(len(columns))]


def _texts(name: str, texts: Sequence[str]) -> list[Fact]:
    return [{"name": name, "text": text or UNKNOWN, "best": False} for text in texts]


def _value(value: Json) -> str:
    if value is None:
        return ""
    return one_line(value if isinstance(value, str) else dumps(value), TEXT_CHARS)


def _numbers(
    name: str,
    values: Sequence[Score | None],
    form: Callable[[Any], str],
    best: Callable[[list[Score]], Score] = min,
) -> list[Fact]:
    known = [value for value in values if value is not None]
    texts = [UNKNOWN if value is None else form(value) for value in values]
    shown = {text for text in texts if text != UNKNOWN}
    top = form(best(known)) if len(shown) > 1 else None  # what reads alike is equally good
    return [{"name": name, "text": text, "best": text == top} for text in texts]


def _times(figures: Sequence[Figures]) -> list[Fact]:
    facts = _numbers("first / total", [f.seconds for f in figures], duration)
    for fact, one in zip(facts, figures, strict=True):
        if one.ttft_s is not None and one.seconds is not None:
            fact["text"] = f"{duration(one.ttft_s).removesuffix(' s')} / {fact['text']}"
    return facts


def _score(column: Column, name: str) -> float | None:
    """Return the mean of what different authors gave."""
    scores = [float(rating.score) for rating in column.ratings if rating.name == name]
    return sum(scores) / len(scores) if scores else None
