"""A saved session, worked on in JupyterLab by clicks alone, on the real local model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook

pytestmark = [pytest.mark.browser, pytest.mark.local_model]

OPEN = """
import nbdurable as nb
chat = nb.open("story", store="story.duckdb", model="local", max_tokens=16)
"""
SAVED = """
chat.run("Name three colours.", show=None)
chat.run("And three animals?", show=None)
chat.label(2, "first try")
chat.close()
"""
TOLD = """
print(len(chat.entries()), "entries", len(chat.runs()), "runs", [*chat.df()["label"].dropna()])
"""


# B29 B42 B43 B70 case 42
@pytest.mark.timeout(300)
def test_a_saved_session_is_rerun_edited_sampled_compared_and_found_again(
    notebook: Callable[[Sequence[str]], OpenNotebook], lab: Lab
) -> None:
    subprocess.run([sys.executable, "-c", OPEN + SAVED], cwd=lab.folder, check=True, timeout=120)
    book = notebook([OPEN, "chat", TOLD])
    book.run_and_wait(0)
    view = TreeView(book.run(1, until=".nbd-session"))
    view.wait_for_entries(4)

    view.press(2, "Rerun")
    view.wait_for_entries(5)
    view.wait_until_quiet()

    view.choose(3)
    view.pane_action("Edit")
    view.root.locator(".nbd-editor textarea").fill("And three rivers?")
    view.root.locator(".nbd-editor").get_by_role("button", name="Save and rerun").click()
    view.wait_for_entries(7)
    view.wait_until_quiet()

    view.choose(7)
    view.pane_action("×n")
    view.root.get_by_role("button", name="Sample", exact=True).click()
    view.root.locator(".nbd-is-experiment").dblclick()
    view.last_growing_row.click(position={"x": 120, "y": 12})
    view.root.get_by_role("button", name="Stop", exact=True).click()
    view.wait_until_quiet()

    view.press(5, "Pin")
    view.press(2, "Pin")
    view.root.get_by_role("button", name="Compare (2)").click()
    view.root.locator(".nbd-cmp").get_by_role("button", name="Prefer").first.click()
    view.root.locator(".nbd-cmp").get_by_text("preferred", exact=True).wait_for()
    told = book.run_and_wait(2).inner_text()

    book.save()
    lab.end_kernel(book.name)
    book.load()
    book.run_and_wait(0)
    again = TreeView(book.run(1, until=".nbd-session"))

    again.row(2).get_by_text("first try").wait_for()
    assert book.run_and_wait(2).inner_text() == told
    assert "first try" in told
