"""The command line: what it prints, where errors go, and the code it ends with."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbdurable.cli import main
from nbdurable.stored import SessionRecord, StoredEntry

pytestmark = pytest.mark.usefixtures("own_folder")
stores = pytest.importorskip("nbdurable.stores")
ROOT = Path(__file__).parent.parent


def entry(n: int, parent: int | None, role: str, preview: str) -> StoredEntry:
    return StoredEntry(
        id=f"01900000-0000-7000-8000-{n:012d}",
        session_id="support-42",
        parent_id=None if parent is None else f"01900000-0000-7000-8000-{parent:012d}",
        kind="message",
        payload="{}",
        created_at=1_764_000_000_000_000,
        role=role,
        preview=preview,
        cost_usd=0.5 if role == "assistant" else None,
        model="openai/m" if role == "assistant" else None,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a session of four entries, two branches, its leaf moved to #2."""
    path = tmp_path / "nbdurable.duckdb"
    store = stores.open_store(path)
    entries = [
        entry(1, None, "user", "The \tcustomer\x1b[31m asked"),
        entry(2, 1, "assistant", "Shipped."),
        entry(3, 2, "user", "Draft a reply."),
        entry(4, 2, "user", "Draft [bold]another."),
    ]
    store.create_session(SessionRecord(id="support-42", created_at=0), entries)
    store.create_session(SessionRecord(id="empty", created_at=0))
    store.move("support-42", entries[1].id, 0)
    stores.release_store(store)
    return path


class TestFiles:
    # B37
    def test_a_session_goes_to_a_file_and_into_another_store(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["export", "support-42", "talk.jsonl"]) == 0
        assert main(["import", "talk.jsonl", "--store", "other.duckdb"]) == 0
        told = capsys.readouterr().out
        assert main(["ls", "other.duckdb"]) == 0

        assert "session 'support-42' is in talk.jsonl\n" in told
        assert "1 session added; 4 new entries" in told
        assert capsys.readouterr().out.startswith("support-42\t4\t2")

    def test_a_recording_is_listed_and_shown_like_a_store(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["export", "support-42", "talk.jsonl", "--store", str(path)])

        assert main(["show", "talk.jsonl", "support-42"]) == 0

        assert "Shipped." in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["export", "support-43", "a.jsonl"], "did you mean 'support-42'?"),
            (["export", "support-42", "a.txt"], "suffix '.txt' is of no export"),
            (["export", "support-42", "a.jsonl", "--format", "x"], "format 'x' is of no export"),
            (["export", "support-42", "nbdurable.duckdb", "--format", "jsonl"], "is no export of"),
            (["import", "gone.jsonl"], "file 'gone.jsonl' is not there"),
            (["import", "nbdurable.duckdb"], "is of no format that is known"),
        ],
    )
    def test_what_cannot_be_done_is_one_line(
        self, path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
    ) -> None:
        assert main(arguments) == 1

        error = capsys.readouterr().err
        assert error.startswith("nbdurable: ") and error.count("\n") == 1
        assert told in error

    def test_a_refused_session_is_told_by_the_exit_code(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["export", "support-42", "talk.jsonl"])
        other = stores.open_store("other.duckdb")
        changed = entry(1, None, "user", "Another text")._replace(payload='{"v":1}')
        other.create_session(SessionRecord(id="support-42", created_at=0), [changed])
        stores.release_store(other)

        assert main(["import", "talk.jsonl", "--store", "other.duckdb"]) == 1

        assert "is here with another content" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])

    assert re.match(r"nbdurable (\d+\.|from source)", capsys.readouterr().out)


