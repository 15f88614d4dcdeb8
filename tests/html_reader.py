"""Reads HTML of the package as a browser would; and the texts that try to break it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nbdurable.notebook.markdown import TAGS

TRAPS = {
    trap["name"]: trap["text"] if "text" in trap else trap["unit"] * trap["repeat"]
    for line in (Path(__file__).parent / "data" / "text_traps.jsonl")
    .read_text(encoding="utf-8")
    .split("\n")
    if line
    for trap in [json.loads(line)]
}
# a scripted model streams a megabyte for many seconds, so that only the long runs try it
QUICK_TRAPS = [
    pytest.param(name, marks=pytest.mark.slow) if len(text) > 1_000_000 else name
    for name, text in TRAPS.items()
]
FRAME_TAGS = TAGS | {"div", "style", "details", "summary", "b", "bdi"}
FRAME_ATTRIBUTES = {"class", "dir", "href", "rel", "target", "value", "title", "open"}


class Reader(HTMLParser):
    """Reads HTML as a browser would and refuses what is not on the list."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in FRAME_TAGS
        assert {name for name, _ in attrs} <= FRAME_ATTRIBUTES
        self.tags.append(tag)
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)
