"""A session's tree in marimo, which `make test-all` installs."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser.tree_view import TreeView

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WAIT_S = 60
APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import nbdurable as nb
    from nbdurable.testing import ScriptedModel

    chat = nb.open("talk", store=":memory:", model=ScriptedModel("Red.", "Blue."))
    _ = chat.run("Name a colour.", show=None)
    _ = chat.rerun(2, show=None)
    return ScriptedModel, chat, mo, nb


@app.cell
def _(chat):
    chat
    return


@app.cell
def _(chat, mo):
    mo.ui.anywidget(chat.widget())
    return


@app.cell
def _(chat, nb):
    nb.compare(chat[2], chat[3])
    return


@app.cell
def _(chat, nb):
    nb.connect(chat.image.store)
    return


@app.cell
def _(nb, ScriptedModel):
    gone = nb.open("gone", store=":memory:", model=ScriptedModel("x"))
    gone.close()
    gone
    return
"""
DARK = "[tool.marimo.display]\ntheme = 'dark'\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app, with dark colours, in a folder without a user's own settings."""
    pytest.importorskip("marimo", reason="make test-all installs marimo")
    folder: Path = tmp_path_factory.mktemp("marimo")
    folder.joinpath("app.py").write_text(APP, "utf-8")
    folder.joinpath("pyproject.toml").write_text(DARK, "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "-q", "run", "app.py", "--headless", "--no-token"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    env = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    with folder.joinpath("server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        _wait_for_server(f"http://127.0.0.1:{port}/health", folder / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def _wait_for_server(health: str, log: Path) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(health, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"marimo did not answer in {WAIT_S} s: {log.read_text()[-2000:]}")


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """The app in a page; at the end nothing was thrown in it."""
    opened = chromium.new_context(viewport={"width": 1180, "height": 1400}).new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(address)
    opened.locator(".nbd-session").nth(1).wait_for(timeout=WAIT_S * 1000)
    yield opened
    opened.context.close()
    assert not errors


# B29
@pytest.mark.parametrize("at", [0, 1], ids=["the session itself", "mo.ui.anywidget"])
def test_a_tree_reruns_by_a_click_in_marimo(page: Page, at: int) -> None:
    view = TreeView(page.locator(f":nth-match(.nbd-session, {at + 1})").locator("xpath=.."))
    view.wait_for_entries(3)

    view.press(2, "Rerun")

    view.wait_for_entries(4)
    for other in page.locator(".nbd-session .nbd-tree-facts").all():
        other.get_by_text("4 entries").wait_for()


def test_a_comparison_shows_in_marimo(page: Page) -> None:
    shown = page.locator(".nbd-cmp")

    shown.get_by_text("Blue.").first.wait_for()


def test_the_sessions_of_a_store_are_live_and_say_how_to_open_one(page: Page) -> None:
    table = page.locator(".nbd-sessions")

    table.locator(".nbd-sess-space .nbd-sess-row").first.click()

    table.get_by_text("open it in a cell: nb.open('talk'").wait_for()


def test_a_closed_session_is_shown_in_words(page: Page) -> None:
    page.get_by_text("<Session 'gone' in").first.wait_for()


def test_a_tree_is_dark_where_marimo_is(page: Page) -> None:
    ground = page.locator(".nbd-session").first.evaluate(
        "element => getComputedStyle(element).backgroundColor"
    )

    assert page.locator("html.dark, body.dark, .dark").count() > 0
    assert max(map(int, re.findall(r"\d+", ground)[:3])) < 100
