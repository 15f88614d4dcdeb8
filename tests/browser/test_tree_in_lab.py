"""A session's tree in a real notebook: it follows the kernel, and acts while a cell runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser.jupyter import OpenNotebook

pytestmark = pytest.mark.browser

OPEN = """
import nbdurable as nb
from nbdurable.testing import ScriptedModel
from nbdurable.models.scripted import calls

@nb.tool(confirm=True)
def pay(amount: int) -> str:
    "Pay."
    return "paid"

model = ScriptedModel("An answer.", calls(("pay", {"amount": 5})), "Done.")
chat = nb.open("talk", store="talk.duckdb", model=model, tools=[pay])
chat.run("A question", show=None)
"""


# B11 B29
def test_a_tree_follows_a_cell_and_answers_for_it_while_it_waits(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    book = notebook([OPEN, "chat", "run = chat.run('Pay 5', show=None); print(run.text)"])
    book.run_and_wait(0)

    tree = book.run(1, until=".nbd-widget")
    tree.locator("[role=treeitem]", has_text="An answer.").first.wait_for()
    cell = book.run(2)
    tree.get_by_role("button", name="Allow").click()
    cell.get_by_text("Done.").wait_for()
    tree.locator("[role=treeitem]", has_text="paid").first.wait_for()
