"""Every notebook runs headless from top to bottom, and the quickstart across a kernel restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.executed import (
    FOLDER,
    NOTEBOOKS,
    cell_of,
    client_of,
    errors_in,
    html_of,
    printed_by,
    shown_by,
)

QUICKSTART = FOLDER / "01_quickstart.ipynb"

pytestmark = [pytest.mark.kernel, pytest.mark.local_model, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a notebook's temporary folder be this test's."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


def halves(notebook: nbformat.NotebookNode) -> tuple[Iterator[int], Iterator[int]]:
    """Return the numbers of the cells before and after the restart."""
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    middle = next(n for n, found in enumerate(tags) if "after-restart" in found)
    return iter(range(middle)), iter(range(middle, len(notebook.cells)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_without_an_error(path: Path, tmp_path: Path) -> None:
    notebook = client_of(path, tmp_path).execute()

    assert errors_in(notebook) == []


def test_a_plot_is_shown_as_a_picture(tmp_path: Path) -> None:
    notebook = client_of(FOLDER / "02_explore_a_prompt.ipynb", tmp_path).execute()

    (output,) = cell_of(notebook, "plot").outputs
    assert "image/png" in output.data


# B15
def test_the_quickstart_displays_and_prints_nothing_to_stdout(tmp_path: Path) -> None:
    notebook = client_of(QUICKSTART, tmp_path).execute()

    assert printed_by(notebook) == []
    assert shown_by(cell_of(notebook, "run"))


# B2
def test_another_process_sees_the_entries_of_the_quickstart(tmp_path: Path) -> None:
    notebook = client_of(QUICKSTART, tmp_path).execute()

    seen = shown_by(cell_of(notebook, "other-process"))
    assert re.findall(r"#(\d) (\w+)", seen) == [
        ("1", "user"),
        ("2", "assistant"),
        ("3", "user"),
        ("4", "assistant"),
    ]


# B2 B3 B39 B42
def test_the_quickstart_goes_on_after_a_restart_of_the_kernel(tmp_path: Path) -> None:
    client = client_of(QUICKSTART, tmp_path)
    before, after = halves(client.nb)

    with client.setup_kernel():
        for number in before:
            client.execute_cell(client.nb.cells[number], number)
    with client.setup_kernel():
        for number in after:
            client.execute_cell(client.nb.cells[number], number)

    columns = re.findall(r'<th scope="col"><bdi>#(\d)', html_of(cell_of(client.nb, "leaves")))
    assert errors_in(client.nb) == []
    assert columns == ["4", "6", "7"]
