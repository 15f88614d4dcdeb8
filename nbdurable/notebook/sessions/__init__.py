"""The sessions of a store in a notebook: a table to sort and search, whose rows open trees.

Owns which sessions a view sees, and in which order. The one idea: a view holds only the rows in
sight and asks for others as it scrolls, so that ten thousand sessions are as quick as ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from nbdurable.display import in_kernel
from nbdurable.errors import QueryError, SessionNotFound, shown
from nbdurable.loaded import load, unload
from nbdurable.notebook.assets import css, esm
from nbdurable.notebook.bridge import Bridge, Refused, called
from nbdurable.notebook.sessions.table import sessions_html
from nbdurable.notebook.showing import live_bundle, show
from nbdurable.opening import open as open_session
from nbdurable.opening import recorded_model
from nbdurable.reprs import model_names, one_line
from nbdurable.stored import SessionSummary
from nbdurable.stores.base import Store

if TYPE_CHECKING:
    from nbdurable.library import Library
    from nbdurable.notebook.tree import SessionTree
    from nbdurable.session import Session

Row = dict[str, Any]

WINDOW_ROWS = 100
MOST_WINDOW_ROWS = 500
TEXT_HITS = 2_000  # entries of a text search that are looked at
SHORTEST_TEXT = 2
SEEN_S = 2.0
TITLE_CHARS = 160
SORTED_BY = ("title", "entries", "branches", "models", "cost", "at", "parent")


def row_of(summary: SessionSummary) -> Row:
    """Return a session as a row; its last activity in milliseconds since 1970, UTC."""
    return {
        "id": summary.session.id,
        "title": one_line(summary.title, TITLE_CHARS),
        "entries": summary.entries,
        "branches": summary.leaves,
        "models": ", ".join(model_names(summary.models).values()),
        "cost": summary.cost_usd,
        "at": summary.last_at // 1_000,
        "parent": summary.session.parent_session_id,
        "found": None,
    }


class SessionRows:
    """The sessions of a library as rows, for one widget; read from the store when asked to."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._rows: list[Row] = []
        self._asked: tuple[str, str, bool] | None = None
        self._sorted: list[Row] = []

    @property
    def total(self) -> int:
        """How many sessions there were at the last look."""
        return len(self._rows)

    def look(self) -> None:
        """Read the store again."""
        self._rows = [row_of(one) for one in self._library._held().list_sessions()]
        self._asked = None

    def window(
        self, query: str = "", sort: str = "at", down: bool = True, first: int = 0, size: int = 0
    ) -> dict[str, Any]:
        """Return some rows of those that fit a query, and how many fit.

        Parameters
        ----------
        query : str
            Words of a title, id, model or source, or of what was said.
        sort : str
            One of `SORTED_BY`; sessions that are equal in it stay newest first.
        down : bool
            Whether the highest come first.
        first, size : int
            Which rows to return.
        """
        if sort not in SORTED_BY:
            raise Refused(f"sessions cannot be sorted by {shown(sort)}; see {', '.join(SORTED_BY)}")
        asked = (query.strip(), sort, down)
        if asked != self._asked:
            self._sorted = _in_order(self._fitting(asked[0]), sort, down)
            self._asked = asked
        first = max(int(first), 0)
        rows = self._sorted[first : first + min(int(size) or WINDOW_ROWS, MOST_WINDOW_ROWS)]
        return {
            "total": self.total,
            "found": len(self._sorted),
            "first": first,
            "rows": rows,
            "forks": any(row["parent"] for row in self._rows),
        }

    def _fitting(self, query: str) -> list[Row]:
        if not query:
            return self._rows
        said = self._said(query) if len(query) >= SHORTEST_TEXT else {}
        wanted = query.casefold()
        fitting = []
        for row in self._rows:
            if row["id"] in said:
                fitting.append({**row, "found": said[row["id"]]})
            elif any(wanted in (row[name] or "").casefold() for name in ("title", "id", "parent")):
                fitting.append(row)
            elif wanted in row["models"].casefold():
                fitting.append(row)
        return fitting

    def _said(self, query: str) -> dict[str, str]:
        """Return by session the newest place where a text was said."""
        try:
            hits = self._library.search(query, limit=TEXT_HITS)
        except QueryError:
            return {}
        found: dict[str, str] = {}
        for session_id, snippet in zip(hits["session_id"], hits["snippet"], strict=True):
            found.setdefault(session_id, snippet)
        return found


