"""A page without a browser: it hears what a widget says, and asks as a view does."""

from __future__ import annotations

import json
import queue
from itertools import count
from typing import Any

from nbdurable.notebook.bridge import Bridge

WAIT_S = 20  # no message outlives a test that failed


class Page:
    """What one view of a widget says and hears; all messages stay readable in `heard`."""

    def __init__(self, widget: Bridge) -> None:
        self._widget = widget
        self._came: queue.Queue[dict[str, Any]] = queue.Queue()
        self._pieces: dict[str, list[str]] = {}
        self._cids = (f"cid{n}" for n in count())
        self.heard: list[dict[str, Any]] = []
        widget.send = self._hear

    def _hear(self, message: dict[str, Any], buffers: object = None) -> None:
        if message["type"] == "piece":
            parts = self._pieces.setdefault(message["of"], [])
            parts.append(message["text"])
            if len(parts) < message["parts"]:
                return
            message = json.loads("".join(parts))
        self._came.put(json.loads(json.dumps(message)))

    def _say(self, message: dict[str, Any]) -> None:
        self._widget._received(self._widget, message)

    def next(self, kind: str) -> dict[str, Any]:
        """Return the next message of a type."""
        while True:
            message = self._came.get(timeout=WAIT_S)
            self.heard.append(message)
            if message["type"] == kind:
                return message

    def state(self) -> dict[str, Any]:
        """Return the whole state as a view gets it."""
        self._say({"type": "resync", "have": -1, "view": "v"})
        body: dict[str, Any] = self.next("snapshot")["body"]
        return body

    def act(self, name: str, **args: object) -> Any:
        """Have something done and return the answer, or raise what was refused."""
        return self._request("cmd", name, args)

    def ask(self, name: str, **args: object) -> Any:
        """Ask for something and return the answer, or raise what was refused."""
        return self._request("ask", name, args)

    def _request(self, kind: str, name: str, args: dict[str, object]) -> Any:
        cid = next(self._cids)
        self._say({"type": kind, "cid": cid, "name": name, "args": args, "view": "v"})
        while True:
            message = self._came.get(timeout=WAIT_S)
            self.heard.append(message)
            if message.get("cid") == cid and message["type"] == "fail":
                raise AssertionError(message["error"])
            if message.get("cid") == cid and message["type"] == "done":
                return message["body"]
