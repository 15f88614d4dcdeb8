"""Record what the notebooks replay: run them on the local model and export their sessions.

``record_notebooks.py [NAME ...]`` runs each notebook that opens a recording, or those whose names
hold NAME, from top to bottom with that recording replaced by an empty store, and writes the
recording anew. Cells tagged ``live`` are left out: they need no recording.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from nbdurable.formats.jsonl import export_store
from nbdurable.stores import open_store, release_store

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
FOLDER = NOTEBOOKS / "recordings"
RECORDING = re.compile(r'"recordings/([\w.-]+\.jsonl)"')
ONLY = re.compile(r'(replay"?(?:=|: ))"only"')
TIMEOUT_S = 1800


def recording_of(notebook: nbformat.NotebookNode) -> Path | None:
    """Return the recording that a notebook opens, or None."""
    found = next(filter(None, (RECORDING.search(cell.source) for cell in notebook.cells)), None)
    return None if found is None else FOLDER / found[1]


def without_live_cells(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the notebook without the cells that call a model whatever is recorded."""
    kept = [cell for cell in notebook.cells if "live" not in cell.metadata.get("tags", ())]
    return nbformat.v4.new_notebook(cells=kept, metadata=notebook.metadata)


def live_source(source: str, store: Path) -> str:
    """Return a cell's source with the recording replaced by a store that is written."""
    return ONLY.sub(r"\1True", RECORDING.sub(repr(str(store)), source))


def record(path: Path) -> Path | None:
    """Run a notebook on the local model and write its recording; None where it has none."""
    notebook = without_live_cells(nbformat.read(path, as_version=4))
    target = recording_of(notebook)
    if target is None:
        return None
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "recorded.duckdb")
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = live_source(cell.source, store)
        place = {"metadata": {"path": str(path.parent)}}
        NotebookClient(notebook, timeout=TIMEOUT_S, resources=place).execute()
        recorded = open_store(store)
        try:
            latest_first = [summary.session.id for summary in recorded.list_sessions()]
            export_store(recorded, target, reversed(latest_first))
        finally:
            release_store(recorded)
    return target


def main(names: list[str]) -> int:
    """Record the notebooks whose names hold one of `names`; all without any."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or any(name in path.stem for name in names):
            target = record(path)
            if target is not None:
                print(f"{target} {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
