"""A text that is being written, as nodes: what is finished is read once.

The one idea: a block (a paragraph, a list, a piece of code) cannot change any more once the next
one has begun, so only the last one is read again, however long the text became.
"""

from __future__ import annotations

from nbdurable.notebook.markdown import blocks_of
from nbdurable.notebook.markdown.nodes import Nodes, nodes_of
from nbdurable.reprs import visible


class GrowingText:
    """Markdown to whose end text is added; `nodes` is what was read of it so far."""

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self._open = ""  # from the first block on that may still change
        self._finished = 0  # nodes before it
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

    def read(self) -> tuple[int, Nodes]:
        """Read what is not finished; return from which node on there are others, and these."""
        blocks = blocks_of(self._open)
        # a block has begun for sure when the line after its first is whole: it may be a table's
        whole_lines = self._open.count("\n")
        begun = sum(line + 2 <= whole_lines for line, _ in blocks)
        done = max(begun - 1, 0)
        made = [nodes_of(html) for _, html in blocks]
        start, fresh = self._finished, [node for nodes in made for node in nodes]
        self.nodes = [*self.nodes[:start], *fresh]
        if done:
            self._finished += sum(map(len, made[:done]))
            self._open = "\n".join(self._open.split("\n")[blocks[done][0] :])
        return start, fresh
