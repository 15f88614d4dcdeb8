"""What stands inside a line of Markdown: emphasis, code, links. One pass, one stack.

The one idea: every mark is put out as text first and remembered on a stack; when its partner
comes, the text is replaced by a tag. What finds no partner stays text. Each mark is pushed and
popped once, so the time is linear, and tags can only nest properly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from html import escape

_TOKEN = re.compile(
    r"\\[!-/:-@\[-`{-~]"  # an escaped mark
    r"|`+|\*+|_+|~~"
    r"|!\[|\[|\]"
    r"|(?:https?://|mailto:)[^\s<>`*|\[\]\"]{1,2000}"
    r"|\n",
    re.IGNORECASE,
)
_TARGET = re.compile(
    r"\(\s{0,9}<?([^\s()<>]{0,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,200}){0,4})>?"
    r"(?:\s{1,9}(\"[^\"]{0,200}\"|'[^']{0,200}'))?\s{0,9}\)"
)
_SAFE_URL = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)
_URL_TAIL = ".,;:!?)'"
_TAGS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


def inline_html(text: str) -> str:
    """Return one paragraph's text as HTML; its line ends become ``<br>``."""
    return _Line(text).html()


def link_html(url: str, label: str) -> str:
    """Return a link for an address that is safe to follow, else its text; `label` is HTML."""
    if not _SAFE_URL.fullmatch(url):
        return label
    return f'<a href="{escape(url)}" rel="noopener noreferrer" target="_blank">{label}</a>'


class _Line:
    def __init__(self, text: str) -> None:
        self._text = text
        self._out: list[str] = []
        self._stack: list[tuple[str, int]] = []  # mark, index in `_out`
        self._open: dict[str, list[int]] = {}  # mark -> its places on the stack
        self._ticks: dict[int, list[int]] | None = None  # length of a run -> where such runs start

    def html(self) -> str:
        text, at = self._text, 0
        while match := _TOKEN.search(text, at):
            self._put(text[at : match.start()])
            at = self._token(match)
        self._put(text[at:])
        return "".join(self._out)

    def _put(self, text: str) -> None:
        if text:
            self._out.append(escape(text, quote=False))

    def _token(self, match: re.Match[str]) -> int:
        """Put out one token; return where to read on."""
        mark = match[0]
        if mark == "\n":
            self._out.append("<br>")
        elif mark[0] == "\\":
            self._put(mark[1])
        elif mark[0] == "`":
            return self._code(match)
        elif mark in ("[", "!["):
            self._push(mark)
        elif mark == "]":
            return self._close_bracket(match.end())
        elif mark[0] in "*_~":
            self._emphasis(match)
        else:
            return self._bare_url(match)
        return match.end()

    # -- stack -------------------------------------------------------------------------------

    def _push(self, mark: str) -> None:
        self._open.setdefault(mark, []).append(len(self._stack))
        self._stack.append((mark, len(self._out)))
        self._out.append(mark)

    def _pop_to(self, place: int) -> int:
        """Forget the marks above `place` and the one there; return its index in the output."""
        index = 0
        while len(self._stack) > place:
            mark, index = self._stack.pop()
            places = self._open[mark]
            if places and places[-1] == len(self._stack):
                places.pop()
        return index

    def _last(self, mark: str) -> int:
        places = self._open.get(mark)
        return places[-1] if places else -1

    # -- emphasis ----------------------------------------------------------------------------

    def _emphasis(self, match: re.Match[str]) -> None:
        run, text = match[0], self._text
        before = text[match.start() - 1] if match.start() else " "
        after = text[match.end()] if match.end() < len(text) else " "
        opens, closes = not after.isspace(), not before.isspace()
        if run[0] == "_":  # not inside words, such as snake_case
            opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
        if run[0] != "~" and len(run) > 3:
            self._put(run)
            return
        rest = run
        while rest and closes and (mark := self._closer(rest)):
            index = self._pop_to(self._last(mark))
            self._out[index] = f"<{_TAGS[mark]}>"
            self._out.append(f"</{_TAGS[mark]}>")
            rest = rest[len(mark) :]
        while rest:
            mark = rest[:2]
            if opens and self._last(mark) < 0:
                self._push(mark)
            else:
                self._put(mark)
            rest = rest[len(mark) :]

    def _closer(self, run: str) -> str | None:
        """Return the innermost open mark that `run` can close."""
        marks = {run[:1], run[:2]} & _TAGS.keys()
        mark = max(marks, key=self._last)
        return mark if self._last(mark) >= 0 else None

    # -- code --------------------------------------------------------------------------------

    def _code(self, match: re.Match[str]) -> int:
        ticks = len(match[0])
        starts = self._runs().get(ticks, [])
        later = bisect_right(starts, match.start())
        if later == len(starts):
            self._put(match[0])
            return match.end()
        body = self._text[match.end() : starts[later]].replace("\n", " ")
        if body.strip() and body[0] == body[-1] == " ":
            body = body[1:-1]
        self._out.append(f"<code>{escape(body, quote=False)}</code>")
        return starts[later] + ticks

    def _runs(self) -> dict[int, list[int]]:
        if self._ticks is None:
            self._ticks = {}
            for run in re.finditer("`+", self._text):
                self._ticks.setdefault(len(run[0]), []).append(run.start())
        return self._ticks

    # -- links -------------------------------------------------------------------------------

    def _bare_url(self, match: re.Match[str]) -> int:
        url = match[0].rstrip(_URL_TAIL)
        if ")" in match[0][len(url) :] and "(" in url:  # a bracket that belongs to the address
            url = match[0][: len(url) + 1]
        label = escape(url, quote=False)
        in_link = self._last("[") >= 0
        self._out.append(label if in_link else link_html(url, label))
        return match.start() + len(url)

    def _close_bracket(self, end: int) -> int:
        place = max(self._last("["), self._last("!["))
        if place < 0:
            self._out.append("]")
            return end
        target = _TARGET.match(self._text, end)
        mark = self._stack[place][0]
        index = self._pop_to(place)
        if target is None:
            self._out.append("]")
            return end
        url, title = target[1], target[2] or ""
        shown = " " + escape(f"({url}{' ' if title else ''}{title})", quote=False)
        if mark == "![":
            self._out[index] = '<span class="nbd-img" title="an image, not fetched">🖼 '
            self._out.append(f"{shown}</span>")
            return target.end()
        label = "".join(self._out[index + 1 :])
        del self._out[index:]
        same = label == escape(url, quote=False) and not title
        self._out.append(link_html(url, label) + ("" if same else f"<span>{shown}</span>"))
        self._open["["] = []  # no link inside a link
        return target.end()
