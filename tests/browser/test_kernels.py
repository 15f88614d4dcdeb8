"""The same notebook on older kernels: what cannot be done at once says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.kernels import add_kernel
from browser.test_run_display import OPEN
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook
    from playwright.sync_api import Browser, Locator

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# busy until another answer is there, or for so many seconds
BUSY = """
import time
until = time.monotonic() + {}
while len(quick.entries()) < 3 and time.monotonic() < until:
    time.sleep(0.05)
print("saw", len(quick.entries()))
"""


@pytest.fixture
def on_kernel(
    request: pytest.FixtureRequest, chromium: Browser, lab: Lab
) -> Iterator[OpenNotebook]:
    """A notebook on the ipykernel whose version the test is parametrised with."""
    from browser.jupyter import OpenNotebook

    kernel = add_kernel(Path(lab.env["JUPYTER_DATA_DIR"]), request.param)
    cells = [
        "import ipykernel\nprint('on', ipykernel.__version__)" + OPEN,
        "run = chat.run('Count.', seed=1)",
        "quick = nb.open('quick', store=':memory:', model=ScriptedModel('An answer.'))\n"
        "_ = quick.run('Q', show=None)\nquick",
        BUSY.format(8),
        BUSY.format(40),
    ]
    page = chromium.new_context(viewport={"width": 1180, "height": 900}).new_page()
    book = OpenNotebook(lab, page, lab.write(cells, kernel=kernel), "lab")
    book.run(0).get_by_text(f"on {request.param}").wait_for()
    yield book
    lab.end_kernel(book.name)
    page.context.close()


@pytest.mark.parametrize("on_kernel", ["7.0.1"], indirect=True)
def test_a_kernel_with_a_side_road_stops_a_run_at_once(on_kernel: OpenNotebook) -> None:
    output = on_kernel.run(1, until=".nbd-run button")

    output.get_by_role("button", name="Stop").click()

    output.get_by_text("aborted").wait_for(timeout=5_000)


@pytest.mark.parametrize("on_kernel", ["6.30.1"], indirect=True)
def test_a_kernel_without_one_says_that_it_is_busy_and_how_to_stop(on_kernel: OpenNotebook) -> None:
    output = on_kernel.run(1, until=".nbd-run button")

    output.get_by_role("button", name="Stop").click()

    output.get_by_text("the kernel is busy; Interrupt stops it too").wait_for()
    on_kernel.lab.interrupt(on_kernel.name)
    output.get_by_text("aborted").wait_for()


def rerun_in_tree(book: OpenNotebook, busy: int) -> Locator:
    """Press Rerun in a tree while cell `busy` runs; return that cell's output."""
    view = TreeView(book.run(2, until=".nbd-session [role=treeitem]"))
    view.choose(2)
    output = book.run(busy)
    book.cells.nth(busy).get_by_text("[*]").wait_for()
    view.press(2, "Rerun")
    return output


# B29
@pytest.mark.parametrize("on_kernel", ["7.0.1"], indirect=True)
def test_a_kernel_with_a_side_road_reruns_from_the_tree_at_once(on_kernel: OpenNotebook) -> None:
    output = rerun_in_tree(on_kernel, 4)

    output.get_by_text("saw 3").wait_for(timeout=60_000)


# B29
@pytest.mark.parametrize("on_kernel", ["6.30.1"], indirect=True)
def test_a_kernel_without_one_says_queued_and_reruns_afterwards(on_kernel: OpenNotebook) -> None:
    output = rerun_in_tree(on_kernel, 3)

    on_kernel.page.get_by_text("queued").first.wait_for()
    output.get_by_text("saw 2").wait_for()
    TreeView(on_kernel.cells.nth(2)).wait_for_entries(3)
