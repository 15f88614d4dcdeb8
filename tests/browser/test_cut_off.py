"""What a notebook shows when something is cut off in mid-stream: page, save, kernel."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OPEN = """
import os
import nbdurable as nb
from nbdurable.testing import ScriptedModel
says = [part for at in range(900) for part in (f"word{at} ", 0.05)]
chat = nb.open("talk", store="cut.duckdb", model=ScriptedModel(says))
print("pid", os.getpid())
"""
QUICK = """
import nbdurable as nb
from nbdurable.testing import ScriptedModel
chat = nb.open("shared", store="shared.duckdb", model=ScriptedModel("An answer.", repeat=True))
if not chat.entries():
    chat.run("Q", show=None)
"""
TWIN = "[data-nbd-twin]:visible"


def words_in(text: str) -> int:
    """Return how far the answer has come that a text shows."""
    return max(map(int, re.findall(r"word(\d+)", text)), default=-1)


# B22 B24 B29 case 42
@pytest.mark.timeout(300)
def test_a_stream_outlives_a_reload_and_a_killed_kernel_leaves_half_an_answer(
    notebook: Callable[[Sequence[str]], OpenNotebook], lab: Lab
) -> None:
    book = notebook([OPEN, "chat"])
    pid = int(book.run_and_wait(0).inner_text().split()[-1])
    view = TreeView(book.run(1, until=".nbd-session"))
    view.root.get_by_label("Message").fill("Count.")
    view.root.get_by_label("Message").press("Control+Enter")
    pane = view.root.locator(".nbd-pane-body")
    pane.get_by_text("word5").wait_for()

    _saved_in_mid_stream(book.save())
    before = words_in(pane.inner_text())
    book.reload()
    view = TreeView(book.cells.nth(1))
    view.last_growing_row.wait_for()
    pane = view.root.locator(".nbd-pane-body")
    pane.get_by_text(f"word{before + 5}").wait_for()
    assert "word0 word1 word2" in pane.inner_text()
    assert book.page.locator(TWIN).count() == 0

    os.kill(pid, signal.SIGKILL)
    view.root.locator(".nbd-tree-notice", has_text="not heard any more").wait_for()
    came = words_in(pane.inner_text())
    assert came > before
    assert view.root.locator(".nbd-row-writes").count() == 0
    lab.end_kernel(book.name)

    book.load()
    twin = book.cells.nth(1).locator(TWIN)
    twin.get_by_text("Count.").wait_for()
    assert book.page.locator(".nbd-widget").count() == 0
    book.run_and_wait(0)
    again = TreeView(book.run(1, until=".nbd-session [role=treeitem]"))
    again.wait_for_entries(2)
    again.choose(2).get_by_text("stopped").wait_for(state="attached")
    half = words_in(again.root.locator(".nbd-pane-body").inner_text())
    assert half > before
    again.press(2, "⋯")
    again.root.get_by_role("menuitem", name="Go on without input").wait_for()


def _saved_in_mid_stream(path: Path) -> None:
    """Check that what was asked stands in the saved twin, and nothing of a half answer."""
    outputs = json.loads(path.read_text("utf-8"))["cells"][1]["outputs"]
    twin = "".join(outputs[0]["data"]["text/html"])

    assert "Count." in twin
    assert "word5" not in twin


# B11 B68 B29
@pytest.mark.timeout(300)
def test_what_one_kernel_does_shows_in_the_tree_of_another(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    views = []
    for _ in range(2):
        book = notebook([QUICK, "chat"])
        book.run_and_wait(0)
        views.append(TreeView(book.run(1, until=".nbd-session [role=treeitem]")))
    first, second = views

    first.press(2, "Rerun")
    second.wait_for_entries(3)
    second.from_menu(3, "Label")
    second.root.locator("[role=dialog] input").fill("from the other")
    second.root.locator("[role=dialog] input").press("Enter")
    first.row(3).get_by_text("from the other").wait_for(state="attached")
    second.press(1, "Branch")
    first.press(3, "Rerun")
    second.wait_for_entries(4)

    assert first.row(4).locator(".nbd-chip-leaf").count() == 1
    assert second.row(1).locator(".nbd-chip-leaf").count() == 1
