"""The session tree in a notebook: the widget over one handle of a session.

Owns what belongs together for one view: what the session looks like (`feed`), what may be done
(`actions`) and asked (`looking`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from nbdurable.display import in_kernel
from nbdurable.errors import shown
from nbdurable.notebook.assets import css, esm
from nbdurable.notebook.bridge import Bridge, Op, Refused, called
from nbdurable.notebook.compare.comparing import Compared, Comparing
from nbdurable.notebook.showing import Twins, show
from nbdurable.notebook.static import brief_html, image_html
from nbdurable.notebook.tree.actions import Actions
from nbdurable.notebook.tree.explored import Explored
from nbdurable.notebook.tree.feed import Feed
from nbdurable.notebook.tree.looking import Looking
from nbdurable.reprs import count
from nbdurable.session import Session
from nbdurable.stored import StoredEntry

BRIEF_FROM = 5_000  # entries; the static form of more is made after the live one is shown

_STORED = frozenset(("add", "set", "marks", "head"))


class SessionTree(Bridge):
    """A live view of a session's tree, in which one branches, asks again and compares.

    Parameters
    ----------
    session : Session
        The handle it shows and acts by; the widget is closed by `close`, the handle by its own.
    """

    _esm = esm("tree/tree.js")
    _css = css("widget.css", "tree.css", "pane.css", "compare.css")

    asks: ClassVar[dict[str, str]] = {
        name: name for name in "detail previews search estimate code request".split()
    }

    at_once = frozenset(("cancel", "stop", "answer"))

    def __init__(self, session: Session) -> None:
        session.fresh()
        super().__init__()
        self.twins = Twins()
        self.session = session
        self.feed = Feed(session, self)
        self._actions = Actions(session)
        self._looking = Looking(session, self.feed)
        self._compared = Compared()

    def __repr__(self) -> str:
        entries = count(len(self.feed.columns), "entry", "entries")
        return f"<SessionTree of {self.session.id!r}, {entries}>"

    def state(self) -> dict[str, Any]:
        """Return the whole state, as the page is told it."""
        return self.feed.state()

    def perform(self, kind: str, name: str, args: dict[str, Any]) -> Any:
        """Do or look up what a view asked for."""
        if (kind, name) == ("ask", "compare"):
            return called(name, self._compare, args)
        if (kind, name) == ("cmd", "compared"):
            return called(name, self._compared.deed, args)
        if kind == "cmd":
            return self._actions.do(name, args)
        if name not in self.asks:
            raise Refused(f"question {shown(name)} is not known here; reload the page")
        return called(name, getattr(self._looking, self.asks[name]), args)

    def _compare(self, ns: list[int], base: int = 1, blind: bool = False) -> Any:
        return self._compared.begin(Comparing.of_ordinals(self.session, ns, base=base, blind=blind))

    def put(self, op: Op) -> None:
        """Send a change to all views; what is stored shows in the static form too."""
        super().put(op)
        if op["op"] in _STORED:
            self.twins.changed()

    def html(self) -> str:
        """Return the tree as HTML without script, of bounded size."""
        exp, rows = self.feed.columns.exp, self.feed.explored.rows

        def exp_of(node: StoredEntry) -> int:
            return exp[node.n - 1] if node.n <= len(exp) else -1  # not seen here yet

        experiments = (exp_of, rows) if rows else None
        return image_html(self.session.image, self.session.leaf.id, experiments)

    def _brief(self) -> str:
        return brief_html(self.session.image, self.session.leaf.id)

    def _ipython_display_(self) -> None:
        is_large = len(self.feed.columns) >= BRIEF_FROM
        self.twins.add(show(self, self.html, self._brief if is_large else None))

    def close(self) -> None:
        """Let go of the views and of the session; idempotent."""
        if not self.is_closed:
            self.feed.stop()
        super().close()


def fresh_html(session: Session) -> str:
    """Return the tree of a session as it is stored now, as HTML without script."""
    session.fresh()
    image = session.image
    explored = Explored(image)
    plans = explored.fresh_plans()
    if not plans:
        return image_html(image, session.leaf.id)
    explored.take_plans(plans)
    explored.take_runs(image.store.load_runs(image.session_id))
    list(explored.changes(()))
    return image_html(image, session.leaf.id, (explored.of_entry, explored.rows))


def show_session(session: Session) -> None:
    """Show a session in the running cell: live in a kernel, else in words."""
    from IPython.display import display

    if session._is_closed or not in_kernel():
        bundle = {"text/plain": repr(session)}
        if not session._is_closed:
            bundle["text/html"] = session._repr_html_()
        display(bundle, raw=True)
    else:
        session.widget()._ipython_display_()
