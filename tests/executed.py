"""Notebooks executed headless, and what their cells showed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TIMEOUT_S = 90

# what is another at each execution: names of temporary folders, times of what is written anew
_PASSING = re.compile(r"(?<=/)tmp\w{8}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_WIDGET = "application/vnd.jupyter.widget-view+json"


def client_of(path: Path, folder: Path) -> NotebookClient:
    """Return what executes a notebook in `folder`, where it finds a copy of what it reads."""
    notebook = nbformat.read(path, as_version=4)
    for name in ("recordings", "samples"):
        shutil.copytree(FOLDER / name, folder / name, dirs_exist_ok=True)
    return NotebookClient(
        notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(folder)}}
    )


def surroundings(folder: Path, *, has_model: bool) -> dict[str, str]:
    """Return a kernel's environment, with temporary files in `folder`, weights hidden or not."""
    own = {"TMPDIR": str(folder), "IPYTHONDIR": str(folder / "ipython")}
    return {
        **os.environ,
        **own,
        **({} if has_model else {"NBDURABLE_GGUF": str(folder / "no.gguf")}),
    }


def cell_of(notebook: nbformat.NotebookNode, cell_id: str) -> nbformat.NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def insert(notebook: nbformat.NotebookNode, at: int, cell_id: str, source: str) -> None:
    """Put a cell of a test before the one at a place."""
    notebook.cells.insert(at, new_code_cell(source, id=cell_id))


def errors_in(notebook: nbformat.NotebookNode) -> list[str]:
    return [
        f"{output.ename}: {output.evalue}"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]


def printed_by(notebook: nbformat.NotebookNode) -> list[str]:
    return [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
    ]


def shown_by(cell: nbformat.NotebookNode) -> str:
    """Return the plain text of all that a cell displayed."""
    return "\n".join(
        output.data.get("text/plain", "") for output in cell.outputs if "data" in output
    )


def html_of(cell: nbformat.NotebookNode) -> str:
    return "\n".join(
        output.data.get("text/html", "") for output in cell.outputs if "data" in output
    )


def shown_in(notebook: nbformat.NotebookNode) -> dict[str, list[Any]]:
    """Return what each code cell showed, by its id, without what no two executions share."""
    return {
        cell.id: [*map(_lasting, cell.outputs)]
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def _lasting(output: nbformat.NotebookNode) -> Any:
    if "data" not in output:
        return output.get("text") or output.get("ename")
    # a static twin is brought up to date in its own time, by as long as the kernel lives
    html = output.data.get("text/html", "")
    if _WIDGET in output.data or "data-nbd-twin" in html:
        return "a widget"
    return {kind: _PASSING.sub("", str(value)) for kind, value in output.data.items()}


def differing(first: dict[str, list[Any]], second: dict[str, list[Any]]) -> Iterable[str]:
    """Return the ids of the cells that both have and that showed different things."""
    return [cell for cell in first if cell in second and first[cell] != second[cell]]
