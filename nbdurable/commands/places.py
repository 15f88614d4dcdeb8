"""What commands share: the store that is meant, its sessions, and where to write to."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nbdurable.errors import SessionNotFound, StoreError, shown
from nbdurable.reprs import count

if TYPE_CHECKING:
    from rich.console import Console

    from nbdurable.stores.base import Store

DEFAULT_STORE = "nbdurable.duckdb"


def existing_store(given: str | None) -> Store:
    """Open the store, which must be there: looking never creates one."""
    from nbdurable.stores import open_store

    return open_store(existing_path(given))


def named_store(given: str | None) -> str:
    """Return the store that is meant, be it there or not."""
    return given or os.environ.get("NBDURABLE_STORE") or DEFAULT_STORE


def existing_path(given: str | None) -> str:
    """Return the store that is meant, which must be there, or raise `StoreError`."""
    path = named_store(given)
    is_file = "://" not in path
    if is_file and not Path(path).exists():
        raise StoreError(
            f"store {shown(path)} is not there; give the path of a store, or set NBDURABLE_STORE"
        )
    return path


def check_session(store: Store, session_id: str) -> None:
    """Raise `SessionNotFound`, naming near ones, unless a store has a session."""
    ids = [summary.session.id for summary in store.list_sessions()]
    if session_id in ids:
        return
    near = difflib.get_close_matches(session_id, ids, n=3, cutoff=0.5) or ids[:3]
    hint = f"did you mean {', '.join(map(shown, near))}?" if near else "it has no sessions yet"
    raise SessionNotFound(
        f"session {shown(session_id)} is not in store {shown(store.name)} "
        f"({count(len(ids), 'session')}); {hint}"
    )


def console() -> Console:
    """Return where to write what is more than lines."""
    from rich.console import Console

    # a pipe has no width: give long lines room instead of cutting them at 80
    is_sized = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if is_sized else 160)
