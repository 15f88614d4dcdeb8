"""Forgetting a session, for privacy: the only removal there is, and what it comes to.

Owns what is asked and what is told. Does not own how a kind of store does it. The one idea: a
session is gone when no byte of the store holds its text, and whoever asked is told of every other
place that is known to hold it, and that there may be more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from nbdurable.errors import StoreError, shown

_PARTS = {
    "entries": ("entry", "entries"),
    "moves": ("move", "moves"),
    "runs": ("run", "runs"),
    "annotations": ("annotation", "annotations"),
    "experiments": ("experiment", "experiments"),
    "contexts": ("system text", "system texts"),
    "blobs": ("file or image", "files or images"),
}
_MOST_NAMED = 20
COPIES = """
    select o.session_id, count(distinct o.id) from {nbd}.entries o
    join {nbd}.entries e
        on e.session_id = $1 and o.created_at = e.created_at and o.payload = e.payload
    where o.session_id <> $1 group by o.session_id order by min(o.seq)
"""
"""Which other sessions hold entries equal to those of one, and how many; ``nbd`` is the schema."""
NOT_KNOWN = (
    "copies made elsewhere (by backup, export, copy or hand)",
    "outputs of notebooks in other folders",
    "running kernels",
    "what the model's provider keeps",
    "snapshots and freed blocks of the disk",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten, or would be, and where its text still is.

    Attributes
    ----------
    store, session_id : str
        What was asked for.
    is_dry_run : bool
        Nothing was changed.
    removed : mapping
        Rows by table, such as ``entries``.
    kept_sessions, kept_entries : int
        What stays in the store, and was verified.
    copies : mapping
        Sessions of the store that hold copies of entries, such as forks, with their number.
    shared_blobs : int
        Files and images that stay, as other sessions hold them too.
    imported : int
        Entries that came from an export of another program, which still holds them.
    found_in, unread : tuple of str
        Files that hold its text, and files that may, as they could not be looked into.
    open_in : tuple of int
        Processes that have the store open, and must open it again.
    not_known : tuple of str
        Where nobody looked.
    """

    store: str
    session_id: str
    is_dry_run: bool
    removed: Mapping[str, int]
    kept_sessions: int
    kept_entries: int
    copies: Mapping[str, int] = field(default_factory=dict)
    shared_blobs: int = 0
    imported: int = 0
    found_in: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    open_in: tuple[int, ...] = ()
    not_known: tuple[str, ...] = NOT_KNOWN

    def lines(self) -> list[str]:
        """Return what is told of it to a person, line by line."""
        return [*self._done(), *self._elsewhere(), *self._listed()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _done(self) -> list[str]:
        parts = [
            f"{number:,} {_PARTS[table][number != 1]}"
            for table, number in self.removed.items()
            if number and table in _PARTS
        ]
        what = ", ".join(parts) or "no entries"
        verb = "would be forgotten" if self.is_dry_run else "is forgotten"
        rest = "stay as they are" if self.is_dry_run else "are as they were, all verified"
        kept = f"other sessions ({self.kept_sessions:,}, with {self.kept_entries:,} entries) {rest}"
        return [f"session {shown(self.session_id)} {verb} in {self.store} ({what})", kept]

    def _elsewhere(self) -> list[str]:
        lines = []
        if self.copies:
            named = [f"{shown(id)} ({number:,})" for id, number in self.copies.items()]
            lines.append(
                "copies of its entries stay in other sessions, to be forgotten one by one: "
                + _cut(named)
            )
        if self.shared_blobs:
            lines.append(
                f"files or images that stay, as other sessions hold them: {self.shared_blobs:,}"
            )
        if self.imported:
            lines.append(f"imported entries: {self.imported:,}; the export they came from has them")
        if self.open_in:
            pids = _cut(list(map(str, self.open_in)))
            lines.append(
                f"open in other processes (PID {pids}): there, close all sessions of the store, "
                "or restart the kernel, and open it again"
            )
        return lines

    def _listed(self) -> list[str]:
        lines = [f"its text is still in {file}" for file in self.found_in]
        lines += [f"its text may be in {file}, which cannot be looked into" for file in self.unread]
        return [*lines, "not looked at: " + "; ".join(self.not_known)]


def _cut(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def forget(store: str | os.PathLike[str], session_id: str, *, dry_run: bool = False) -> Forgotten:
    """Remove a session from a store for good, for privacy; all else stays and is verified.

    The rest is written to a new file, which takes the old one's place at once. Other processes
    that have the store open get an error at their next step, and open it again.

    Parameters
    ----------
    store : path
        A DuckDB file or a ``.jsonl`` that this process does not have open, or a
        ``postgresql://`` address.
    session_id : str
        Its session.
    dry_run : bool
        Change nothing, and tell what would be done.

    Returns
    -------
    Forgotten
        What was done, and where copies are known, or may be.

    Raises
    ------
    SessionNotFound
        The store has no such session.
    StoreError
        It could not be done, or an answer of the session is on its way; nothing was changed.
    """
    if not isinstance(store, str | os.PathLike) or store == ":memory:":
        raise StoreError(
            f"store {shown(store)} is no path; close it and give that of its file (a memory store "
            "keeps nothing once it is closed)"
        )
    where = os.fspath(store)
    if "://" in where:
        return _forget_in_database(where, session_id, dry_run=dry_run)
    path = os.path.realpath(os.path.expanduser(where))
    if not os.path.exists(path):
        raise StoreError(f"store {shown(where)} is not there; give the path of a store's file")
    if path.endswith(".jsonl"):
        from nbdurable.stores.jsonl.forgetting import forget_in_recording

        return forget_in_recording(path, session_id, dry_run=dry_run)
    from nbdurable.stores.duckdb.forgetting import forget_in_file

    return forget_in_file(path, session_id, dry_run=dry_run)


def _forget_in_database(address: str, session_id: str, *, dry_run: bool) -> Forgotten:
    from nbdurable.stores import open_store, release_store

    store = open_store(address, for_reading=True)
    try:
        from nbdurable.stores.postgres import PostgresStore

        assert isinstance(store, PostgresStore)
        return store.forget(session_id, dry_run=dry_run)
    finally:
        release_store(store)
