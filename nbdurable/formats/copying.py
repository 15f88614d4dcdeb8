"""Copying sessions from one store to another: to merge stores, to move one, to keep one aside.

Owns which sessions are copied and under which ids. The one idea: a copy without a prefix is the
session itself, so that what is there already is not added again; one under a prefix is another
session, whose ids are always the same for the same source, so that copying again adds nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from nbdurable.annotations import with_ids
from nbdurable.errors import (
    EntryError,
    ImportFormatError,
    SessionNotFound,
    StoreError,
    TreeError,
    shown,
)
from nbdurable.forking import remapped
from nbdurable.formats.importing import Target
from nbdurable.formats.report import ImportedSession, ImportReport, Oddity
from nbdurable.ids import derived_id
from nbdurable.stored import Beside, SessionRecord
from nbdurable.stores import open_store, release_store
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import Addition, Section, add, blobs_of, section_of
from nbdurable.stores.memory import MemoryStore
from nbdurable.tree import Tree

Where = Store | str | os.PathLike[str]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def copy(
    source: Where,
    target: Where,
    *,
    prefix: str = "",
    session_ids: Sequence[str] | None = None,
) -> ImportReport:
    """Copy sessions from one store to another, each in one transaction.

    Parameters
    ----------
    source, target : Store or path
        A ``.jsonl`` may be either; as a target it is made when missing, else replaced as a whole
        by what it held and what is new. A store that is a source must exist.
    prefix : str
        What the ids of the copies begin with; entries get fresh ids then.
    session_ids : sequence of str, optional
        Only these; by default all.

    Returns
    -------
    ImportReport
        What was added, what was not, and why.

    Raises
    ------
    SessionNotFound
        One of the ids is of no session; nothing was copied.
    StoreError
        A store cannot be opened, read or written.
    """
    if "\0" in prefix:
        raise ImportFormatError(f"prefix {shown(prefix)} cannot be used; give text without NUL")
    with _opened(source, must_exist=True) as here, ExitStack() as stack:

        @cache
        def there() -> Store:
            opened = stack.enter_context(_filled(target))
            if here is opened and not prefix:
                raise StoreError(
                    f"store {here.name!r} is source and target; give another target, or a prefix"
                )
            return opened

        return _copied(here, there, prefix, _ids(here, session_ids))


def _ids(store: Store, wanted: Sequence[str] | None) -> list[str]:
    """Return the ids of the sessions to copy, those created first in front."""
    summaries = store.list_sessions()
    known = {summary.session.id: summary.session.created_at for summary in summaries}
    for session_id in wanted or ():
        if session_id not in known:
            raise SessionNotFound(
                f"session {shown(session_id)} is not in store {store.name!r} "
                f"({len(known)} sessions); nothing was copied"
            )
    chosen = known if wanted is None else dict.fromkeys(wanted)
    return sorted(chosen, key=lambda id: (known[id], id))


def _copied(here: Store, there: Target, prefix: str, ids: list[str]) -> ImportReport:
    sessions, oddities = [], []
    for session_id in ids:
        section = section_of(here, session_id)
        if prefix:
            section = renamed(section, prefix, set(ids))
        addition = _added(here, there(), section)
        sessions.append(
            ImportedSession(
                id=section.session.id,
                outcome=addition.outcome,
                entries=addition.entries,
                leaves=len(Tree(section.entries).leaves()),
            )
        )
        if addition.told:
            oddities.append(Oddity(text=addition.told, session_id=section.session.id))
    return ImportReport(
        path=here.name,
        format="store",
        store=there().name,
        sessions=tuple(sessions),
        oddities=tuple(oddities),
    )


def _added(here: Store, there: Store, section: Section) -> Addition:
    for sha256 in dict.fromkeys(sha for entry in section.entries for sha in blobs_of(entry)):
        try:
            there.put_blob(sha256, here.get_blob(sha256))
        except StoreError as exc:
            if type(exc) is not StoreError:
                raise
            # bytes that the source lacks are as missing in the copy
    try:
        return add(there, section)
    except (EntryError, TreeError) as exc:
        return Addition(outcome="refused", told=f"the store refused it: {exc}")


# -- under a prefix ----------------------------------------------------------------------------


def renamed(section: Section, prefix: str, known: set[str]) -> Section:
    """Return a section as another session: its id with the prefix, all other ids fresh (B48).

    Parameters
    ----------
    section : Section
        As loaded.
    prefix : str
        What the new id begins with.
    known : set of str
        Ids of the sessions that are copied: a fork of one of these is one of its copy.
    """
    old, beside = section.session, section.beside
    own = [entry.id for entry in section.entries] + [run.id for run in beside.runs]
    own += [plan.id for plan in beside.experiments] + [note.id for note in beside.annotations]
    fresh = {id: fresh_id(id, prefix) for id in own}
    session_id = prefix + old.id
    return replace(
        section,
        session=_record(old, prefix, known),
        entries=tuple(
            entry._replace(
                id=fresh[entry.id],
                session_id=session_id,
                parent_id=_new(entry.parent_id, fresh),
                # of the session that this one was forked from, perhaps
                run_id=None if entry.run_id is None else fresh_id(entry.run_id, prefix),
                payload=remapped(entry, fresh),
            )
            for entry in section.entries
        ),
        beside=_beside(beside, session_id, fresh),
    )


def fresh_id(id: str, prefix: str) -> str:
    """Return the id of a copy: of the same time, and always the same for one prefix."""
    ms = int(id[:8] + id[9:13], 16) if _UUID.fullmatch(id) else 0
    return derived_id(ms * 1000, "copy", prefix, id)


def _record(old: SessionRecord, prefix: str, known: set[str]) -> SessionRecord:
    parent, entry_id = old.parent_session_id, old.parent_entry_id
    if parent in known:
        parent = prefix + (parent or "")
        entry_id = None if entry_id is None else fresh_id(entry_id, prefix)
    return replace(old, id=prefix + old.id, parent_session_id=parent, parent_entry_id=entry_id)


def _beside(old: Beside, session_id: str, fresh: Mapping[str, str]) -> Beside:
    return Beside(
        moves=tuple(
            replace(move, session_id=session_id, entry_id=_new(move.entry_id, fresh))
            for move in old.moves
        ),
        runs=tuple(
            replace(
                run,
                id=fresh[run.id],
                session_id=session_id,
                start_leaf_id=_new(run.start_leaf_id, fresh),
                input_ids=tuple(fresh.get(id, id) for id in run.input_ids),
                rerun_of=_new(run.rerun_of, fresh),
                experiment_id=_new(run.experiment_id, fresh),
                cell=None if run.cell is None else _within(run.cell, fresh),
            )
            for run in old.runs
        ),
        ends=tuple(
            replace(
                end,
                run_id=fresh.get(end.run_id, end.run_id),
                session_id=session_id,
                leaf_id=_new(end.leaf_id, fresh),
            )
            for end in old.ends
        ),
        contexts=old.contexts,
        annotations=tuple(
            replace(
                note,
                id=fresh[note.id],
                session_id=session_id,
                target_id=fresh.get(note.target_id, note.target_id),
                value_json=with_ids(note, fresh),
            )
            for note in old.annotations
        ),
        experiments=tuple(
            replace(
                plan,
                id=fresh[plan.id],
                session_id=session_id,
                plan_json=_within(plan.plan_json, fresh),
            )
            for plan in old.experiments
        ),
    )


def _new(id: str | None, fresh: Mapping[str, str]) -> str | None:
    return None if id is None else fresh.get(id, id)


def _within(text: str, fresh: Mapping[str, str]) -> str:
    return _UUID.sub(lambda found: fresh.get(found[0], found[0]), text)


# -- stores ------------------------------------------------------------------------------------


@contextmanager
def _opened(where: Where, *, must_exist: bool = False) -> Iterator[Store]:
    path = os.fspath(where) if isinstance(where, str | os.PathLike) else "://"
    if must_exist and "://" not in path and not os.path.exists(path):
        raise StoreError(f"store {shown(path)} is not there; give the path of a store")
    store = open_store(where)
    try:
        yield store
    finally:
        release_store(store)


@contextmanager
def _filled(where: Where) -> Iterator[Store]:
    """Give a store to write to; a ``.jsonl`` is written at the end, with what it held."""
    if not isinstance(where, str | os.PathLike) or not os.fspath(where).endswith(".jsonl"):
        with _opened(where) as store:
            yield store
        return
    from nbdurable.formats import export_store
    from nbdurable.formats.jsonl import load

    store = _Recorded(os.fspath(where))
    if os.path.exists(where) and os.path.getsize(where):
        load(Path(where), lambda: store)
    yield store
    export_store(store, where, "jsonl")


class _Recorded(MemoryStore):
    """What a recording is to hold."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def name(self) -> str:
        """The recording's path."""
        return self._name
