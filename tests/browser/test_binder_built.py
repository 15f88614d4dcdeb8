"""What Binder makes of the project: built as it builds it, opened as its address opens it."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import nbformat
import psutil
import pytest

from tests.executed import errors_in

if TYPE_CHECKING:
    from browser.jupyter import Lab
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.local_model,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

ROOT = Path(__file__).parent.parent.parent
QUICKSTART, EXPLORE = "notebooks/01_quickstart.ipynb", "notebooks/02_explore_a_prompt.ipynb"
LANDING = "notebooks/index.ipynb"
PROMISED_BYTES, MOST_BYTES = 1_000_000_000, 2_000_000_000  # what a reader of Binder has
OURS = ("PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV", "NBDURABLE_")
NOWHERE = "http://127.0.0.1:9"  # a proxy that is not there


@dataclass(frozen=True, slots=True)
class Built:
    """An environment as Binder builds it: a Python of its own, and the tree as its home."""

    home: Path
    python: Path
    env: dict[str, str]
    told: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of Run All Cells: saved notebooks, addresses that pages asked, memory in use."""

    notebooks: dict[str, nbformat.NotebookNode]
    asked: list[str]
    server_bytes: int
    kernel_bytes: list[int]
    trees: int


def working(program: str) -> str | None:
    """Return the path of a Python that starts: a version manager has names for some that do not."""
    path = shutil.which(program)
    starts = path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0
    return path if starts else None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build from what is committed alone: the requirements first, then ``postBuild``."""
    folder = tmp_path_factory.mktemp("binder")
    home, bin_folder = folder / "home", folder / "environment" / "bin"
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(home, filter="data")
    wanted = home.joinpath("binder", "runtime.txt").read_text("utf-8").strip().replace("-", "")
    subprocess.run([working(wanted) or sys.executable, "-m", "venv", bin_folder.parent], check=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    requirements = home / "binder" / "requirements.txt"
    subprocess.run([bin_folder / "pip", "install", "-q", "-r", requirements], env=env, check=True)
    env |= {"PATH": f"{bin_folder}{os.pathsep}{env['PATH']}", "HOME": str(home)}
    script = home / "binder" / "postBuild"
    made = subprocess.run([script], cwd=home, env=env, text=True, capture_output=True)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    return Built(home, bin_folder / "python", env, made.stdout + made.stderr)


@pytest.fixture(scope="module", params=["weights", "no weights"])
def lab(
    request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """Start the built JupyterLab through ``start``; without weights, also without a network."""
    from browser.jupyter import serve

    env = dict(built.env)
    if request.param == "no weights":
        env["NBDURABLE_GGUF"] = str(tmp_path_factory.mktemp("no-weights"))
        env |= {name: NOWHERE for name in ("http_proxy", "https_proxy", "all_proxy")}
        env["no_proxy"] = "127.0.0.1,localhost"
    command = [str(built.home / "binder" / "start"), str(built.python), "-m", "jupyter", "lab"]
    with serve(command, built.home, env) as running:
        yield running


def size_of(process: psutil.Process) -> int:
    """Return the memory of a process, what it shares with others divided among them."""
    return int(process.memory_full_info().pss)


@pytest.fixture(scope="module")
def ran(lab: Lab, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Open each notebook as a reader does, and choose Run All Cells."""
    from browser.jupyter import OpenNotebook

    page: Page = chromium.new_context(viewport={"width": 1180, "height": 900}).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    pictures, notebooks, trees = tmp_path_factory.mktemp("pictures"), {}, 0
    for path in (LANDING, EXPLORE, QUICKSTART):
        if not (lab.folder / path).exists():
            continue
        book = OpenNotebook(lab, page, path, "lab")
        book.run_all()
        trees = book.page.locator(".nbd-session").count()
        book.cells.last.scroll_into_view_if_needed()
        page.screenshot(path=pictures / f"{Path(path).stem}.png")
        notebooks[path] = nbformat.read(book.save(), as_version=4)
        assert book.own_errors() == []
    server = psutil.Process(lab.pid)
    sizes = [size_of(kernel) for kernel in server.children(recursive=True)]
    print(f"server {size_of(server) / 1e6:.0f} MB, kernels", [f"{n / 1e6:.0f} MB" for n in sizes])
    page.context.close()
    return Ran(notebooks, asked, size_of(server), sizes, trees)


def test_the_widgets_are_part_of_the_built_jupyterlab(built: Built) -> None:
    told = re.sub(r"\x1b\[\d+m", "", built.told)

    assert re.search(r"anywidget v[\d.]+ enabled +OK", told)
    assert re.search(r"jupyterlab-manager v[\d.]+ enabled +OK", told)


def test_every_cell_ends_without_an_error(ran: Ran) -> None:
    cells = [cell for book in ran.notebooks.values() for cell in book.cells]

    assert [errors_in(book) for book in ran.notebooks.values()] == [[]] * len(ran.notebooks)
    assert [c.source for c in cells if c.cell_type == "code" and not c.execution_count] == []


def test_the_tree_of_the_session_is_shown(ran: Ran) -> None:
    assert ran.trees == 1


def test_nothing_outside_is_asked_for_anything(ran: Ran, lab: Lab) -> None:
    assert [url for url in ran.asked if urlsplit(url).hostname not in ("127.0.0.1", None)] == []
    assert [url for url in ran.asked if re.search("/lab/api/(news|update|extensions)", url)] == []


def test_the_server_and_its_kernels_fit_into_binders_memory(ran: Ran) -> None:
    assert ran.server_bytes + max(ran.kernel_bytes) < PROMISED_BYTES
    assert ran.server_bytes + sum(ran.kernel_bytes) < MOST_BYTES


def test_a_reader_is_told_in_one_line_when_answers_are_recorded_ones(ran: Ran, lab: Lab) -> None:
    told = [
        output.text
        for cell in ran.notebooks[QUICKSTART].cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    ]

    expected = 1 if "NBDURABLE_GGUF" in lab.env else 0
    assert sum("no weights of model 'local' are here" in text for text in told) == expected