def _in_order(rows: Sequence[Row], sort: str, down: bool) -> list[Row]:
    """Return the rows sorted; what is missing comes last in both directions."""

    def key(row: Row) -> Any:
        value = row["title"] or row["id"] if sort == "title" else row[sort]
        return value.casefold() if isinstance(value, str) else value

    known = [row for row in rows if row[sort] not in (None, "") or sort == "title"]
    unknown = [row for row in rows if row[sort] in (None, "") and sort != "title"]
    return [*sorted(known, key=key, reverse=down), *unknown]


class SessionsWidget(Bridge):
    """The table in the page; a session that is opened stands in an output of its own below."""

    _esm = esm("sessions.js")
    _css = css("widget.css", "compare.css", "sessions.css")
    acts: ClassVar[Mapping[str, str]] = {"open": "_open", "shut": "_shut"}
    asks: ClassVar[Mapping[str, str]] = {"rows": "_window"}

    def __init__(self, library: Library, *, has_room: bool = True) -> None:
        self._has_room = has_room  # for a session below; where a host gives none, code is shown
        self._library = library
        self._rows = SessionRows(library)
        self._below: Any = None
        self.session: Session | None = None
        self._tree: SessionTree | None = None
        super().__init__()

    def __repr__(self) -> str:
        return f"<SessionsWidget of {self._library._name}>"

    def state(self) -> dict[str, Any]:
        """Return the first rows, as they are stored now."""
        self._look()
        return {
            "store": self._library._name,
            "open": self.session.id if self.session else None,
            **self._rows.window(),
        }

    def html(self) -> str:
        """Return the table as HTML without script, of bounded size."""
        self._look()
        return sessions_html(self._library._name, self._rows.window(size=MOST_WINDOW_ROWS))

    def show(self) -> None:
        """Show it in the running cell, with room below for a session."""
        from IPython.display import display

        show(self, self.html)
        self._below = display({"text/html": ""}, raw=True, display_id=True)

    def _look(self) -> None:
        if self._library._store is not None:  # a closed one shows what it knew
            self._rows.look()

    def _window(self, fresh: bool = False, **asked: Any) -> dict[str, Any]:
        if fresh:
            self._rows.look()
        rows: dict[str, Any] = called("rows", self._rows.window, asked)
        return rows

    def _open(self, id: str) -> dict[str, Any]:
        """Open a session below, in place of the one before."""
        store = self._library._held()
        code = f"nb.open({id!r}, store={self._library._name!r})"
        if not self._has_room:
            return {"id": id, "code": f"open it in a cell: {code}"}
        if self.session is not None and self.session.id == id and not self.session._is_closed:
            return {"id": id, "code": code}
        session = open_session(id, store=store, model=_model_of(store, id))
        self._leave()
        self.session = session
        if self._below is not None:
            self._tree = session.widget()
            self._below.update(live_bundle(self._tree), raw=True)
            self._tree.seen.wait(SEEN_S)  # a page cannot begin with what the next one closed
        with self.guard:
            self.put({"op": "open", "id": id})
        return {"id": id, "code": code}

    def _shut(self) -> None:
        self._leave()
        if self._below is not None:
            self._below.update({"text/html": ""}, raw=True)
        with self.guard:
            self.put({"op": "open", "id": None})

    def _leave(self) -> None:
        before, self.session = self.session, None
        tree, self._tree = self._tree, None
        if tree is not None:
            tree.close()
        if before is not None:
            before.close()

    def close(self) -> None:
        """Let go of the views and of the session that is open below; idempotent."""
        if not self.is_closed:
            self._leave()
        super().close()


def _model_of(store: Store, session_id: str) -> str | None:
    """Return the model of a session's last run, so that opening it has nothing to say."""
    try:
        image = load(store, session_id)
    except SessionNotFound:
        raise Refused(f"session {shown(session_id)} is no longer in {store.name}") from None
    try:
        return recorded_model(image)
    finally:
        unload(image, store)


def show_library(library: Library) -> None:
    """Show a library in the running cell: live in a kernel, else in words."""
    from IPython.display import display

    if library._store is None or not in_kernel():
        display({"text/plain": repr(library), "text/html": library_html(library)}, raw=True)
    else:
        SessionsWidget(library).show()


def library_html(library: Library) -> str:
    """Return the sessions of a library as HTML without script, of bounded size."""
    if library._store is None:
        return sessions_html(library._name, None)
    rows = SessionRows(library)
    rows.look()
    return sessions_html(library._name, rows.window(size=MOST_WINDOW_ROWS))
