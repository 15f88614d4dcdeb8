"""`nbdurable doctor` says what it found, what to do, and by its exit code whether all is well."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from damage import killed_store, rot, tear
from sharing import child
from test_cli import in_terminal

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.repair import RepairNotice
from nbdurable.testing import FakeOpenAI


@pytest.fixture(autouse=True)
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for the local model's weights, 98 MB to be hashed, where there are none."""
    monkeypatch.setenv("NBDURABLE_GGUF", str(tmp_path / "weights"))


@pytest.fixture
def path() -> Path:
    with nb.open("s", store="nbdurable.duckdb", model=ScriptedModel("A.")) as chat:
        chat.run("Q?", show=None)
    return Path("nbdurable.duckdb").absolute()


def looked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str]]:
    """Return the exit code and the lines by what they are about."""
    code = main(["doctor", *arguments])
    lines = [line.split(": ", 2) for line in capsys.readouterr().out.splitlines()]
    return code, {what: f"{state}: {told}" for state, what, told in lines}


def test_a_sound_store_and_versions_are_told(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = looked(capsys)

    assert code == 0
    assert lines["store"].startswith(f"ok: {path}, ")
    assert lines["store"].endswith(" MB, is sound, 1 session, 2 entries")
    assert lines["disk"].startswith("ok: ") and "GB free" in lines["disk"]
    for name in ("python", "duckdb", "litellm", "anywidget", "ipykernel", "jupyterlab"):
        assert lines[name].startswith("ok: ") and any(map(str.isdigit, lines[name]))


def test_a_terminal_gets_marks(path: Path) -> None:
    text = in_terminal("doctor")

    assert "✓ " in text and "python: 3." in text and "ok: " not in text


def test_no_store_yet_is_no_fault_and_a_named_one_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert looked(capsys)[0] == 0
    code, lines = looked(capsys, "gone.duckdb")

    assert code == 1
    assert lines["store"].endswith("gone.duckdb is not there; give the path of a store")
    assert os.listdir() == []


# B66
@pytest.mark.parametrize("harm", [tear, rot])
def test_damage_ends_with_1_and_says_what_helps(
    path: Path, capsys: pytest.CaptureFixture[str], harm: object
) -> None:
    with nb.open("s", store=path, model=ScriptedModel("A.")) as chat:
        chat.append(nb.user("Q?", nb.file(os.urandom(400_000), name="f.bin")))
    harm(path)  # type: ignore[operator]

    code, lines = looked(capsys, str(path))

    assert code == 1
    assert lines["store"].startswith("wrong: ") and "is damaged" in lines["store"]


# B24 B66
def test_what_stands_beside_a_store_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.duckdb"
    killed_store(path)
    shutil.copytree(tmp_path, tmp_path / "copy", ignore=lambda *_: ["copy", "here", "data"])
    spool = Path(f"{path}.spool")
    spool.mkdir()
    (spool / "1-dead.jsonl").write_text("{}\n")
    (spool / "2-dead.unread").write_text("?")
    Path(f"{path}.damaged-20250101T000000Z").mkdir()

    code, lines = looked(capsys, str(path))

    assert code == 0
    assert lines["log"].startswith("ok: 0.0") and "copy both files or none" in lines["log"]
    assert lines["answers in flight"] == (
        "note: 1 spool of processes that ended; open the store, which recovers them"
    )
    assert "2-dead.unread could not be read in full" in lines["spool"]
    assert lines["repairs"].startswith("note: 1 copy of damaged files that were repaired; remove")
    assert (spool / "1-dead.jsonl").exists()


# B68
def test_who_holds_the_store_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with child(HOLDER, path) as other:
        code, lines = looked(capsys, str(path))

    assert code == 0
    assert f"in use by PID {other.process.pid} on " in lines["store"]
    assert lines["open in"].startswith(f"ok: PID {other.process.pid} (python")


HOLDER = """
store = DuckDBStore(path, exclusive=True)
say("ready")
told()
"""


# B69
def test_keys_are_told_by_name_alone(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("NBDURABLE_MODEL", "openai/secret-name")

    main(["doctor"])

    told = capsys.readouterr().out
    assert "set: NBDURABLE_GGUF, NBDURABLE_MODEL, OPENAI_API_KEY" in told
    assert "very-secret" not in told and "secret-name" not in told


def test_a_library_that_is_missing_or_old_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import PackageNotFoundError

    from nbdurable.commands import doctor

    found = {"duckdb": "1.4.0", "jupyterlab": None, "anywidget": None}

    def version(name: str) -> str:
        told = found.get(name, "9.9")
        if told is None:
            raise PackageNotFoundError
        return told

    monkeypatch.setattr(doctor, "version", version)

    code, lines = looked(capsys)

    assert code == 1
    assert lines["duckdb"] == "wrong: 1.4.0; pip install 'duckdb>=2.0.1,<3'"
    assert lines["anywidget"] == "wrong: is not installed; pip install anywidget"
    assert lines["jupyterlab"].startswith("note: is not here; pip install jupyterlab")


def test_weights_that_are_cut_are_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbdurable.models import weights

    monkeypatch.delenv("NBDURABLE_GGUF")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(b"GGUF")
    monkeypatch.setattr(weights, "weights_path", lambda: cut)

    code, lines = looked(capsys)

    assert code == 1
    assert lines["local model"].endswith("98362432 bytes, found 4; nbdurable local fetch")


# B7 B15
def test_a_model_is_asked_for_one_word(
    fake: FakeOpenAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_API_BASE", fake.base_url)

    code, lines = looked(capsys, "--model", "openai/m")
    assert code == 0 and lines["model"].startswith("ok: 'openai/m' answers, in ")

    code, lines = looked(capsys, "--model", "nobody-knows-it")
    assert code == 1 and lines["model"].startswith("wrong: ")


# B66
def test_a_store_that_was_repaired_is_sound(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tear(path)
    with pytest.warns(RepairNotice):
        DuckDBStore(path).close()

    code, lines = looked(capsys)

    assert code == 0 and "is sound" in lines["store"] and lines["repairs"].startswith("note: 1 ")
