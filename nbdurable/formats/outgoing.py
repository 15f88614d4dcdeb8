"""What an export is made of: a session as values, cut to a path and redacted before it is written.

Owns the one way from a session to an exporter. Does not own files or forms. The one idea: a form
that loses something is made of what a recording would hold, so that all of them cut and redact
alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from nbdurable.annotations import Annotations, Marks
from nbdurable.blocks import FileBlock
from nbdurable.codec import decode
from nbdurable.entries import Entry
from nbdurable.formats.picking import as_map
from nbdurable.formats.planting import SOURCE
from nbdurable.formats.redaction import Redact, Redactor
from nbdurable.loaded import Loaded
from nbdurable.outline import position
from nbdurable.stored import Context, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import Section, along, section_of
from nbdurable.tree import Tree


class Outgoing:
    """A session on its way out; ``leaf_id`` is its position, or the end of the one path."""

    def __init__(self, section: Section, fetch: Callable[[str], bytes]) -> None:
        self.section = section
        self.fetch = fetch
        self.stored = section.entries
        self.entries: tuple[Entry, ...] = tuple(decode(entry, fetch) for entry in self.stored)
        self.tree: Tree[Entry] = Tree(self.entries)
        self.leaf_id = position(self.stored, section.beside.moves)

    @property
    def id(self) -> str:
        """The session's id."""
        return self.section.session.id

    @cached_property
    def annotations(self) -> Annotations:
        """What is said of the entries."""
        return Annotations(self.section.beside.annotations)

    @cached_property
    def marks(self) -> dict[str, Marks]:
        """Labels and ratings by entry id."""
        return self.annotations.marks()

    @cached_property
    def title(self) -> str:
        """The title that came with the session, or nothing."""
        found = self._said("title")
        return found if isinstance(found, str) else ""

    @cached_property
    def source(self) -> Mapping[str, Any]:
        """What an import kept of the session that has no place elsewhere."""
        found = self._said(SOURCE)
        return found if isinstance(found, dict) else {}

    def _said(self, name: str) -> Any:
        said = [note for note in self.annotations.counting() if note.name == name]
        return _parsed(said[-1].value_json) if said else None

    def source_of(self, entry: Entry) -> Mapping[str, Any]:
        """Return what an import kept of an entry that has no place elsewhere."""
        found = self._sources.get(entry.id)
        return found if isinstance(found, dict) else {}

    @cached_property
    def _sources(self) -> dict[str, Any]:
        mark = f',"{SOURCE}":'
        return {
            entry.id: as_map(_parsed(entry.payload)).get(SOURCE)
            for entry in self.stored
            if mark in entry.payload and entry.payload.startswith('{"v":')
        }

    def context_of(self, entry: Entry) -> Context | None:
        """Return system text and tools of the run that made an entry."""
        digest = self._digests.get(entry.run_id or "")
        return self._contexts.get(digest or "")

    @cached_property
    def _digests(self) -> dict[str, str | None]:
        return {run.id: run.context_digest for run in self.section.beside.runs}

    @cached_property
    def _contexts(self) -> dict[str, Context]:
        return {context.digest: context for context in self.section.beside.contexts}


def outgoing(image: Loaded, leaf_id: str | None = None, redact: Redact | None = None) -> Outgoing:
    """Return a session as it leaves, or the path to one of its entries."""
    return outgoing_of(image.store, image.session_id, leaf_id, redact)


def outgoing_of(
    store: Store, session_id: str, leaf_id: str | None = None, redact: Redact | None = None
) -> Outgoing:
    """Return a session of a store as it leaves; see `outgoing`."""
    section, fetch = section_of(store, session_id), store.get_blob
    if leaf_id is not None:
        section = along(section, _path(section.entries, leaf_id))
    if redact is not None:
        redactor = Redactor(redact, fetch)
        section, fetch = redactor.section(section), redactor.fetch
    return Outgoing(section, fetch)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # another version, or an import, wrote it


def file_text(block: FileBlock) -> str:
    """Return what is told of a file where only text can stand: all of it, or what it is."""
    name = block.name or "file"
    if block.media_type.startswith("text/"):
        return f"File {name}:\n\n{block.data.decode('utf-8', 'replace')}"
    return f"[{name}: {block.media_type}, {block.blob.size_bytes} bytes]"


def _path(entries: tuple[StoredEntry, ...], leaf_id: str) -> list[StoredEntry]:
    return Tree(entries).path(leaf_id)
