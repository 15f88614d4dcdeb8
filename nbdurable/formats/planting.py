"""Planting: drafts to a tree of stored entries, checked and with ids that are always the same.

Owns what a legal tree is, its order and its ids. Does not own readers or stores. The one idea: an
id is made of what the source calls the entry, or else of its place and content, so that the same
file gives the same entries, wherever and however often it is read.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from nbdurable.annotations import preference_value
from nbdurable.blocks import Blob, Json
from nbdurable.codec import blobs_in, encode
from nbdurable.entries import CompactionEntry, MessageEntry
from nbdurable.errors import BadPayload, shown
from nbdurable.formats.drafts import Conversation, Draft, Said
from nbdurable.ids import derived_id
from nbdurable.stored import Annotation, StoredEntry
from nbdurable.wire import clean, dumps

Hidden = Literal["meta", "skip"]

SOURCE = "source"  # key of a payload, and name of the annotation, for what has no place
_MARK = f',"{SOURCE}":'  # in the text of a payload


@dataclass(slots=True)
class Planted:
    """A conversation as it can be stored; ``leaf_id`` None is the root.

    ``odd`` are pairs of a source's id, or None, and what is odd. ``repaired`` counts entries that
    hang elsewhere, or hold other text, than the source says.
    """

    entries: list[StoredEntry] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    leaf_id: str | None = None
    leaves: int = 0
    hidden: int = 0
    repaired: int = 0
    odd: list[tuple[str | None, str]] = field(default_factory=list)


def plant(
    found: Conversation,
    session_id: str,
    format: str,
    *,
    now: int,
    hidden: Hidden = "meta",
    known: Mapping[str, StoredEntry] | None = None,
) -> Planted:
    """Return a conversation as entries of a session, parents first.

    Parameters
    ----------
    found : Conversation
        As a reader found it.
    session_id : str
        The session's id, which ids of entries are made of.
    format : str
        The format's name, likewise.
    now : int
        Microseconds since the epoch: the time of entries for which the source has none at all.
    hidden : str
        ``"meta"`` keeps what the source hides, ``"skip"`` leaves it out.
    known : mapping, optional
        The entries of the session that are stored already. One whose content is another now is
        planted as a sibling of what is stored.
    """
    return _Planting(found, session_id, format, now, hidden, known or {}).done()


class _Planting:
    def __init__(
        self,
        found: Conversation,
        session_id: str,
        format: str,
        now: int,
        hidden: Hidden,
        known: Mapping[str, StoredEntry],
    ) -> None:
        self._found = found
        self._session_id = session_id
        self._format = format
        self._now = now
        self._hidden = hidden
        self._known = known
        self._made = Planted(odd=list(found.odd))
        self._drafts: dict[str, Draft] = {}
        self._parents: dict[str, str | None] = {}  # of the drafts that become entries
        self._passed: dict[str, str | None] = {}  # keys of nodes that do not
        self._ids: dict[str, str] = {}

    def done(self) -> Planted:
        """Return what was made; to be called once."""
        self._sort_out()
        self._find_parents()
        self._cut_rings()
        order = self._ordered()
        for key in order:
            self._add(key)
        above = set(self._parents.values())
        leaves = [key for key in order if key not in above]
        self._made.leaves = len(leaves)
        self._made.leaf_id = self._leaf_id(leaves)
        self._say(order)
        return self._made

    def _note(self, key: str | None, what: str, *, repaired: bool = False) -> None:
        self._made.odd.append((key, what))
        self._made.repaired += repaired

    # -- the tree ------------------------------------------------------------------------------

    def _sort_out(self) -> None:
        """Tell entries from what only links them; a key that comes twice becomes two."""
        for draft in self._found.drafts:
            key, count = draft.key, 1
            while key in self._drafts or key in self._passed:
                count += 1
                key = f"{draft.key}#{count}"
            if count > 1:
                self._note(draft.key, f"the id comes again; it is {shown(key)} here", repaired=True)
            if draft.entry is None or (draft.is_hidden and self._hidden == "skip"):
                self._passed[key] = draft.parent
                self._made.hidden += draft.is_hidden
                continue
            self._made.hidden += draft.is_hidden
            self._drafts[key] = replace(draft, key=key) if count > 1 else draft

    def _find_parents(self) -> None:
        for key, draft in self._drafts.items():
            parent, seen = draft.parent, {key}
            while parent is not None and parent in self._passed and parent not in seen:
                seen.add(parent)
                parent = self._passed[parent]
            if parent is not None and parent not in self._drafts:
                told = "in a ring of parents" if parent in seen else "missing"
                what = f"the parent {shown(parent)} is {told}; it is a root"
                self._note(key, what, repaired=True)
                draft.source["missing_parent"] = parent
                parent = None
            self._parents[key] = parent

    def _cut_rings(self) -> None:
        done: set[str] = set()
        for start in self._parents:
            walked: dict[str, None] = {}
            key: str | None = start
            while key is not None and key not in done and key not in walked:
                walked[key] = None
                key = self._parents[key]
            if key is not None and key in walked:
                first = self._first_of_ring(key)
                self._note(first, "its parents form a ring; it is a root", repaired=True)
                self._drafts[first].source["missing_parent"] = self._parents[first]
                self._parents[first] = None
            done.update(walked)

    def _first_of_ring(self, member: str) -> str:
        ring, key = [member], self._parents[member]
        while key is not None and key != member:
            ring.append(key)
            key = self._parents[key]
        return min(ring, key=lambda one: (self._drafts[one].at or 0, one))

    def _ordered(self) -> list[str]:
        """Return the keys parents first, else by time where the format goes by it, or by place."""
        children: dict[str | None, list[str]] = {}
        place = {key: i for i, key in enumerate(self._drafts)}
        for key, parent in self._parents.items():
            children.setdefault(parent, []).append(key)
        times: dict[str | None, int] = {None: self._found.at or 0}

        def rank(key: str, parent: str | None) -> tuple[int, int]:
            times[key] = self._drafts[key].at or times[parent]
            return (times[key] if self._found.by_time else 0, place[key])

        waiting = [(rank(key, None), key) for key in children.get(None, ())]
        heapq.heapify(waiting)
        order = []
        while waiting:
            _, key = heapq.heappop(waiting)
            order.append(key)
            for child in children.get(key, ()):
                heapq.heappush(waiting, (rank(child, key), child))
        return order

    # -- entries -------------------------------------------------------------------------------

    def _add(self, key: str) -> None:
        draft, parent = self._drafts[key], self._parents[key]
        entry = draft.entry
        assert entry is not None  # those without one were passed over
        if isinstance(entry, CompactionEntry):
            entry = self._compaction(draft, entry)
        elif isinstance(entry, MessageEntry) and draft.is_hidden and not entry.meta:
            entry = replace(entry, meta=True)
        try:
            stored = encode(
                entry,
                id="",
                session_id=self._session_id,
                parent_id=None if parent is None else self._ids[parent],
                created_at=draft.at or self._time_above(parent),
                moves_leaf=False,
                source_id=_plain(draft.key),
                as_json=quick_dumps,
            )
            payload = _with_source(stored.payload, draft.source)
        except BadPayload as exc:  # nothing a reader takes from JSON can be that
            self._note(key, f"it cannot be stored: {exc}")
            self._ids[key] = "" if parent is None else self._ids[parent]
            return
        if stored.payload.endswith('"repaired":true}'):
            self._note(key, "it holds half a character, which is \ufffd here", repaired=True)
        stored = self._named(draft, stored, payload)
        self._ids[key] = stored.id
        self._made.entries.append(stored)
        self._made.blobs += blobs_in(entry)

    def _compaction(self, draft: Draft, entry: CompactionEntry) -> CompactionEntry:
        kept = draft.kept_key
        while kept is not None and kept in self._passed:
            kept = self._passed[kept]
        if kept is not None and kept not in self._ids:
            self._note(draft.key, f"the first entry that it keeps, {shown(kept)}, is not above it")
            draft.source["first_kept"] = kept
        return replace(entry, first_kept_id=self._ids.get(kept) if kept is not None else None)

    def _time_above(self, parent: str | None) -> int:
        while parent is not None:
            at = self._drafts[parent].at
            if at:
                return at
            parent = self._parents[parent]
        return self._found.at or self._now

    def _named(self, draft: Draft, stored: StoredEntry, payload: str) -> StoredEntry:
        """Return an entry under its id; that of another version where it is stored differently."""
        parts = [self._format, self._session_id, draft.key]
        if not draft.is_named:
            parts.append(_content(stored.kind, payload))
        id = derived_id(draft.at or 0, *parts)
        before = self._known.get(id)
        content = "" if before is None else _content(stored.kind, payload)
        if before is not None and _content(before.kind, before.payload) != content:
            version = derived_id(draft.at or 0, *parts, content)
            if version not in self._known:
                told = f"it is other than when it was imported as #{before.n}"
                why = "changed in the source, or more is read of it now"
                self._note(draft.key, f"{told}: {why}; both are kept")
            id = version
        return stored._replace(id=id, payload=payload)

    # -- beside --------------------------------------------------------------------------------

    def _leaf_id(self, leaves: list[str]) -> str | None:
        """Return the id of the position: the source's, else that of the newest whole branch."""
        leaf = self._found.leaf
        while leaf is not None and leaf in self._passed:
            leaf = self._passed[leaf]
        if leaf is not None and leaf in self._ids:
            return self._ids[leaf]
        whole = [key for key in leaves if not self._is_torn(key)] or leaves
        newest = self._ids[whole[-1]] if whole else None
        if self._found.leaf is not None:
            at = f"the newest branch, {shown(whole[-1])}" if whole else "the root"
            told = f"the position {shown(self._found.leaf)} is not there; it is {at} now"
            self._note(None, told, repaired=True)
        return newest

    def _is_torn(self, key: str) -> bool:
        above: str | None = key
        while above is not None:
            key, above = above, self._parents[above]
        return "missing_parent" in self._drafts[key].source

    def _say(self, order: list[str]) -> None:
        first = next((key for key in order if self._ids[key]), None)
        about: list[Said] = list(self._found.said)
        named = {"title": self._found.title, SOURCE: self._found.source}
        for name, value in named.items():
            if value and first is not None:
                about.append(Said(first, name, value, at=self._found.at))
            elif value:
                self._note(None, f"without an entry its {name} is kept nowhere: {shown(value)}")
        for said in about:
            self._annotate(said)

    def _annotate(self, said: Said) -> None:
        target = self._ids.get(said.key)
        over = [self._ids[key] for key in said.over if key in self._ids]
        if not target or (said.over and not over):
            self._note(said.key, f"a {said.name} of what is no entry is left out")
            return
        value = dumps(preference_value(over) if said.over else said.value)
        at = said.at or self._drafts[said.key].at or self._found.at
        parts = (self._format, target, said.name, value, said.by or "", str(said.at or 0))
        self._made.annotations.append(
            Annotation(
                id=derived_id(at or 0, "annotation", *parts),
                session_id=self._session_id,
                target_id=target,
                name=said.name,
                value_json=value,
                created_at=at or self._now,
                by=said.by,
                note=said.note,
            )
        )


