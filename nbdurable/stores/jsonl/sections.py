"""Sections: all that a store holds of one session, as values.

Owns what a section is, how it is read from a store, cut to one path, and added to a store. Does
not own lines or files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from nbdurable.blocks import Json
from nbdurable.errors import SessionNotFound, StoreError
from nbdurable.stored import NOTHING, Beside, Context, Move, SessionRecord, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.beside import in_order

_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One session; ``entries`` and ``beside.moves`` merge by their ``seq``.

    ``line`` is where it began in its file, 0 where it came from none.
    """

    session: SessionRecord
    entries: tuple[StoredEntry, ...] = ()
    beside: Beside = NOTHING
    line: int = 0

    def timeline(self) -> list[StoredEntry | Move]:
        """Return entries and moves in the order they were stored."""
        return list(in_order(self.entries, self.beside.moves))


def section_of(store: Store, session_id: str) -> Section:
    """Return all that a store holds of a session.

    Entries are read last, so that what names one finds it, also while others write.

    Raises
    ------
    SessionNotFound
        No such session.
    """
    runs = store.load_runs(session_id)
    digests = {run.context_digest: None for run, _ in runs if run.context_digest}
    beside = Beside(
        runs=tuple(run for run, _ in runs),
        ends=tuple(end for _, end in runs if end is not None),
        contexts=tuple(_known_contexts(store, digests)),
        annotations=tuple(store.load_annotations(session_id)),
        experiments=tuple(store.load_experiments(session_id)),
        moves=tuple(store.load_moves(session_id)),
    )
    return Section(
        session=store.load_session(session_id),
        entries=tuple(store.load_entries(session_id)),
        beside=beside,
    )


def _known_contexts(store: Store, digests: Iterable[str]) -> Iterator[Context]:
    for digest in digests:
        try:
            yield store.load_context(digest)
        except StoreError as exc:
            if type(exc) is not StoreError:
                raise
            # a run may have been stored without its context, by another program


def along(section: Section, path: Iterable[StoredEntry]) -> Section:
    """Return the part of a section that belongs to one path, which then is its position.

    A run belongs to it when it made one of its entries; the end of a run is left out where the
    path leaves before it, as it did not end there.
    """
    kept = [entry._replace(seq=seq, n=seq) for seq, entry in enumerate(path, 1)]
    ids = {entry.id for entry in kept}
    run_ids = {entry.run_id for entry in kept}
    whole = section.beside
    runs = tuple(run for run in whole.runs if run.id in run_ids)
    digests = {run.context_digest for run in runs}
    plans = {run.experiment_id for run in runs}
    beside = Beside(
        runs=runs,
        ends=tuple(
            end
            for end in whole.ends
            if end.run_id in run_ids and (end.leaf_id is None or end.leaf_id in ids)
        ),
        contexts=tuple(context for context in whole.contexts if context.digest in digests),
        annotations=tuple(note for note in whole.annotations if note.target_id in ids),
        experiments=tuple(plan for plan in whole.experiments if plan.id in plans),
    )
    part = replace(section, entries=tuple(kept), beside=beside)
    leaf = kept[-1] if kept else None
    if leaf is not None and not leaf.moves_leaf:
        session_id, at = section.session.id, leaf.created_at
        move = Move(session_id=session_id, entry_id=leaf.id, seq=len(kept), created_at=at)
        part = replace(part, beside=replace(beside, moves=(move,)))
    return part


def blobs_of(entry: StoredEntry) -> list[str]:
    """Return the hashes of the bytes that a message keeps beside it, in order."""
    if entry.kind != "message" or '"sha256"' not in entry.payload:
        return []
    try:
        wire = json.loads(entry.payload)
    except (ValueError, RecursionError):
        return []
    return list(dict.fromkeys(_hashes(wire)))


def _hashes(wire: Json) -> Iterator[str]:
    rest = [wire]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            found = item.get("sha256")
            if "size" in item and isinstance(found, str) and _SHA256.fullmatch(found):
                yield found
            rest.extend(reversed(item.values()))
        elif isinstance(item, list):
            rest.extend(reversed(item))


# -- into a store ------------------------------------------------------------------------------

