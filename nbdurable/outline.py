"""The order in which a tree is shown, for every reader that shows one line per entry.

Owns lines, their indentation and marks; the terminal and the page own the look. The one idea: a
straight run is not a hierarchy. Only a fork indents, and what goes on to the leaf (or else the
newest branch) keeps the level of its parent, so that the conversation reads straight down.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from nbdurable.annotations import Marks, Rating
from nbdurable.codec import preview_of
from nbdurable.entries import CompactionEntry, Entry, MessageEntry, kind_of, words_of
from nbdurable.ids import as_us
from nbdurable.reprs import count, joined, money, one_line
from nbdurable.stored import Move, StoredEntry
from nbdurable.tree import Node, Tree

MAX_INDENT = 24
PREVIEW_CHARS = 120
TAG_CHARS = 40
MAX_TAGS = 4

N = TypeVar("N", bound=Node)


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
    return [
        line_of(place, place.node, leaf_id, active, orphans, marks)
        for place in places(tree, active)
        if place.node is not None
    ]


def line_of(
    place: Place[N],
    row: Row,
    leaf_id: str | None,
    active: Container[str],
    orphans: Container[str],
    marks: Mapping[str, Marks] | None,
) -> Line:
    """Return the line of a row that stands at a place."""
    return Line(
        row=row,
        indent=min(place.indent, MAX_INDENT),
        on_path=row.id in active,
        is_leaf=row.id == leaf_id,
        is_orphan=row.id in orphans,
        is_side=place.is_side,
        sibling=place.sibling,
        siblings=place.siblings,
        tags=_tags(marks.get(row.id)) if marks else (),
    )


class Place(NamedTuple, Generic[N]):
    """Where an entry stands, ``sibling`` of ``siblings``.

    ``node`` is None for a group, which stands for its members; they come after it, one level
    deeper.
    """

    node: N | None
    indent: int
    is_side: bool
    sibling: int = 1
    siblings: int = 1
    group: int = -1
    members: tuple[N, ...] = ()


def places(
    tree: Tree[N], active: Container[str], group_of: Callable[[N], int] | None = None
) -> Iterator[Place[N]]:
    """Yield the places of a tree in the order they are shown.

    Parameters
    ----------
    active : container of str
        The ids on the path to the leaf.
    group_of : callable, optional
        The group of a node, or -1. What is not on the path stands in one with its fellows.
    """
    # a stray root has no siblings: only entries without a parent count each other
    firsts = {node.id: at for at, node in enumerate(tree.children(None), 1)}
    stack = [_as_root(place, firsts) for place in _placed(tree.roots(), 0, active, group_of, -1)]
    while stack:
        place = stack.pop()
        yield place
        node = place.node
        if node is None:
            count, indent = len(place.members), place.indent + 1
            for at in range(count, 0, -1):
                stack.append(Place(place.members[at - 1], indent, True, at, count))
        elif children := tree.children(node.id):
            group = group_of(node) if group_of else -1
            stack.extend(_placed(children, place.indent, active, group_of, group))


def _as_root(place: Place[N], firsts: Mapping[str, int]) -> Place[N]:
    if place.node is None:
        return place
    at = firsts.get(place.node.id)
    return place._replace(sibling=at or 1, siblings=len(firsts) if at else 1)


def _placed(
    nodes: Sequence[N],
    indent: int,
    active: Container[str],
    group_of: Callable[[N], int] | None,
    group: int,
) -> Iterator[Place[N]]:
    """Yield siblings with their places, the last to be shown first."""
    groups: dict[int, list[N]] = {}
    plain: list[N] = []
    sides: list[Place[N] | int] = []
    for node in nodes:
        own = group_of(node) if group_of else -1
        if own < 0 or own == group or node.id in active:
            plain.append(node)
            sides.append(Place(node, indent + 1, True, len(plain)))
        else:
            if own not in groups:
                sides.append(own)
            groups.setdefault(own, []).append(node)
    main = next((node for node in plain if node.id in active), plain[-1] if plain else None)
    if main is not None:
        yield Place(main, indent, False, plain.index(main) + 1, len(plain))
    for side in reversed(sides):
        if isinstance(side, int):
            members = tuple(groups[side])
            yield Place(None, indent + 1, True, group=side, members=members)
        elif side.node is not main:
            yield side._replace(siblings=len(plain))


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
    leaf = next((line.row for line in lines if line.is_leaf), None)
    return headline(title, [line.row for line in lines], leaf)


def headline(
    title: str, nodes: Sequence[Row] | Sequence[StoredEntry], leaf: Row | StoredEntry | None
) -> str:
    """Return a session in one line, of all its entries and the active leaf."""
    parents = {node.parent_id for node in nodes}
    leaves = sum(node.id not in parents for node in nodes)
    costs = [node.cost_usd for node in nodes if node.cost_usd is not None]
    return joined(
        (
            one_line(title),
            count(len(nodes), "entry", "entries"),
            count(leaves, "branch", "branches"),
            f"leaf #{leaf.n}" if leaf else "leaf at the root",
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
