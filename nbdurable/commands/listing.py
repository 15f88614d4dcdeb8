"""``nbdurable ls``: the sessions of a store, as a table or as lines."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from nbdurable.commands.places import console, existing_store
from nbdurable.ids import as_datetime
from nbdurable.reprs import joined, model_name, money, one_line

if TYPE_CHECKING:
    from nbdurable.stored import SessionSummary


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
    console().print(_table(summaries))
    return 0


def _table(summaries: list[SessionSummary]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("session", no_wrap=True, max_width=32)
    for name in ("entries", "branches", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("last used (UTC)", no_wrap=True)
    table.add_column("models", no_wrap=True, max_width=28)
    table.add_column("begins", no_wrap=True, ratio=1)
    for summary in summaries:
        cells = (
            one_line(summary.session.id),
            f"{summary.entries:,}",
            f"{summary.leaves:,}",
            money(summary.cost_usd),
            f"{as_datetime(summary.last_at):%Y-%m-%d %H:%M}",
            joined(map(model_name, summary.models)),
            one_line(summary.title),
        )
        table.add_row(*(Text(cell, overflow="ellipsis") for cell in cells))
    return table


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
