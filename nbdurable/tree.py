"""The tree: an index over the entries of one session, grown in place.

Owns parents, children, paths and what is wrong with them. Does not own entries, moves or any I/O;
anything with ``id``, ``parent_id`` and ``seq`` can be indexed. The one idea: parent pointers are
the only structure and ``seq`` the only order, so the same entries give the same tree in whatever
order they come (B41). A ring of parents is cut above its first entry, an entry whose parent is
missing is a root; so every entry hangs under exactly one root and every walk ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from nbdurable.errors import EntryError, EntryNotFound, shown


class Node(Protocol):
    """What the tree needs to know of an entry."""

    @property
    def id(self) -> str:
        """The entry's id, unique in the tree."""

    @property
    def parent_id(self) -> str | None:
        """The id of the entry it was appended to; None for a root."""

    @property
    def seq(self) -> int | None:
        """The append order; None sorts last."""


N = TypeVar("N", bound=Node)


def _order(node: Node) -> tuple[bool, int, str]:
    return node.seq is None, node.seq or 0, node.id


class Tree(Generic[N]):
    """An index over entries, given in any order.

    Adding costs amortised constant time. One thread at a time may add; others may read meanwhile
    as long as entries are added in the order of ``seq``.

    Parameters
    ----------
    nodes : iterable of Node
        Entries of one session, stored or decoded.

    Raises
    ------
    EntryError
        An id comes twice.
    """

    def __init__(self, nodes: Iterable[N] = ()) -> None:
        self._by_id: dict[str, N] = {}
        self._nodes: list[N] = []
        self._children: dict[str | None, list[N]] = {}
        self._unsorted: set[str | None] = set()  # parents whose children came out of order
        self._is_sorted = True
        self._last: tuple[bool, int, str] = (False, -1, "")  # the order of the last node
        self._missing: dict[str, None] = {}  # parents that are not in the tree (yet)
        self._late: list[N] = []  # came after a child of theirs: only they can close a ring
        self._rings: list[tuple[str, ...]] = []
        self._cut: set[str] = set()
        self.add(nodes)

    # -- growing -------------------------------------------------------------------------------

    def add(self, nodes: Iterable[N]) -> None:
        """Add entries in any order, all or none.

        Raises
        ------
        EntryError
            An id is in the tree already, or comes twice; nothing was added.
        """
        fresh: dict[str, N] = {}
        for node in nodes:
            if node.id in self._by_id or node.id in fresh:
                raise EntryError(
                    f"entry {shown(node.id)} is already in the tree ({len(self)} entries); "
                    "give each entry an id of its own"
                )
            fresh[node.id] = node
        for id, node in fresh.items():
            self._insert(id, node)

    def _insert(self, id: str, node: N) -> None:
        parent_id, order = node.parent_id, _order(node)
        siblings = self._children.get(parent_id)
        if siblings is None:
            self._children[parent_id] = [node]
            if parent_id is not None and parent_id not in self._by_id and parent_id != id:
                self._missing[parent_id] = None
        else:
            if order < _order(siblings[-1]):
                self._unsorted.add(parent_id)
            siblings.append(node)
        self._by_id[id] = node
        self._nodes.append(node)
        if order < self._last:
            self._is_sorted = False
        else:
            self._last = order
        if id in self._children:  # it came after a child of its own
            self._missing.pop(id, None)
            self._late.append(node)

    # -- one entry -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def get(self, id: str | None) -> N | None:
        """Return the entry of an id, or None."""
        return None if id is None else self._by_id.get(id)

    def _known(self, id: str) -> N:
        node = self._by_id.get(id)
        if node is None:
            raise EntryNotFound(
                f"entry {shown(id)} is not in the tree ({len(self)} entries); "
                "give the id of an entry of this session",
                entry_id=id,
            )
        return node

    def path(self, id: str | None) -> list[N]:
        """Return the entries from the root to an entry, oldest first; the root (None) has none.

        The path begins below a missing parent, or where a ring of parents is cut.

        Raises
        ------
        EntryNotFound
            The entry is not in the tree.
        """
        if id is None:
            return []
        self._find_rings()
        walked = [self._known(id)]
        while not self._is_root(walked[-1]):
            walked.append(self._by_id[walked[-1].parent_id or ""])
        walked.reverse()
        return walked

    def depth(self, id: str | None) -> int:
        """Return the number of entries on the path to an entry; a root has depth 1."""
        return len(self.path(id))

    def children(self, id: str | None) -> list[N]:
        """Return the entries appended to an entry, by ``seq``; for None those without a parent.

        Raises
        ------
        EntryNotFound
            The entry is not in the tree.
        """
        if id is not None:
            self._known(id)
        self._find_rings()
        return self._kids(id)

    def siblings(self, id: str) -> list[N]:
        """Return the entries of the same parent, the entry itself included, by ``seq``.

        Raises
        ------
        EntryNotFound
            The entry is not in the tree.
        """
        node = self._known(id)
        self._find_rings()
        return [node] if node.id in self._cut else self._kids(node.parent_id)

    def _kids(self, id: str | None) -> list[N]:
        if id in self._unsorted:
            self._children[id].sort(key=_order)
            self._unsorted.discard(id)
        kids = self._children.get(id, ())
        return [kid for kid in kids if kid.id not in self._cut] if self._cut else list(kids)

    # -- all entries ---------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[N, ...]:
        """All entries, by ``seq``."""
        if not self._is_sorted:
            self._nodes.sort(key=_order)
            self._is_sorted = True
        return tuple(self._nodes)

    def roots(self) -> list[N]:
        """Return where walks begin, by ``seq``: entries without a parent, orphans, cut rings."""
        self._find_rings()
        cut = [self._by_id[id] for id in self._cut]
        return sorted([*self._kids(None), *self.orphans(), *cut], key=_order)

    def orphans(self) -> list[N]:
        """Return the entries whose parent is missing, by ``seq``."""
        found = [node for parent_id in self._missing for node in self._children[parent_id]]
        return sorted(found, key=_order)

    def leaves(self) -> list[N]:
        """Return the entries without children, by ``seq``; each root has one below it at least."""
        self._find_rings()
        if not self._cut:
            return [node for node in self.nodes if node.id not in self._children]
        return [node for node in self.nodes if not self._kids(node.id)]

    def cycles(self) -> list[tuple[str, ...]]:
        """Return the rings of parents, each from the entry it is cut above, parents first."""
        self._find_rings()
        return list(self._rings)

    def descend(self, id: str | None = None) -> Iterator[N]:
        """Yield an entry and all below it, parents first, children by ``seq``; None walks all.

        Raises
        ------
        EntryNotFound
            The entry is not in the tree.
        """
        stack = self.roots()[::-1] if id is None else [self._known(id)]
        return self._walk(stack)

    def _walk(self, stack: list[N]) -> Iterator[N]:
        self._find_rings()
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(self._kids(node.id)))

    def subtree(self, id: str | None = None) -> list[N]:
        """Return an entry and all below it, by ``seq``; None gives all entries.

        Raises
        ------
        EntryNotFound
            The entry is not in the tree.
        """
        return sorted(self.descend(id), key=_order)

    # -- rings ---------------------------------------------------------------------------------

    def _is_root(self, node: N) -> bool:
        parent_id = node.parent_id
        return parent_id is None or parent_id not in self._by_id or node.id in self._cut

    def _find_rings(self) -> None:
        if not self._late:
            return
        done: set[str] = set()
        for start in self._late:
            walked: dict[str, N] = {}
            node = start
            while node.id not in walked and node.id not in done and not self._is_root(node):
                walked[node.id] = node
                node = self._by_id[node.parent_id or ""]
            if node.id in walked:
                self._cut_ring(node)
            done.update(walked)
        self._late.clear()
        self._rings.sort(key=lambda ring: _order(self._by_id[ring[0]]))

    def _cut_ring(self, member: N) -> None:
        upward = [member]
        while upward[-1].parent_id != member.id:
            upward.append(self._by_id[upward[-1].parent_id or ""])
        first = upward.index(min(upward, key=_order))
        downward = [node.id for node in reversed(upward[first + 1 :] + upward[: first + 1])]
        self._rings.append(tuple(downward))
        self._cut.add(downward[0])
