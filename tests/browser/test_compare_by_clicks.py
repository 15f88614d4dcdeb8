"""Comparisons, an experiment's matrix and the list of sessions, in JupyterLab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import OpenNotebook

pytestmark = pytest.mark.browser

MADE = """
import nbdurable as nb
from nbdurable.testing import ScriptedModel
trap = '"><img src=x onerror="window.__hit=1">'
texts = "Hello Ravi, it ships today.", f"Hi Ravi, {trap} ships.", "A.", "B."
says = ScriptedModel(*texts, repeat=True)
chat = nb.open(f"desk {trap}", store="desk.duckdb", model=says)
first = chat.run(f"Draft a reply. {trap}", show=None)
second = chat.rerun(first, show=None)
"""
BLIND = "comparison = nb.compare(first, second, blind=True); comparison"
PREFERRED = "print([a.name for a in chat.annotations()], comparison.df()['preferred'].tolist())"
MATRIX = "exp = chat.grid('Q', temperature=[0, 1], n=2, show=None); exp.compare()"


@pytest.mark.timeout(240)
def test_a_blind_vote_is_stored_and_told_in_the_static_table_too(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    book = notebook([MADE.replace("desk", "blind"), BLIND, PREFERRED])
    book.run_and_wait(0)
    output = book.run(1, until=".nbd-cmp")
    assert output.locator(".nbd-cmp-name").all_inner_texts() == ["A", "B"]
    assert ">#2<" not in output.inner_html()

    output.locator(".nbd-cmp-scroll").focus()
    book.page.keyboard.press("1")
    output.get_by_text("preferred", exact=True).first.wait_for()
    assert book.page.locator(".jp-Cell").count() == 3  # no shortcut of the notebook went off

    told = book.run_and_wait(2).inner_text()
    assert "['prefer']" in told
    assert told.count("True") == 1
    assert ">#2<" in output.locator("[data-nbd-twin]").inner_html()
    assert book.page.evaluate("window.__hit") is None


@pytest.mark.timeout(240)
def test_cells_of_a_matrix_are_compared_and_a_listed_session_opens_below(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    book = notebook([MADE, MATRIX, "nb.connect('desk.duckdb')"])
    book.run_and_wait(0)
    output = book.run(1, until=".nbd-matrix-table")
    output.locator("button[data-i]").nth(0).click()
    output.locator("button[data-i]").nth(3).click()
    output.get_by_role("button", name="Compare (2)").click()
    output.locator(".nbd-cmp-name").nth(1).wait_for()

    listed = book.run(2, until=".nbd-sess-space .nbd-sess-row")
    listed.locator(".nbd-sess-space .nbd-sess-row").first.click()
    view = TreeView(listed)
    view.row(1).wait_for()

    assert book.page.evaluate("window.__hit") is None
