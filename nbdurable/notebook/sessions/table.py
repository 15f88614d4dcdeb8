"""The sessions of a store as static HTML: a table that reads well without style and script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbdurable.notebook.page import page, plain
from nbdurable.reprs import count, joined, money, one_line

MAX_ROWS = 100
HEADS = ("session", "entries", "branches", "models", "cost", "last activity (UTC)", "forked from")


def sessions_html(store: str, listed: Mapping[str, Any] | None) -> str:
    """Return the newest sessions as a table, the others counted; None of a closed library."""
    # a notebook that is shared does not tell whose folders it was made in
    name = one_line(store if "://" in store else Path(store).name or store)
    if listed is None:
        return page(f"<div><b>{plain(name)}, closed</b></div>", name="nbd-cells")
    title = joined((name, count(listed["total"], "session")))
    rows = listed["rows"][:MAX_ROWS]
    width = len(HEADS) if listed["forks"] else len(HEADS) - 1
    body = "".join(_row(row, width) for row in rows)
    more = listed["found"] - len(rows)
    rest = f'<p class="nbd-dim">… {count(more, "more session")}</p>' if more > 0 else ""
    table = f"<table>{_tr('th', HEADS[:width])}{body}</table>" if rows else ""
    return page(f"<div><b>{plain(title)}</b></div>{table}{rest}", name="nbd-cells")


def _row(row: Mapping[str, Any], width: int) -> str:
    title = plain(row["title"] or "(no text)")
    name = f'<b>{title}</b> <span class="nbd-dim">{plain(one_line(row["id"], 60))}</span>'
    cells = (
        f"{row['entries']:,}",
        f"{row['branches']:,}",
        row["models"],
        money(row["cost"]) if row["cost"] else "",
        datetime.fromtimestamp(row["at"] / 1_000, UTC).strftime("%Y-%m-%d %H:%M"),
        one_line(row["parent"] or "", 60),
    )
    rest = "".join(f'<td dir="auto">{plain(text)}</td>' for text in cells[: width - 1])
    return f'<tr><td dir="auto">{name}</td>{rest}</tr>'


def _tr(tag: str, texts: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{plain(text)}</{tag}>" for text in texts) + "</tr>"
