"""What a tree widget can be asked without changing anything.

Owns the answers that are longer than a row or cost something to find out; they are given when they
are asked for, so that a large session opens small.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from nbdurable.entries import MessageEntry
from nbdurable.errors import NbDurableError, shown, told
from nbdurable.notebook.bridge import Refused, browser_safe
from nbdurable.notebook.tree.actions import code_of
from nbdurable.notebook.tree.calls import calls_of
from nbdurable.notebook.tree.detail import MOST_CHARS, cut_text, detail
from nbdurable.notebook.tree.feed import Feed
from nbdurable.references import resolve_entry
from nbdurable.reprs import count, joined, money
from nbdurable.reruns import asked_entry, recorded_settings
from nbdurable.session import Session

MOST_PREVIEWS = 2_000
MOST_FOUND = 20_000


class Looking:
    """The questions of one widget about its session."""

    def __init__(self, session: Session, feed: Feed) -> None:
        self._session = session
        self._image = session.image
        self._feed = feed

    def _id(self, n: object) -> str:
        if isinstance(n, bool) or not isinstance(n, int):
            raise Refused(f"n is {shown(n)}; give the ordinal of an entry, such as 12")
        return resolve_entry(self._image, n, None)

    def detail(self, n: object, whole: bool = False) -> Any:
        """Return all of an entry."""
        return detail(self._image, self._session.leaf.id, self._id(n), whole=whole)

    def previews(self, ns: object) -> Any:
        """Return the first words of entries, by ordinal."""
        asked = ns if isinstance(ns, list) else []
        numbers = [n for n in asked[:MOST_PREVIEWS] if type(n) is int]
        return self._feed.previews(numbers)

    def search(self, text: object) -> Any:
        """Return the entries that say a text, in any case, newest last."""
        if not isinstance(text, str) or not text.strip():
            return {"ns": []}
        wanted = text.casefold()
        in_json = json.dumps(text, ensure_ascii=False)[1:-1].casefold()
        found: list[int] = []
        for node in self._image.tree.nodes:
            if in_json in node.payload.casefold() and self._says(node.id, wanted):
                found.append(node.n)
        return {"ns": found[-MOST_FOUND:]}

    def _says(self, entry_id: str, wanted: str) -> bool:
        entry = self._image.entry(entry_id)
        if not isinstance(entry, MessageEntry):
            return wanted in self._image.stored(entry_id).payload.casefold()
        calls = "".join(f"\n{call.name} {call.raw}" for call in entry.message.tool_calls)
        thought = "".join(f"\n{b.text}" for b in entry.blocks if b.type == "thinking")
        return wanted in f"{entry.text}{calls}{thought}".casefold()

    def estimate(self, **args: Any) -> Any:
        """Return what `sample` with these arguments could cost, without beginning it."""
        (call,) = calls_of(self._image, "sample", args)
        options = {**call.options, "effects": "run", "start": False}
        priced = replace(call, options=options).on(self._session).estimate()
        most = priced.most_usd
        text = joined(
            (
                count(priced.cells, "call"),
                f"{count(priced.input_tokens, 'token')} in",
                "price unknown" if most is None else f"at most {money(most)}",
            )
        )
        return {"text": text, "cost_usd": most}

    def code(self, name: object, args: object = None) -> Any:
        """Return the line of code that does what an action does."""
        given = args if isinstance(args, dict) else {}
        return {"code": code_of(self._session, str(name), given)}

    def request(self, n: object) -> Any:
        """Return the exact request that led to an entry, or would be sent from it, secrets hidden.

        It is made of what was recorded; what a hook put in its place is not.
        """
        session, image = self._session, self._image
        entry = image.entry(self._id(n))
        answer_id = asked_entry(image, entry.id, session.leaf.id)[1]
        try:
            settings = recorded_settings(image, session.settings, answer_id, with_tools=True)
        except NbDurableError as error:
            raise Refused(f"the request cannot be made again: {told(error)}") from error
        is_answer = isinstance(entry, MessageEntry) and entry.role == "assistant"
        path = image.path(entry.parent_id if is_answer else entry.id)
        view = settings.view(path, image.views)
        request = settings.model.describe(settings.request(view.messages))
        text = json.dumps(browser_safe(request), ensure_ascii=False, indent=2, default=str)
        return cut_text(text, MOST_CHARS)
