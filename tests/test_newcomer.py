"""A newcomer's way, as the README says it: from a clone to branches that are compared."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import nbformat
import pytest

from tests.executed import cell_of, errors_in, html_of

ROOT = Path(__file__).parent.parent
MOST_S = 300


# B2 B24 B39
@pytest.mark.slow
@pytest.mark.kernel
@pytest.mark.local_model
@pytest.mark.timeout(900)
def test_a_newcomer_compares_branches_within_five_minutes(tmp_path: Path) -> None:
    """Not how fast the code is, but what the way takes in all: installing, weights, answers."""
    clone = tmp_path / "nbdurable"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    steps = {
        "clone": (["git", "clone", "--quiet", str(ROOT), str(clone)], tmp_path),
        "demo": (["make", "demo", "LAB=0"], clone),
        "quickstart": (
            [".venv/bin/jupyter", "execute", "--inplace", "notebooks/01_quickstart.ipynb"],
            clone,
        ),
    }

    seconds = {}
    for name, (command, folder) in steps.items():
        began = time.monotonic()
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        seconds[name] = time.monotonic() - began
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    notebook = nbformat.read(clone / "notebooks" / "01_quickstart.ipynb", as_version=4)
    print({name: f"{taken:.0f} s" for name, taken in seconds.items()})
    assert errors_in(notebook) == []
    assert html_of(cell_of(notebook, "leaves")).count('<th scope="col">') >= 3
    assert sum(seconds.values()) < MOST_S
