"""Forget a session of a recording: the rest in a new file, which takes the old one's place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from nbdurable.errors import ImportFormatError, SessionNotFound, StoreError, shown
from nbdurable.stored import StoredEntry
from nbdurable.stores.forgetting import Forgotten
from nbdurable.stores.jsonl.reader import opened
from nbdurable.stores.jsonl.sections import Section, blobs_of
from nbdurable.stores.jsonl.writer import lines_of, write_recording


def forget_in_recording(path: str, session_id: str, *, dry_run: bool = False) -> Forgotten:
    """Forget a session of a recording.

    Raises
    ------
    SessionNotFound
        There is no such session.
    StoreError
        It is no recording, or cannot be written; it is as it was.
    """
    from nbdurable.stores.duckdb.place import replace_file, sync_replaced
    from nbdurable.stores.duckdb.traces import marks_of, traces

    blobs: dict[str, bytes] = {}
    sections, is_redacted = _read(path, blobs)
    rest = [_apart(one, session_id) for one in sections if one.session.id != session_id]
    going = [one for one in sections if one.session.id == session_id]
    if not going:
        raise SessionNotFound(
            f"session {shown(session_id)} is not in recording {path!r} "
            f"({len(sections)} sessions); nothing was changed"
        )
    told = _told(path, going[0], rest, dry_run=dry_run)
    if not dry_run:
        fresh = Path(path).with_name(f".{Path(path).name[:200]}.forget")
        try:
            lines = lines_of(rest, lambda sha256: _held(blobs, sha256), is_redacted=is_redacted)
            write_recording(fresh, lines)
            if _read(str(fresh), {})[0] != rest:
                raise StoreError(f"file {str(fresh)!r} is not as it was written; try again")
            replace_file(str(fresh), path)
            sync_replaced(path)
        finally:
            fresh.unlink(missing_ok=True)
    marks = marks_of((entry.id, entry.payload) for entry in going[0].entries)
    found, unread = traces(path, marks)
    return replace(told, found_in=tuple(found), unread=tuple(unread))


def _read(path: str, blobs: dict[str, bytes]) -> tuple[list[Section], bool]:
    try:
        with opened(Path(path)) as recording:
            sections = [replace(one, line=0) for one in recording.sections(blobs.__setitem__)]
            return sections, recording.is_redacted
    except ImportFormatError as exc:
        raise StoreError(f"file {path!r} is no store: {exc}") from exc


def _held(blobs: dict[str, bytes], sha256: str) -> bytes:
    try:
        return blobs[sha256]
    except KeyError:
        raise StoreError(
            f"blob {shown(sha256)} is not in the recording; nothing holds it"
        ) from None


def _blobs(entries: Iterable[StoredEntry]) -> set[str]:
    return {sha256 for entry in entries for sha256 in blobs_of(entry)}


def _apart(section: Section, session_id: str) -> Section:
    """Return a section that does not name the session as that it was forked from."""
    if section.session.parent_session_id != session_id:
        return section
    record = replace(section.session, parent_session_id=None, parent_entry_id=None)
    return replace(section, session=record)


def _told(path: str, going: Section, rest: Sequence[Section], *, dry_run: bool) -> Forgotten:
    content = {(entry.created_at, entry.payload) for entry in going.entries}
    copies = {
        one.session.id: number
        for one in rest
        if (number := sum((e.created_at, e.payload) in content for e in one.entries))
    }
    own, others = _blobs(going.entries), _blobs(e for one in rest for e in one.entries)
    digests = {run.context_digest for one in rest for run in one.beside.runs}
    contexts = sum(context.digest not in digests for context in going.beside.contexts)
    return Forgotten(
        store=path,
        session_id=going.session.id,
        is_dry_run=dry_run,
        removed={
            "entries": len(going.entries),
            "moves": len(going.beside.moves),
            "runs": len(going.beside.runs),
            "experiments": len(going.beside.experiments),
            "annotations": len(going.beside.annotations),
            "contexts": contexts,
            "blobs": len(own - others),
        },
        kept_sessions=len(rest),
        kept_entries=sum(len(one.entries) for one in rest),
        copies=copies,
        shared_blobs=len(own & others),
        imported=sum(entry.source_id is not None for entry in going.entries),
    )
