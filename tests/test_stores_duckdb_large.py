"""A file of a million entries in ten thousand sessions is an ordinary one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import large

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel

ENTRIES, SESSIONS = 1_000_000, 10_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("large") / "large.duckdb"
    large.build(made, ENTRIES, SESSIONS)
    return made


@pytest.fixture
def library(path: Path) -> Iterator[nb.library.Library]:
    with nb.connect(path) as opened:
        yield opened


# B2
@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("session_id", large.LONG)
def test_a_session_among_a_million_entries_is_opened_and_gone_on_with(
    path: Path, session_id: str
) -> None:
    length = large.LONG[session_id]
    with nb.open(session_id, store=path, model=ScriptedModel("Going on.")) as chat:
        said = chat.messages()
        run = chat.run("Go on.", show=None)
        chat.branch(3)
        [beside] = chat.append("beside")
        chat.branch(run)

    with nb.open(session_id, store=path, model=ScriptedModel("ok")) as chat:
        assert len(said) == length
        assert chat.leaf_id == run.leaf_id
        assert (len(chat.path()), len(chat.entries())) == (length + 2, length + 3)
        assert (beside.n, chat[beside.n].parent_id) == (length + 3, chat[3].id)
        assert beside.seq > ENTRIES


# B41
@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_ten_thousand_sessions_are_listed(library: nb.library.Library) -> None:
    found = library.sessions()

    assert len(found) == SESSIONS
    assert found["entries"].sum() >= ENTRIES
    assert set(large.LONG) <= set(found["id"])


# B61
@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_one_text_among_a_million_is_found(library: nb.library.Library) -> None:
    found = library.search("Question 54321 of longest ")

    assert list(found["session_id"]) == ["longest"]
    assert list(found["n"]) == [54_321]
