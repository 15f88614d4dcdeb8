"""A run in a cell of a real notebook: it streams, can be stopped, and ends as static HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser.jupyter import OpenNotebook

pytestmark = pytest.mark.browser

OPEN = """
import nbdurable as nb
from nbdurable.testing import ScriptedModel
model = ScriptedModel([part for at in range(400) for part in (f"word{at} ", 0.1)])
chat = nb.open("talk", store="talk.duckdb", model=model)
"""


# B15
def test_a_page_loaded_again_in_mid_run_shows_the_whole_answer_at_its_end(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    slow = "ScriptedModel(['begun', 4.0, ' ended'])"
    book = notebook([OPEN, f"run = chat.run('Count.', model={slow})"])
    book.run_and_wait(0)
    book.run(1, until=".nbd-run button")

    book.save()
    book.page.reload()

    output = book.cells.nth(1).locator(".jp-OutputArea").first
    output.get_by_text("begun ended").wait_for()
    assert output.get_by_role("button", name="Stop").count() == 0


# B15 B22
def test_a_run_is_stopped_by_its_button_and_what_came_is_kept(
    notebook: Callable[[Sequence[str]], OpenNotebook],
) -> None:
    book = notebook([OPEN, "run = chat.run('Count.')", "print(run.outcome, 'word3' in run.text)"])
    book.run_and_wait(0)

    output = book.run(1, until=".nbd-run button")
    output.get_by_text("word3").first.wait_for()
    output.get_by_role("button", name="Stop").click()
    output.get_by_text("aborted").wait_for()
    book.run(2).get_by_text("aborted True").wait_for()

    assert output.locator("button").count() == 0
    saved = json.loads(book.save().read_text("utf-8"))
    outputs = saved["cells"][1]["outputs"]
    assert [output["output_type"] for output in outputs] == ["display_data"], outputs
    (shown,) = outputs
    assert set(shown["data"]) == {"text/html", "text/plain"}
    assert "widgets" not in saved["metadata"]
