"""The notebooks where no weights can be had: recorded answers stand in for the local model."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbdurable.models.local_answers import RecordedAnswers
from tests.executed import FOLDER, NOTEBOOKS, client_of, errors_in
from tests.record_answers import ANSWERS

QUICKSTART = FOLDER / "01_quickstart.ipynb"
NOWHERE = "http://127.0.0.1:9"  # a proxy that is not there
OTHERS = [pytest.param(p, marks=pytest.mark.slow) for p in NOTEBOOKS if p != QUICKSTART]
MOST_BYTES = 100_000


@pytest.fixture
def nothing_to_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide weights and network, and let temporary folders be this test's."""
    monkeypatch.setenv("NBDURABLE_ANSWERS", str(ANSWERS))
    monkeypatch.setenv("NBDURABLE_GGUF", str(tmp_path / "hidden.gguf"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.mark.kernel
@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", [QUICKSTART, *OTHERS], ids=lambda path: path.stem)
def test_a_notebook_needs_no_weights(path: Path, tmp_path: Path, nothing_to_reach: None) -> None:
    """After a change of what a notebook asks: ``make recordings``."""
    notebook = client_of(path, tmp_path).execute()

    assert errors_in(notebook) == []


def test_the_recorded_answers_are_few_and_can_be_read() -> None:
    answers = RecordedAnswers(ANSWERS)

    assert answers.path.stat().st_size < MOST_BYTES
