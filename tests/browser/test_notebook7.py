"""A saved session, worked on in Notebook 7 by clicks, on a model that is scripted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OPEN = """
import nbdurable as nb
from nbdurable.testing import ScriptedModel
model = ScriptedModel("Red.", "Blue.", "Green.")
chat = nb.open("story", store="story.duckdb", model=model)
"""
SAVED = """
chat.run("Name a colour.", show=None)
chat.label(2, "first try")
chat.close()
"""
TOLD = "print(len(chat.entries()), 'entries', [a.name for a in chat.annotations()])"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server of Notebook 7 that holds a saved session."""
    from browser.jupyter import run_lab

    with run_lab(tmp_path_factory.mktemp("notebook7"), "notebook") as running:
        command = [sys.executable, "-c", OPEN + SAVED]
        subprocess.run(command, cwd=running.folder, check=True, timeout=120)
        yield running


@pytest.fixture
def book(chromium: Browser, lab: Lab) -> Iterator[OpenNotebook]:
    """A notebook of three cells; at the end no error of ours was thrown in its page."""
    from browser.jupyter import OpenNotebook

    page = chromium.new_context(viewport={"width": 1180, "height": 900}).new_page()
    opened = OpenNotebook(lab, page, lab.write([OPEN, "chat", TOLD]), "notebook")
    yield opened
    lab.end_kernel(opened.name)
    errors = opened.own_errors()
    page.context.close()
    assert not errors


# B29 B42 B70
def test_a_saved_session_is_rerun_edited_compared_and_shown_again_in_notebook_7(
    book: OpenNotebook,
) -> None:
    book.run_and_wait(0)
    view = TreeView(book.run(1, until=".nbd-session"))
    view.row(2).get_by_text("first try").wait_for()

    view.press(2, "Rerun")
    view.wait_for_entries(3)
    view.wait_until_quiet()

    view.choose(1)
    view.pane_action("Edit")
    view.root.locator(".nbd-editor textarea").fill("Name a river.")
    view.root.locator(".nbd-editor").get_by_role("button", name="Save and rerun").click()
    view.wait_for_entries(5)
    view.wait_until_quiet()

    view.press(2, "Pin")
    view.press(3, "Pin")
    view.root.get_by_role("button", name="Compare (2)").click()
    view.root.locator(".nbd-cmp").get_by_role("button", name="Prefer").first.click()
    view.root.locator(".nbd-cmp").get_by_text("preferred 1×").wait_for()
    book.run(2).get_by_text("5 entries ['label', 'prefer']").wait_for()

    book.save()
    book.reload()
    again = TreeView(book.cells.nth(1))
    again.wait_for_entries(5)
    again.row(2).get_by_text("first try").wait_for()