Outcome = Literal["added", "grown", "unchanged", "refused"]
_TOLD = 3  # entries that one session tells of
_BLANK = StoredEntry("", "", None, "", "", 0)
# The columns that say of a payload what it says itself.
_READ = {
    name: getattr(_BLANK, name)
    for name in (
        "role meta model stop_reason input_tokens output_tokens cache_read_tokens "
        "cache_write_tokens reasoning_tokens cost_usd seconds ttft_s preview"
    ).split()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What became of one section: how many entries are new, and what was odd about it."""

    outcome: Outcome
    entries: int = 0
    told: str | None = None


def add(store: Store, section: Section) -> Addition:
    """Add a section to a store in one transaction: a new session, or what a known one lacks.

    Where the session went on in the store too, new entries are added and its position stays.

    Raises
    ------
    StoreError
        The store failed; nothing of the section was stored.
    EntryError, EntryNotFound
        The store refused the section; nothing of it was stored.
    """
    session_id = section.session.id
    try:
        here = section_of(store, session_id)
    except SessionNotFound:
        kept = store.create_session(section.session, section.entries, beside=section.beside)
        return Addition(outcome="added", entries=len(kept))
    return _grow(store, section, here)


def _grow(store: Store, section: Section, here: Section) -> Addition:
    known = {entry.id: entry for entry in here.entries}
    odd: list[str] = []
    for entry in section.entries:
        stored = known.get(entry.id, entry)
        if _content(entry) == _content(stored):
            continue
        if _said(entry) != _said(stored):
            what = f"entry #{stored.n} ({entry.id}) is here with another content"
            return Addition(outcome="refused", told=f"{what}; nothing of the session was added")
        odd.append(_read_otherwise(entry, stored))
    fresh = tuple(entry for entry in section.entries if entry.id not in known)
    beside = _lacking(section.beside, here.beside)
    if _is_ahead(section, here):
        beside = replace(beside, moves=section.beside.moves[len(here.beside.moves) :])
    elif fresh:
        fresh = tuple(entry._replace(moves_leaf=False) for entry in fresh)
        odd.append("the session went on here too; what is new stands beside it, its position stays")
    told = "; ".join(odd[:_TOLD]) or None
    if not fresh and beside == NOTHING:
        return Addition(outcome="unchanged", told=told)
    kept = store.append(section.session.id, fresh, beside=beside)
    return Addition(outcome="grown", entries=len(kept), told=told)


def _content(entry: StoredEntry) -> StoredEntry:
    return entry._replace(seq=0, n=0, depth=0, digest="", moves_leaf=None)


def _said(entry: StoredEntry) -> StoredEntry:
    """Return an entry without the columns that are read of its payload."""
    return _content(entry)._replace(**_READ)


def _read_otherwise(entry: StoredEntry, stored: StoredEntry) -> str:
    """Say of an entry whose payload is stored as it is that more, or less, was read of it then."""
    names = [name for name in _READ if getattr(entry, name) != getattr(stored, name)]
    what = f"entry #{stored.n} was stored by a version that read its {', '.join(names)} otherwise"
    return f"{what}; it stays as it is stored"


def _lacking(given: Beside, here: Beside) -> Beside:
    """Return what is given and not here, contexts and moves apart."""
    runs, ends = {run.id for run in here.runs}, {end.run_id for end in here.ends}
    notes = {note.id for note in here.annotations}
    plans = {replace(plan, counter=0) for plan in here.experiments}  # a plan grows under its id
    lacking = Beside(
        runs=tuple(run for run in given.runs if run.id not in runs),
        ends=tuple(end for end in given.ends if end.run_id not in ends),
        annotations=tuple(note for note in given.annotations if note.id not in notes),
        experiments=tuple(
            plan for plan in given.experiments if replace(plan, counter=0) not in plans
        ),
    )
    return replace(lacking, contexts=given.contexts) if lacking.runs else lacking


def _is_ahead(section: Section, here: Section) -> bool:
    """Whether all that happened here is how the section began."""
    mine, theirs = here.timeline(), section.timeline()
    return len(mine) <= len(theirs) and all(map(_is_same, mine, theirs))


def _is_same(mine: StoredEntry | Move, theirs: StoredEntry | Move) -> bool:
    if isinstance(mine, Move) or isinstance(theirs, Move):
        return (
            isinstance(mine, Move)
            and isinstance(theirs, Move)
            and (mine.entry_id, mine.created_at) == (theirs.entry_id, theirs.created_at)
        )
    return mine.id == theirs.id
