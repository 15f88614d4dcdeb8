"""A server, a browser and notebooks for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from browser.jupyter import Lab, OpenNotebook
    from browser.live_page import LivePage
    from playwright.sync_api import Browser

SIZE = {"width": 1180, "height": 900}


# Of a module: while it runs, its thread has a running event loop, which other tests start anew.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from browser.jupyter import open_browser

    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="session", params=["lab"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    from browser.jupyter import run_lab

    with run_lab(tmp_path_factory.mktemp("jupyter"), request.param) as running:
        yield running


@pytest.fixture
def notebook(chromium: Browser, lab: Lab) -> Iterator[Callable[[Sequence[str]], OpenNotebook]]:
    """Return a function that opens a notebook of code cells in a page of its own.

    At the end no error of ours was thrown in the page, and the kernel is ended.
    """
    from browser.jupyter import OpenNotebook

    opened: list[OpenNotebook] = []

    def open_notebook(cells: Sequence[str]) -> OpenNotebook:
        page = chromium.new_context(viewport=SIZE).new_page()
        opened.append(OpenNotebook(lab, page, lab.write(cells), "lab"))
        return opened[-1]

    yield open_notebook
    for book in opened:
        book.lab.end_kernel(book.name)
        errors = book.own_errors()
        book.page.context.close()
        assert not errors


@pytest.fixture
def live(chromium: Browser) -> Iterator[Callable[..., LivePage]]:
    """Return a function that makes a page for a widget; at the end nothing was thrown in it."""
    from browser.live_page import LivePage

    pages: list[LivePage] = []

    def make(**look: Any) -> LivePage:
        pages.append(LivePage(chromium, **look))
        return pages[-1]

    yield make
    for page in pages:
        page.close()
