"""A run in a cell, seen by a view with a stop button while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nbdurable.events import Event
from nbdurable.notebook.run.live import STOP_AFTER_S, CellDisplay
from nbdurable.notebook.run.view import RunView

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


def test_the_view_is_closed_with_the_run(cell: Cell) -> None:
    cell.time = STOP_AFTER_S
    cell.display.tick()
    view = cell.display._view

    cell.display.close()

    assert view is not None and view.is_closed


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
