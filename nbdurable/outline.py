"""The order in which a tree is shown, for every reader that shows one line per entry.

Owns lines, their indentation and marks; the terminal and the page own the look. The one idea: a
straight run is not a hierarchy. Only a fork indents, and what goes on to the leaf (or else the
newest branch) keeps the level of its parent, so that the conversation reads straight down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nbdurable.annotations import Marks, Rating
from nbdurable.codec import preview_of
from nbdurable.entries import CompactionEntry, Entry, MessageEntry, kind_of, words_of
from nbdurable.ids import as_us
from nbdurable.reprs import count, joined, money, one_line
from nbdurable.stored import Move, StoredEntry
from nbdurable.tree import Tree

MAX_INDENT = 24
PREVIEW_CHARS = 120
TAG_CHARS = 40
MAX_TAGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one line needs of an entry; ``created_at`` is in microseconds UTC."""

    id: str
    parent_id: str | None
    seq: int | None
    n: int | None
    role: str
    preview: str
    model: str | None = None
    stop_reason: str | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    created_at: int | None = None
    is_meta: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry in its place: ``sibling`` of ``siblings`` counts from 1.

    ``is_side`` marks the first entry of a branch that stands one level deeper. ``tags`` are its
    labels and ratings in a few words.
    """

    row: Row
    indent: int
    on_path: bool
    is_leaf: bool
    is_orphan: bool
    is_side: bool
    sibling: int
    siblings: int
    tags: tuple[str, ...] = ()


# -- rows --------------------------------------------------------------------------------------


def row_of(entry: Entry | StoredEntry) -> Row:
    """Return the row of an entry, decoded or as stored; no payload is parsed."""
    return _stored_row(entry) if isinstance(entry, StoredEntry) else _entry_row(entry)


def _stored_row(entry: StoredEntry) -> Row:
    counts = (
        entry.input_tokens,
        entry.output_tokens,
        entry.cache_read_tokens,
        entry.cache_write_tokens,
        entry.reasoning_tokens,
    )
    known = [count for count in counts if count is not None]
    return Row(
        id=entry.id,
        parent_id=entry.parent_id,
        seq=entry.seq,
        n=entry.n,
        role=entry.role or entry.kind,
        preview=one_line(entry.preview, PREVIEW_CHARS),
        model=entry.model,
        stop_reason=entry.stop_reason,
        tokens=sum(known) if known else None,
        cost_usd=entry.cost_usd,
        seconds=entry.seconds,
        created_at=entry.created_at,
        is_meta=entry.meta,
    )


def _entry_row(entry: Entry) -> Row:
    reply = entry.message.reply if isinstance(entry, MessageEntry) else None
    paid = entry if isinstance(entry, CompactionEntry) else reply
    usage = paid.usage if paid else None
    return Row(
        id=entry.id,
        parent_id=entry.parent_id,
        seq=entry.seq,
        n=entry.n,
        role=entry.role if isinstance(entry, MessageEntry) else kind_of(entry),
        preview=_preview(entry),
        model=paid.model if paid else None,
        stop_reason=reply.stop_reason if reply else None,
        tokens=usage.total_tokens if usage else None,
        cost_usd=paid.cost_usd if paid else None,
        seconds=reply.seconds if reply else None,
        created_at=as_us(entry.created_at) if entry.created_at else None,
        is_meta=isinstance(entry, MessageEntry) and entry.meta,
    )


def _preview(entry: Entry) -> str:
    if isinstance(entry, MessageEntry):
        return preview_of(entry)  # what the store keeps of it, so that both read alike
    return one_line(words_of(entry), PREVIEW_CHARS)


# -- lines -------------------------------------------------------------------------------------


def outline(
    entries: Iterable[Entry | StoredEntry],
    leaf_id: str | None,
    marks: Mapping[str, Marks] | None = None,
) -> list[Line]:
    """Return the lines of a session in the order they are shown.

    Branches that were left stand above the one that goes on, one level deeper.

    Parameters
    ----------
    entries : iterable of Entry or StoredEntry
        In any order; ephemeral ones (without ``seq``) are passed over.
    leaf_id : str or None
        The active leaf; its path keeps the outermost level.
    marks : mapping, optional
        Labels and ratings by entry id.
    """
    tree = Tree(row for row in map(row_of, entries) if row.seq is not None)
    active = {row.id for row in tree.path(leaf_id)} if leaf_id in tree else set()
    orphans = {row.id for row in tree.orphans()}
    lines: list[Line] = []
    # a stray root has no siblings: only entries without a parent count each other
    firsts = {row.id: at for at, row in enumerate(tree.children(None), 1)}
    stack = [
        (row, indent, is_side, firsts.get(row.id, 1), len(firsts) if row.id in firsts else 1)
        for row, indent, is_side, _, _ in _placed(tree.roots(), 0, active)
    ]
    while stack:
        row, indent, is_side, sibling, siblings = stack.pop()
        lines.append(
            Line(
                row=row,
                indent=min(indent, MAX_INDENT),
                on_path=row.id in active,
                is_leaf=row.id == leaf_id,
                is_orphan=row.id in orphans,
                is_side=is_side,
                sibling=sibling,
                siblings=siblings,
                tags=_tags(marks.get(row.id)) if marks else (),
            )
        )
        stack.extend(_placed(tree.children(row.id), indent, active))
    return lines


def _placed(
    rows: Sequence[Row], indent: int, active: set[str]
) -> Iterator[tuple[Row, int, bool, int, int]]:
    """Yield siblings with their places, the last to be shown first."""
    if not rows:
        return
    main = next((at for at, row in enumerate(rows) if row.id in active), len(rows) - 1)
    yield rows[main], indent, False, main + 1, len(rows)
    for at in range(len(rows) - 1, -1, -1):
        if at != main:
            yield rows[at], indent + 1, True, at + 1, len(rows)


def _tags(marks: Marks | None) -> tuple[str, ...]:
    """Return labels first, then ratings, each short, and few."""
    if marks is None:
        return ()
    labels = [one_line(label, TAG_CHARS) for label in marks.labels[:MAX_TAGS]]
    tags = [*labels, *map(_rating, marks.ratings[: MAX_TAGS - len(labels)])]
    hidden = len(marks.labels) + len(marks.ratings) - len(tags)
    return (*tags, f"+{hidden}") if hidden else tuple(tags)


def _rating(rating: Rating) -> str:
    score = rating.score
    shown_score = ("yes" if score else "no") if isinstance(score, bool) else f"{score:.6g}"
    by = f" by {rating.by}" if rating.by else ""
    return one_line(f"{rating.name} {shown_score}{by}", TAG_CHARS)


def heading(title: str, lines: Sequence[Line]) -> str:
    """Return a session in one line: title, entries, branches, leaf, known cost."""
    parents = {line.row.parent_id for line in lines}
    leaves = sum(line.row.id not in parents for line in lines)
    leaf = next((f"leaf #{line.row.n}" for line in lines if line.is_leaf), "leaf at the root")
    costs = [line.row.cost_usd for line in lines if line.row.cost_usd is not None]
    return joined(
        (
            one_line(title),
            count(len(lines), "entry", "entries"),
            count(leaves, "branch", "branches"),
            leaf,
            money(sum(costs)) if costs else None,
        )
    )


def position(entries: Iterable[StoredEntry], moves: Iterable[Move]) -> str | None:
    """Return where a session resumes: its last move, or the entry that moved it later (B3)."""
    at: tuple[int, str | None] = (0, None)
    for entry in entries:
        if entry.moves_leaf and entry.seq > at[0]:
            at = (entry.seq, entry.id)
    for move in moves:
        if move.seq > at[0]:
            at = (move.seq, move.entry_id)
    return at[1]
