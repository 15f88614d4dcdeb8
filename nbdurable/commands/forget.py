"""``nbdurable forget``: remove a session for good."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nbdurable.commands.places import check_session, existing_path, existing_store, named
from nbdurable.errors import SessionNotFound
from nbdurable.reprs import one_line

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_DESCRIPTION = """\
Remove a session from a store for good: its entries, runs, labels and files, and what no other
session needs. The rest is written to a new file, verified, and put in the old one's place at once.
Nothing else in nbdurable removes anything.

Forks keep their copies, and files made of the session before (backups, exports, copies of a
damaged store) keep its text: those beside the store are named. Other processes that have the store
open must open it again."""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "forget",
        help="remove a session for good, for privacy",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument(
        "--store",
        type=named,
        metavar="STORE",
        help="the store's file, a .jsonl, or postgresql://…",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="tell what would be removed, and change nothing"
    )
    parser.set_defaults(command=_forget)


def _forget(arguments: argparse.Namespace) -> int:
    from nbdurable.stores.forgetting import forget

    path = existing_path(arguments.store)
    try:
        told = forget(path, arguments.session, dry_run=arguments.dry_run)
    except SessionNotFound:
        _name_near_ones(path, arguments.session)
        raise
    for line in told.lines():
        print(one_line(line, 2_000))
    return 0


def _name_near_ones(path: str, session_id: str) -> None:
    from nbdurable.stores import release_store

    store = existing_store(path)
    try:
        check_session(store, session_id)
    finally:
        release_store(store)
