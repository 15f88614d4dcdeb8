"""Notebooks that were exported: what was shown is readable, without script, and stays harmless."""

from __future__ import annotations

import asyncio
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from browser.live_page import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.kernel, pytest.mark.slow]

TESTS = Path(__file__).parents[1]
MADE = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
import nbdurable as nb
from browser.hostile import hostile_session
from nbdurable.stores.memory import MemoryStore
from nbdurable.testing import ScriptedModel
store = MemoryStore()
hostile, experiment = hostile_session(store)
chat = nb.open("support", store=store, model=ScriptedModel("We **ship** today.", "Not today."))
chat.append(*(nb.user(f"note {{n}}") for n in range(600)))
first = chat.run("Where is it?", show=None)
second = chat.rerun(first, show=None)
_ = chat.label(second.leaf_id, "chosen one")
"""
CELLS = (
    MADE,
    "chat",
    "nb.compare(first, second)",
    "hostile",
    "nb.compare(2, 6, session=hostile)",
    "experiment.compare()",
    "nb.connect(store)",
    "next(run for run in hostile.runs() if run.text)",
    "hostile.df()",
)
OURS = ".nbd, .nbd-widget, [data-nbd-twin], .dataframe"


def executed(folder: Path, *, with_state: bool) -> nbformat.NotebookNode:
    """Execute the notebook as nbconvert does."""
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    book = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(folder)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the library's own loop
        client = NotebookClient(
            book, timeout=90, resources=resources, store_widget_state=with_state
        )
        # in a loop of its own: that of the browser runs in this thread
        runner = threading.Thread(target=lambda: asyncio.run(client.async_execute()), daemon=True)
        runner.start()
        runner.join(120)
    return book


@pytest.fixture(scope="module", params=[False, True], ids=["bare", "with state"])
def book(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> nbformat.NotebookNode:
    made = executed(tmp_path_factory.mktemp("saved"), with_state=request.param)
    assert bool(made.metadata.get("widgets")) == request.param
    return made


@pytest.fixture(scope="module")
def html(book: nbformat.NotebookNode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nbconvert import HTMLExporter

    path: Path = tmp_path_factory.mktemp("html") / "book.html"
    path.write_text(HTMLExporter().from_notebook_node(book)[0], "utf-8")
    return path


@pytest.fixture
def opened(chromium: Browser, html: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The exported page; no server is asked for anything, as on a train."""
    context = chromium.new_context(java_script_enabled=getattr(request, "param", False))
    page = context.new_page()
    page.asked = []  # type: ignore[attr-defined]

    def refuse(route: Any) -> None:
        page.asked.append(route.request.url)  # type: ignore[attr-defined]
        route.abort()

    page.route(re.compile("^https?:"), refuse)
    page.goto(html.as_uri())
    yield page
    context.close()


# B29 case 42
def test_tree_and_comparison_are_readable_without_script(opened: Page) -> None:
    shown = opened.locator(".jp-OutputArea")
    tree, compared = shown.nth(0).inner_text(), shown.nth(1).inner_text()  # the first cell is still

    assert "support · 603 entries · 2 branches" in tree
    assert "#601 user Where is it?" in tree
    assert "[chosen one]" in tree
    assert re.search(r"… \d+ more", tree)
    assert "601 shared entries" in compared
    assert "We **ship**Not today." in compared


# case 42
def test_matrix_sessions_runs_and_frames_are_readable_without_script(opened: Page) -> None:
    texts = [area.inner_text() for area in opened.locator(".jp-OutputArea").all()]

    assert "agreement" in texts[4]
    assert "support" in texts[5]
    assert "Look:" in texts[6]
    assert "created_at" in texts[7]


# case 43
@pytest.mark.parametrize("opened", [True], indirect=True, ids=["with script"])
def test_hostile_text_does_nothing_in_an_exported_page(opened: Page) -> None:
    opened.wait_for_load_state("load")

    made = opened.evaluate(
        "([ours, hostile]) => [...document.querySelectorAll(ours)].flatMap((at) =>"
        " [...at.querySelectorAll(hostile)].map((one) => one.outerHTML.slice(0, 200)))",
        [OURS, HOSTILE],
    )

    assert opened.locator(OURS).count() >= 8
    assert made == []
    assert opened.evaluate("window.__hit") is None
    # nbconvert's own page asks for its libraries
    assert [url for url in opened.asked if "127.0.0.1" in url] == []  # type: ignore[attr-defined]


# case 42
def test_the_markdown_export_holds_tree_and_comparison(book: nbformat.NotebookNode) -> None:
    from nbconvert import MarkdownExporter

    text = MarkdownExporter().from_notebook_node(book)[0]

    assert "support · 603 entries · 2 branches" in text
    assert "[chosen one]" in text
    assert "<ins>" in text


# case 46
def test_a_saved_notebook_is_bounded(book: nbformat.NotebookNode) -> None:
    sizes = [len(nbformat.v4.writes(nbformat.v4.new_notebook(cells=[c]))) for c in book.cells]

    assert max(sizes) < 500_000
