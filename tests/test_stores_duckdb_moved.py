"""A file that is moved, removed or replaced under an open store loses nothing in silence (B63)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore, lease

pytestmark = pytest.mark.skipif(os.name != "posix", reason="an open file cannot be moved there")


@pytest.fixture
def chat(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> nb.Session:
    """An open session with two entries, whose file stays attached."""
    monkeypatch.setattr(lease, "_LINGER_S", 3600.0)
    session = nb.open("s", store="s.duckdb", model=model)
    session.append("q", nb.assistant("a"))
    return session


def reopened(path: str = "s.duckdb") -> list[str]:
    """Return the texts of a session opened anew."""
    with nb.open("s", store=path, model=ScriptedModel()) as session:
        return [entry.text for entry in session.entries()]  # type: ignore[attr-defined]


def remove() -> None:
    os.unlink("s.duckdb")


def replace() -> None:
    nb.open("s", store="other.duckdb", model=ScriptedModel()).close()
    os.replace("other.duckdb", "s.duckdb")


# B63
@pytest.mark.parametrize("lose", [remove, replace])
def test_a_write_to_a_file_that_is_gone_is_refused(chat: nb.Session, lose: object) -> None:
    lose()  # type: ignore[operator]

    with pytest.raises(nb.errors.StoreError, match="was removed or replaced while it was open"):
        chat.append("lost")
    with pytest.raises(nb.errors.StoreError, match="nothing was written; put it back"):
        chat.run("lost")

    assert len(chat.entries()) == 2


# B63
@pytest.mark.parametrize("lose", [remove, replace])
def test_opening_again_a_file_that_is_gone_says_what_to_do(chat: nb.Session, lose: object) -> None:
    lose()  # type: ignore[operator]

    with pytest.raises(nb.errors.StoreError, match="close all its sessions, or restart the kernel"):
        nb.open("s", store="s.duckdb", model=ScriptedModel())

    chat.close()
    assert reopened() == []


# B63
def test_a_file_that_was_moved_has_all_and_one_put_back_goes_on(chat: nb.Session) -> None:
    os.rename("s.duckdb", "moved.duckdb")
    with pytest.raises(nb.errors.StoreError, match="removed or replaced"):
        chat.append("lost")

    os.rename("moved.duckdb", "s.duckdb")
    chat.append("kept")
    os.rename("s.duckdb", "moved.duckdb")
    chat.close()

    assert reopened("moved.duckdb") == ["q", "a", "kept"]


# B63
def test_a_log_that_was_removed_loses_nothing_at_close(chat: nb.Session) -> None:
    os.unlink("s.duckdb.wal")

    chat.close()

    assert reopened() == ["q", "a"]


# B24 B63
def test_a_log_that_was_removed_is_made_up_for_by_the_next_write(
    chat: nb.Session, caplog: pytest.LogCaptureFixture
) -> None:
    os.unlink("s.duckdb.wal")

    chat.append("more")
    copied = Path("copied")
    copied.mkdir()
    for name in ("s.duckdb", "s.duckdb.wal"):  # what a kill at this moment would leave
        shutil.copy(name, copied / name)

    assert "was removed while the store was open" in caplog.text
    assert reopened("copied/s.duckdb") == ["q", "a", "more"]


# B63
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("back\\slash.duckdb", "a backslash in its path"),
        ("really?.duckdb", "a question mark in its path"),
        ("n" * 250, "a name of more than 240 bytes"),
        ("nul\0.duckdb", "neither NUL nor half a character"),
        ("half\ud800.duckdb", "neither NUL nor half a character"),
        ("", "text that is not empty"),
        ("pipe", "is no regular file; choose another path"),
    ],
)
def test_a_path_that_cannot_be_a_store_is_refused_by_name(name: str, says: str) -> None:
    os.mkfifo("pipe")

    with pytest.raises(nb.errors.StoreError, match=says):
        nb.open("s", store=name, model=ScriptedModel())

    assert os.listdir() == ["pipe"]


# B1
def test_a_path_may_begin_at_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    nb.open("s", store="~/home.duckdb", model=ScriptedModel()).close()

    assert (tmp_path / "home.duckdb").exists()


# B24
def test_a_folder_among_the_spools_is_passed_over() -> None:
    DuckDBStore("s.duckdb").close()
    Path("s.duckdb.spool/odd.jsonl").mkdir(parents=True)

    assert reopened() == []
