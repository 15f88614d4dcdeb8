"""An imported conversation, shown in JupyterLab and answered again by a click."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook

pytestmark = [pytest.mark.browser, pytest.mark.local_model]

FILE = Path(__file__).parent.parent / "data" / "chatgpt_export.json"
LOAD = "import nbdurable as nb; print(nb.load({!r}, store='imported.duckdb'))"
OPEN = """
import nbdurable as nb
chat = nb.open("chatgpt:11111111-0000-4000-8000-000000000001", store="imported.duckdb",
               model="local", max_tokens=16)
"""
TOLD = """
answers = [entry for entry in chat.entries(nb.MessageEntry) if entry.parent_id == chat[3].id]
print(len(answers), answers[0].source_id, answers[-1].source_id, answers[-1].message.reply.model)
"""


# B42 case 53
@pytest.mark.timeout(300)
def test_an_imported_answer_is_answered_again_by_a_click(
    notebook: Callable[[Sequence[str]], OpenNotebook], lab: Lab
) -> None:
    load = LOAD.format(str(FILE))
    subprocess.run([sys.executable, "-c", load], cwd=lab.folder, check=True, timeout=120)
    book = notebook([OPEN, "chat", TOLD])
    book.run_and_wait(0)
    view = TreeView(book.run(1, until=".nbd-session"))
    view.wait_for_entries(14)

    view.press(4, "Rerun")
    view.wait_for_entries(15)
    view.wait_until_quiet()

    assert book.run_and_wait(2).inner_text().split() == ["2", "a1", "None", "local"]
