"""The session tree in a real browser, without a notebook: its look, its keys, its roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tree_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[1] / "js" / "node_modules" / "axe-core" / "axe.min.js"
THEMES: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"is_dark": True},
    "bare": {"has_theme": False},
    "bare dark": {"has_theme": False, "is_dark": True},
}
LONG_LINE = """
kernel.put({op: "add", n: 21, parent: 20, role: 1, flags: 0, model: 2, tokens: 1, cost: 1,
  seconds: 1, at: 1, exp: -1, preview: "x".repeat(200000)},
  {op: "head", leaf: 21}, {op: "end", run: "r1"})
"""
CHOSEN = ".nbd-row[aria-selected=true]"


@pytest.fixture
def shown(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that shows a session in a page; at the end nothing was thrown in it."""
    pages: list[Page] = []
    errors: list[str] = []

    def show(**look: Any) -> Page:
        page = chromium.new_page(viewport={"width": 1060, "height": 700})
        pages.append(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.set_content(tree_page.html(**look))
        page.wait_for_function("window.bench")
        page.evaluate("bench.support()")
        page.locator(".nbd-row").first.wait_for()
        return page

    yield show
    for page in pages:
        page.close()
    assert not errors


# B29 case 48
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_to_mend_in_the_tree(shown: Callable[..., Page], theme: str) -> None:
    page = shown(**THEMES[theme])
    page.locator(".nbd-is-experiment .nbd-twist").last.click()
    page.add_script_tag(content=AXE.read_text("utf-8"))

    found = page.evaluate("axe.run('.nbd-widget')")["violations"]

    assert [(rule["id"], node["html"]) for rule in found for node in rule["nodes"]] == []


# B29
def test_all_rows_are_26_pixels_high(shown: Callable[..., Page]) -> None:
    page = shown()

    heights = page.locator(".nbd-row").evaluate_all("rows => rows.map(row => row.offsetHeight)")

    assert len(heights) > 10
    assert set(heights) == {26}


# B29
def test_at_600_pixels_the_pane_goes_below_and_nothing_is_cut_off(
    shown: Callable[..., Page],
) -> None:
    page = shown(width=600)

    tree, pane = (page.locator(at).bounding_box() for at in (".nbd-tree-list", ".nbd-pane"))
    wide = page.evaluate(
        "[...document.querySelectorAll('.nbd-bar *, .nbd-row > *, .nbd-compose *')].filter(at => {"
        " const box = at.getBoundingClientRect();"
        " return box.width && (box.right > 613 || box.left < 11); }).map(at => at.className)"
    )

    assert tree and pane
    assert pane["y"] >= tree["y"] + tree["height"]
    assert wide == []


# case 50
def test_a_line_of_200_000_characters_widens_nothing(shown: Callable[..., Page]) -> None:
    page = shown()
    width = page.evaluate("document.documentElement.scrollWidth")

    page.evaluate(LONG_LINE)
    page.locator(CHOSEN, has_text="21").wait_for()

    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("document.querySelector('.nbd-tree-list').scrollWidth") <= 600


# B29
def test_no_row_moves_while_an_answer_streams(shown: Callable[..., Page]) -> None:
    page = shown()

    page.evaluate("bench.open(200)")

    streamed = page.evaluate("bench.stream(600, 2)")

    assert (streamed["shift"], streamed["moved"]) == (0, [])


# B29
def test_the_focus_stays_with_the_tree_while_the_chosen_row_scrolls_away(
    shown: Callable[..., Page],
) -> None:
    page = shown()
    page.evaluate("bench.open(5000)")
    tree = page.locator("[role=tree]")
    tree.focus()

    page.keyboard.press("End")
    tree.evaluate("list => { list.scrollTop = 0; }")
    page.locator(CHOSEN).wait_for(state="detached")
    page.keyboard.press("ArrowUp")

    chosen = page.locator(CHOSEN)
    chosen.wait_for()
    assert tree.evaluate("list => document.activeElement === list")
    assert tree.get_attribute("aria-activedescendant") == chosen.get_attribute("id")


# case 43
def test_the_page_asks_no_server_for_anything(chromium: Browser) -> None:
    page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.set_content(tree_page.html())
    page.wait_for_function("window.bench")
    page.evaluate("bench.support()")
    page.locator(".nbd-row").first.wait_for()
    page.close()

    assert [url for url in asked if not url.startswith("blob:")] == []
