"""Record what the local model answers in the notebooks, for where its weights cannot be.

Runs each notebook as it stands, from top to bottom, on the local model, and keeps each answer that
is asked of it, in whatever process, in ``binder/answers.jsonl``. What a recording answers is asked
of no model, so these are the calls of notebooks that record nothing and those of live cells.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
ANSWERS = ROOT / "binder" / "answers.jsonl"
KEEPING = Path(__file__).parent / "keeping"
TIMEOUT_S = 600


def record(folder: Path) -> Path:
    """Run all notebooks in copies under `folder`; return the file of what was answered."""
    kept, copies = folder / "answers.jsonl", folder / "notebooks"
    shutil.copytree(NOTEBOOKS, copies, ignore=shutil.ignore_patterns("docs", "images"))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(KEEPING), str(ROOT)]),
        "KEPT_ANSWERS": str(kept),
        "TMPDIR": str(folder),
    }
    environment.pop("NBDURABLE_ANSWERS", None)
    for path in sorted(copies.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(copies)}}
        )
        client.execute(env=environment)
        print(f"{path.name}: {len(kept.read_text('utf-8').splitlines())} answers so far")
    return kept


def main() -> int:
    """Record all answers anew."""
    with tempfile.TemporaryDirectory() as folder:
        ANSWERS.write_bytes(record(Path(folder)).read_bytes())
    print(f"{ANSWERS} {ANSWERS.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
