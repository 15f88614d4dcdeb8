"""Every notebook runs headless from top to bottom; each is executed once for all tests here.

Where a recording answers, the weights of the local model are hidden, but for the cell tagged
``live``. The quickstart has none: it asks the local model, across a restart of its kernel.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from tests.executed import (
    FOLDER,
    NOTEBOOKS,
    cell_of,
    client_of,
    differing,
    errors_in,
    html_of,
    insert,
    printed_by,
    shown_by,
    shown_in,
    surroundings,
)
from tests.record_notebooks import FOLDER as RECORDINGS
from tests.record_notebooks import tagged, without_live_cells

if TYPE_CHECKING:
    from tests.postgres_server import Server

INDEX = FOLDER / "index.ipynb"
NUMBERED = [path for path in NOTEBOOKS if path != INDEX]
QUICKSTART, *RECORDED = NUMBERED
PROMPT, TOOLS = FOLDER / "02_explore_a_prompt.ipynb", FOLDER / "04_tools_and_side_effects.ipynb"
TABLES = FOLDER / "03_sessions_as_data.ipynb"
IMPORT, TEAM = FOLDER / "05_bring_your_chatgpt_export.ipynb", FOLDER / "06_share_with_a_team.ipynb"
ANSWERED = "[(line.verb, line.is_hit) for line in chat.replay_report().lines]"
ASKING = {"run", "rerun", "then", "sample", "grid"}
CHANGED = """try:
    chat.run("What did I buy in order 4321?", tool_choice=look_up)
except nb.errors.ReplayMiss as miss:
    display(str(miss))"""

LOOKING = ["other-process", "path"]
"""Cells of the quickstart that show all that is stored, which is more the second time."""

Executed = Callable[[Path], nbformat.NotebookNode]

pytestmark = [pytest.mark.kernel, pytest.mark.local_model, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def executed(folder: Path) -> Executed:
    """Return a function that gives a notebook as executed, each time the same one."""
    done: dict[Path, nbformat.NotebookNode] = {}

    def execute(path: Path) -> nbformat.NotebookNode:
        if path not in done:
            done[path] = (across_a_restart if path == QUICKSTART else on_recording)(path, folder)
        return done[path]

    return execute


def across_a_restart(path: Path, folder: Path) -> nbformat.NotebookNode:
    client = client_of(path, folder)
    (middle,) = tagged(client.nb, "after-restart")
    for numbers in (range(middle), range(middle, len(client.nb.cells))):
        with client.setup_kernel(env=surroundings(folder, has_model=True)):
            for number in numbers:
                client.execute_cell(client.nb.cells[number], number)
    return client.nb


def on_recording(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Execute a notebook without weights, but for a live cell; ask before it what was recorded.

    The index needs none: its live cell says what is missing.
    """
    client = client_of(path, folder)
    client.allow_errors = True
    shown = "library.sessions()" if path == TABLES else "chat.entries()"
    insert(client.nb, len(client.nb.cells), "alive", f"len({shown})")
    if path != INDEX:
        probed(client.nb, {"answered": ANSWERED, **({"changed": CHANGED} if path == TOOLS else {})})
    return client.execute(env=surroundings(folder, has_model=False))


def probed(notebook: nbformat.NotebookNode, probes: dict[str, str]) -> None:
    """Put probes before the live cell, or the last one; then give the live cell its weights."""
    live = tagged(notebook, "live")
    at = live[0] if live else len(notebook.cells) - 1
    if live:
        probes = {**probes, "weights": 'import os; del os.environ["NBDURABLE_GGUF"]'}
    for name, source in reversed(probes.items()):
        insert(notebook, at, name, source)


def replay(quickstart: nbformat.NotebookNode) -> None:
    """Let the quickstart replay the store that it left, in place of a new one."""
    for cell in quickstart.cells:
        cell.source = cell.source.replace("shutil.rmtree(folder, ignore_errors=True)\n", "")
        cell.source = cell.source.replace("folder.mkdir()", "")
        cell.source = cell.source.replace("max_tokens=60", "max_tokens=60, replay=True")


# -- all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_without_an_error(
    path: Path, executed: Executed
) -> None:
    assert errors_in(executed(path)) == []


# B15
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_displays_and_prints_nothing_to_stdout(path: Path, executed: Executed) -> None:
    assert printed_by(executed(path)) == []


# B55 B58
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_call_of_a_recorded_notebook_is_answered_by_its_recording(
    path: Path, executed: Executed
) -> None:
    answered = ast.literal_eval(shown_by(cell_of(executed(path), "answered")))

    asked = [is_hit for verb, is_hit in answered if verb in ASKING]
    assert len(asked) > 1
    assert all(asked)


# B55 B58
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_notebook_leaves_its_recording_alone(
    path: Path, folder: Path, executed: Executed
) -> None:
    executed(path)

    copies = {file.name: file.read_bytes() for file in (folder / "recordings").iterdir()}
    assert copies == {file.name: file.read_bytes() for file in RECORDINGS.iterdir()}


# B54
@pytest.mark.parametrize("path", [*RECORDED, INDEX], ids=lambda path: path.stem)
def test_what_a_notebook_shows_goes_on_working_after_its_last_cell(
    path: Path, executed: Executed
) -> None:
    """A reader scrolls up to the tree and presses *Rerun*: a closed session would not answer."""
    assert int(shown_by(cell_of(executed(path), "alive"))) > 0


