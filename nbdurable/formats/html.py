"""Out as ``html``: a whole session as one page that needs nothing else and runs nothing.

Owns the page. What people and models wrote goes through the same safe Markdown as in a notebook.
Straight runs read down; a branch stands folded where it leaves, and opens without script.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

from nbdurable.blocks import ImageBlock
from nbdurable.formats.outgoing import Outgoing, outgoing
from nbdurable.formats.redaction import Redact
from nbdurable.formats.telling import Part, Told, told
from nbdurable.loaded import Loaded
from nbdurable.media import IMAGE_TYPES
from nbdurable.notebook.markdown import to_html
from nbdurable.notebook.page import page, plain
from nbdurable.reprs import count
from nbdurable.stores.jsonl import replacing

MARK = "<!doctype html><!-- nbdurable: a session as a page -->"

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
body { margin: 0 auto; max-width: 52rem; padding: 1rem; background: Canvas; color: CanvasText;
  color-scheme: light dark; }
section { margin: 0 0 1.2rem; } section > h2 { font-size: 14px; margin: 0 0 .3rem; }
details.side { border-inline-start: 1px solid; padding-inline-start: 1rem; margin: 0 0 1rem; }
img { max-width: 100%; } h1 { font-size: 20px; }
"""


def is_ours(path: Path) -> bool:
    """Whether a file begins as this form does."""
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write the tree of a session, or the path to one of its entries."""
    text = "".join(_pieces(outgoing(image, leaf_id, redact)))
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))


def _pieces(out: Outgoing) -> Iterator[str]:
    entries = told(out)
    title = plain(out.title or out.id)
    branches = count(len(out.tree.leaves()), "branch", "branches")
    about = f"{count(len(entries), 'entry', 'entries')}, {branches}"
    yield (
        f'{MARK}\n<html lang="und"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>"
    )
    head = f'<h1><bdi>{title}</bdi></h1><p class="nbd-dim">{plain(out.id)} · {about}</p>'
    yield page(head + "".join(_sections(entries)), name="nbd-page")
    yield "</body></html>\n"


def _sections(entries: list[Told]) -> Iterator[str]:
    """Yield the entries, each branch that stands aside inside a fold of its own."""
    levels = [0]
    for entry in entries:
        line = entry.line
        while levels[-1] > line.indent or (line.is_side and levels[-1] == line.indent):
            levels.pop()
            yield "</details>"
        if line.indent > levels[-1]:
            levels.append(line.indent)
            yield f'<details class="side"><summary>{_branch(entry)}</summary>'
        yield _section(entry)
    yield "</details>" * (len(levels) - 1)


def _branch(entry: Told) -> str:
    line = entry.line
    place = f" {line.sibling} of {line.siblings}" if line.siblings > 1 else ""
    return f"branch{place}: <bdi>{plain(line.row.preview) or plain(entry.heading)}</bdi>"


def _section(entry: Told) -> str:
    n = entry.line.row.n
    links = "".join(
        f' · <a href="#e{at}">{word} #{at}</a>'
        for word, numbers in (
            ("after", () if entry.parent is None else (entry.parent,)),
            ("then", entry.children if len(entry.children) > 1 else ()),
        )
        for at in numbers
    )
    leaf = " · ← the position" if entry.line.is_leaf else ""
    head = f'<h2 id="e{n}">{plain(entry.heading)}</h2>'
    facts = f'<p class="nbd-dim">{plain(entry.facts)}{links}{leaf}</p>'
    return f"<section>{head}{facts}{''.join(map(_part, entry.parts))}</section>"


def _part(part: Part) -> str:
    match part.kind:
        case "text":
            return f'<div dir="auto">{to_html(part.text)}</div>'
        case "thinking":
            body = to_html(part.text)
            return (
                f'<details class="nbd-think"><summary>thinking</summary><div>{body}</div></details>'
            )
        case "code":
            title = f'<p class="nbd-dim">{plain(part.title)}</p>' if part.title else ""
            return f"{title}<pre><code>{plain(part.text)}</code></pre>"
        case "image" if isinstance(part.block, ImageBlock):
            return _image(part, part.block)
    title = f"{plain(part.title)}: " if part.title else ""
    return f'<p class="nbd-note">{title}{plain(part.text)}</p>'


def _image(part: Part, block: ImageBlock) -> str:
    if block.media_type not in IMAGE_TYPES:
        return f'<p class="nbd-note">{plain(part.text)}</p>'
    data = base64.b64encode(block.data).decode("ascii")
    source = f"data:{block.media_type};base64,{data}"
    return f'<p><img alt="{plain(part.text)}" src="{source}"></p>'
