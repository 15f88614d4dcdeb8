"""The line between a widget and its views holds whatever one widget, view or answer does."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from widget_page import Page

from nbdurable.notebook.bridge import MAX_SAFE_INT, Bridge, browser_safe, in_context


class Counting(Bridge):
    """A widget with one number, and questions that go wrong."""

    acts: ClassVar[dict[str, str]] = {"add": "add", "wait": "wait", "stop": "stop"}
    asks: ClassVar[dict[str, str]] = {"deep": "deep", "odd": "odd", "look": "look"}
    at_once = frozenset(("stop",))

    def __init__(self) -> None:
        self.number = 0
        self.trouble: Exception | None = None
        self.go = threading.Event()
        super().__init__()

    def state(self) -> dict[str, Any]:
        if self.trouble is not None:
            raise self.trouble
        return {"number": self.number}

    def add(self, number: int) -> int:
        with self.guard:
            self.number += number
            self.put({"op": "set", "number": self.number})
        return self.number

    def wait(self) -> None:
        assert self.go.wait(20)

    def stop(self) -> None:
        self.go.set()

    def deep(self) -> Any:
        value: Any = []
        for _ in range(100_000):
            value = [value]
        return value

    def odd(self) -> Any:
        return {"nan": float("nan"), "half": "\ud83d", "\ud83d": 1, "big": MAX_SAFE_INT + 1}

    def look(self, n: int) -> int:
        return n


@pytest.fixture
def widget() -> Iterator[Counting]:
    made = Counting()
    yield made
    made.close()


# case 46
def test_a_widget_that_cannot_be_sent_leaves_the_others_alone(widget: Counting) -> None:
    broken, tried = Counting(), threading.Event()

    def fail(*_: object) -> None:
        tried.set()
        raise ConnectionError("the line is gone")

    broken.send = fail
    broken._received(broken, {"type": "resync", "view": "v"})
    assert tried.wait(20)

    assert Page(widget).state() == {"number": 0}
    broken.close()


def test_a_state_that_cannot_be_made_is_told_and_asked_for_again(widget: Counting) -> None:
    page = Page(widget)
    widget.trouble = OSError("the file is gone")
    page._say({"type": "resync", "view": "v"})
    told = page.next("trouble")
    done = page.act("add", number=2)
    widget.trouble = None

    assert (told["view"], told["text"]) == ("v", "the file is gone")
    assert done == 2
    assert page.state() == {"number": 2}


class Slow(Counting):
    """A widget whose state takes as long as the test wants."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        super().__init__()

    def state(self) -> dict[str, Any]:
        self.begun.set()
        assert self.go.wait(20)
        return super().state()


def test_a_state_that_takes_long_holds_up_no_other_widget(widget: Counting) -> None:
    slow = Slow()
    page = Page(slow)
    page._say({"type": "resync", "view": "v"})
    assert slow.begun.wait(20)

    others = Page(widget).act("add", number=3)
    page._say({"type": "cmd", "cid": "c", "name": "add", "args": {"number": 2}, "view": "v"})
    page._say({"type": "resync", "view": "v"})  # a view that waits asks again
    slow.go.set()

    assert others == 3
    whole, ops = page.next("snapshot"), page.next("ops")
    assert (whole["body"], ops["ops"]) == ({"number": 0}, [{"op": "set", "number": 2}])
    assert ops["seq"] == whole["seq"] + 1
    page._say({"type": "resync", "view": "w"})
    assert page.next("snapshot")["view"] == "w"
    slow.close()


# B33
def test_an_answer_that_no_message_can_carry_is_refused_and_the_line_goes_on(
    widget: Counting,
) -> None:
    page = Page(widget)

    with pytest.raises(AssertionError, match="recursion"):
        page.ask("deep")
    assert page.act("add", number=1) == 1


# B33 B64
def test_what_a_browser_cannot_read_crosses_as_what_it_can(widget: Counting) -> None:
    answer = Page(widget).ask("odd")

    big = str(MAX_SAFE_INT + 1)
    assert answer == {"nan": None, "half": "\ufffd", "\ufffd": 1, "big": big}
    line = json.dumps(browser_safe(widget.odd()), ensure_ascii=False, allow_nan=False)
    assert line.encode("utf-8")


# B22
def test_what_stops_something_does_not_wait_for_it(widget: Counting) -> None:
    page = Page(widget)
    page._say({"type": "cmd", "cid": "slow", "name": "wait", "args": {}})
    page.act("stop")

    assert page.act("add", number=1) == 1  # it waits for the slow one, which is over


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "look was not asked for rightly: missing a required argument: 'n'; reload the page"),
        ({"n": 1, "self": 2}, "look was not asked for rightly: got an unexpected keyword"),
    ],
)
def test_arguments_that_no_page_sends_are_refused_in_words(
    widget: Counting, args: dict[str, Any], said: str
) -> None:
    with pytest.raises(AssertionError, match=said):
        Page(widget)._request("ask", "look", args)


@pytest.mark.parametrize(
    "message",
    [
        None, 1, [], {"type": []}, {"type": {}}, {"type": "cmd"}, {"type": "resync", "view": {}},
        {"type": "cmd", "cid": 1, "name": "add"}, {"type": "cmd", "cid": "c", "name": ["add"]},
        {"type": "cmd", "cid": "c", "name": "__init__", "args": {}}, {"type": "bye", "view": 7},
    ],
)  # fmt: skip
def test_a_malformed_message_does_nothing(widget: Counting, message: Any) -> None:
    widget._received(widget, message)

    assert Page(widget).state() == {"number": 0}


def test_a_thread_sends_in_the_context_of_its_widget_where_the_kernel_needs_one() -> None:
    parent: contextvars.ContextVar[str] = contextvars.ContextVar("parent")
    parent.set("cell")
    context, sent = contextvars.copy_context(), []

    def send(message: str) -> None:
        sent.append((parent.get(), message))  # as ipykernel 7.0 asks for it

    thread = threading.Thread(target=in_context, args=(context, send, "tokens"))
    thread.start()
    thread.join()

    assert sent == [("cell", "tokens")]
