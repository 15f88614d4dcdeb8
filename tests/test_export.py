"""Session.export: where it writes, what it refuses, one path, and what a failure leaves."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from recorded import Recorded, busy, everything, lines, look

import nbdurable as nb
from nbdurable.errors import EntryNotFound, ImportFormatError, SessionClosed, StoreError
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores import Store
from nbdurable.stores.jsonl import section_of, writer
from nbdurable.stores.memory import MemoryStore


@pytest.fixture
def chat() -> nb.Session:
    return nb.open("s", store=MemoryStore(), model=ScriptedModel("one", "two", "three"))


# -- the file ------------------------------------------------------------------------------------


# B37
def test_export_returns_the_path_it_wrote(chat: nb.Session) -> None:
    chat.append("q")

    assert chat.export("a.jsonl") == Path("a.jsonl")
    assert [line["type"] for line in lines(Path("a.jsonl"))] == [
        "header",
        "session",
        "entry",
        "end",
    ]


# B37
def test_an_own_export_is_overwritten_as_a_whole(chat: nb.Session) -> None:
    chat.export("a.jsonl")
    chat.append("q")

    chat.export("a.jsonl")

    assert len(lines(Path("a.jsonl"), "entry")) == 1
    assert os.listdir() == ["a.jsonl"]


# B37
@pytest.mark.parametrize("name", ["a.duckdb", "a.jsonl", "a folder"])
def test_a_file_of_something_else_is_not_overwritten(chat: nb.Session, name: str) -> None:
    path = Path(name)
    if name == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b'{"messages":[]}\n')

    with pytest.raises(StoreError, match=rf"file '{name}' is there and is no export of format"):
        chat.export(path, "jsonl")

    assert path.is_dir() or path.read_bytes() == b'{"messages":[]}\n'


# B37
def test_an_empty_file_is_filled(chat: nb.Session) -> None:
    Path("a.jsonl").touch()

    chat.export("a.jsonl")

    assert lines(Path("a.jsonl"), "session")


# B63
def test_a_folder_that_is_not_there_is_named(chat: nb.Session) -> None:
    with pytest.raises(StoreError, match=r"file 'gone/a\.jsonl' cannot be written: No such file"):
        chat.export("gone/a.jsonl")


# B63
def test_a_failure_leaves_the_former_file_and_nothing_beside_it(
    chat: nb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.export("a.jsonl")
    before = Path("a.jsonl").read_bytes()
    chat.append("q")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer.os, "fsync", full)
    with pytest.raises(StoreError, match=r"'a\.jsonl' cannot be written: No space left"):
        chat.export("a.jsonl")

    assert Path("a.jsonl").read_bytes() == before
    assert os.listdir() == ["a.jsonl"]


# B63
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_redact_raises_passes_on_and_leaves_no_file(
    chat: nb.Session, error: type[BaseException]
) -> None:
    chat.append("q")

    def fail(text: str) -> str:
        raise error

    with pytest.raises(error):
        chat.export("a.jsonl", redact=fail)

    assert os.listdir() == []


# B63
def test_a_link_and_the_modes_of_files_are_kept(chat: nb.Session) -> None:
    chat.export("real.jsonl")
    fresh = stat.S_IMODE(Path("real.jsonl").stat().st_mode)
    Path("plain").touch()
    Path("real.jsonl").chmod(0o600)
    Path("a.jsonl").symlink_to("real.jsonl")

    chat.export("a.jsonl")

    assert Path("a.jsonl").is_symlink()
    assert stat.S_IMODE(Path("real.jsonl").stat().st_mode) == 0o600
    assert fresh == stat.S_IMODE(Path("plain").stat().st_mode)


# -- arguments -----------------------------------------------------------------------------------


# B37
def test_a_format_goes_by_name_or_by_suffix(chat: nb.Session) -> None:
    chat.export("a.txt", "jsonl")

    assert Path("a.txt").read_bytes() == chat.export("B.JSONL").read_bytes()


@pytest.mark.parametrize(("name", "format"), [("a.docx", None), ("a.jsonl", "dpoo")])
def test_an_unknown_format_is_refused_with_those_that_are_known(
    chat: nb.Session, name: str, format: str | None
) -> None:
    with pytest.raises(
        ImportFormatError, match=r"is of no export that is known; .* one of .*'jsonl'"
    ):
        chat.export(name, format)

    assert os.listdir() == []


def test_what_cannot_be_called_is_no_redact(chat: nb.Session) -> None:
    with pytest.raises(TypeError, match="redact is 'secret'; give a function"):
        chat.export("a.jsonl", redact="secret")  # type: ignore[arg-type]


# B54
def test_a_closed_handle_exports_nothing(chat: nb.Session) -> None:
    chat.close()

    with pytest.raises(SessionClosed, match="was closed"):
        chat.export("a.jsonl")


# B12
def test_an_unknown_entry_is_refused(chat: nb.Session) -> None:
    with pytest.raises(EntryNotFound, match="#7 is not in session"):
        chat.export("a.jsonl", at=7)

    assert os.listdir() == []


# B18
def test_a_session_is_exported_while_a_run_goes_on(chat: nb.Session) -> None:
    seen: list[int] = []

    def peek() -> str:
        """Export."""
        seen.append(len(lines(chat.export("a.jsonl"), "entry")))
        return "done"

    chat.run("q", model=ScriptedModel(calls(("peek", {})), "ok"), tools=[peek], show=None)

    assert seen == [2]
    other = MemoryStore()
    nb.load("a.jsonl", store=other)
    with nb.open("s", store=other, model=ScriptedModel("after")) as again:
        assert [run.outcome for run in again.runs()] == ["interrupted"]
        assert again.run(show=None).text == "after"


# -- one path ------------------------------------------------------------------------------------


# B48
def test_one_path_is_exported_with_what_belongs_to_it(store: Store) -> None:
    chat = busy(store)
    first = chat.runs()[0]
    chat.export("a.jsonl", at=first)
    other = MemoryStore()

    nb.load("a.jsonl", store=other)
    again = nb.open("s", store=other, model=ScriptedModel("ok"), tools=[look])

    path = chat.path(first)
    assert [e.id for e in again.entries()] == [e.id for e in path]
    assert [e.n for e in again.entries()] == [*range(1, len(path) + 1)]
    assert again.leaf_id == first.leaf_id
    assert [run.run_id for run in again.runs()] == [first.run_id]
    assert again.messages() == chat.messages()
    assert len(other.load_annotations("s")) == 3
    assert lines(Path("a.jsonl"), "blob") == []


# B3
def test_a_path_to_a_detached_answer_is_resumed_at_it(chat: nb.Session) -> None:
    chat.run("q", show=None)
    aside = chat.run("aside", move=False, show=None)

    chat.export("a.jsonl", at=aside)

    other = MemoryStore()
    nb.load("a.jsonl", store=other)
    again = nb.open("s", store=other, model=ScriptedModel("ok"))
    assert again.leaf_id == aside.leaf_id
    assert [e.text for e in again.entries(nb.MessageEntry)] == ["q", "one", "aside", "two"]


# B22
def test_a_run_that_the_path_leaves_before_its_end_did_not_end_there(chat: nb.Session) -> None:
    chat.run("q", show=None)

    chat.export("a.jsonl", at=1)

    other = MemoryStore()
    nb.load("a.jsonl", store=other)
    again = nb.open("s", store=other, model=ScriptedModel("once more"))
    assert [run.outcome for run in again.runs()] == ["interrupted"]
    assert again.run(show=None).text == "once more"


# B37
def test_other_branches_are_not_in_a_path(chat: nb.Session) -> None:
    chat.run("q", show=None)
    chat.append(Recorded(text="secret of the other branch"))
    chat.branch(1)
    chat.append(Recorded(text="mine"))

    path = chat.export("a.jsonl", at=nb.LEAF)

    assert b"secret of the other" not in path.read_bytes()
    assert len(lines(path, "entry")) == 2


# B2
def test_a_whole_session_imports_over_its_path(chat: nb.Session) -> None:
    chat.run("q", show=None)
    chat.export("part.jsonl", at=2)
    chat.run("r", show=None)
    chat.export("whole.jsonl")
    other = MemoryStore()
    nb.load("part.jsonl", store=other)

    report = nb.load("whole.jsonl", store=other)

    assert [session.outcome for session in report.sessions] == ["grown"]
    assert everything(other)["s"].entries == everything(chat.image.store)["s"].entries
    assert section_of(other, "s").beside.ends == section_of(chat.image.store, "s").beside.ends
