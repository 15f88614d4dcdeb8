"""A text that is being written, as nodes: what is finished is read once.

The one idea: a block (a paragraph, a list, a piece of code) cannot change any more once the next
one has begun, nor an item of a list or a block in a quote, so only the last one is read again,
however long the text became.
"""

from __future__ import annotations

from typing import NamedTuple

from nbdurable.notebook.markdown import blocks_of, parts_of, reads_alike
from nbdurable.notebook.markdown.nodes import Nodes, nodes_of
from nbdurable.reprs import visible


class Grown(NamedTuple):
    """What is new: nodes from one on, the first behind so many children that it had before."""

    start: int
    kept: int
    nodes: Nodes


class GrowingText:
    """Markdown to whose end text is added; `nodes` is what was read of it so far."""

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self._open = ""  # from the first block on that may still change, or its last part
        self._finished = 0  # nodes before it
        self._kept = 0  # children of its own that are finished
        self._held = ""  # half of a line's end, which may come in two pieces

    @property
    def open_chars(self) -> int:
        """How long the part is that `read` has to look at."""
        return len(self._open)

    def add(self, text: str) -> None:
        """Add to the end."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self._open += visible(text.removesuffix(self._held))

    def read(self) -> Grown:
        """Read what is not finished."""
        blocks = blocks_of(self._open)
        # a block has begun for sure when the line after its first is whole: it may be a table's
        done = max(self._begun([line for line, _ in blocks]) - 1, 0)
        fresh = [node for _, html in blocks for node in nodes_of(html)]
        grown = Grown(self._finished, self._kept, fresh)
        self.nodes = [*self.nodes[: grown.start], *self._joined(grown)]
        if done and self._cut(blocks[done][0]):
            self._finished, self._kept = self._finished + done, 0
        if len(blocks) - done == 1:
            self._cut_inside()
        return grown

    def _begun(self, lines: list[int]) -> int:
        whole_lines = self._open.count("\n")
        return sum(line + 2 <= whole_lines for line in lines)

    def _joined(self, grown: Grown) -> Nodes:
        if not grown.kept:
            return grown.nodes
        (tag, attributes, children), *others = grown.nodes
        before = self.nodes[grown.start][2][: grown.kept]
        return [[tag, attributes, [*before, *children]], *others]

    def _cut(self, line: int) -> bool:
        """Put the lines before one away, if those behind it read the same without them."""
        if not reads_alike(self._open, line):
            return False
        self._open = "\n".join(self._open.split("\n")[line:])
        return True

    def _cut_inside(self) -> None:
        """Put the parts of the open block away that cannot change any more."""
        parts = parts_of(self._open)
        begun = self._begun([line for line, _ in parts])
        if begun > 1 and self._cut(parts[begun - 1][0]):
            self._kept += parts[begun - 1][1]
