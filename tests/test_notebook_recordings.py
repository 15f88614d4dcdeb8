"""What the notebooks replay: small recordings of the local model, each of one notebook."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from nbdurable.stores import open_store, release_store
from tests.executed import FOLDER
from tests.record_notebooks import exporting, live_source, recording_of, tagged

RECORDINGS = sorted((FOLDER / "recordings").iterdir())
MOST_BYTES = 300_000


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


RECORDED = [path for path in sorted(FOLDER.glob("[0-9]*.ipynb")) if recording_of(read(path))]


def test_each_recording_is_small_and_is_of_one_notebook() -> None:
    named = [recording_of(read(path)) for path in RECORDED]

    assert named == RECORDINGS
    assert [file.name for file in RECORDINGS if file.stat().st_size >= MOST_BYTES] == []


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_notebook_says_where_a_model_is_called(path: Path) -> None:
    """By a cell that always calls it, or else by what a changed word does."""
    notebook = read(path)
    live = tagged(notebook, "live")
    words = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]

    if tagged(notebook, "recorded"):
        assert live == []
        assert any("hange a word" in text for text in words)
    else:
        (at,) = live
        assert notebook.cells[at - 1].source.startswith("**Live: this cell calls the model")


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
    answers = [e for e in entries if e.role == "assistant" and e.run_id is not None]
    replies = [json.loads(entry.payload)["reply"] for entry in answers]
    assert {reply["provider"] for reply in replies} == {"local"}
    assert all(reply["fingerprint"].startswith("xllamacpp ") for reply in replies)


def test_a_cell_is_recorded_with_a_store_that_is_written(tmp_path: Path) -> None:
    store = tmp_path / "new.duckdb"

    by_keyword = live_source('nb.open("s", store="recordings/a.jsonl", replay="only")', store)
    by_dict = live_source('{"store": "recordings/a.jsonl", "replay": "only"}', store)

    assert by_keyword == f'nb.open("s", store={str(store)!r}, replay=True)'
    assert by_dict == f'{{"store": {str(store)!r}, "replay": True}}'


def test_a_recording_that_is_loaded_is_made_by_what_comes_before_and_the_next_cell() -> None:
    path = next(path for path in RECORDED if tagged(read(path), "recorded"))
    notebook = read(path)
    (at,) = tagged(notebook, "recorded")

    cells = exporting(notebook, Path("made.jsonl")).cells

    assert [cell.id for cell in cells[:-1]] == [
        *(cell.id for cell in notebook.cells[:at]),
        notebook.cells[at + 1].id,
    ]
    assert cells[-1].source == "chat.export('made.jsonl'); chat.close()"
