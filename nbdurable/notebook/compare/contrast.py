"""A comparison as static HTML: a table that reads well without style and script."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from nbdurable.notebook.page import page, plain
from nbdurable.reprs import count

MAX_BYTES = 200_000
MAX_SHARED = 30
_TAGS = {"same": "", "add": "ins", "del": "del"}


@cache
def _style() -> str:
    from nbdurable.notebook.assets import css

    return f"<style>{css('contrast.css')}</style>"


def comparison_html(body: dict[str, Any]) -> str:
    """Return a comparison's data as a table, its texts cut so that it stays bounded."""
    columns = body["columns"]
    room = MAX_BYTES // max(1, sum(len(turn["cells"]) for turn in body["turns"])) - 200
    heads = "".join(f'<th scope="col">{_head(column)}</th>' for column in columns)
    rows = [f"<tr><td></td>{heads}</tr>", *_fact_rows(columns)]
    for turn in body["turns"]:
        cells = "".join(f'<td dir="auto">{_cell(cell, room)}</td>' for cell in turn["cells"])
        rows.append(f'<tr class="nbd-said"><th scope="row">{plain(turn["role"])}</th>{cells}</tr>')
    title = f"<div><b>Compare</b> {plain(body['title'])}</div>"
    table = f'<table class="nbd-contrast">{"".join(rows)}</table>'
    return page(f"{_style()}{title}{_shared(body['shared'])}{table}", name="nbd-compared")


def _head(column: dict[str, Any]) -> str:
    tags = "".join(
        f' <span class="nbd-tag">[{plain(tag)}]</span>'
        for tag in (*column["badges"], *column["labels"])
    )
    return f"<bdi>{plain(column['name'])}</bdi>{tags}"


def _fact_rows(columns: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for facts in zip(*(column["facts"] for column in columns), strict=True):
        cells = "".join(
            f"<td><bdi>{'<b>' if fact['best'] else ''}{plain(fact['text'])}"
            f"{' ✓</b>' if fact['best'] else ''}</bdi></td>"
            for fact in facts
        )
        rows.append(f'<tr><th scope="row">{plain(facts[0]["name"])}</th>{cells}</tr>')
    return rows


def _shared(shared: dict[str, Any]) -> str:
    if not shared["count"]:
        return ""
    rows = shared["rows"][-MAX_SHARED:]
    more = shared["count"] - len(rows)
    skipped = f"… {count(more, 'more entry', 'more entries')}"
    first = f'<li class="nbd-dim">{skipped}</li>' if more else ""
    items = "".join(f"<li>{_shared_row(row)}</li>" for row in rows)
    title = count(shared["count"], "shared entry", "shared entries")
    return f"<details><summary>{title}</summary><ul>{first}{items}</ul></details>"


def _shared_row(row: dict[str, Any]) -> str:
    n = f"#{row['n']} " if row["n"] else ""
    name = f'<span class="nbd-dim">{n}{plain(row["role"])}</span>'
    return f"{name} <bdi>{plain(row['text'])}</bdi>"


def _cell(cell: dict[str, Any] | None, room: int) -> str:
    """Return a text with what is gone and new marked, at most some bytes of it."""
    if cell is None:
        return ""
    out: list[str] = []
    left, cut = room, 0
    for kind, text in cell["runs"]:
        kept = text[: max(left // 6, 0)] if len(text) * 6 > left else text  # escaped, at most
        cut += len(text) - len(kept)
        html = plain(kept)
        left -= len(html.encode()) + 12
        tag = _TAGS[kind]
        out.append(f"<{tag}>{html}</{tag}>" if tag and kept else html)
    more = cell["hidden"] or (f"… {count(cut, 'more character')}" if cut else "")
    return "".join(out) + (f'<div class="nbd-dim">{plain(more)}</div>' if more else "")
