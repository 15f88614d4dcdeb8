"""What commands share: the store that is meant, its sessions, and where to write to."""

from __future__ import annotations

import argparse
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


def named(text: str) -> str:
    """Return a path that was given; refuse an empty one, as of ``"$CHATS"`` without a value.

    Left to itself it would mean the default store, or the working folder.
    """
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; give one, or leave it out")
    return text


def named_file(text: str) -> str:
    """Return the path of a file that was given; refuse what is none."""
    if "://" in text or text == ":memory:":
        raise argparse.ArgumentTypeError("this is no file; give the path of one")
    return named(text)


def existing_store(given: str | None) -> Store:
    """Open the store, which must be there: looking never creates one."""
    from nbdurable.stores import open_store

    return open_store(existing_path(given))


def named_store(given: str | None) -> str:
    """Return the store that is meant, be it there or not."""
    from nbdurable.stores import default_store

    return given or default_store()


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
    near = difflib.get_close_matches(session_id, ids, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(map(shown, near))}?" if near else _present(ids)
    raise SessionNotFound(
        f"session {shown(session_id)} is not in store {shown(store.name)} "
        f"({count(len(ids), 'session')}); {hint}"
    )


def _present(ids: list[str]) -> str:
    if not ids:
        return "it has no sessions yet"
    return f"it has {', '.join(map(shown, ids[:3]))}{', …' if ids[3:] else ''}"


def console() -> Console:
    """Return where to write what is more than lines."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # for main() to end with, as for commands that print lines

    # a pipe has no width: give long lines room instead of cutting them at 80
    is_sized = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Piped(highlight=False, width=None if is_sized else 160)
