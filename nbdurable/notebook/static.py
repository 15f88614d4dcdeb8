"""A session's tree as static HTML: what stands in a notebook where no widget runs.

Owns nothing but this text. The one idea: it must read well as bare lists, without style or
script, and its size is bounded, so that no saved notebook grows without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nbdurable.annotations import Marks
from nbdurable.entries import Entry, words_of
from nbdurable.loaded import Loaded
from nbdurable.notebook.markdown import to_html, unmarked
from nbdurable.notebook.page import page, plain
from nbdurable.outline import Line, heading, outline
from nbdurable.reprs import count, duration, joined, model_name, money
from nbdurable.stored import StoredEntry

MAX_NODES = 500
MAX_BYTES = 200_000
_LINE_OVERHEAD = 220  # bytes of lists around a line, at most
_BODY_BYTES = 80_000  # of full texts, all together
_BODY_CHARS = 8_000  # of one full text
_SHOWN_WHOLE = 60  # entries at the end of the path whose full text may be there
_OFF = '<li class="nbd-off"><div>'
_OPEN_UP_TO = 40  # a tree of no more lines shows its side branches unfolded


def session_html(
    entries: Iterable[Entry | StoredEntry],
    leaf_id: str | None,
    *,
    title: str = "",
    marks: Mapping[str, Marks] | None = None,
) -> str:
    """Return a session's tree as nested lists, with the texts of the newest entries on the path.

    Parameters
    ----------
    entries : iterable of Entry or StoredEntry
        In any order.
    leaf_id : str or None
        The active leaf.
    title : str
        The session's name.
    marks : mapping, optional
        Labels and ratings by entry id.

    Returns
    -------
    str
        At most `MAX_NODES` entries and `MAX_BYTES` bytes; what is left out is counted. The path
        to the leaf comes first, then what is newest.
    """
    listed = list(entries)
    lines = outline(listed, leaf_id, marks)
    texts = {entry.id: text for entry in listed if (text := words_of(entry))}
    head = f"<div><b>{plain(heading(title, lines))}</b></div>"
    items = _fitting(lines, texts)
    body = _nested(lines, items)
    return page(f"{head}<ul>{body}</ul>", name="nbd-tree")


def image_html(image: Loaded, leaf_id: str | None) -> str:
    """Return the tree of a session as it is known here, without reading more of it."""
    shown_whole = {node.id for node in image.tree.path(leaf_id)[-_SHOWN_WHOLE:]}
    nodes = [image.entry(node.id) if node.id in shown_whole else node for node in image.tree.nodes]
    marks = image.annotations().marks()
    return session_html(nodes, leaf_id, title=image.session_id, marks=marks)


def _fitting(lines: list[Line], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the HTML of the lines that fit, by entry id."""
    room, for_texts = MAX_BYTES - 20_000, _BODY_BYTES
    items: dict[str, str] = {}
    by_worth = sorted(lines, key=lambda line: (line.on_path, line.row.seq or 0), reverse=True)
    for line in by_worth[:MAX_NODES]:
        text = texts.get(line.row.id, "")
        html = _line_html(line, text if line.on_path and for_texts > 0 else "")
        size = len(html.encode())
        if size + _LINE_OVERHEAD > room:
            break
        room -= size + _LINE_OVERHEAD
        for_texts -= size
        items[line.row.id] = html
    return items


def _nested(lines: list[Line], items: Mapping[str, str]) -> str:
    out: list[str] = []
    levels = [0]
    begins: list[int] = []  # where in `out` the branches begin that are not closed yet
    skipped = 0
    is_open = " open" if len(lines) <= _OPEN_UP_TO else ""
    for line in lines:
        if line.row.id not in items:
            skipped += 1
            continue
        _put_skipped(out, skipped)
        skipped = 0
        while levels[-1] > line.indent or (line.is_side and levels[-1] == line.indent):
            levels.pop()
            _close(out, begins.pop(), is_open)
        if line.indent > levels[-1]:
            # a branch is known by its first words
            levels.append(line.indent)
            begins.append(len(out))
        out.append(items[line.row.id])
    _put_skipped(out, skipped)
    for begin in reversed(begins):
        _close(out, begin, is_open)
    return "".join(out)


def _close(out: list[str], begin: int, is_open: str) -> None:
    """Fold what came since a branch began below the branch's first line."""
    first = out[begin]
    if begin == len(out) - 1 or not first.startswith(_OFF):
        out[begin] = first.replace('class="nbd-off"', 'class="nbd-off nbd-side"', 1)
        return
    label = first.removeprefix(_OFF).removesuffix("</div></li>")
    out[begin] = f'<li class="nbd-off"><details{is_open}><summary>{label}</summary><ul>'
    out.append("</ul></details></li>")


def _put_skipped(out: list[str], skipped: int) -> None:
    if skipped:
        out.append(f'<li class="nbd-dim">… {skipped:,} more</li>')


def _line_html(line: Line, text: str) -> str:
    row = line.row
    name = f"#{row.n} {row.role}" if row.n is not None else row.role
    words = unmarked(row.preview) if row.role == "assistant" else row.preview
    preview = plain(words) or "(no text)"
    strong = f"<b>{preview}</b>" if line.on_path and row.role == "user" else preview
    label = (
        f"{'◆' if line.is_leaf else '●' if line.on_path else '○'} "
        f'<span class="nbd-dim">{plain(name)}</span> <bdi>{strong}</bdi> '
        f'{_tags_html(line)}<span class="nbd-dim">{plain(_figures(line))}</span>'
    )
    cls = "" if line.on_path else ' class="nbd-off"'
    if len(text) <= len(row.preview) and "\n" not in text.strip():
        return f"<li{cls}><div>{label}</div></li>"
    hidden = len(text) - _BODY_CHARS
    more = f'<p class="nbd-dim">… {count(hidden, "more character")}</p>' if hidden > 0 else ""
    is_open = " open" if line.is_leaf else ""
    body = to_html(text[:_BODY_CHARS]) + more
    return f"<li{cls}><details{is_open}><summary>{label}</summary><div>{body}</div></details></li>"


def _tags_html(line: Line) -> str:
    return "".join(f'<bdi class="nbd-tag">[{plain(tag)}]</bdi> ' for tag in line.tags)


def _place(line: Line) -> str:
    return f"{line.sibling}/{line.siblings}"


def _figures(line: Line) -> str:
    row = line.row
    return joined(
        (
            _place(line) if line.siblings > 1 else None,
            "meta" if row.is_meta else None,
            "orphan" if line.is_orphan else None,
            row.stop_reason if row.stop_reason in ("error", "aborted", "length") else None,
            model_name(row.model) if row.model else None,
            None if row.tokens is None else count(row.tokens, "token"),
            None if row.cost_usd is None else money(row.cost_usd),
            None if row.seconds is None else duration(row.seconds),
            "← leaf" if line.is_leaf else None,
        )
    )
