"""What is wrong with a store is found and named, and nothing is changed (B66)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import by_hand, files_in, killed_store, rot, tear

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import StoreError, StoreTooNew
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stored import StoredEntry, digest_of, is_intact
from nbdurable.stores.duckdb.checking import check


def add(a: int, b: int) -> int:
    "Add."
    return a + b


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two sessions: tools, a branch, a file, a label, a compaction, a fork."""
    folder = tmp_path / "files"
    folder.mkdir()
    path = folder / "chats.duckdb"
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3", "Again 3.", "A summary.")
    with nb.open("s", store=path, model=model, tools=[add]) as chat:
        run = chat.run("1 + 2?", nb.file(bytes(50_000), name="f.bin"), show=None)
        chat.label(run, "best")
        chat.branch(1)
        chat.run("Sure?", show=None)
        chat.fork("copy").close()
        chat.compact()
    return path


def found(path: Path) -> list[str]:
    """Return the findings of a check, which changes nothing."""
    before = files_in(path.parent)

    report = check(path)

    assert files_in(path.parent) == before
    return [str(finding) for finding in report.findings if finding.is_damage]


# B66
def test_a_store_that_was_used_in_every_way_is_sound(path: Path) -> None:
    report = check(path)

    assert report.is_sound
    assert report.findings == ()
    assert report.counts["sessions"] == 2
    assert report.counts["blobs"] == 1


# B66
@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "update nbd.entries set preview = 'x' where n = 2 and session_id = 's'",
            "does not match its digest",
        ),
        ("update nbd.blobs set data = 'x'::blob", "blob '.*' does not match its hash"),
        ("update nbd.contexts set system = 'x'", "context '.*' does not match its digest"),
        ("delete from nbd.entries where n = 2", "ordinals with holes, repeats or out of order"),
        (
            "update nbd.entries set seq = 1 where n = 2 and session_id = 's'",
            r"numbers of entries and moves run from 1 to \d+ with \d+ different ones",
        ),
        ("delete from nbd.runs where counter = 1", "counters of runs run from 2 to"),
        ("delete from nbd.runs where counter = 1", "run '.*' has ended but never started"),
        ("insert into nbd.entries from nbd.entries limit 1", "entry id '.*' is there more than"),
        ("delete from nbd.entries where n = 1", "is an orphan: its parent is not in its session"),
        ("update nbd.entries set depth = 9 where n = 3", "has another depth than its path"),
        ("delete from nbd.sessions where id = 'copy'", "session 'copy' is not there but has"),
        ("insert into nbd.sessions from nbd.sessions limit 1", "session id '.*' is there more"),
        ("delete from nbd.blobs", "blob '.*' is not there but an entry needs it"),
        ("delete from nbd.contexts", r"runs? '.*' names a context that is not there"),
        ("delete from nbd.entries where n = 1", "has input that is not there"),
        ("drop view usage", "view usage is missing"),
        ("alter table nbd.moves add column x int", "table nbd.moves is missing or has other"),
        (
            "update nbd.moves set entry_id = uuid()",
            "session 's' has a move to an entry that is not there",
        ),
        (
            "update nbd.entries set parent_id = (select id from nbd.entries "
            "where n = 3 and session_id = 's') where n = 2 and session_id = 's'",
            "is in a ring of parents",
        ),
    ],
)
def test_what_is_wrong_is_named(path: Path, statement: str, says: str) -> None:
    by_hand(path, statement)

    lines = "\n".join(found(path))

    assert re.search(says, lines), lines


# B66
def test_a_call_that_a_kill_left_open_is_a_note_and_no_damage(path: Path) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3")
    with nb.open("open", store=path, model=model, tools=[add], max_steps=1) as chat:
        chat.run("1 + 2?", show=None)
        call = next(entry for entry in chat.entries() if entry.message.tool_calls)
        chat.branch(call)
        chat.append(nb.user("Never mind."))
    by_hand(
        path,
        "delete from nbd.entries where session_id = 'open' and role = 'tool'",
        "update nbd.entries set n = 3 where session_id = 'open' and n = 4",
    )

    notes = [str(finding) for finding in check(path).findings if not finding.is_damage]

    assert notes == [f"entry {call.id!r} calls a tool and has no result"]


# B66
def test_many_alike_are_counted(path: Path) -> None:
    by_hand(path, "update nbd.entries set preview = 'x'")

    (line,) = found(path)

    assert line.startswith("entry '")
    assert line.endswith(" more) does not match its digest")


# B66
@pytest.mark.parametrize("spoil", [tear, rot])
def test_a_file_that_cannot_be_read_is_named(path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(path)
    before = files_in(path.parent)

    with pytest.raises(
        StoreError, match=r"is damaged \(Corrupt .*\); nbdurable repair copies it aside and mends"
    ):
        check(path)

    assert files_in(path.parent) == before


# B62
def test_a_newer_schema_is_refused(path: Path) -> None:
    by_hand(path, "update nbd.meta set value = '9' where key = 'schema_version'")

    with pytest.raises(StoreTooNew, match="has schema version 9"):
        check(path)


# -- the command line ----------------------------------------------------------------------------


# B66
def test_the_command_says_what_it_found_by_its_code_too(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(path)]) == 0
    assert "chats.duckdb is sound: sessions 2, entries " in capsys.readouterr().out

    by_hand(path, "delete from nbd.blobs")

    assert main(["check", str(path)]) == 1
    told = capsys.readouterr().out
    assert "damage: blob '" in told
    assert "chats.duckdb is damaged: sessions 2" in told


# B66
def test_the_command_repairs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chats.duckdb"
    killed_store(path)
    tear(path)

    assert main(["check", str(path)]) == 1
    assert main(["repair", str(path)]) == 0
    assert main(["repair", str(path)]) == 0
    assert main(["check", str(path)]) == 0

    told = capsys.readouterr()
    assert "nbdurable repair copies it aside and mends it" in told.err
    assert "was damaged (a checkpoint was cut in the block at byte 12288)" in told.out
    assert "has no damage that can be mended; see nbdurable check" in told.out


# B66
def test_the_command_names_what_it_cannot_repair(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rot(path)

    assert main(["repair", str(path)]) == 1

    assert "is damaged (" in capsys.readouterr().err


# B63
def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("check", "repair"):
        assert main([command, "no.duckdb"]) == 1
        assert "store 'no.duckdb' is not there; give the path" in capsys.readouterr().err


# B66
def test_a_digest_by_the_first_rule_holds_and_a_changed_entry_does_not() -> None:
    entry = StoredEntry("e", "s", None, "message", '{"v":1,"text":"\u00e4"}', 1, seq=1, n=1)
    first = hashlib.sha256(json.dumps(entry[:-1]).encode()).hexdigest()

    assert is_intact(entry._replace(digest=first))
    assert is_intact(entry._replace(digest=digest_of(entry)))
    assert not is_intact(entry._replace(digest=digest_of(entry), payload="{}"))
    assert not is_intact(entry._replace(digest=first, n=2))
