"""The pane, the composer and the forms in a real browser, in the page of `tree_page`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tree_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TESTS = Path(__file__).parent.parent
AXE = TESTS / "js" / "node_modules" / "axe-core" / "axe.min.js"
TRAPS = TESTS / "data" / "text_traps.jsonl"
OURS = [".nbd-pane", ".nbd-compose", ".nbd-float", ".nbd-word"]
SCRIPT = Path(__file__).with_name("pane_page.js")
ANSWER = 13  # an answer with siblings, a label and a rating

WHOLE: dict[str, Any] = {
    "role": "assistant",
    "model": "sonnet-5",
    "system": "You are kind.",
    "tokens": {"input": 812, "output": 243},
    "cost_usd": 0.0021,
    "seconds": 1.4,
    "ttft": 0.42,
    "error": "the connection was closed",
    "hidden": "… 1,200,000 characters more",
    "blocks": [
        {"type": "thinking", "text": "Be brief.", "tokens": 128},
        {
            "type": "call",
            "name": "lookup_order",
            "arguments": '{"order": 1234}',
            "id": "c",
            "result": {"text": '{"late_days": 2}', "is_error": True, "seconds": 0.2, "n": 3},
        },
        {
            "type": "markdown",
            "nodes": [
                ["h3", {"dir": "auto"}, ["Good news"]],
                ["p", {"dir": "auto"}, ["See ", ["a", {"href": "https://example.com"}, ["it"]]]],
                ["pre", {"dir": "ltr"}, [["code", {}, ["tracking  1Z 999\n" * 3]]]],
                ["table", {}, [["tr", {}, [["th", {}, ["day"]], ["th", {}, ["parcels"]]]]]],
            ],
        },
        {"type": "file", "name": "report.pdf", "media_type": "application/pdf", "size": 12_345},
    ],
}


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_context(viewport={"width": 1080, "height": 760}).new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.context.close()
    assert not errors


def show(page: Page, *, is_dark: bool = False, width: int | None = None, **said: object) -> None:
    """Show the session of the page with an answer chosen, whose detail is `said`."""
    page.set_content(tree_page.html(is_dark=is_dark, width=width))
    page.wait_for_function("window.bench")
    page.evaluate("window.bench.support({ isLive: false })")
    page.evaluate(SCRIPT.read_text("utf-8"))
    page.evaluate("said => pane.answer(said)", said)
    page.locator("[role=tree]").focus()
    page.keyboard.type(str(ANSWER))
    page.locator(".nbd-pane-head b", has_text=f"#{ANSWER}").wait_for()
    # typing a number is over when letters mean actions again
    page.wait_for_timeout(750)


def acts(page: Page) -> list[list[Any]]:
    """Return what the kernel was asked to do: names and arguments."""
    found: list[list[Any]] = page.evaluate("pane.acts()")
    return found


def violations(page: Page) -> list[str]:
    """Return what axe-core finds in the parts of this file."""
    page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = page.evaluate("parts => pane.violations(parts)", OURS)
    return found


@pytest.mark.parametrize("width", [None, 600])
@pytest.mark.parametrize("is_dark", [False, True])
def test_pane_forms_and_menus_are_accessible(
    page: Page, *, is_dark: bool, width: int | None
) -> None:
    show(page, is_dark=is_dark, width=width, **WHOLE)

    found = {"pane": violations(page)}
    for key in "wsltmk?e":
        page.locator("[role=tree]").focus()
        page.keyboard.press(key)
        page.locator(".nbd-float, .nbd-editor").wait_for()
        found[key] = violations(page)
        page.keyboard.press("Escape")

    assert not {name: broken for name, broken in found.items() if broken}


def test_nothing_is_clipped_in_a_narrow_page(page: Page) -> None:
    show(page, width=600, **WHOLE)

    assert page.evaluate("pane.clipped()") == []


def test_an_answer_is_rerun_with_another_temperature_by_keys_alone(page: Page) -> None:
    show(page, role="assistant", system="You are kind.")

    page.keyboard.press("w")
    page.locator("[role=dialog]").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.type("0.9")
    page.keyboard.press("Control+a")
    page.keyboard.type("0.7")
    page.keyboard.press("Control+Enter")
    page.locator("[role=dialog]").wait_for(state="detached")

    assert acts(page) == [["rerun", {"n": ANSWER, "params": {"temperature": 0.7}}]]
    assert page.evaluate("document.activeElement.getAttribute('role')") == "tree"


def test_a_prompt_is_edited_and_the_session_continued_by_keys_alone(page: Page) -> None:
    show(page, role="user")
    page.keyboard.press("ArrowDown")

    page.keyboard.press("e")
    page.locator(".nbd-editor textarea").wait_for()
    page.keyboard.type(", and kind")
    page.keyboard.press("Control+Enter")
    page.locator(".nbd-editor").wait_for(state="detached")
    page.keyboard.press("c")
    page.keyboard.type("One\nTwo")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("kernel.sent.some((m) => m.name === 'run')")

    edited, run = acts(page)
    assert edited == ["edit", {"n": 14, "text": "text of #14, and kind", "run": True}]
    assert run == ["run", {"text": "One\nTwo", "at": 14}]


def test_a_double_click_starts_one_run(page: Page) -> None:
    show(page, role="assistant")

    button = page.locator(".nbd-pane-acts button", has_text="Rerun")
    button.focus()
    button.dblclick()

    assert acts(page) == [["rerun", {"n": ANSWER}]]


def test_a_held_key_starts_one_run(page: Page) -> None:
    show(page, role="assistant")

    for _ in range(5):
        page.keyboard.down("r")  # all but the first are repeats
    page.keyboard.up("r")

    assert acts(page) == [["rerun", {"n": ANSWER}]]


# case 43
def test_hostile_texts_make_no_element_no_request_and_run_nothing(page: Page) -> None:
    requests: list[str] = []
    lines = [json.loads(line) for line in TRAPS.read_text("utf-8").split("\n") if line]
    texts = [line["text"] for line in lines if line.get("text")]
    text = "\n".join(texts)
    block = {"type": "call", "name": text, "arguments": text, "result": {"text": text}}
    node = ["a", {"href": "javascript:window.__hit=1", "title": text, "onclick": text}, [text]]
    show(page)
    page.on("request", lambda request: requests.append(request.url))

    page.evaluate(
        "(said) => { window.said = said; }",
        {
            **{name: text for name in ("system", "error", "hidden", "author", "text", "json")},
            "model": text,
            "params": {text: text},
            "blocks": [
                *({"type": kind, "text": text} for kind in ("text", "thinking", "json", text)),
                block,
                {"type": "file", "name": text, "media_type": text, "size": 1},
                {"type": "image", "media_type": "image/svg+xml", "data": text, "alt": text},
                {"type": "markdown", "nodes": [node, ["script", {}, ["window.__hit=1"]]]},
            ],
        },
    )
    page.keyboard.press("ArrowDown")
    page.locator(".nbd-pane details").first.wait_for()
    question = {"op": "question", "id": "q", "run": "r", "tool": text, "text": text}
    page.evaluate("(op) => kernel.put(op)", question)
    page.keyboard.press("w")
    page.locator("[role=dialog]").wait_for()
    page.locator(".nbd-question").wait_for()

    made = ":is(script, iframe, object, embed, form [src], img, [onerror], [onload], [onclick])"
    assert page.locator(f".nbd-widget {made}").count() == 0
    assert page.evaluate("window.__hit") is None
    assert page.locator(".nbd-pane a[href]").count() == 0
    assert not requests


# case 50
def test_a_line_of_200_000_characters_is_cut_and_wrapped(page: Page) -> None:
    show(page, blocks=[{"type": "text", "text": "abcdefghij" * 20_000}])

    more = page.get_by_role("button", name="140,000 characters more")

    assert page.evaluate("pane.sideways()") == 0
    more.click()
    assert page.locator(".nbd-pane-body").inner_text().strip() == "abcdefghij" * 20_000
    assert page.evaluate("pane.sideways()") == 0


# case 50
def test_arabic_stands_right_to_left_and_the_buttons_stay(page: Page) -> None:
    show(page, blocks=[{"type": "text", "text": "مرحبا بالعالم (1) hello"}])

    direction = "getComputedStyle(document.querySelector('.nbd-pane-body .nbd-plain')).direction"

    assert page.evaluate(direction) == "rtl"
    assert page.evaluate("getComputedStyle(document.querySelector('.nbd-tabs')).direction") == "ltr"


def test_nothing_moves_in_the_pane_while_an_answer_grows(page: Page) -> None:
    show(page, role="assistant")
    page.keyboard.press("End")

    grown = page.evaluate("pane.grow()")

    assert grown["length"] == 60 * 12 * len(" word")
    assert grown["left"] < 24, "the end is kept in sight"
    assert not grown["moved"]
