"""B55-B57 for a whole notebook: run it twice, edit a cell, put it back; count what was paid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from nbdurable.testing import FakeOpenAI, steps
from nbdurable.testing.steps import Action

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(240)]

SETUP = """
import nbdurable as nb

def lookup(order: str) -> str:
    "Look an order up."
    return f"{order} left on Monday"

chat = nb.open("talk", store="talk.duckdb", model="openai/fake", api_base=BASE, api_key="sk-none",
               tools=[lookup], replay=True)
"""

CELLS = (
    SETUP,
    "chat.append(nb.user('Be short.'), nb.assistant('Gladly.'))",
    "first = chat.run('Say hello.')",
    "chat.run('Please lookup order 1234.')",
    "checkpoint = chat.leaf_id",
    "chat.run('Draft a refund reply.'); chat.label(chat.leaf_id, 'refund')",
    "chat.branch(checkpoint)",
    "seventh = chat.run('Draft a replacement reply.')",
    "chat.run('Shorter, please.')",
    "again = chat.rerun(temperature=0.9)",
    "seventh.then('In verse.')",
    "child = chat.fork('talk-child', at=checkpoint)",
    "child.run('And in German?')",
    "child.run('Lookup it once more.')",
    "chat.edit(first, 'Say good morning.')",
    "tries = chat.sample(3, 'A title for it?')",
    "chat.rate(tries[0].run, 5, by='me'); chat.prefer(tries[1].run, tries[0].run)",
    "chat.compact()",
    "chat.run(nb.ephemeral('It rains.'), 'What now?')",
    "[entry.text for entry in chat.entries(nb.MessageEntry)]",
    "chat.df(), child.df()",
)
EDITED = CELLS.index("seventh = chat.run('Draft a replacement reply.')")


def answer(body: dict[str, Any]) -> list[Action]:
    """Answer as a model that looks orders up when it is told to."""
    last = body["messages"][-1]
    words = str(last["content"])
    if last["role"] == "user" and "lookup" in words.lower() and body.get("tools"):
        return steps.tools(("lookup", {"order": "1234"}))
    return steps.text(f"An answer to {words[:60]!r}.")


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(answer) as server:
        yield server


def execute(cells: tuple[str, ...], server: FakeOpenAI, folder: Path) -> list[Any]:
    """Run a notebook of these cells in a new kernel; return what each cell displayed."""
    source = [f"BASE = {server.base_url!r}", *cells, "chat.close(); child.close()"]
    notebook = new_notebook(cells=[new_code_cell(text) for text in source])
    client = NotebookClient(notebook, timeout=90, resources={"metadata": {"path": str(folder)}})
    client.execute()
    return [[comparable(output) for output in cell.outputs] for cell in notebook.cells]


def comparable(output: nbformat.NotebookNode) -> Any:
    kept = {k: v for k, v in output.items() if k not in ("execution_count", "transient")}
    return nbformat.from_dict(kept)


def rows(folder: Path) -> dict[str, int]:
    """Count the rows of every table."""
    with duckdb.connect(folder / "talk.duckdb", read_only=True) as connection:
        tables = connection.execute(
            "select table_name from duckdb_tables() where schema_name = 'nbd'"
        ).fetchall()
        return {
            name: connection.execute(f"select count(*) from nbd.{name}").fetchone()[0]
            for (name,) in tables
        }


# B55 B56
def test_a_notebook_run_again_asks_nothing_adds_nothing_and_shows_the_same(
    server: FakeOpenAI, tmp_path: Path
) -> None:
    shown = execute(CELLS, server, tmp_path)
    asked, stored = len(server.requests), rows(tmp_path)

    shown_again = execute(CELLS, server, tmp_path)

    assert asked >= 14
    assert len(server.requests) == asked
    assert rows(tmp_path) == stored
    assert shown_again == shown


# B55 B56 B58
def test_editing_a_cell_asks_for_it_and_what_depends_on_it_and_the_original_for_nothing(
    server: FakeOpenAI, tmp_path: Path
) -> None:
    execute(CELLS, server, tmp_path)
    asked = len(server.requests)
    edited = list(CELLS)
    edited[EDITED] = edited[EDITED].replace("a replacement", "an apologetic")

    execute(tuple(edited), server, tmp_path)
    after_edit = [request.body["messages"][-1]["content"] for request in server.requests[asked:]]
    execute(CELLS, server, tmp_path)

    assert [str(words) for words in after_edit] == [
        "Draft an apologetic reply.",
        "Shorter, please.",
        "Shorter, please.",
        "In verse.",
    ]
    assert len(server.requests) == asked + len(after_edit)
