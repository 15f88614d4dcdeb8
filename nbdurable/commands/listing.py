"""``nbdurable ls``: the sessions of a store, as a table or as lines."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from nbdurable.commands.places import console, existing_store
from nbdurable.ids import as_datetime
from nbdurable.reprs import joined, model_name, money, one_line

if TYPE_CHECKING:
    from rich.table import Table

    from nbdurable.stored import SessionSummary

NUMBERS = ("entries", "branches", "cost")
LEFT_OUT = ("models", "branches", "cost", "entries", "last used (UTC)")
"""Columns that a narrow terminal goes without, this one first; the id is what is asked for."""
MIN_BEGINS, FEWEST_BEGINS, GAP = 20, 8, 2
MOST_ID, MOST_MODELS = 32, 28


def list_sessions(arguments: argparse.Namespace) -> int:
    """List the sessions of a store: a table on a terminal, tab-separated lines in a pipe."""
    from nbdurable.stores import release_store

    store = existing_store(arguments.store)
    try:
        summaries = store.list_sessions()
    finally:
        release_store(store)
    if not sys.stdout.isatty():
        for summary in summaries:
            print(_tab_separated(summary))
        return 0
    if not summaries:
        print(f"{one_line(store.name)} has no sessions yet")
        return 0
    out = console()
    out.print(_table(summaries, out.width))
    return 0


def _table(summaries: list[SessionSummary], width: int) -> Table:
    """Return the table; a column that a narrow terminal has no room for is left out, not cut."""
    from rich.table import Table
    from rich.text import Text

    columns = _columns(summaries)
    for name in LEFT_OUT:
        if _needed(columns) + MIN_BEGINS <= width:
            break
        del columns[name]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=True)
    begins = width - _needed(columns)
    if begins >= FEWEST_BEGINS:
        table.add_column("begins", no_wrap=True, max_width=begins)
        columns["begins"] = [one_line(summary.title, begins) for summary in summaries]
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(cell, overflow="ellipsis") for cell in row))
    return table


def _columns(summaries: list[SessionSummary]) -> dict[str, list[str]]:
    """Return all columns but the last, by name."""
    return {
        "session": [one_line(summary.session.id, MOST_ID) for summary in summaries],
        "entries": [f"{summary.entries:,}" for summary in summaries],
        "branches": [f"{summary.leaves:,}" for summary in summaries],
        "cost": [money(summary.cost_usd) for summary in summaries],
        "last used (UTC)": [f"{as_datetime(s.last_at):%Y-%m-%d %H:%M}" for s in summaries],
        "models": [
            one_line(joined(map(model_name, summary.models)), MOST_MODELS) for summary in summaries
        ],
    }


def _needed(columns: dict[str, list[str]]) -> int:
    """Return the cells that these columns take, with a gap after each."""
    from rich.cells import cell_len

    return sum(GAP + max(map(cell_len, (name, *cells))) for name, cells in columns.items())


def _tab_separated(summary: SessionSummary) -> str:
    cells = (
        one_line(summary.session.id, 1_000),
        str(summary.entries),
        str(summary.leaves),
        f"{summary.cost_usd:.6f}",
        as_datetime(summary.last_at).isoformat(),
        ",".join(one_line(model) for model in summary.models),
        one_line(summary.title),
    )
    return "\t".join(cells)
