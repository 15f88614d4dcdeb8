"""Notebooks that were saved and opened again: what is there before a cell is run, and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook

pytestmark = pytest.mark.browser

OPEN = """
import nbdurable as nb
from nbdurable.testing import ScriptedModel
says = ScriptedModel("We ship today.", "Not today.")
chat = nb.open("saved", store="saved.duckdb", model=says)
"""
MADE = """
if not chat.entries():
    first = chat.run("Where is it?", show=None)
    second = chat.rerun(first, show=None)
    chat.label(3, "chosen one")
"""
COUNT = """
import ipywidgets
print(len(ipywidgets.widgets.widget._instances), "models")
"""
TWIN = "[data-nbd-twin]:visible"
MOST_BYTES = 60_000


# B29 B42 case 42 case 46
@pytest.mark.timeout(300)
def test_a_notebook_without_its_kernel_is_read_and_lives_again_when_it_is_run(
    notebook: Callable[[Sequence[str]], OpenNotebook], lab: Lab
) -> None:
    book = notebook([OPEN + MADE, "chat", "nb.compare(2, 3)", COUNT])
    book.run_and_wait(0)
    for _ in range(3):
        book.run(1, until=".nbd-session [role=treeitem]")
        book.run(2, until=".nbd-cmp-said")
    assert book.page.locator(TWIN).count() == 0
    models = book.run_and_wait(3).inner_text()
    book.run(1, until=".nbd-session [role=treeitem]")
    assert book.run_and_wait(3).inner_text() == models
    saved = book.save()
    told = json.loads(saved.read_text("utf-8"))
    assert [len(cell["outputs"]) for cell in told["cells"][:4]] == [0, 2, 2, 1]
    assert saved.stat().st_size < MOST_BYTES
    lab.end_kernel(book.name)

    untrusted = f"copy-{book.name}"
    text = saved.read_text("utf-8").replace("Where is it?", "Where was it?")  # signed by none
    saved.with_name(untrusted).write_text(text, "utf-8")
    trusted, book.name = book.name, untrusted
    book.load()
    _is_readable(book, "Where was it?")
    lab.end_kernel(untrusted)
    book.name = trusted
    lab.trust(trusted)
    book.load()
    _is_readable(book, "Where is it?")

    book.run_and_wait(0)
    view = TreeView(book.run(1, until=".nbd-session [role=treeitem]"))
    view.choose(2)
    view.row(3).get_by_text("chosen one").wait_for()
    book.run(2, until=".nbd-cmp-said")
    assert book.page.locator(TWIN).count() == 0


def _is_readable(book: OpenNotebook, question: str) -> None:
    """Check that tree and comparison stand there, though no widget does."""
    tree, compared = (book.cells.nth(at).locator(".jp-OutputArea").first for at in (1, 2))
    tree.get_by_text(question).first.wait_for()
    tree.get_by_text("[chosen one]").wait_for()
    compared.get_by_text("Not today.").first.wait_for()
    assert book.page.locator(".nbd-widget").count() == 0
