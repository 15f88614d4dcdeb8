"""The table of sessions and the matrix of an experiment, worked by keys alone in a real page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

import nbdurable as nb
from nbdurable.notebook.sessions import SessionsWidget
from nbdurable.stores.memory import MemoryStore
from nbdurable.testing import ScriptedModel

if TYPE_CHECKING:
    from browser.live_page import LivePage
    from playwright.sync_api import Locator

pytestmark = pytest.mark.browser


def tab_to(page: LivePage, target: Locator) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(20):
        page.page.keyboard.press("Tab")
        if target.evaluate("at => document.activeElement === at"):
            return
    raise AssertionError("Tab does not lead there")


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    made = MemoryStore()
    for name, said in (("tea", "Green tea?"), ("coffee", "Strong coffee?"), ("water", "Still?")):
        with nb.open(name, store=made, model=ScriptedModel("Yes.", repeat=True)) as chat:
            for _ in range(len(name)):
                chat.run(said, show=None)
    yield made


# B29
def test_sessions_are_sorted_searched_and_opened_by_keys(
    live: Callable[..., LivePage], store: MemoryStore
) -> None:
    page, widget = live(), SessionsWidget(nb.connect(store))
    root = page.show(widget)
    keys, grid = page.page.keyboard, root.get_by_role("grid")
    rows = root.locator(".nbd-sess-space .nbd-sess-row")
    rows.nth(2).wait_for()

    tab_to(page, root.get_by_role("columnheader", name="entries").get_by_role("button"))
    keys.press("Enter")
    root.get_by_role("columnheader", name="entries ↓").wait_for()
    assert rows.first.get_by_text("coffee", exact=True).count() == 1
    assert page.violations(".nbd-widget") == []
    keys.press("Enter")
    root.locator("[aria-sort=ascending]").wait_for()
    rows.first.get_by_text("tea", exact=True).wait_for()

    keys.press("/")
    keys.type("strong")
    keys.press("Enter")
    root.get_by_text("1 of 3 sessions").wait_for()
    assert grid.evaluate("at => document.activeElement === at")
    keys.press("Enter")
    root.get_by_text("nb.open('coffee'").wait_for()
    assert widget.session is not None and widget.session.id == "coffee"
    assert page.violations(".nbd-widget") == []

    keys.press("/")
    keys.press("Escape")
    root.get_by_text("3 sessions").wait_for()
    tab_to(page, grid)
    keys.press("End")
    keys.press("Enter")
    root.get_by_text("nb.open('coffee'").wait_for()
    tab_to_shut(page, root)
    assert widget.session is None
    widget.close()


def tab_to_shut(page: LivePage, root: Locator) -> None:
    """Close the session that is open, by keys."""
    shut = root.get_by_role("button", name="Close session")
    for _ in range(12):
        page.page.keyboard.press("Shift+Tab")
        if shut.evaluate("at => document.activeElement === at"):
            break
    page.page.keyboard.press("Enter")
    shut.wait_for(state="hidden")
    assert root.get_by_role("grid").evaluate("at => document.activeElement === at")


# B43 B29
def test_a_matrix_is_sorted_walked_and_compared_by_keys(live: Callable[..., LivePage]) -> None:
    page = live()
    model = ScriptedModel(lambda asked: f"It is {asked.params['temperature']}.", repeat=True)
    with nb.open("s", store=":memory:", model=model) as chat:
        exp = chat.grid("Q", temperature=[0.5, 0.25, 1.0], n=2, name="warmth", show=None)
        exp.score(lambda cell: cell.axes["temperature"], name="heat")
        root = page.show(exp.compare().widget())
        keys, cells = page.page.keyboard, root.locator("button[data-at]")
        cells.nth(5).wait_for()

        heat = root.get_by_role("columnheader", name="heat")
        tab_to(page, heat.get_by_role("button"))
        keys.press("Enter")
        root.locator("[aria-sort=descending]").wait_for()
        assert cells.first.inner_text() == "It is 1.0."
        assert heat.get_by_role("button").evaluate("at => document.activeElement === at")

        tab_to(page, cells.first)
        for key in ("Enter", "ArrowRight", "ArrowDown", "Space"):
            keys.press(key)
        assert root.locator("button[aria-pressed=true]").all_inner_texts() == [
            "It is 1.0.",
            "It is 0.5.",
        ]
        assert page.violations(".nbd-widget") == []
        keys.press("v")
        root.locator(".nbd-cmp-said").first.wait_for()
        keys.press("2")
        root.get_by_text("preferred", exact=True).first.wait_for()
        page.until(lambda: len(chat.image.annotations().preferences()) == 1)
        assert page.violations(".nbd-widget") == []

        keys.press("Escape")
        root.locator(".nbd-cmp-said").first.wait_for(state="detached")
        assert root.get_by_role("button", name="Compare (2)").evaluate(
            "at => document.activeElement === at"
        )
