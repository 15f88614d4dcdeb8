"""Safe HTML of ours as data, from which a page builds elements one by one.

A list of texts and of ``[tag, {attribute: value}, children]``. The page has no way to read markup,
so this is the only road on which formatted text reaches it; both ends keep their own list of what
may pass.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from nbdurable.notebook.markdown import TAGS, to_html

Nodes = list[Any]

ALLOWED_TAGS = TAGS | frozenset("div bdi b details summary".split())
ALLOWED_ATTRIBUTES = frozenset("class dir href title value".split())
LINKS = ("http://", "https://", "mailto:")
_VOID = frozenset(("br", "hr"))
_LEFT_OUT = frozenset(("style",))


def markdown_nodes(text: str) -> Nodes:
    """Return a text, read as the safe subset of Markdown, as nodes."""
    return nodes_of(to_html(text))


def nodes_of(html: str) -> Nodes:
    """Return HTML that this package made as nodes; what may not pass stays as its text."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.top


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: Nodes = []
        self._open: list[tuple[str, Nodes]] = []
        self._left_out = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _LEFT_OUT:
            self._left_out += 1
        elif tag in ALLOWED_TAGS and not self._left_out:
            children: Nodes = []
            self._into().append([tag, _allowed(attrs), children])
            if tag not in _VOID:
                self._open.append((tag, children))

    def handle_endtag(self, tag: str) -> None:
        if tag in _LEFT_OUT:
            self._left_out -= 1
        elif self._open and self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._left_out:
            self._into().append(data)

    def _into(self) -> Nodes:
        return self._open[-1][1] if self._open else self.top


def _allowed(attrs: list[tuple[str, str | None]]) -> dict[str, str]:
    kept = {name: value or "" for name, value in attrs if name in ALLOWED_ATTRIBUTES}
    if "href" in kept and not kept["href"].lower().startswith(LINKS):
        del kept["href"]
    return kept
