"""Rows of an experiment: one dict per cell, for a frame, a table or a picture."""

from __future__ import annotations

import html
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence

from nbdurable.annotations import NOT_RATINGS
from nbdurable.blocks import Json
from nbdurable.explore.cell import Cell
from nbdurable.explore.plan import SAMPLE
from nbdurable.reprs import duration, money, one_line

Row = dict[str, Json]
Annotated = tuple[str, str, str | None, str]  # target, name, author, value as JSON

TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
SUMMED = ("cost_usd", *TOKENS)
MEANS = ("seconds", "ttft_s")


def rows_of(
    cells: Sequence[Cell], axes: Sequence[str], annotations: Iterable[Annotated] = ()
) -> list[Row]:
    """Return one row per cell: axes, scores, then what became of it; all values scalar."""
    targets = {cell.entry.id: cell.i for cell in cells if cell.entry is not None}
    scores = scores_of(targets, annotations)
    names = list(dict.fromkeys(name for row in scores.values() for name in row))
    return [
        _row(cell, axes, {name: scores.get(cell.i, {}).get(name) for name in names})
        for cell in cells
    ]


def _row(cell: Cell, axes: Sequence[str], scores: Mapping[str, Json]) -> Row:
    run, entry = cell.run, cell.entry
    reply = entry.message.reply if entry is not None else None
    facts: Row = {
        "model": run.model if run else None,
        "text": None if entry is None else entry.text,
        "state": cell.state,
        "stop_reason": reply.stop_reason if reply else None,
        "error": cell.error,
        "cost_usd": run.cost if run else None,
        "seconds": run.seconds if run else None,
        "ttft_s": reply.ttft_s if reply else None,
        **_tokens(cell),
        "n": entry.n if entry is not None else None,
        "entry_id": entry.id if entry is not None else None,
        "run_id": run.run_id if run else None,
    }
    # an axis or a score keeps its name before a fact of the same one
    return (
        {**{axis: cell.axes.get(axis) for axis in axes}, **scores}
        | {name: fact for name, fact in facts.items() if name not in axes and name not in scores}
        | _data(cell)
    )


def _tokens(cell: Cell) -> Row:
    if cell.run is None or cell.entry is None:
        return dict.fromkeys(TOKENS)
    return {**cell.run.usage.to_dict()}


def _data(cell: Cell) -> Row:
    """Return the fields of a structured answer as ``data.*``; what is no scalar as JSON text."""
    if cell.run is None or cell.run.schema is None:
        return {}
    from pydantic_core import to_jsonable_python  # slow to load

    data, unfit = to_jsonable_python(cell.run.data), {"data_error": cell.run.data_error}
    if not isinstance(data, dict):
        return {"data": _scalar(data), **unfit}
    return {**{f"data.{name}": _scalar(value) for name, value in data.items()}, **unfit}


def _scalar(value: Json) -> Json:
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def scores_of(targets: Mapping[str, int], annotations: Iterable[Annotated]) -> dict[int, Row]:
    """Return the latest score of each name by cell; by author where several scored (B70).

    Labels and preferences are text or lists and no scores.
    """
    latest: dict[tuple[str, str, str | None], Json] = {}
    for target, name, by, value in annotations:
        if target in targets and name not in NOT_RATINGS:
            latest[target, name, by] = json.loads(value)
    numbers = {key: v for key, v in latest.items() if isinstance(v, int | float)}
    authors: dict[str, set[str | None]] = {}
    for _, name, by in numbers:
        authors.setdefault(name, set()).add(by)
    found: dict[int, Row] = {}
    for (target, name, by), score in numbers.items():
        column = name if len(authors[name]) == 1 else f"{name}.{by or 'unnamed'}"
        found.setdefault(targets[target], {})[column] = score
    return found


def collapsed(rows: Sequence[Row], axes: Sequence[str]) -> list[Row]:
    """Return one row for each different text under equal axes, repetitions apart, with a count."""
    groups: dict[str, list[Row]] = {}
    kept = [axis for axis in axes if axis != SAMPLE]
    for row in rows:
        mark = json.dumps([row[axis] for axis in kept] + [row["text"], row["state"]])
        groups.setdefault(mark, []).append(row)
    return [_collapsed(group) for group in groups.values()]


def _collapsed(group: Sequence[Row]) -> Row:
    first: Row = {}
    for name, value in group[0].items():
        if name == SAMPLE:
            continue
        numbers = [v for row in group if isinstance(v := row.get(name), int | float)]
        if name in SUMMED and numbers:
            value = sum(numbers)
        elif name in MEANS and numbers:
            value = statistics.fmean(numbers)
        first[name] = value
    return {**first, "count": len(group)}


def html_table(cells: Sequence[Cell], axes: Sequence[str], title: str, limit: int) -> str:
    """Return a small table of the cells, every text escaped."""
    heads = [*axes, "text", "state", "cost", "time"]
    lines = [_tr("th", heads)]
    for cell in cells[:limit]:
        cost, seconds = (cell.run.cost, cell.run.seconds) if cell.run else (None, None)
        said = one_line(cell.text or cell.error or "", 80)
        labels = [
            "" if (v := cell.axes.get(axis)) is None else one_line(str(v), 40) for axis in axes
        ]
        tail = ["" if cost is None else money(cost), "" if seconds is None else duration(seconds)]
        lines.append(_tr("td", [*labels, said, cell.state, *tail]))
    if len(cells) > limit:
        more = f"… {len(cells) - limit} more; df() has all"
        lines.append(f'<tr><td colspan="{len(heads)}">{more}</td></tr>')
    body = "".join(lines)
    return f"<div><div>{html.escape(title)}</div><table>{body}</table></div>"


def _tr(tag: str, texts: Sequence[str]) -> str:
    # a notebook's tables put all to the right, which is for numbers
    left = f'<{tag} style="text-align:left">'
    return "<tr>" + "".join(f"{left}{html.escape(text)}</{tag}>" for text in texts) + "</tr>"