# -- each ------------------------------------------------------------------------------------------


# B2
def test_another_process_sees_the_entries_of_the_quickstart(executed: Executed) -> None:
    seen = shown_by(cell_of(executed(QUICKSTART), "other-process"))

    assert re.findall(r"#(\d) (\w+)", seen) == [
        ("1", "user"),
        ("2", "assistant"),
        ("3", "user"),
        ("4", "assistant"),
    ]


# B2 B3 B39 B42
def test_the_quickstart_goes_on_after_a_restart_of_the_kernel(executed: Executed) -> None:
    leaves = html_of(cell_of(executed(QUICKSTART), "leaves"))

    assert re.findall(r'<th scope="col"><bdi>#(\d)', leaves) == ["4", "6", "7"]


# B55 B56
def test_the_quickstart_run_again_asks_no_model_and_shows_the_same(
    folder: Path, executed: Executed
) -> None:
    first = executed(QUICKSTART)
    client = client_of(QUICKSTART, folder)
    replay(client.nb)

    again = client.execute(env=surroundings(folder, has_model=False))

    assert errors_in(again) == []
    assert shown_by(cell_of(again, "run"))
    assert differing(shown_in(first), shown_in(again)) == LOOKING


def test_a_plot_is_shown_as_a_picture(executed: Executed) -> None:
    (output,) = cell_of(executed(PROMPT), "plot").outputs

    assert "image/png" in output.data


# B58
def test_a_recorded_notebook_whose_words_were_changed_is_a_miss(executed: Executed) -> None:
    told = shown_by(cell_of(executed(TOOLS), "changed"))

    assert "no recorded run answers this run at #" in told


def test_an_import_is_told_and_adds_nothing_when_it_is_repeated(executed: Executed) -> None:
    notebook = executed(IMPORT)

    assert "3 sessions added; 22 new entries, 2 hidden" in shown_by(cell_of(notebook, "load"))
    assert "3 sessions unchanged; 0 new entries" in shown_by(cell_of(notebook, "again"))


def test_what_another_process_wrote_is_seen_with_its_author(executed: Executed) -> None:
    notebook = executed(TEAM)

    opinions = html_of(cell_of(notebook, "seen"))
    drafts = html_of(cell_of(notebook, "all"))
    assert re.findall(r"<td>(Ana|me)</td>", opinions) == ["Ana", "me"]
    assert re.findall(r'<th scope="col"><bdi>#(\d)', drafts) == ["2", "3", "4", "6"]


def test_the_index_says_what_is_missing_where_no_weights_are(executed: Executed) -> None:
    taste = shown_by(cell_of(executed(INDEX), "taste"))

    assert "run: nbdurable local fetch" in taste


def test_the_index_leads_to_every_notebook_and_to_nothing_that_is_not_there() -> None:
    cells = nbformat.read(INDEX, as_version=4).cells

    links = re.findall(r"\]\(([\w./-]+)\)", "\n".join(cell.source for cell in cells))

    assert [link for link in links if not (FOLDER / link).is_file()] == []
    assert [link for link in links if link.endswith(".ipynb")] == [path.name for path in NUMBERED]


# -- long ------------------------------------------------------------------------------------------


# B55 B56
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_second_pass_of_all_notebooks_makes_no_call_and_shows_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Live cells keep nothing by intent, so that the second pass leaves them out."""
    took: dict[str, float] = {}
    differ: dict[str, list[str]] = {}
    for path in NUMBERED:
        began = time.monotonic()
        first = client_of(path, tmp_path).execute(env=surroundings(tmp_path, has_model=True))
        took[path.stem] = time.monotonic() - began
        client = client_of(path, tmp_path)
        client.nb = without_live_cells(client.nb)
        if path == QUICKSTART:
            replay(client.nb)
        second = client.execute(env=surroundings(tmp_path, has_model=False))
        differ[path.stem] = [*differing(shown_in(first), shown_in(second))]
        assert errors_in(first) + errors_in(second) == []

    with capsys.disabled():
        each = ", ".join(f"{name[:2]} {seconds:.0f} s" for name, seconds in took.items())
        print(f"\nsix notebooks in {sum(took.values()):.0f} s: {each}")
    assert differ.pop(QUICKSTART.stem) == LOOKING
    assert differ == {path.stem: [] for path in RECORDED}


# B55
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_all_cells_run_twice_in_one_kernel_without_an_error(path: Path, tmp_path: Path) -> None:
    """What the first reading opened is open still when the second one begins."""
    client = client_of(path, tmp_path)
    client.nb = without_live_cells(client.nb)
    with client.setup_kernel(env=surroundings(tmp_path, has_model=path == QUICKSTART)):
        for _ in range(2):
            for number, cell in enumerate(client.nb.cells):
                client.execute_cell(cell, number)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_team_shares_a_server_by_naming_it(tmp_path: Path, postgres: Server) -> None:
    address = postgres.database()
    here = {**surroundings(tmp_path, has_model=False), "NBDURABLE_TEAM": address}

    notebook = client_of(TEAM, tmp_path).execute(env=here)

    assert errors_in(notebook) == []
    assert "on a server" in shown_by(cell_of(notebook, "store"))
    assert re.findall(r"<td>(Ana|me)</td>", html_of(cell_of(notebook, "seen"))) == ["Ana", "me"]
