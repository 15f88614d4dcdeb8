"""The same notebook on older kernels: what cannot be done at once says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.kernels import add_kernel
from browser.test_run_display import OPEN

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]


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
