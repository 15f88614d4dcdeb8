"""Where things come from: a session's id, a run's process and, in a notebook, its cell."""

from __future__ import annotations

import os
import secrets
import socket
from datetime import UTC, datetime
from pathlib import Path

from nbdurable.errors import EntryError, shown
from nbdurable.shells import shell
from nbdurable.wire import is_repaired


def new_session_id() -> str:
    """Return a fresh session id: today's date and eight random characters."""
    return f"{datetime.now(UTC):%Y-%m-%d}-{secrets.token_hex(4)}"


def checked_session_id(session_id: object) -> str:
    """Return a session id that is legal, or raise `EntryError` (B9)."""
    if isinstance(session_id, str) and session_id and "\0" not in session_id:
        if not is_repaired(session_id):
            return session_id
    raise EntryError(
        f"session id {shown(session_id)} cannot be used; give text that is not empty and has "
        "neither NUL nor half a character"
    )


def process_token() -> str:
    """Return a text that names this process, also among later ones of the same pid."""
    return f"{socket.gethostname()}/{os.getpid()}/{_started(os.getpid())}"


def is_alive(token: str | None) -> bool:
    """Whether the process of a token still runs; one on another host counts as running."""
    if not token:
        return False
    host, pid, started = token.rsplit("/", 2)
    if host != socket.gethostname():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, under another user
    return _started(int(pid)) == started


def _started(pid: int) -> str:
    """Return when a process started, in the kernel's own ticks; empty where that is not told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def cell_id() -> str | None:
    """Return the id of the notebook cell being executed, where the front end sends one."""
    return cell_execution()[0]


def cell_execution() -> tuple[str | None, str | None]:
    """Return the cell being executed, as `cell_id`, and what names this execution of it."""
    get_parent = getattr(shell(), "get_parent", None)
    try:
        parent = (get_parent() if get_parent is not None else None) or {}
    except LookupError:  # ipykernel 7.0 in a thread, which is of no cell (ipython/ipykernel#1450)
        parent = {}
    cell = (parent.get("metadata") or {}).get("cellId")
    execution = (parent.get("header") or {}).get("msg_id")
    return cell if isinstance(cell, str) else None, execution


def execution_count() -> int | None:
    """Return the number of the cell being executed, or None outside IPython."""
    count = getattr(shell(), "execution_count", None)
    return count if isinstance(count, int) else None
