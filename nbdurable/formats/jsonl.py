"""The format ``jsonl``: recordings, which hold sessions without loss.

Owns what is exported to and imported from one; how it is written is `nbdurable.stores.jsonl`'s.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nbdurable.errors import EntryError, ImportFormatError, TreeError
from nbdurable.formats.importing import Target
from nbdurable.formats.redaction import Redact, Redactor
from nbdurable.formats.report import ImportedSession, ImportReport, Oddity
from nbdurable.loaded import Loaded
from nbdurable.reprs import count
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import (
    Addition,
    Section,
    add,
    along,
    is_recording,
    lines_of,
    opened,
    section_of,
    write_recording,
)
from nbdurable.tree import Tree

is_ours = is_recording


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write a session, or the path to one of its entries, to a recording."""
    section = section_of(image.store, image.session_id)
    if leaf_id is not None:
        section = along(section, Tree(section.entries).path(leaf_id))
    _write(path, [section], image.store, redact)


def export_store(
    store: Store,
    path: Path,
    session_ids: Iterable[str] | None = None,
    *,
    redact: Redact | None = None,
) -> None:
    """Write sessions of a store to a recording; all of them by default, by their ids.

    Raises
    ------
    SessionNotFound
        One of the ids is of no session; the file is as it was.
    """
    if session_ids is None:
        session_ids = sorted(summary.session.id for summary in store.list_sessions())
    _write(path, (section_of(store, session_id) for session_id in session_ids), store, redact)


def _write(path: Path, sections: Iterable[Section], store: Store, redact: Redact | None) -> None:
    fetch = store.get_blob
    if redact is not None:
        redactor = Redactor(redact, fetch)
        sections, fetch = map(redactor.section, sections), redactor.fetch
    write_recording(path, lines_of(sections, fetch, is_redacted=redact is not None))


def load(path: Path, target: Target) -> ImportReport:
    """Add the sessions of a recording to a store, each in one transaction."""
    with opened(path) as recording:
        store = target()
        report = ImportReport(path=os.fspath(path), format="jsonl", store=store.name)
        try:
            for section in recording.sections(store.put_blob):
                report = _with(report, section, _added(store, section))
        except ImportFormatError as exc:
            before = count(len(report.sessions), "session")
            raise ImportFormatError(f"{exc} ({before} before it, none after, were read)") from exc
    return report


def _added(store: Store, section: Section) -> Addition:
    try:
        return add(store, section)
    except (EntryError, TreeError) as exc:
        return Addition(outcome="refused", told=f"the store refused it: {exc}")


def _with(report: ImportReport, section: Section, addition: Addition) -> ImportReport:
    session_id = section.session.id
    leaves = len(Tree(section.entries).leaves())
    done = ImportedSession(
        id=session_id, outcome=addition.outcome, entries=addition.entries, leaves=leaves
    )
    odd = (
        (Oddity(text=addition.told, line=section.line, session_id=session_id),)
        if addition.told
        else ()
    )
    return replace(report, sessions=(*report.sessions, done), oddities=(*report.oddities, *odd))