class TestList:
    def test_a_pipe_gets_tab_separated_lines(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["ls", str(path)]) == 0

        lines = capsys.readouterr().out.split("\n")
        row = next(line for line in lines if line.startswith("support-42")).split("\t")
        assert row[1:4] == ["4", "2", "0.500000"]
        assert row[5:] == ["openai/m", "The customer␛[31m asked"]
        assert len(lines) == 3

    def test_a_terminal_gets_a_table(self, path: Path) -> None:
        text = in_terminal("ls", str(path))

        assert "session" in text and "branches" in text
        assert "support-42" in text and "$0.5000" in text

    def test_a_narrow_terminal_gets_fewer_columns_and_whole_ids(self, path: Path) -> None:
        rows = in_terminal("ls", str(path), columns=60).splitlines()

        row = next(row for row in rows if "support-42" in row)
        assert re.search(r"^support-42 +4 +\d{4}-\d\d-\d\d \d\d:\d\d ", row)
        assert "The customer" in row and "openai" not in row

    @pytest.mark.parametrize(("columns", "begins"), [(24, "The custome…"), (12, "")])
    def test_the_narrowest_terminal_gets_whole_ids_before_all_else(
        self, path: Path, columns: int, begins: str
    ) -> None:
        rows = in_terminal("ls", str(path), columns=columns).splitlines()

        assert f"support-42  {begins}".strip() in [row.strip() for row in rows]

    def test_the_store_of_this_folder_is_the_default(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["ls"]) == 0

        assert "support-42" in capsys.readouterr().out

    # B1
    def test_the_variable_names_the_store(
        self,
        path: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        path.rename(tmp_path / "other.duckdb")
        monkeypatch.setenv("NBDURABLE_STORE", "other.duckdb")

        assert main(["ls"]) == 0

        assert "support-42" in capsys.readouterr().out

    def test_a_store_that_is_not_there_is_not_created(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["ls", "gone.duckdb"]) == 1

        captured = capsys.readouterr()
        assert captured.err == (
            "nbdurable: store 'gone.duckdb' is not there; "
            "give the path of a store, or set NBDURABLE_STORE\n"
        )
        assert captured.out == "" and not list(tmp_path.rglob("gone*"))

    # B63
    def test_a_file_of_another_kind_is_one_line_without_a_traceback(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "notes.txt").write_text("no store " * 1_000)

        assert main(["ls", "notes.txt"]) == 1

        error = capsys.readouterr().err
        assert error.startswith("nbdurable: ") and error.count("\n") == 1
        assert "notes.txt" in error

    def test_a_reader_that_leaves_early_is_no_error(self, path: Path) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "nbdurable.cli", "ls", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        assert child.stdout is not None
        child.stdout.close()

        _, error = child.communicate()

        assert (child.returncode, error) == (0, b"")


class TestShow:
    # B3
    def test_a_session_is_shown_as_a_tree_with_its_position(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["show", str(path), "support-42"]) == 0

        lines = capsys.readouterr().out.split("\n")
        assert lines[0] == "support-42 · 4 entries · 2 branches · leaf #2 · $0.5000"
        assert lines[2].startswith("#2 ◆ assistant Shipped.")
        assert lines[3].startswith("#3 │ ○ user      Draft a reply.")
        assert lines[4].startswith("#4 ○ user      Draft [bold]another.")

    @pytest.mark.parametrize("columns", ["72", "200"])
    def test_ids_are_shown_when_asked_for(
        self,
        path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        columns: str,
    ) -> None:
        monkeypatch.setenv("COLUMNS", columns)

        assert main(["show", "support-42", "--ids"]) == 0

        assert "01900000-0000-7000-8000-000000000004" in capsys.readouterr().out

    def test_an_unknown_session_names_near_ones(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["show", "suport-42"]) == 1

        error = capsys.readouterr().err
        assert error.startswith("nbdurable: session 'suport-42' is not in store ")
        assert error.endswith("(2 sessions); did you mean 'support-42'?\n")


class TestArguments:
    def test_help_shows_examples_and_exit_codes(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match="0"):
            main(["--help"])

        text = capsys.readouterr().out
        assert "nbdurable show chats.duckdb support-42" in text
        assert "exit codes: 0 done, 1" in text

    @pytest.mark.parametrize("argv", [[], ["show"], ["loud"], ["local"]])
    def test_wrong_arguments_end_with_2(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit, match="2"):
            main(argv)

        assert "usage: nbdurable" in capsys.readouterr().err


def in_terminal(*argv: str, columns: int = 120) -> str:
    """Run the command in a real pseudo-terminal and return what it wrote."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "nbdurable.cli", *argv]
    env = os.environ | {"COLUMNS": str(columns)}
    child = subprocess.Popen(command, stdout=slave, cwd=ROOT, env=env)
    os.close(slave)
    text = "".join(read_all(master))
    assert child.wait() == 0
    os.close(master)
    return text


def read_all(master: int) -> Iterator[str]:
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # how Linux says that the other side was closed
            return
        if not chunk:
            return
        yield chunk.decode()


@pytest.mark.local_model
@pytest.mark.timeout(240)
class TestDemo:
    # B2 B15 B22 B24
    def test_a_killed_conversation_goes_on_in_a_new_process(self, tmp_path: Path) -> None:
        path = tmp_path / "demo.duckdb"

        done = subprocess.run(
            [sys.executable, "-m", "nbdurable.cli", "demo", "--store", str(path)],
            capture_output=True,
            encoding="utf-8",
            cwd=ROOT,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )

        assert done.returncode == 0, done.stderr
        assert "kill -9" in done.stdout and "aborted" in done.stdout
        store = stores.open_store(path)
        entries = store.load_entries("demo")
        stores.release_store(store)
        assert [e.stop_reason for e in entries if e.role == "assistant"].count("aborted") == 1
        assert len(entries) == 7
