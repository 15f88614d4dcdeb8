"""Notebooks executed headless, and what their cells showed."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TIMEOUT_S = 90


def client_of(path: Path, folder: Path) -> NotebookClient:
    """Return what executes a notebook in `folder`, where it finds a copy of the recordings."""
    notebook = nbformat.read(path, as_version=4)
    shutil.copytree(FOLDER / "recordings", folder / "recordings", dirs_exist_ok=True)
    return NotebookClient(
        notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(folder)}}
    )


def cell_of(notebook: nbformat.NotebookNode, cell_id: str) -> nbformat.NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == cell_id)


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
