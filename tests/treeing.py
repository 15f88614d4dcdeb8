"""A page without a browser: it takes what a tree widget sends, as the page's modules do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from typing import Any

import nbdurable as nb
from nbdurable.notebook.bridge import browser_safe
from nbdurable.notebook.tree import SessionTree

TIMEOUT_S = 20.0
COLUMNS = ("parent", "role", "flags", "model", "tokens", "cost", "seconds", "at", "exp")
_names = count(1)

Body = dict[str, Any]


class Page:
    """One view of a widget; `state` is what it was sent, put together."""

    def __init__(self, session: nb.Session) -> None:
        self.tree = SessionTree(session)
        self.sent: list[Body] = []
        self.state: Body = {}
        self._seq = -1
        self._changed = threading.Condition()
        self._pieces: dict[str, dict[int, str]] = {}
        self._answers: dict[str, Body] = {}
        self._name = f"view{next(_names)}"
        self.tree.send = self._take  # type: ignore[method-assign]
        self.hear({"type": "resync"})
        self.until(lambda: bool(self.state))

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.tree.close()

    # -- the page's side -----------------------------------------------------------------------

    def _take(self, message: Any, buffers: object = None) -> None:
        with self._changed:
            self.sent.append(deepcopy(message))
            line = json.dumps(message, ensure_ascii=False, allow_nan=False).encode("utf-8")
            whole = self._whole(json.loads(line))
            if whole is not None:
                self._put(whole)
            self._changed.notify_all()

    def _whole(self, message: Body) -> Body | None:
        if message["type"] != "piece":
            return message
        parts = self._pieces.setdefault(message["of"], {})
        parts[message["part"]] = message["text"]
        if len(parts) < message["parts"]:
            return None
        whole: Body = json.loads("".join(parts[at] for at in range(message["parts"])))
        return whole

    def _put(self, message: Body) -> None:
        if message["type"] == "snapshot":
            self.state, self._seq = message["body"], message["seq"]
        elif message["type"] == "ops":
            if self.state and message["seq"] > self._seq:
                assert message["seq"] == self._seq + 1
                self._seq = message["seq"]
                for op in message["ops"]:
                    apply(self.state, op)
        elif message["type"] in ("done", "fail"):
            self._answers[message["cid"]] = message

    # -- what a test does ----------------------------------------------------------------------

    def hear(self, message: Body) -> None:
        """Have the kernel hear what this view says."""
        self.tree._received(self.tree, {"view": self._name, **message})

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; it is looked at whenever a message came."""
        with self._changed:
            assert self._changed.wait_for(is_so, TIMEOUT_S), self.state

    def say(self, kind: str, act: str, args: Body) -> Body:
        """Ask for something and return the whole answer."""
        cid = f"{self._name}:{next(_names)}"
        self.hear({"type": kind, "cid": cid, "name": act, "args": args})
        self.until(lambda: cid in self._answers)
        return self._answers[cid]

    def act(self, name: str, /, **args: Any) -> Any:
        """Do something and return what it made; it must not be refused."""
        answer = self.say("cmd", name, args)
        assert answer["type"] == "done", answer
        return answer["body"]

    def refused(self, name: str, /, **args: Any) -> str:
        """Do something that must be refused, and return the text."""
        answer = self.say("cmd", name, args)
        assert answer["type"] == "fail", answer
        return str(answer["error"])

    def ask(self, name: str, /, **args: Any) -> Any:
        """Look something up."""
        answer = self.say("ask", name, args)
        assert answer["type"] == "done", answer
        return answer["body"]

    def settled(self) -> Body:
        """Wait until this page knows all that the widget does, and return what it shows."""
        self.tree.feed.catch_up()
        self.until(self._is_up_to_date)
        return self.state

    def _is_up_to_date(self) -> bool:
        with self.tree.guard:
            return comparable(self.state) == comparable(self.tree.state())

    def idle(self) -> Body:
        """Wait until nothing runs any more, and return what this page shows then."""
        self.settled()
        feed = self.tree.feed
        self.until(lambda: not feed._runs and not feed.explored.is_running)
        return self.settled()

    def role(self, n: int) -> str:
        """Return the role of an entry as it is shown."""
        return str(self.state["roles"][self.state["columns"]["role"][n - 1]])


def comparable(state: Body) -> Body:
    """Return a state without the previews, of which a page may know more than it was asked."""
    known: Body = browser_safe(state)
    return {name: value for name, value in known.items() if name != "previews"}


def apply(state: Body, op: Body) -> None:
    """Change a state as a page does."""
    columns, fields = state["columns"], {k: v for k, v in op.items() if k != "op"}
    match op["op"]:
        case "add":
            assert op["n"] == len(columns["parent"]) + 1
            for name in COLUMNS:
                columns[name].append(op[name])
            state["previews"][str(op["n"])] = op["preview"]
        case "set":
            for name in set(op) & set(COLUMNS):
                columns[name][op["n"] - 1] = op[name]
        case "marks":
            marks = {name: op[name] for name in ("labels", "ratings", "preferred")}
            state["marks"].pop(str(op["n"]), None)
            if marks["labels"] or marks["ratings"] or marks["preferred"]:
                state["marks"][str(op["n"])] = marks
        case "head":
            state["head"] |= fields
        case "names":
            state |= fields
        case "exp":
            at = fields.pop("index")
            if at == len(state["experiments"]):
                state["experiments"].append({})
            state["experiments"][at] |= fields
        case "live" | "text" | "md" | "end":
            _live(state, op["op"], fields)
        case "question":
            state["questions"].append(fields)
        case "answered":
            state["questions"] = [one for one in state["questions"] if one["id"] != op["id"]]
        case "note":
            state["notes"].pop(str(op["n"]), None)
            if op["text"]:
                state["notes"][str(op["n"])] = op["text"]
        case "notice":
            state["notice"] = op["text"]
        case unknown:
            raise AssertionError(unknown)


def _live(state: Body, kind: str, fields: Body) -> None:
    rows = {row["run"]: row for row in state["live"]}
    run = fields["run"]
    if kind == "end":
        state["live"].remove(rows[run])
    elif kind == "text":
        rows[run]["text"] += fields["text"]
        rows[run]["tail"] += fields["text"]
    elif kind == "md":
        blocks, nodes = rows[run]["blocks"], fields["nodes"]
        if keep := fields.get("keep"):  # the children that a block has already
            first = [*blocks[fields["from"]][2][:keep], *nodes[0][2]]
            nodes = [[*nodes[0][:2], first], *nodes[1:]]
        blocks[fields["from"] :] = nodes
        rows[run]["tail"] = fields["tail"]
    elif run in rows:
        rows[run].update(fields)
        if "text" in fields:
            rows[run].update(blocks=[], tail="")
    else:
        state["live"].append(fields)
