"""Commands given what they cannot use: one clear line, an exit code, and nothing changed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from damage import by_hand

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import ImportFormatError, StoreError
from nbdurable.formats.copying import copy
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "chats.duckdb"
    with nb.open("talk", store=path, model=ScriptedModel("One.")) as chat:
        chat.run("Hello.", show=None)
    return path


def files(folder: Path) -> dict[str, bytes | None]:
    return {
        str(file.relative_to(folder)): file.read_bytes() if file.is_file() else None
        for file in folder.rglob("*")
    }


# -- names -----------------------------------------------------------------------------------------


# B63
@pytest.mark.parametrize(
    "command",
    [
        "ls ''", "show '' talk", "check ''", "repair ''", "doctor ''", "backup '' to",
        "backup chats.duckdb ''", "export talk ''", "export talk a.md --store ''", "import ''",
        "import a.json --store ''", "copy '' b.duckdb", "copy chats.duckdb ''",
        "forget talk --store ''", "demo --store ''",
    ],
)  # fmt: skip
def test_an_empty_path_never_stands_for_the_default_store(
    path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.rename("nbdurable.duckdb")
    before = files(Path())

    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command))

    assert ended.value.code == 2
    assert "the path is empty; give one, or leave it out\n" in capsys.readouterr().err
    assert files(Path()) == before


# B63
def test_an_import_of_an_empty_path_is_not_one_of_the_working_folder(path: Path) -> None:
    with pytest.raises(StoreError, match="file '' has no name; give the path of what to import"):
        nb.load("", store=path)


@pytest.mark.parametrize("where", [":memory:", "postgresql://somewhere/x"])
def test_a_demo_needs_a_file_to_lose_a_process_of(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--store", where])

    assert "argument --store: this is no file; give the path of one" in capsys.readouterr().err


def test_a_store_shown_without_a_session_is_told_as_one(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(path.name)]) == 1

    assert capsys.readouterr().err == (
        "nbdurable: file 'chats.duckdb' was given alone; give a session of it too, "
        "see nbdurable ls\n"
    )


@pytest.mark.parametrize(
    ("wanted", "hint"), [("tank", "did you mean 'talk'?"), ("xyz", "it has 'talk'")]
)
def test_only_near_names_are_offered_as_what_was_meant(
    path: Path, wanted: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "chats.duckdb", wanted]) == 1

    assert capsys.readouterr().err.endswith(f"(1 session); {hint}\n")


def test_a_name_that_no_system_takes_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "x" * 300]) == 1

    error = capsys.readouterr().err
    assert error.startswith("nbdurable: file 'xxx") and len(error) < 200
    assert error.endswith("… cannot be used (File name too long); choose another path\n")


def test_an_ordinal_beyond_all_numbers_is_no_entry(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "talk", "a.md", "--store", str(path), "--at", "9" * 5_000]) == 1

    assert "is not in session 'talk' (2 entries)" in capsys.readouterr().err


def test_a_blank_model_is_a_line_of_the_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", " "]) == 1

    assert "wrong: model: model name ' ' is blank" in capsys.readouterr().out


# -- files of another kind -------------------------------------------------------------------------


# B63
@pytest.mark.parametrize(
    "command", ["ls pipe{}", "check pipe{}", "repair pipe{}", "doctor pipe{}", "copy pipe{} b"]
)
@pytest.mark.parametrize("suffix", [".duckdb", ".jsonl"])
def test_a_pipe_is_not_waited_for(
    command: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(f"pipe{suffix}")

    assert main(shlex.split(command.format(suffix))) == 1

    told = capsys.readouterr()
    assert "is no regular file; choose another path\n" in told.out + told.err


def spoil(path: Path) -> None:
    """Cut a store in its middle, as a copy that was not finished."""
    os.truncate(path, path.stat().st_size // 2)


# B66
def test_a_repair_that_mends_nothing_of_a_damaged_store_is_no_success(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand(path, "update nbd.entries set payload = '{}' where n = 1")

    assert main(["repair", str(path)]) == 1

    assert "has damage that cannot be mended; go back to a backup (entry" in capsys.readouterr().out


# B63
def test_a_backup_names_the_file_that_cannot_be_read(path: Path) -> None:
    with nb.open("talk", store=path, model=ScriptedModel()) as chat:
        chat.append(*(nb.user(os.urandom(6_000).hex()) for _ in range(60)))
    os.truncate(path, path.stat().st_size - 600_000)
    store = DuckDBStore(path)
    before = files(path.parent)

    with pytest.raises(StoreError, match=r"^store '.*/chats\.duckdb' is damaged"):
        store.backup("backup.duckdb")

    store.close()
    assert "backup.duckdb" not in before and not Path("backup.duckdb").exists()


# -- half a change ---------------------------------------------------------------------------------


# B1
@pytest.mark.parametrize("name", ["notes.txt", "empty.jsonl", "cut.jsonl"])
def test_what_cannot_be_imported_makes_no_store(path: Path, name: str) -> None:
    with nb.open("talk", store=path, model=ScriptedModel()) as chat:
        chat.export("cut.jsonl")
    os.truncate("cut.jsonl", 900)
    Path("notes.txt").write_text("To do: everything.")
    Path("empty.jsonl").touch()

    with pytest.raises(ImportFormatError):
        nb.load(name, store="new.duckdb")

    assert not Path("new.duckdb").exists()


# B1
@pytest.mark.parametrize("target", ["new.duckdb", "new.jsonl"])
def test_a_store_that_cannot_be_read_makes_no_copy(path: Path, target: str) -> None:
    spoil(path)

    with pytest.raises(StoreError, match=r"chats\.duckdb' is damaged"):
        copy(path, target)

    assert not Path(target).exists()


# -- where the lines go ----------------------------------------------------------------------------


def in_shell(path: Path, script: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which ``{}`` is a command of ours, on a store."""
    code = f"import sys; from nbdurable.cli import main; sys.exit(main({shlex.split(command)!r}))"
    return subprocess.run(
        ["bash", "-c", script.replace("{}", shlex.join([sys.executable, "-c", code]))],
        capture_output=True,
        text=True,
        env={**os.environ, "NBDURABLE_STORE": str(path)},
    )


def test_a_warning_is_a_line_without_a_place_in_the_code(path: Path) -> None:
    done = in_shell(path, "{}", "export talk a --format dpo")

    assert done.returncode == 0
    assert done.stderr.startswith("nbdurable: session 'talk' has no answer that is preferred")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["show talk", "show nope", "doctor"])
def test_a_closed_output_and_one_that_nobody_reads_are_no_traceback(
    path: Path, command: str
) -> None:
    script = "{} >&-; echo $?; set -o pipefail; {} | true; echo $?"

    done = in_shell(path, script, command)

    assert "Traceback" not in done.stderr
    assert done.stdout.split() == [str(int(command == "show nope"))] * 2


INTERRUPTED = """
import signal, sys
from nbdurable.cli import main
from nbdurable.stores.duckdb import checking

counts = checking.counts

def asked(cursor):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None  # as DuckDB does
    return counts(cursor)

checking.counts = asked
sys.exit(main(["check"]))
"""


def test_an_interrupt_in_the_middle_of_a_query_ends_with_130_and_no_traceback(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        env={**os.environ, "NBDURABLE_STORE": str(path)},
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (130, "")


def test_a_command_that_its_shell_put_behind_is_not_interrupted(path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", 'trap \'\' INT; exec "$0" -c "$1"', sys.executable, INTERRUPTED],
        capture_output=True,
        text=True,
        env={**os.environ, "NBDURABLE_STORE": str(path)},
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
