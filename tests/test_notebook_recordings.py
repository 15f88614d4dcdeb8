"""The notebooks on recordings: no cell but the live one needs a model, weights or a key."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from nbdurable.stores import open_store, release_store
from tests.executed import FOLDER, NOTEBOOKS, client_of, errors_in, printed_by
from tests.record_notebooks import live_source, recording_of, without_live_cells

RECORDINGS = sorted((FOLDER / "recordings").iterdir())
MOST_BYTES = 300_000


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


RECORDED = [path for path in NOTEBOOKS if recording_of(read(path))]


@pytest.fixture
def no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the weights of the local model, and let a temporary folder be this test's."""
    monkeypatch.setenv("NBDURABLE_GGUF", str(tmp_path / "hidden.gguf"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


def executed_without_live_cells(path: Path, folder: Path, *more: str) -> nbformat.NotebookNode:
    """Execute the recorded cells of a notebook, and more before its last one."""
    client = client_of(path, folder)
    notebook = client.nb = without_live_cells(client.nb)
    notebook.cells[-1:-1] = [nbformat.v4.new_code_cell(source) for source in more]
    return client.execute()


# B55 B58
@pytest.mark.kernel
@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_notebook_needs_no_model_and_leaves_its_recording_alone(
    path: Path, tmp_path: Path, no_model: None
) -> None:
    recording = recording_of(read(path))
    assert recording is not None

    notebook = executed_without_live_cells(path, tmp_path)

    assert errors_in(notebook) == []
    assert printed_by(notebook) == []
    copies = {file.name: file.read_bytes() for file in (tmp_path / "recordings").iterdir()}
    assert copies == {file.name: file.read_bytes() for file in RECORDINGS}


# B55 B58
@pytest.mark.kernel
@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_call_of_a_recorded_notebook_is_answered_by_its_recording(
    path: Path, tmp_path: Path, no_model: None
) -> None:
    count = "(chat.replay_report().hits, chat.replay_report().misses)"

    notebook = executed_without_live_cells(path, tmp_path, count)

    (output,) = notebook.cells[-2].outputs
    hits, misses = json.loads(output.data["text/plain"].replace("(", "[").replace(")", "]"))
    assert hits > 1
    assert misses == 0


# B58
@pytest.mark.kernel
@pytest.mark.timeout(240)
def test_a_recorded_notebook_whose_words_were_changed_is_a_miss(
    tmp_path: Path, no_model: None
) -> None:
    client = client_of(FOLDER / "04_tools_and_side_effects.ipynb", tmp_path)
    for cell in client.nb.cells:
        cell.source = cell.source.replace("in order 1234?", "in order 4321?")
    client.allow_errors = True

    notebook = client.execute()

    assert errors_in(notebook)[0].startswith("ReplayMiss: no recorded run answers this run")


def test_each_recording_is_small_and_is_opened_by_one_notebook() -> None:
    opened = [recording_of(read(path)) for path in RECORDED]

    assert opened == RECORDINGS
    assert [file.name for file in RECORDINGS if file.stat().st_size >= MOST_BYTES] == []


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_notebook_has_one_live_cell_with_a_word_about_it(path: Path) -> None:
    cells = read(path).cells
    live = [n for n, cell in enumerate(cells) if "live" in cell.metadata.get("tags", ())]

    assert len(live) == 1
    assert cells[live[0] - 1].source.startswith("**Live: this cell calls the model")


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_holds_finished_runs_of_the_local_model_alone(path: Path) -> None:
    store = open_store(path)
    try:
        sessions = [summary.session.id for summary in store.list_sessions()]
        runs = [run for session_id in sessions for run in store.load_runs(session_id)]
        entries = [entry for session_id in sessions for entry in store.load_entries(session_id)]
    finally:
        release_store(store)

    assert {(start.model, end and end.outcome) for start, end in runs} == {("local", "done")}
    replies = [json.loads(e.payload)["reply"] for e in entries if e.role == "assistant"]
    assert {reply["provider"] for reply in replies} == {"local"}
    assert all(reply["fingerprint"].startswith("xllamacpp ") for reply in replies)


def test_a_cell_is_recorded_with_a_store_that_is_written(tmp_path: Path) -> None:
    store = tmp_path / "new.duckdb"

    by_keyword = live_source('nb.open("s", store="recordings/a.jsonl", replay="only")', store)
    by_dict = live_source('{"store": "recordings/a.jsonl", "replay": "only"}', store)

    assert by_keyword == f'nb.open("s", store={str(store)!r}, replay=True)'
    assert by_dict == f'{{"store": {str(store)!r}, "replay": True}}'
