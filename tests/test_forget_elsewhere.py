"""`forget` as a command, of a recording, and in a database that a team shares."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from forgetting import SECRETS, all_but, fill, holding, new_store
from postgres_server import Server

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import SessionNotFound, StoreError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.conformance import contents
from nbdurable.stores.duckdb import place
from nbdurable.stores.duckdb.schema import TABLES
from nbdurable.stores.forgetting import forget
from nbdurable.stores.jsonl import RecordingStore
from nbdurable.stores.postgres import PostgresStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_store(tmp_path / "files")


# -- the command -----------------------------------------------------------------------------------


class TestCommand:
    def test_it_tells_what_is_gone_and_what_still_holds_it(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["export", "secret", str(path.parent / "t.jsonl"), "--store", str(path)]) == 0

        assert main(["forget", "secret", "--store", str(path), "--dry-run"]) == 0
        assert main(["forget", "secret", "--store", str(path)]) == 0

        lines = capsys.readouterr().out.splitlines()[1:]
        assert "session 'secret' would be forgotten in" in lines[0]
        [done] = [line for line in lines if line.startswith("session 'secret' is forgotten in")]
        assert "1 file or image" in done and "4 runs" in done
        assert f"its text is still in {path.parent}/t.jsonl" in lines
        assert lines[-1].startswith("not looked at: copies made elsewhere")

    def test_an_unknown_session_names_near_ones(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["forget", "sekret", "--store", str(path)]) == 1

        error = capsys.readouterr().err
        assert error.startswith("nbdurable: session 'sekret' is not in store")
        assert "did you mean 'secret'" in error

    def test_a_store_is_opened_once(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        opened: list[str] = []
        attach = place.attach_file

        def counted(connection: duckdb.DuckDBPyConnection, *given: str) -> None:
            opened.append(given[0])
            attach(connection, *given)

        monkeypatch.setattr(place, "attach_file", counted)

        assert main(["forget", "secret", "--store", str(path), "--dry-run"]) == 0

        assert opened == [str(path)]

    def test_it_asks_for_a_session(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match="2"):
            main(["forget"])

        assert "usage: nbdurable forget" in capsys.readouterr().err


# -- recordings ------------------------------------------------------------------------------------


@pytest.fixture
def recording(path: Path) -> Path:
    with nb.connect(path) as library:
        return library.export(path.parent.parent / "all.jsonl")


# B37
def test_a_recording_is_rewritten_without_the_session(recording: Path) -> None:
    expected = all_but(RecordingStore(recording), "secret")

    would = forget(recording, "secret", dry_run=True)
    told = forget(recording, "secret")

    assert holding([recording]) == []
    assert contents(RecordingStore(recording)) == expected
    assert would.removed == told.removed
    assert (told.removed["blobs"], told.shared_blobs) == (1, 1)
    assert [file.name for file in recording.parent.iterdir() if file.name.startswith(".")] == []


def test_a_damaged_recording_is_left_as_it_is(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-500])
    before = recording.read_bytes()

    with pytest.raises(StoreError, match=r"is no store: line \d+ of"):
        forget(recording, "secret")
    with pytest.raises(StoreError, match=r"is no store"):
        forget(recording, "other")

    assert recording.read_bytes() == before


def test_an_unknown_session_of_a_recording_is_refused(recording: Path) -> None:
    with pytest.raises(SessionNotFound, match=r"is not in recording .* \(3 sessions\); nothing"):
        forget(recording, "other")


# -- a database ------------------------------------------------------------------------------------


@pytest.fixture
def address(postgres: Server) -> str:
    url = postgres.emptied()
    store = PostgresStore(url)
    fill(store)
    store.close()
    return url


# B48 B61
@pytest.mark.postgres
def test_a_database_has_no_row_of_the_session_and_all_others(
    address: str, postgres: Server
) -> None:
    store = PostgresStore(address)
    with nb.open("secret", store=store, model=ScriptedModel()) as chat:
        chat.fork("fork", at=1).close()
    expected = all_but(store, "secret")

    would = forget(address, "secret", dry_run=True)
    assert "secret" in contents(store)
    told = forget(address, "secret")

    fork = expected.pop("fork")
    left = contents(store)
    assert left.pop("fork")["entries"] == fork["entries"]  # type: ignore[index]
    assert left == expected
    assert store.load_session("fork").parent_session_id is None
    assert would.removed == told.removed
    assert (told.removed["blobs"], told.shared_blobs, told.copies) == (1, 1, {"fork": 1})
    texts = [str(postgres.sql(f"select t::text from nbd.{table} t", address)) for table in TABLES]
    assert not any(word in text for text in texts for word in ("violet", SECRETS[1].hex()))
    assert "VACUUM FULL" in str(told) and "password" not in str(told)
    store.close()


# B8 B11
@pytest.mark.postgres
def test_a_session_that_was_forgotten_in_a_database_takes_no_more_entries(address: str) -> None:
    with nb.open("secret", store=address, model=ScriptedModel()) as chat:
        forget(address, "secret")

        with pytest.raises(SessionNotFound, match="session 'secret' is not in store"):
            chat.append(nb.user("More."))

    with pytest.raises(SessionNotFound, match="session 'secret' is not in store"):
        forget(address, "secret")
