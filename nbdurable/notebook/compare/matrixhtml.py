"""A matrix as static HTML: a table that reads well without style and script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nbdurable.notebook.page import page, plain
from nbdurable.reprs import count, duration, money

MAX_BYTES = 200_000
NOTHING = "–"


def matrix_html(body: dict[str, Any]) -> str:
    """Return a matrix's data as a table, rows left out counted."""
    has_across = len(body["heads"]) > 1
    heads = [f"{body['across']} {head}" if has_across else "answer" for head in body["heads"]]
    figures = ["agreement", *body["scores"], "cost", "time"]
    rows, size = [_tr("th", [*body["axes"], *heads, *figures])], 0
    for at, row in enumerate(body["rows"]):
        html = _tr("td", [*row["labels"], *map(_said, row["cells"]), *_figures(body, row)])
        size += len(html.encode())
        if size > MAX_BYTES - 10_000:
            left = count(len(body["rows"]) - at, "more row")
            rows.append(f'<tr><td class="nbd-dim">… {left}</td></tr>')
            break
        rows.append(html)
    title = f"<div><b>{plain(body['title'])}</b></div>"
    return page(f"{title}<table>{''.join(rows)}</table>", name="nbd-cells")


def _tr(tag: str, texts: Sequence[str]) -> str:
    cells = "".join(f'<{tag} dir="auto">{plain(text)}</{tag}>' for text in texts)
    return f"<tr>{cells}</tr>"


def _said(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    state = "" if cell["state"] == "done" else f"[{cell['state']}] "
    return f"{state}{cell['text']}"


def _figures(body: dict[str, Any], row: dict[str, Any]) -> list[str]:
    agreed = row["agreement"]
    scores = [row["scores"].get(name) for name in body["scores"]]
    return [
        NOTHING if agreed is None else f"{agreed:.0%}",
        *(NOTHING if score is None else f"{score:.4g}" for score in scores),
        NOTHING if row["cost"] is None else money(row["cost"]),
        NOTHING if row["seconds"] is None else duration(row["seconds"]),
    ]
