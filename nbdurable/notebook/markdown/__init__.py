"""A safe subset of Markdown as HTML, for text that nobody has checked.

Owns blocks: paragraphs, headings, lists, quotes, fenced code, tables, rules; `inline` owns what
stands inside a line. The one idea: the output is built from a fixed set of tags and every
character of the text is escaped on its way in, so there is no raw HTML to clean afterwards.
Nesting is bounded and each level reads its lines once, so time grows with the length of the text
alone. No character but markup is ever dropped: what is too deep or unclosed shows as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import takewhile

from nbdurable.notebook.markdown.inline import inline_html
from nbdurable.reprs import visible

MAX_DEPTH = 8  # of lists and quotes; deeper ones are paragraphs

TAGS = frozenset(
    "p br h3 h4 h5 h6 ul ol li blockquote pre code span strong em del a table tr th td hr".split()
)
"""Every tag that `to_html` can make."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_ITEM = re.compile(r"( *)(?:[-*+]|(0|[1-9][0-9]{0,8})[.)])(?: +|$)")
_TABLE_RULE = re.compile(r"[ \t|:-]+")
_RULE_IN_LINE = re.compile(r"\|(?: ?:?-{3,}:? ?\|?)+")
_BARS = re.compile(r" ?(?:\| ?)+")
_MARKS = re.compile(r"```\w*|^#{1,6} ")
_BOLD_OR_CODE = re.compile(r"\*\*(\S|\S[^*]*\S)\*\*|`([^`]+)`")
_CELL_END = re.compile(r"(?<!\\)\|")


def unmarked(line: str) -> str:
    """Return one line of Markdown as it reads, without its marks; for previews, not for HTML."""
    if _RULE_IN_LINE.search(line):
        line = _BARS.sub(" · ", _RULE_IN_LINE.sub("|", line)).replace(": · ", ": ")
    return _BOLD_OR_CODE.sub(lambda found: found[1] or found[2], _MARKS.sub("", line)).strip()


def to_html(text: str) -> str:
    """Return `text`, read as Markdown, as HTML of the tags in `TAGS`.

    An unclosed fence reaches to the end, so a text may be cut anywhere, as while it streams.
    """
    return "".join(html for _, html in blocks_of(text))


def blocks_of(text: str) -> list[tuple[int, str]]:
    """Return the outermost blocks of `text`: the line at which each begins, and its HTML."""
    return list(_blocks(_lines(text), 0, tight=False))


def parts_of(text: str) -> list[tuple[int, int]]:
    """Return where the first block of `text` may be cut in two that read as the one does.

    Each is a line, and how many of the block's parts stand before it: items of a list, blocks of a
    quote. Other blocks have no parts.
    """
    lines = _lines(text)
    at = next((at for at, line in enumerate(lines) if line.strip()), None)
    if at is None or _fence(lines[at]) or _heading(lines[at]) or _is_rule(lines[at]):
        return []
    if lines[at].lstrip().startswith(">"):
        inner = _quoted(lines, at)
        return [(at + line, n) for n, (line, _) in enumerate(_blocks(inner, 1, tight=False))]
    if (first := _ITEM.match(lines[at])) is None:
        return []
    items, _ = _items(lines, at, 0, first)
    # an item that hangs further out than the first would be another level by itself
    return [(item.line, n) for n, item in enumerate(items) if item.margin == len(first[1])]


def reads_alike(text: str, line: int) -> bool:
    """Tell whether the lines from one on read the same by themselves, whatever comes after them."""
    return not any(list(_open_fences(text.split("\n")[:line]))[-1:])


def _lines(text: str) -> list[str]:
    """Return the lines; tabs that indent become spaces, but not inside fenced code."""
    lines = visible(text).split("\n")
    for at, mark in enumerate(_open_fences(lines)):
        line = lines[at]
        if line[:1].isspace() and not mark:
            bare = line.lstrip()
            lines[at] = line[: len(line) - len(bare)].expandtabs(4) + bare
    return lines


def _open_fences(lines: list[str]) -> Iterator[str]:
    """Yield for each line the fence that is open behind it, or nothing."""
    mark = ""
    for line in lines:
        fence = _fence(line.lstrip())
        if mark:
            mark = "" if _closes(line, mark) else mark
        elif fence:
            mark = fence[1]
        yield mark


def _blocks(lines: list[str], depth: int, *, tight: bool) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(lines):
        line, begin = lines[at], at
        if not line.strip():
            at += 1
            continue
        if fence := _fence(line):
            html, at = _code(lines, at, fence)
        elif heading := _heading(line):
            html, at = heading, at + 1
        elif _is_rule(line):
            html, at = "<hr>", at + 1
        elif depth < MAX_DEPTH and line.lstrip().startswith(">"):
            html, at = _quote(lines, at, depth)
        elif depth < MAX_DEPTH and (item := _ITEM.match(line)):
            html, at = _list(lines, at, depth, item)
        elif _is_table(lines, at):
            html, at = _table(lines, at)
        else:
            html, at = _paragraph(lines, at, depth, tight=tight)
        yield begin, html


def _inside(lines: list[str], depth: int, *, tight: bool) -> str:
    return "".join(html for _, html in _blocks(lines, depth + 1, tight=tight))


def _starts_block(line: str, depth: int) -> bool:
    if _fence(line) or _heading(line) or _is_rule(line):
        return True
    return depth < MAX_DEPTH and (line.lstrip().startswith(">") or bool(_ITEM.match(line)))


