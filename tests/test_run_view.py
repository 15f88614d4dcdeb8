"""A run in a cell, seen by a view with a stop button while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from widget_page import Page

from nbdurable.events import Event
from nbdurable.notebook.run.live import STOP_AFTER_S, CellDisplay
from nbdurable.notebook.run.view import MOST_KEPT, RunView, _kept

VIEW = "application/vnd.jupyter.widget-view+json"


class Cell:
    """A cell's output on a clock that only the test moves, and a button that remembers."""

    def __init__(self) -> None:
        self.time = 0.0
        self.cancelled = 0
        self.bundles: list[dict[str, Any]] = []
        self.display = CellDisplay(
            publish=self.bundles.append, now=lambda: self.time, cancel=self.cancel
        )

    def cancel(self) -> None:
        self.cancelled += 1

    def say(self, text: str) -> None:
        self.display.on_event(Event(type="message_update", step=1, text=text))


@pytest.fixture
def cell() -> Iterator[Cell]:
    made = Cell()
    yield made
    made.display.close()


def test_a_run_that_ends_soon_shows_no_button(cell: Cell) -> None:
    cell.say("Quick.")
    cell.time = STOP_AFTER_S / 2
    cell.display.close()

    assert not any(VIEW in bundle for bundle in cell.bundles)


# case 42
def test_a_run_that_takes_a_while_has_a_view_that_its_end_replaces_with_html(cell: Cell) -> None:
    cell.time = STOP_AFTER_S
    cell.display.tick()
    assert VIEW in cell.bundles[-1] and "text/html" in cell.bundles[-1]

    cell.say("An answer.")
    cell.display.close()

    assert VIEW not in cell.bundles[-1]
    assert "An answer." in cell.bundles[-1]["text/html"]


def ended(cell: Cell) -> tuple[RunView, Page]:
    """Return the view of a run that has ended since a page was told of it, and that page."""
    cell.time = STOP_AFTER_S
    cell.display.tick()
    view = cell.display._view
    assert view is not None
    page = Page(view)
    page.state()
    cell.say("All of it.")
    cell.display.close()
    return view, page


def test_the_view_is_closed_when_the_page_puts_html_in_its_place(cell: Cell) -> None:
    view, page = ended(cell)
    was_closed = view.is_closed

    page._say({"type": "bye", "view": "v"})

    assert (was_closed, view.is_closed) == (False, True)
    assert view not in _kept


# B15
def test_a_page_that_was_loaded_again_in_mid_run_shows_its_end(cell: Cell) -> None:
    _, page = ended(cell)  # the page is gone without a word

    page._say({"type": "resync", "view": "again"})

    body = page.next("snapshot")["body"]
    assert "All of it." in str(body["nodes"])
    assert (body["foot"], body["over"]) == ("", True)


# case 42
def test_the_views_of_old_runs_are_closed_also_where_no_page_lets_go_of_them() -> None:
    views = [ended(Cell())[0] for _ in range(MOST_KEPT + 1)]

    assert [view.is_closed for view in views] == [True] + MOST_KEPT * [False]
    for view in views:
        view.close()


def test_a_display_of_another_thread_has_no_view(cell: Cell) -> None:
    cell.time = STOP_AFTER_S
    thread = threading.Thread(target=cell.display.tick)
    thread.start()
    thread.join()

    assert not any(VIEW in bundle for bundle in cell.bundles)


def test_only_what_changed_is_sent() -> None:
    view = RunView(lambda: None)
    sent: list[dict[str, Any]] = []
    view.put = sent.append  # type: ignore[method-assign]

    view.look("<p>one</p><p>tw</p>", "1 s")
    view.look("<p>one</p><p>two</p>", "2 s")
    view.close()

    assert sent[-1] == {"op": "look", "from": 1, "nodes": [["p", {}, ["two"]]], "foot": "2 s"}


def test_the_button_cancels_the_run(cell: Cell) -> None:
    view = RunView(cell.cancel)
    done = threading.Event()
    view.answer = lambda message: done.set() if message["type"] == "done" else None  # type: ignore[method-assign]

    view._received(view, {"type": "cmd", "cid": "v:1", "name": "cancel", "args": {}})

    assert done.wait(10)
    view.close()
    assert cell.cancelled == 1
