"""B55-B57 for a whole notebook: run it twice, edit a cell, put it back; count what was paid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@contextmanager
def kernel(folder: Path) -> Iterator[NotebookClient]:
    """Give a client of a new kernel."""
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(new_notebook(), timeout=90, resources=place)
    with client.setup_kernel():
        yield client


def execute(client: NotebookClient, cells: tuple[str, ...], server: FakeOpenAI) -> list[Any]:
    """Run a notebook of these cells; return what each cell displayed."""
    source = [f"BASE = {server.base_url!r}", *cells, "chat.close(); child.close()"]
    client.nb = new_notebook(cells=[new_code_cell(text) for text in source])
    for number, cell in enumerate(client.nb.cells):
        client.execute_cell(cell, number)
    return [[comparable(output) for output in cell.outputs] for cell in client.nb.cells]


def comparable(output: nbformat.NotebookNode) -> Any:
    kept = {k: v for k, v in output.items() if k not in ("execution_count", "transient")}
    return nbformat.from_dict(kept)


def words_of(request: Any) -> str:
    return str(request.body["messages"][-1]["content"])


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


@dataclass
class Story:
    """What one store went through: a notebook run twice, then edited, then as it was."""

    first: list[Any]
    again: list[Any]
    requests: dict[str, list[str]]  # what each pass asked last, call by call
    rows: dict[str, dict[str, int]]  # of every table, after each pass


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("talk")
    edited = list(CELLS)
    edited[EDITED] = edited[EDITED].replace("a replacement", "an apologetic")
    kernels = [{"first": CELLS}, {"again": CELLS, "edited": tuple(edited), "restored": CELLS}]
    shown, requests, counts = {}, {}, {}
    with FakeOpenAI(answer) as server:
        for passes in kernels:
            with kernel(folder) as client:
                for name, cells in passes.items():
                    asked = len(server.requests)
                    shown[name] = execute(client, cells, server)
                    requests[name] = [*map(words_of, server.requests[asked:])]
                    counts[name] = rows(folder)
    return Story(shown["first"], shown["again"], requests, counts)


# B55 B56
def test_a_notebook_run_again_asks_nothing_adds_nothing_and_shows_the_same(story: Story) -> None:
    assert len(story.requests["first"]) >= 14
    assert story.requests["again"] == []
    assert story.rows["again"] == story.rows["first"]
    assert story.again == story.first


# B55 B56 B58
def test_editing_a_cell_asks_for_it_and_what_depends_on_it_and_the_original_for_nothing(
    story: Story,
) -> None:
    assert story.requests["edited"] == [
        "Draft an apologetic reply.",
        "Shorter, please.",
        "Shorter, please.",
        "In verse.",
    ]
    assert story.requests["restored"] == []
    assert story.rows["restored"] == story.rows["edited"]