def _paragraph(lines: list[str], at: int, depth: int, *, tight: bool) -> tuple[str, int]:
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _starts_block(lines[end], depth):
        if _is_table(lines, end):
            break
        end += 1
    html = inline_html("\n".join(line.rstrip() for line in lines[at:end]))
    return (html if tight else f'<p dir="auto">{html}</p>'), end


# -- leaves ------------------------------------------------------------------------------------


def _fence(line: str) -> re.Match[str] | None:
    match = _FENCE.match(line)
    return match if match and not (match[1][0] == "`" and "`" in match[2]) else None


def _code(lines: list[str], at: int, fence: re.Match[str]) -> tuple[str, int]:
    mark, info, margin = fence[1], fence[2].strip(), fence.start(1)
    end = at + 1
    while end < len(lines) and not _closes(lines[end], mark):
        end += 1
    body = [line[min(margin, len(line) - len(line.lstrip(" "))) :] for line in lines[at + 1 : end]]
    label = f'<span class="nbd-lang">{escape(info)}</span>\n' if info else ""
    code = escape("\n".join(body))
    return f'<pre dir="ltr">{label}<code>{code}</code></pre>', end + 1


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and not stripped.strip(mark[0])


def _heading(line: str) -> str | None:
    text = line.strip()
    level = len(text) - len(text.lstrip("#"))
    if not 1 <= level <= 6 or (len(text) > level and text[level] != " "):
        return None
    text = text[level:].strip()
    bare = text.rstrip("#")
    if not bare or bare.endswith(" "):
        text = bare.rstrip()
    # h1 and h2 belong to the notebook's own outline
    tag = f"h{min(level + 2, 6)}"
    return f'<{tag} dir="auto">{inline_html(text)}</{tag}>'


def _is_rule(line: str) -> bool:
    marks = line.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "-*_" and not marks.strip(marks[0])


# -- containers --------------------------------------------------------------------------------


def _quote(lines: list[str], at: int, depth: int) -> tuple[str, int]:
    inner = _quoted(lines, at)
    return f"<blockquote>{_inside(inner, depth, tight=False)}</blockquote>", at + len(inner)


def _quoted(lines: list[str], at: int) -> list[str]:
    marked = takewhile(lambda line: line.startswith(">"), map(str.lstrip, lines[at:]))
    return [line[1:].removeprefix(" ") for line in marked]


@dataclass(slots=True)
class _Item:
    line: int
    margin: int
    number: str | None
    lines: list[str] = field(default_factory=list)

    def html(self, depth: int) -> str:
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
        tight = all(line.strip() for line in self.lines)
        value = f' value="{self.number}"' if self.number is not None else ""
        return f'<li dir="auto"{value}>{_inside(self.lines, depth, tight=tight)}</li>'


def _list(lines: list[str], at: int, depth: int, first: re.Match[str]) -> tuple[str, int]:
    items, end = _items(lines, at, depth, first)
    tag = _tag(first)
    return f"<{tag}>{''.join(item.html(depth) for item in items)}</{tag}>", end


def _tag(item: re.Match[str]) -> str:
    return "ul" if item[2] is None else "ol"


def _items(lines: list[str], at: int, depth: int, first: re.Match[str]) -> tuple[list[_Item], int]:
    """Return the items of the list that begins with one, and the line behind them."""
    margin, tag = len(first[1]), _tag(first)
    items: list[_Item] = []
    inside = margin  # where the text of the current item begins
    while at < len(lines):
        line = lines[at]
        indent = len(line) - len(line.lstrip(" "))
        match = _ITEM.match(line)
        if not line.strip():
            if not _goes_on(lines, at, margin):
                break
            items[-1].lines.append("")
        elif items and indent > margin:
            items[-1].lines.append(line[min(indent, inside) :])
        elif match and not _is_rule(line) and _tag(match) == tag:
            items.append(_Item(at, indent, match[2], [line[match.end() :]]))
            inside = match.end()
        elif match or _starts_block(line, depth) or not items[-1].lines[-1].strip():
            break
        else:
            items[-1].lines.append(line)
        at += 1
    return items, at


def _goes_on(lines: list[str], blank: int, margin: int) -> bool:
    """Tell whether the list goes on after a blank line: only the next line is looked at."""
    if blank + 1 >= len(lines) or not lines[blank + 1].strip():
        return False
    line = lines[blank + 1]
    return len(line) - len(line.lstrip(" ")) > margin or bool(_ITEM.match(line))


# -- tables ------------------------------------------------------------------------------------


def _is_table(lines: list[str], at: int) -> bool:
    if "|" not in lines[at] or at + 1 >= len(lines):
        return False
    rule = lines[at + 1]
    return "-" in rule and "|" in rule and _TABLE_RULE.fullmatch(rule) is not None


def _table(lines: list[str], at: int) -> tuple[str, int]:
    rows = [_row(lines[at], "th")]
    at += 2
    while at < len(lines) and "|" in lines[at]:
        rows.append(_row(lines[at], "td"))
        at += 1
    return f"<table>{''.join(rows)}</table>", at


def _row(line: str, tag: str) -> str:
    # short rows stay short: padding them to the header could square the size
    cells = _CELL_END.split(line.strip().removeprefix("|"))
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    html = (inline_html(cell.strip()) for cell in cells)
    return "<tr>" + "".join(f'<{tag} dir="auto">{cell}</{tag}>' for cell in html) + "</tr>"
