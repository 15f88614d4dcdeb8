"""Record what the notebooks replay: run them on the local model and export their sessions.

``record_notebooks.py [NAME ...]`` runs each numbered notebook that names a recording, or those
whose names hold NAME, and writes that recording anew. Cells tagged ``live`` are left out: they need
no recording. One that opens its recording is run with an empty store in its place, whose sessions
are exported. In one that loads it, by a cell tagged ``recorded``, that cell is left out, and the
session ``chat`` is exported after the next one.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from nbdurable.formats.jsonl import export_store
from nbdurable.stores import open_store, release_store

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
FOLDER = NOTEBOOKS / "recordings"
RECORDING = re.compile(r'"recordings/([\w.-]+\.jsonl)"')
ONLY = re.compile(r'(replay"?(?:=|: ))"only"')
TIMEOUT_S = 1800


def recording_of(notebook: nbformat.NotebookNode) -> Path | None:
    """Return the recording that a notebook names, or None."""
    found = next(filter(None, (RECORDING.search(cell.source) for cell in notebook.cells)), None)
    return None if found is None else FOLDER / found[1]


def tagged(notebook: nbformat.NotebookNode, tag: str) -> list[int]:
    """Return the places of the cells with a tag."""
    cells = enumerate(notebook.cells)
    return [at for at, cell in cells if tag in cell.metadata.get("tags", ())]


def without_live_cells(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the notebook without the cells that call a model whatever is recorded."""
    live = tagged(notebook, "live")
    kept = [cell for at, cell in enumerate(notebook.cells) if at not in live]
    return new_notebook(cells=kept, metadata=notebook.metadata)


def live_source(source: str, store: Path) -> str:
    """Return a cell's source with the recording replaced by a store that is written."""
    return ONLY.sub(r"\1True", RECORDING.sub(repr(str(store)), source))


def exporting(notebook: nbformat.NotebookNode, target: Path) -> nbformat.NotebookNode:
    """Return the start of a notebook that loads its recording, as one that makes it."""
    (at,) = tagged(notebook, "recorded")
    asked = [*notebook.cells[:at], notebook.cells[at + 1]]
    asked.append(new_code_cell(f"chat.export({str(target)!r}); chat.close()"))
    return new_notebook(cells=asked, metadata=notebook.metadata)


def record(path: Path) -> Path | None:
    """Run a notebook on the local model and write its recording; None where it has none."""
    notebook = without_live_cells(nbformat.read(path, as_version=4))
    target = recording_of(notebook)
    if target is None:
        return None
    FOLDER.mkdir(exist_ok=True)
    if tagged(notebook, "recorded"):
        _execute(exporting(notebook, target), path.parent)
    else:
        _record_all(notebook, target, path.parent)
    return target


def _record_all(notebook: nbformat.NotebookNode, target: Path, place: Path) -> None:
    """Run a notebook with an empty store in place of its recording; export the store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "recorded.duckdb")
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = live_source(cell.source, store)
        _execute(notebook, place)
        recorded = open_store(store)
        try:
            latest_first = [summary.session.id for summary in recorded.list_sessions()]
            export_store(recorded, target, reversed(latest_first))
        finally:
            release_store(recorded)


def _execute(notebook: nbformat.NotebookNode, place: Path) -> None:
    resources = {"metadata": {"path": str(place)}}
    NotebookClient(notebook, timeout=TIMEOUT_S, resources=resources).execute()


def main(names: list[str]) -> int:
    """Record the notebooks whose names hold one of `names`; all without any."""
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        if not names or any(name in path.stem for name in names):
            target = record(path)
            if target is not None:
                print(f"{target} {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