def quick_dumps(wire: Json) -> str:
    """Return what `dumps` does of a message; in a third of the time where all it says is text."""
    if not isinstance(wire, dict):
        return dumps(wire)
    blocks = wire.get("blocks")
    if not (isinstance(blocks, list) and blocks and all(map(_is_text, blocks))):
        return dumps(wire)
    try:
        said = _quick_writer()(blocks).decode()
    except ValueError:  # half a character
        return dumps(wire)
    # Numbers are not the other writer's: it has its own way with those that are not whole.
    return dumps({**wire, "blocks": None}).replace('"blocks":null', f'"blocks":{said}', 1)


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and len(block) == 2 and block.get("type") == "text"


@cache
def _quick_writer() -> Callable[[Any], bytes]:
    from pydantic_core import to_json  # takes a while to import

    return to_json


def _plain(key: str) -> str:
    return (clean(key) or "").replace("\0", "\ufffd")


def _with_source(payload: str, source: Mapping[str, Json]) -> str:
    """Return a payload that holds what has no place; an opaque one has it all already."""
    if not source or not payload.startswith('{"v":'):
        return payload
    return f"{payload[:-1]}{_MARK}{dumps(dict(source))}}}"


def _content(kind: str, payload: str) -> str:
    """Return a digest of what an entry says, what has no place apart."""
    if _MARK in payload and payload.startswith('{"v":'):
        wire = json.loads(payload)
        wire.pop(SOURCE, None)
        payload = dumps(wire)
    return hashlib.sha256(f"{kind}\0{payload}".encode()).hexdigest()
