"""A Jupyter server on loopback and notebooks in a real browser, for tests and pictures.

Nothing of the user's own settings is read: all folders are temporary. The server's own word tells
when a kernel is ready, since a page says "idle" before its line to the kernel is up, and a cell
run then is lost without a sign.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Locator, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --force-prefers-reduced-motion"
).split()
SERVER_OPTIONS = (
    "--no-browser --allow-root --ServerApp.ip=127.0.0.1 --ServerApp.port_retries=0 "
    "--IdentityProvider.token= --ServerApp.disable_check_xsrf=True --ServerApp.log_level=WARN"
).split()
NEWS = "@jupyterlab/apputils-extension:announcements"
WAIT_S = 60
# a new kernel may count to the number that stands in a prompt from the last one
FORGET = "prompt => { prompt.textContent = '[?]:'; }"
# what Jupyter's own front ends throw by themselves
FOREIGN_ERRORS = (
    "reading 'schema'",
    "ResizeObserver loop",
    "Canceled future for",  # a kernel that is ended while a page is connected to it
    "Kernel is dead",
)


class Lab:
    """A running server; `folder` holds its notebooks."""

    def __init__(self, base: str, folder: Path, env: dict[str, str], pid: int) -> None:
        self.base = base
        self.folder = folder
        self.env = env
        self.pid = pid

    def write(self, cells: Sequence[str], name: str = "", kernel: str = "python3") -> str:
        """Write a notebook of code cells; return its file name."""
        name = name or f"{uuid.uuid4().hex[:8]}.ipynb"
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": kernel, "display_name": kernel}},
        )
        nbformat.write(book, self.folder / name)
        return name

    def ask(self, path: str, method: str = "GET") -> Any:
        """Call the server's own API."""
        request = urllib.request.Request(self.base + path, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def sessions(self, name: str) -> list[dict[str, Any]]:
        """Return the server's sessions of a notebook."""
        return [found for found in self.ask("/api/sessions") if found["path"] == name]

    def end_kernel(self, name: str) -> None:
        """Shut a notebook's kernel down, as closing it does."""
        for found in self.sessions(name):
            self.ask(f"/api/sessions/{found['id']}", "DELETE")

    def interrupt(self, name: str) -> None:
        """Interrupt a notebook's kernel, as the toolbar's button does."""
        for found in self.sessions(name):
            self.ask(f"/api/kernels/{found['kernel']['id']}/interrupt", "POST")

    def trust(self, name: str) -> None:
        """Let a notebook's saved outputs be shown, as its author sees them."""
        command = [sys.executable, "-m", "jupyter", "trust", str(self.folder / name)]
        subprocess.run(command, env=self.env, check=True, capture_output=True, timeout=60)

    def wait_for_kernel(self, name: str) -> None:
        """Wait until a notebook's kernel is idle and a page is connected to it."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            for found in self.sessions(name):
                kernel = found["kernel"]
                if kernel["execution_state"] == "idle" and kernel["connections"] > 0:
                    return
            time.sleep(0.05)
        raise TimeoutError(f"the kernel of {name} was not ready after {WAIT_S} s")


class OpenNotebook:
    """A notebook in a page of the browser."""

    def __init__(self, lab: Lab, page: Page, name: str, app: str) -> None:
        self.lab = lab
        self.page = page
        self.name = name
        self.app = app
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.load()

    def load(self) -> None:
        """Open it, also again after its kernel ended."""
        place = (
            f"/lab/workspaces/{uuid.uuid4().hex[:8]}/tree/" if self.app == "lab" else "/notebooks/"
        )
        self.page.goto("about:blank")
        self.page.goto(self.lab.base + place + self.name)
        self.cells.first.wait_for(timeout=WAIT_S * 1000)
        self.lab.wait_for_kernel(self.name)

    def reload(self) -> None:
        """Load the page again; the kernel goes on."""
        self.page.reload()
        self.cells.first.wait_for(timeout=WAIT_S * 1000)
        self.lab.wait_for_kernel(self.name)

    @property
    def cells(self) -> Locator:
        """The code cells."""
        return self.page.locator(".jp-Notebook .jp-CodeCell")

    def run(self, at: int, *, until: str = "") -> Locator:
        """Run a cell; return its outputs, once something that fits the selector is among them."""
        cell = self.cells.nth(at)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        output = cell.locator(".jp-OutputArea").first
        if until:
            cell.locator(until).first.wait_for(timeout=WAIT_S * 1000)
        return output

    def run_and_wait(self, at: int) -> Locator:
        """Run a cell and wait until it has ended; return its outputs."""
        prompt = self.cells.nth(at).locator(".jp-InputPrompt").first
        prompt.evaluate(FORGET)
        output = self.run(at)
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            if prompt.inner_text().strip().strip("[]: ").isdigit():
                return output
            self.page.wait_for_timeout(30)
        raise TimeoutError(f"cell {at} of {self.name} had not ended after {WAIT_S} s")

    def run_all(self) -> None:
        """Choose Run All Cells from the menu; return when the last cell has ended.

        Raises
        ------
        AssertionError
            A cell failed, so that the ones below it never run.
        """
        last = self.cells.last.locator(".jp-InputPrompt").first
        last.evaluate(FORGET)
        self.page.locator(".lm-MenuBar-item", has_text=re.compile("^Run$")).click()
        self.page.locator(".lm-Menu-item", has_text=re.compile("^Run All Cells$")).click()
        failed = self.page.locator('[data-mime-type="application/vnd.jupyter.error"]')
        until = time.monotonic() + 4 * WAIT_S
        while not last.inner_text().strip().strip("[]: ").isdigit():
            assert not failed.count(), failed.first.inner_text()
            if time.monotonic() > until:
                raise TimeoutError(f"the last cell of {self.name} had not ended in time")
            self.page.wait_for_timeout(100)

    def save(self) -> Path:
        """Save it; return the file once it holds what was saved."""
        path = self.lab.folder / self.name
        before = path.stat().st_mtime_ns
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        until = time.monotonic() + WAIT_S
        while path.stat().st_mtime_ns == before or not _is_whole(path):
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name} was not saved after {WAIT_S} s")
            self.page.wait_for_timeout(50)
        return path

    def own_errors(self) -> list[str]:
        """Return the errors thrown in the page that no front end of Jupyter throws by itself."""
        return [e for e in self.errors if not any(known in e for known in FOREIGN_ERRORS)]


def _is_whole(path: Path) -> bool:
    """Tell whether a file that is being written holds a whole JSON value."""
    try:
        json.loads(path.read_text("utf-8"))
    except ValueError:
        return False
    return True


def browser_path() -> str:
    """Return the path of a Chromium.

    Raises
    ------
    LookupError
        There is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise LookupError("no Chromium was found on the path; install the package chromium")
    return found


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield a headless Chromium."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def run_lab(folder: Path, app: str = "lab", **variables: str) -> Iterator[Lab]:
    """Yield a server of JupyterLab, or of Notebook 7 (``app="notebook"``), in an empty folder."""
    notebooks = folder / "notebooks"
    notebooks.mkdir(parents=True)
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    env = {**os.environ, **{name: str(folder / place) for name, place in places.items()}}
    env.update(variables)
    settings = folder / "config" / "labconfig"
    settings.mkdir(parents=True)
    quiet = json.dumps({"disabledExtensions": {NEWS: True}})
    (settings / "page_config.json").write_text(quiet, "utf-8")
    with serve([sys.executable, "-m", "jupyter", app], notebooks, env) as lab:
        yield lab


@contextmanager
def serve(command: Sequence[str], root: Path, env: dict[str, str]) -> Iterator[Lab]:
    """Yield the Jupyter server that a command starts in `root`; its log goes beside that folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [*SERVER_OPTIONS, f"--ServerApp.port={port}", f"--ServerApp.root_dir={root}"]
    path = root.with_name("server.log")
    with path.open("w") as log:
        server = subprocess.Popen([*command, *options], env=env, stdout=log, stderr=log, cwd=root)
    lab = Lab(f"http://127.0.0.1:{port}", root, env, server.pid)
    try:
        _wait_for_server(lab, server, path)
        yield lab
    finally:
        server.terminate()
        server.wait(30)


def _wait_for_server(lab: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            lab.ask("/api/status")
        except OSError:
            if server.poll() is not None:
                raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}") from None
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"the server did not answer in {WAIT_S} s: {log.read_text()[-2000:]}")
