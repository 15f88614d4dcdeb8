"""References: the one way to say which entry is meant (B12)."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Sequence
from typing import Final, SupportsIndex

from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import EntryNotFound, shown
from nbdurable.loaded import Loaded
from nbdurable.replay import Replay
from nbdurable.run import Run
from nbdurable.stored import StoredEntry


class LeafType:
    """The type of `LEAF`, the reference to wherever the leaf is."""

    def __repr__(self) -> str:
        return "LEAF"


LEAF: Final = LeafType()

MAX_LISTED = 10  # entries that an error text names
NEAR_CHARS = 200  # of a text: comparing all of a long one takes seconds

Reference = str | SupportsIndex | Entry | StoredEntry | Run | LeafType | None


def resolve(
    image: Loaded, ref: Reference, leaf_id: str | None, replay: Replay | None = None
) -> str | None:
    """Return the id of the entry that `ref` means, or None for the root.

    An id, a label, an entry, a run (its last entry), an ordinal (``12``), `LEAF`, or None (the
    root). Text is an id first, then a label, never an ordinal; a label stands where `replay` has
    put it so far, else where it is stored.

    Raises
    ------
    EntryNotFound
        Nothing in the session fits, or a label stands on several entries; the text names what
        comes near.
    """
    if isinstance(ref, LeafType):
        return leaf_id
    if ref is None:
        return None
    if isinstance(ref, Run):
        if ref.leaf_id is None:
            return None
        return _known(image, ref.leaf_id, ref)
    if isinstance(ref, Entry | StoredEntry):
        return _known(image, ref.id, ref.id)
    if isinstance(ref, str):
        return _by_text(image, ref, replay)
    if not isinstance(ref, bool) and hasattr(ref, "__index__"):
        return _by_ordinal(image, operator.index(ref))
    hint = "give an id, an ordinal such as 12, a label, an entry, a run, or None for the root"
    if isinstance(getattr(ref, "run", None), Run):  # a cell of an experiment
        hint = "give its run: .run"
    raise EntryNotFound(
        f"reference {shown(ref)} of type {type(ref).__name__} means no entry; {hint}",
        entry_id=shown(ref),
    )


def resolve_entry(
    image: Loaded, ref: Reference, leaf_id: str | None, replay: Replay | None = None
) -> str:
    """Return what `resolve` returns, and refuse the root."""
    entry_id = resolve(image, ref, leaf_id, replay)
    if entry_id is None:
        raise EntryNotFound(
            f"the root of session {shown(image.session_id)} is no entry; give one of its "
            f"{image.count} entries, such as its ordinal",
            entry_id="None",
        )
    return entry_id


def resolve_input(
    image: Loaded, ref: Reference, leaf_id: str | None, replay: Replay | None = None
) -> str:
    """Return the entry to edit: of a run what it answers, else what `resolve_entry` says.

    That is its first user input; without input, as in a rerun, the nearest one above.
    """
    if isinstance(ref, Run):
        given = [image.entry(entry_id) for entry_id in ref.input_ids if entry_id in image.tree]
        start = ref.start_leaf_id
        above = image.path(start)[::-1] if not given and start in image.tree else []
        for entry in [*given, *above]:
            if isinstance(entry, MessageEntry) and entry.role == "user" and not entry.meta:
                return entry.id
    return resolve_entry(image, ref, leaf_id, replay)


def _by_text(image: Loaded, text: str, replay: Replay | None) -> str:
    if text in image.tree or image.spoken(text):
        return _known(image, text, text)
    annotations = image.annotations()
    said = replay.annotated() if replay else []
    found = [id for id in annotations.labelled(text, said) if id in image.tree]
    if len(found) == 1:
        return found[0]
    if not found:
        return _known(image, text, text, annotations.labels())
    ordinals = sorted(image.stored(entry_id).n for entry_id in found)
    listed = ", ".join(f"#{n}" for n in ordinals[:MAX_LISTED])
    more = f" and {len(ordinals) - MAX_LISTED} more" if len(ordinals) > MAX_LISTED else ""
    raise EntryNotFound(
        f"label {shown(text)} is on {len(found)} entries of session {shown(image.session_id)}: "
        f"{listed}{more}; give one of these ordinals, such as {ordinals[0]}",
        entry_id=text,
    )


def _known(image: Loaded, entry_id: str, ref: object, labels: Sequence[str] = ()) -> str:
    if entry_id in image.tree:
        return entry_id
    if image.spoken(entry_id):
        raise EntryNotFound(
            f"entry {shown(entry_id)} is ephemeral, so it has no place in the tree; "
            "give the entry before or after it",
            entry_id=entry_id,
        )
    ids = [node.id for node in image.tree.nodes]
    near = [
        *map(shown, difflib.get_close_matches(entry_id[:NEAR_CHARS], labels[-500:], n=3)),
        *difflib.get_close_matches(entry_id[:NEAR_CHARS], ids[-500:], n=3),
    ]
    hint = f"near it: {', '.join(near)}" if near else "see session.entries()"
    raise EntryNotFound(
        f"entry {shown(ref)} is not in session {shown(image.session_id)} "
        f"({image.count} entries); {hint}",
        entry_id=entry_id,
    )


def _by_ordinal(image: Loaded, n: int) -> str:
    entry_id = image.id_of(n)
    if entry_id is not None:
        return entry_id
    if image.count == 0:
        hint = "it has no entries yet"
    else:
        hint = f"near it: #{min(max(n, 1), image.count)}; there are #1 to #{image.count}"
    raise EntryNotFound(
        f"entry #{n} is not in session {shown(image.session_id)} ({image.count} entries); {hint}",
        entry_id=str(n),
    )
