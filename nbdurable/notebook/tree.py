"""The session tree in a notebook: the widget over one handle of a session.

Owns what a page may ask for and have done. Does not own how (`actions`, `detail`) or what the
session looks like (`feed`).
"""

from __future__ import annotations

from typing import Any

from nbdurable.notebook.assets import css, esm
from nbdurable.notebook.bridge import Bridge
from nbdurable.notebook.feed import Feed
from nbdurable.reprs import count
from nbdurable.session import Session


class SessionTree(Bridge):
    """A live view of a session's tree, in which one branches, asks again and compares."""

    _esm = esm("tree.js")
    _css = css("widget.css")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.feed = Feed(session, self)

    def __repr__(self) -> str:
        entries = count(len(self.feed.columns), "entry", "entries")
        return f"<SessionTree of {self.session.id!r}, {entries}>"

    def state(self) -> dict[str, Any]:
        """Return the whole state, as the page is told it."""
        return self.feed.state()

    def close(self) -> None:
        """Let go of the views and of the session; idempotent."""
        if not self.is_closed:
            self.feed.stop()
        super().close()
