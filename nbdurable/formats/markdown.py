"""Out as ``markdown``: one path to read, or the whole tree with links between its entries.

Owns the text. The one idea: what people and models wrote stays Markdown, but none of it can reach
beyond its entry: an open fence is closed, and what a reader could take for HTML is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nbdurable.formats.outgoing import Outgoing, outgoing
from nbdurable.formats.redaction import Redact
from nbdurable.formats.telling import Part, Told, told
from nbdurable.loaded import Loaded
from nbdurable.reprs import count, one_line, visible
from nbdurable.stores.jsonl import replacing

MARK = "<!-- nbdurable: a session as Markdown -->"

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?=[a-zA-Z/!?])")
_BAD_LINK = re.compile(
    r"\[(?=[^\[\]]*\]\(\s*<?\s*(?:javascript|vbscript|data|file):)", re.IGNORECASE
)
_BAD_REFERENCE = re.compile(r"^( {0,3})\[(?=[^\]]+\]:)")
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")


def is_ours(path: Path) -> bool:
    """Whether a file begins as this form does."""
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write the tree of a session, or the path to one of its entries."""
    text = "\n".join(_lines(outgoing(image, leaf_id, redact), is_tree=leaf_id is None))
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace") + b"\n")


def _lines(out: Outgoing, *, is_tree: bool) -> Iterator[str]:
    entries = told(out)
    leaves = len(out.tree.leaves())
    is_tree = is_tree and leaves > 1
    yield from (MARK, "", f"# {_plain(out.title or out.id)}", "")
    about = f"{count(len(entries), 'entry', 'entries')}, {count(leaves, 'branch', 'branches')}"
    yield from (f"Session `{_plain(out.id).replace('`', '')}`: {about}.", "")
    for entry in entries:
        yield from _entry_lines(entry, is_tree=is_tree)


def _entry_lines(entry: Told, *, is_tree: bool) -> Iterator[str]:
    n = entry.line.row.n
    if is_tree:
        yield from (f'<a id="e{n}"></a>', "")
    yield from (f"## {_plain(entry.heading)}", "")
    facts = [_plain(entry.facts)] if entry.facts else []
    if is_tree:
        facts += _links(entry)
    if facts:
        yield from (f"*{' · '.join(facts)}*", "")
    for part in entry.parts:
        yield from _part_lines(part)


def _links(entry: Told) -> Iterator[str]:
    if entry.parent is not None:
        yield f"after [#{entry.parent}](#e{entry.parent})"
    if entry.line.is_leaf:
        yield "the position"
    if len(entry.children) > 1:
        yield "then " + ", ".join(f"[#{n}](#e{n})" for n in entry.children)


def _part_lines(part: Part) -> Iterator[str]:
    match part.kind:
        case "text":
            yield from (*safe(part.text), "")
        case "thinking":
            yield from ("> *thinking*", ">")
            yield from (*(f"> {line}".rstrip() for line in safe(part.text)), "")
        case "code":
            yield from (f"**{_plain(part.title)}**", "", *_fenced(part.text), "")
        case "note" | "image":
            title = f"{part.title}: " if part.title else ""
            yield from (f"*[{_plain(title + part.text)}]*", "")


def _fenced(text: str) -> Iterable[str]:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return (fence, *visible(text).split("\n"), fence)


def _plain(text: str) -> str:
    """Return one line that is no markup."""
    return re.sub(r"([\\*_\[\]<>#|~])", r"\\\1", one_line(text, 400))


def safe(text: str) -> list[str]:
    """Return the lines of Markdown that nobody has checked, so that they end where they end."""
    made, fence = [], ""
    for line in visible(text).split("\n"):
        found = _FENCE.match(line)
        if fence:
            closes = found and found[1].startswith(fence) and not found[2].strip()
            fence = "" if closes else fence
            made.append(line)
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            made.append(line)
        else:
            made.append(_safe_line(line))
    return [*made, fence] if fence else made


def _safe_line(line: str) -> str:
    line = _HEADING.sub(r"\1\\\2", line) if _HEADING.match(line) else line
    pieces, at = [], 0
    for code in _CODE.finditer(line):
        pieces += [_no_html(line[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*pieces, _no_html(line[at:])])


def _no_html(text: str) -> str:
    text = _BAD_REFERENCE.sub(r"\1\\[", _BAD_LINK.sub(r"\\[", text))
    return _TAG.sub("&lt;", text)
