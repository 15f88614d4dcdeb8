"""`compare`: answers side by side, as a widget, a static table and a frame.

Owns the object and its widget. What is said, and where, is made in `comparing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from nbdurable.notebook.assets import css, esm
from nbdurable.notebook.bridge import Bridge, called
from nbdurable.notebook.compare.aligned import text_of
from nbdurable.notebook.compare.columns import columns_of
from nbdurable.notebook.compare.comparing import Body, Comparing
from nbdurable.notebook.compare.contrast import comparison_html
from nbdurable.notebook.compare.worddiff import change_counts
from nbdurable.notebook.showing import Twins, show
from nbdurable.reprs import one_line
from nbdurable.session import Session
from nbdurable.wire import dumps

if TYPE_CHECKING:
    from pandas import DataFrame


def compare(
    *refs: object,
    base: int = 1,
    blind: bool = False,
    session: Session | None = None,
    by: str | None = None,
) -> Comparison:
    """Lay answers, branches or whole sessions beside each other.

    Parameters
    ----------
    *refs : Run, Entry, Session, Cell, Experiment or reference
        Two or more, mixed as you like. A run means its last entry, a session its leaf, an
        experiment its cells that have an answer.
    base : int
        The column that the others are compared with, word by word.
    blind : bool
        Shuffle the columns, and hide what they are until one is preferred.
    session : Session, optional
        Whose entries ordinals and labels mean; by default that of the only open one.
    by : str, optional
        Who prefers.

    Returns
    -------
    Comparison
        Shown in a cell it is a widget; see its `df` and `html`.

    Raises
    ------
    EntryNotFound
        A reference means no entry of a session that is open here.
    RunError
        They are fewer than two, too many, or one comes twice.
    """
    return Comparison(Comparing(columns_of(refs, session), base=base, blind=blind, by=by))


class Comparison:
    """Columns side by side; made by `compare`."""

    def __init__(self, comparing: Comparing) -> None:
        self._comparing = comparing
        self._widget: ComparisonWidget | None = None

    def __len__(self) -> int:
        return len(self._comparing.columns)

    def __repr__(self) -> str:
        return f"<Comparison {self._comparing.title()}: {', '.join(self._comparing.names())}>"

    def prefer(self, key: int) -> None:
        """Store that the column of a key, from 1 on as shown, is better than the others."""
        self._comparing.prefer(key)
        if self._widget is not None:
            self._widget.changed()

    def df(self) -> DataFrame:
        """Return one row per column, in the order they are shown.

        Returns
        -------
        DataFrame
            Facts and counts over what is not shared; ``text`` is the last answer, and
            ``words_added`` and ``words_removed`` tell how far all its texts are from the base's.
            While it is blind, what tells columns apart is missing.
        """
        from nbdurable.frames import comparison_frame

        body = self._comparing.body()
        rows = [_row(self._comparing, at, body) for at in range(len(self))]
        return comparison_frame(rows, [] if body["blind"] else body["axes"])

    def html(self) -> str:
        """Return the comparison as HTML without script, of bounded size."""
        return comparison_html(self._comparing.body())

    def widget(self) -> ComparisonWidget:
        """Return the comparison as a widget, the same one each time."""
        if self._widget is None or self._widget.is_closed:
            self._widget = ComparisonWidget(self._comparing)
        return self._widget

    def _repr_html_(self) -> str:
        return self.html()

    def _ipython_display_(self) -> None:
        self.widget().show()

    def _display_(self) -> ComparisonWidget:
        """Return what marimo shows for it."""
        return self.widget()


class ComparisonWidget(Bridge):
    """A comparison in the page; any number of views show the same state."""

    _esm = esm("compare/comparison.js")
    _css = css("widget.css", "compare.css")
    acts: ClassVar[Mapping[str, str]] = {"compared": "_compared"}

    def __init__(self, comparing: Comparing) -> None:
        self._comparing = comparing
        self._twins = Twins()
        super().__init__()

    def show(self) -> None:
        """Show it in the running cell, after its static form."""
        self._twins.add(show(self, lambda: comparison_html(self._comparing.body())))

    def __repr__(self) -> str:
        return f"<ComparisonWidget of {self._comparing.title()}>"

    def state(self) -> dict[str, Any]:
        """Return the comparison."""
        return self._comparing.body()

    def changed(self) -> None:
        """Show what has changed, in all views and in the static table."""
        with self.guard:
            self.put({"op": "body", "body": self._comparing.body()})
        self._twins.update()  # at once: a blind one must say no name

    def _compared(self, id: str, **choices: Any) -> Body:
        body: Body = called("compared", self._comparing.deed, choices)
        self.changed()
        return body


def _row(comparing: Comparing, at: int, body: Body) -> dict[str, object]:
    shown = body["columns"][at]
    given = comparing.places_given()[at]
    pieces = [comparing.pieces(row, given) for row in range(len(comparing.places))]
    is_compared = at + 1 != body["base"]
    added, removed = map(sum, zip(*map(change_counts, pieces), strict=True)) if pieces else (0, 0)
    row: dict[str, object] = {
        "key": at + 1,
        "name": shown["name"],
        "text": _answer(comparing, given),
        "words_added": added if is_compared else 0,
        "words_removed": removed if is_compared else 0,
        "is_base": not is_compared,
    }
    if body["blind"]:
        return row
    column, figures = comparing.columns[at], comparing.ordered_figures()[at]
    return row | {
        "session_id": column.session.id,
        "n": column.n,
        "entry_id": column.entry_id,
        "model": ", ".join(figures.models) or None,
        "system": column.system,
        "params": dumps(dict(figures.params)),
        **(figures.usage.to_dict() if figures.usage else {}),
        "cost_usd": figures.cost_usd,
        "seconds": figures.seconds,
        "ttft_s": figures.ttft_s,
        "stop_reason": figures.stop_reason or ("stop" if figures.models else None),
        "label": ", ".join(one_line(label) for label in column.labels) or None,
        "on_path": column.on_path,
        "preferred": "preferred" in shown["badges"],
        **{f"axis {axis}": column.axes.get(axis) for axis in body["axes"]},
    }


def _answer(comparing: Comparing, given: int) -> str | None:
    """Return the text of a column's last answer."""
    for place in reversed(comparing.places):
        if place.role == "assistant" and place.entries[given]:
            return text_of(place.entries[given][-1])
    return None
