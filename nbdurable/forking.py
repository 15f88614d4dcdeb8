"""Fork: copy one path to a session of its own, in one transaction (B48)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from nbdurable.annotations import with_ids
from nbdurable.loaded import Loaded
from nbdurable.stored import Annotation, Beside, SessionRecord, StoredEntry
from nbdurable.wire import dumps


def fork(image: Loaded, session_id: str, leaf_id: str | None) -> SessionRecord:
    """Create session `session_id` with fresh copies of the path to `leaf_id`.

    Payload text is copied unparsed, but for the ids inside it. Blobs are shared. All that was
    ever said of the copied entries comes along, in its order.

    Raises
    ------
    SessionExists
        The id is taken; nothing was written.
    """
    child = SessionRecord(
        id=session_id,
        created_at=image.clock(),
        parent_session_id=image.session_id,
        parent_entry_id=leaf_id,
    )
    path = image.tree.path(leaf_id) if leaf_id is not None else []
    fresh = {entry.id: image.new_id() for entry in path}
    parents = [None, *(entry.id for entry in path)]
    copies = [
        entry._replace(
            id=fresh[entry.id],
            session_id=session_id,
            parent_id=None if parent is None else fresh[parent],
            payload=remapped(entry, fresh),
            moves_leaf=True,
            seq=0,
            n=0,
            depth=0,
            digest="",
        )
        for entry, parent in zip(path, parents, strict=False)
    ]
    beside = Beside(annotations=_said_of(image, session_id, fresh))
    image.store.create_session(child, copies, beside=beside)
    return child


def _said_of(image: Loaded, session_id: str, fresh: dict[str, str]) -> tuple[Annotation, ...]:
    return tuple(
        replace(
            annotation,
            id=image.new_id(),
            session_id=session_id,
            target_id=fresh[annotation.target_id],
            value_json=with_ids(annotation, fresh),
            counter=0,
        )
        for annotation in image.annotations().history()
        if annotation.target_id in fresh
    )


def remapped(entry: StoredEntry, fresh: Mapping[str, str]) -> str:
    """Return an entry's payload with `fresh` ids in place of those of other entries."""
    if entry.kind != "compaction":
        return entry.payload
    try:
        wire = json.loads(entry.payload)
        kept = wire["first_kept_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return entry.payload  # of a newer version: opaque to us
    if kept is None:
        return entry.payload
    return dumps({**wire, "first_kept_id": fresh.get(kept, kept)})
