"""A session's tree as static HTML: what stands in a notebook where no widget runs.

Owns nothing but this text. The one idea: it must read well as bare lists, without style or
script, and its size is bounded, so that no saved notebook grows without end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbdurable.annotations import Marks
from nbdurable.entries import Entry, words_of
from nbdurable.loaded import Loaded
from nbdurable.notebook.markdown import to_html, unmarked
from nbdurable.notebook.page import page, plain
from nbdurable.outline import MAX_INDENT, Line, Place, Row, headline, line_of, places, row_of
from nbdurable.reprs import count, duration, joined, model_name, money, one_line
from nbdurable.stored import StoredEntry
from nbdurable.tree import Tree

MAX_NODES = 500
MAX_BYTES = 200_000
BRIEF_NODES = 60
_LINE_OVERHEAD = 220  # bytes of lists around a line, at most
_BODY_BYTES = 80_000  # of full texts, all together
_BODY_CHARS = 8_000  # of one full text
_SHOWN_WHOLE = 60  # entries at the end of the path whose full text may be there
_OFF = '<li class="nbd-off"><div>'
_OPEN_UP_TO = 40  # a tree of no more lines shows its side branches unfolded

ShownNode = Row | StoredEntry
Experiments = tuple[Callable[[Any], int], Sequence[Mapping[str, Any]]]
"""Which experiment an entry belongs to (or -1), and what each of them is."""


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
    texts = {entry.id: text for entry in listed if (text := words_of(entry))}
    tree = Tree(row for row in map(row_of, listed) if row.seq is not None)
    leaf = tree.get(leaf_id)
    look = _Look(tree, leaf_id, lambda id: texts.get(id, ""), marks or {})
    return look.html(headline(title, tree.nodes, leaf))


def image_html(image: Loaded, leaf_id: str | None, experiments: Experiments | None = None) -> str:
    """Return the tree of a session as it is known here, without reading more of it."""
    look = _look(image, image.tree, leaf_id)
    look.experiments = experiments
    return look.html(headline(image.session_id, image.tree.nodes, image.tree.get(leaf_id)))


def brief_html(image: Loaded, leaf_id: str | None) -> str:
    """Return the end of the path to the leaf, what else there is counted: for a first look."""
    tree = image.tree
    look = _look(image, Tree(tree.path(leaf_id)[-BRIEF_NODES:]), leaf_id)
    look.is_cut = True
    return look.html(headline(image.session_id, tree.nodes, tree.get(leaf_id)), len(tree))


def _look(image: Loaded, tree: Tree[StoredEntry], leaf_id: str | None) -> _Look:
    shown_whole = {node.id for node in tree.path(leaf_id)[-_SHOWN_WHOLE:]}

    def text_of(id: str) -> str:
        return words_of(image.entry(id)) if id in shown_whole else ""

    return _Look(tree, leaf_id, text_of, image.annotations().marks())


@dataclass
class _Look:
    """A tree on its way to HTML; rows are made only for what is shown."""

    tree: Tree[Any]  # of ShownNode
    leaf_id: str | None
    text_of: Callable[[str], str]
    marks: Mapping[str, Marks]
    experiments: Experiments | None = None
    is_cut: bool = False  # whether it begins in mid-path
    active: Container[str] = field(init=False)
    orphans: Container[str] = field(init=False)

    def html(self, head: str, total: int = 0) -> str:
        """Return it, with what is missing of `total` entries counted."""
        tree = self.tree
        self.active = {node.id for node in tree.path(self.leaf_id)} if self.leaf_id in tree else ()
        self.orphans = () if self.is_cut else {node.id for node in tree.orphans()}
        group_of = self.experiments[0] if self.experiments else None
        placed = list(places(tree, self.active, group_of))
        items = self._fitting(placed)
        body = _nested(placed, items, max(total - len(tree), 0))
        return page(f"<div><b>{plain(head)}</b></div><ul>{body}</ul>", name="nbd-tree")

    def _fitting(self, placed: Sequence[Place[Any]]) -> dict[str, str]:
        """Return the HTML of the lines that fit, by their names."""
        room, for_texts = MAX_BYTES - 20_000, _BODY_BYTES
        items: dict[str, str] = {}

        def worth(place: Place[Any]) -> tuple[bool, int]:
            node = place.node or place.members[-1]
            return node.id in self.active, node.seq or 0

        for place in heapq.nlargest(MAX_NODES, placed, key=worth):
            html = self._item(place, for_texts > 0)
            size = len(html.encode())
            if size + _LINE_OVERHEAD > room:
                break
            room -= size + _LINE_OVERHEAD
            for_texts -= size
            items[_name(place)] = html
        return items

    def _item(self, place: Place[Any], may_be_whole: bool) -> str:
        node = place.node
        if node is None:
            assert self.experiments is not None
            return _experiment_html(self.experiments[1][place.group])
        row = node if isinstance(node, Row) else row_of(node)
        line = line_of(place, row, self.leaf_id, self.active, self.orphans, self.marks)
        return _line_html(line, self.text_of(row.id) if line.on_path and may_be_whole else "")


def _name(place: Place[Any]) -> str:
    """Return what a place is known by: its entry, or what its group begins with."""
    node = place.node
    return f"group of {place.members[0].id}" if node is None else str(node.id)


def _experiment_html(told: Mapping[str, Any]) -> str:
    done, runs = told["done"], told["runs"]
    figures = joined(
        (
            f"{done} of {count(runs, 'run')}" if done < runs else count(runs, "run"),
            f"{told['failed']} failed" if told["failed"] else None,
            None if told["cost_usd"] is None else money(told["cost_usd"]),
        )
    )
    name = plain(one_line(told["name"] or "experiment"))
    return f'{_OFF}▤ <bdi>{name}</bdi> <span class="nbd-dim">{plain(figures)}</span></div></li>'


def _nested(placed: Sequence[Place[Any]], items: Mapping[str, str], skipped: int) -> str:
    out: list[str] = []
    levels = [0]
    begins: list[tuple[int, bool]] = []  # where in `out` the branches begin that are not closed yet
    is_small = len(placed) <= _OPEN_UP_TO
    for place in placed:
        html = items.get(_name(place))
        if html is None:
            skipped += place.node is not None
            continue
        _put_skipped(out, skipped)
        skipped, indent = 0, min(place.indent, MAX_INDENT)
        while levels[-1] > indent or (place.is_side and levels[-1] == indent):
            levels.pop()
            _close(out, *begins.pop())
        if indent > levels[-1]:
            # a branch is known by its first words
            levels.append(indent)
            begins.append((len(out), is_small and place.node is not None))
        out.append(html)
    _put_skipped(out, skipped)
    for begin in reversed(begins):
        _close(out, *begin)
    return "".join(out)


def _close(out: list[str], begin: int, is_open: bool) -> None:
    """Fold what came since a branch began below the branch's first line."""
    first = out[begin]
    if begin == len(out) - 1 or not first.startswith(_OFF):
        out[begin] = first.replace('class="nbd-off"', 'class="nbd-off nbd-side"', 1)
        return
    label = first.removeprefix(_OFF).removesuffix("</div></li>")
    out[begin] = (
        f'<li class="nbd-off"><details{" open" if is_open else ""}><summary>{label}</summary><ul>'
    )
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
