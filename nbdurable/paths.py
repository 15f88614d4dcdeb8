"""The paths that were walked last, so that a path costs what it adds to one of them.

Owns what is kept of a path between two reads. Does not own the tree, nor any lock. The one idea:
an entry's path never changes while its tree grows below it, so the path to a new leaf is a path
known already and a few entries more, and a run in a session of 100,000 entries walks it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nbdurable.entries import CustomEntry, Entry
from nbdurable.stored import StoredEntry
from nbdurable.tree import Tree

MOST_LINES = 4


@dataclass(slots=True)
class Line:
    """Entries from a root on, oldest first; ``custom_at`` tells where custom ones are."""

    entries: list[Entry] = field(default_factory=list)
    custom_at: list[int] = field(default_factory=list)

    def holds(self, node: StoredEntry) -> bool:
        """Whether the path to an entry is the beginning of this line."""
        return 0 < node.depth <= len(self.entries) and self.entries[node.depth - 1].id == node.id

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add entries that follow the last one."""
        first = len(self.entries)
        self.custom_at += [i for i, e in enumerate(entries, first) if isinstance(e, CustomEntry)]
        self.entries += entries


class Paths:
    """Lines of a tree; one thread at a time may call it."""

    def __init__(self, tree: Tree[StoredEntry]) -> None:
        self._tree = tree
        self._lines: list[Line] = []  # the one used last comes last

    def split(self, leaf_id: str) -> tuple[Line, list[StoredEntry]]:
        """Return what is known of the path to an entry, as a copy, and the rest of it.

        Raises
        ------
        EntryNotFound
            The entry is not in the tree.
        """
        if self._tree.cycles():
            return Line(), self._tree.path(leaf_id)
        rest: list[StoredEntry] = []
        node = self._tree.get(leaf_id)
        while node is not None:
            for line in reversed(self._lines):
                if line.holds(node):
                    return self._beginning(line, node.depth), rest[::-1]
            rest.append(node)
            node = self._tree.get(node.parent_id)
        return Line(), rest[::-1] or self._tree.path(leaf_id)

    def _beginning(self, line: Line, depth: int) -> Line:
        self._lines.remove(line)
        self._lines.append(line)
        return Line(line.entries[:depth], [at for at in line.custom_at if at < depth])

    def keep(self, known: int, entries: Sequence[Entry]) -> None:
        """Remember a whole path, of which the first `known` entries came from `split`."""
        for line in reversed(self._lines):
            if len(line.entries) == known and line.entries[-1].id == entries[known - 1].id:
                line.extend(entries[known:])
                return
        fresh = Line()
        fresh.extend(entries)
        self._lines = [*self._lines[-MOST_LINES + 1 :], fresh]

    def forget(self) -> None:
        """Forget all lines, as when a missing parent may come and lengthen them."""
        self._lines.clear()
