"""Copying stores: equal entries once, under a prefix with fresh ids, to and from recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from importing import DATA, talks
from recorded import any_section, bare, busy, everything

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import SessionNotFound, StoreError
from nbdurable.formats.copying import copy, fresh_id
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores import Store
from nbdurable.stores.jsonl import Section, section_of
from nbdurable.stores.memory import MemoryStore


def source() -> MemoryStore:
    store = MemoryStore()
    busy(store)
    return store


# B2
def test_a_copy_is_the_session_with_all_that_belongs_to_it(store: Store) -> None:
    here = source()

    report = copy(here, store)

    assert [(s.id, s.outcome, s.entries) for s in report.sessions] == [("s", "added", 15)]
    assert everything(store) == everything(here)


# B2
def test_copying_again_adds_nothing(store: Store) -> None:
    here = source()
    copy(here, store)
    before = everything(store)

    report = copy(here, store)

    assert [s.outcome for s in report.sessions] == ["unchanged"]
    assert everything(store) == before


# B11
def test_two_stores_that_both_went_on_are_merged(store: Store) -> None:
    here = MemoryStore()
    chat = nb.open("s", store=here, model=ScriptedModel("a", "b"))
    chat.run("q", show=None)
    copy(here, store)
    chat.run("theirs", show=None)
    mine = nb.open("s", store=store, model=ScriptedModel("c"))
    mine.run("mine", show=None)

    report = copy(here, store)

    assert report.entries == 2 and "went on here too" in str(report)
    again = nb.open("s", store=store, model="local")
    assert len(again.leaves()) == 2 and again.leaf_id == mine.leaf_id


# B48
def test_a_copy_under_a_prefix_is_another_session_with_the_same_view(store: Store) -> None:
    here = source()
    copy(here, store)

    report = copy(here, store, prefix="old/")
    again = copy(here, store, prefix="old/")

    assert [(s.id, s.entries) for s in report.sessions] == [("old/s", 15)]
    assert [s.outcome for s in again.sessions] == ["unchanged"]
    first, second = section_of(store, "s"), section_of(store, "old/s")
    assert not {e.id for e in first.entries} & {e.id for e in second.entries}
    one, other = (nb.open(id, store=store, model="local") for id in ("s", "old/s"))
    assert [m.text for m in one.messages()] == [m.text for m in other.messages()]
    assert one.path()[-1].n == other.path()[-1].n


# B48
@given(any_section())
def test_under_a_prefix_every_id_is_another_and_names_the_same(section: Section) -> None:
    here, there = MemoryStore(), MemoryStore()
    here.create_session(section.session, section.entries, beside=section.beside)

    copy(here, there, prefix="p-")

    before = bare(section_of(here, section.session.id))
    after = bare(section_of(there, "p-" + section.session.id))
    places = {entry.id: n for n, entry in enumerate(before.entries)}
    copied = {fresh_id(id, "p-"): n for id, n in places.items()}
    assert [copied[e.id] for e in after.entries] == list(range(len(places)))
    assert [e.parent_id and copied[e.parent_id] for e in after.entries] == [
        e.parent_id and places[e.parent_id] for e in before.entries
    ]
    assert [e.payload for e in after.entries] == [e.payload for e in before.entries]
    assert [m.entry_id and copied[m.entry_id] for m in after.beside.moves] == [
        m.entry_id and places[m.entry_id] for m in before.beside.moves
    ]
    assert [len(run.input_ids) for run in after.beside.runs] == [
        len(run.input_ids) for run in before.beside.runs
    ]


# B48
def test_a_fork_is_copied_as_the_fork_of_its_copy(store: Store) -> None:
    here = source()
    chat = nb.open("s", store=here, model=ScriptedModel("x"))
    chat.fork("child")

    copy(here, store, prefix="p/")

    record = store.load_session("p/child")
    ids = [entry.id for entry in store.load_entries("p/s")]
    assert record.parent_session_id == "p/s" and record.parent_entry_id in ids
    child = nb.open("p/child", store=store, model="local")
    assert child.path()[-1].text == chat.path()[-1].text


# B42 B48
def test_a_fork_without_its_source_is_gone_on_with(store: Store) -> None:
    here = MemoryStore()
    with nb.open("s", store=here, model=ScriptedModel("a")) as chat:
        chat.run("q", show=None)
        chat.fork("fork").close()

    copy(here, store, session_ids=["fork"])

    with nb.open("fork", store=store, model=ScriptedModel("again")) as fork:
        assert fork.rerun(show=None).text == "again"


# B61
def test_bytes_are_copied_once_and_read_back(store: Store) -> None:
    copy(source(), store)
    copy(source(), store, prefix="p/")

    for id in ("s", "p/s"):
        chat = nb.open(id, store=store, model="local")
        images = [b for e in chat.entries(nb.MessageEntry) for b in e.blocks if b.type == "image"]
        assert len(images[0].data) > 50_000


# B37
def test_recordings_are_copied_from_and_to(store: Store) -> None:
    here = source()
    copy(here, "a.jsonl")
    nb.open("other", store=store, model="local").append("q")

    copy(store, "a.jsonl")
    report = copy("a.jsonl", "b.duckdb")

    assert {(s.id, s.outcome) for s in report.sessions} == {("s", "added"), ("other", "added")}
    kept = nb.connect("b.duckdb")
    assert set(kept.sessions()["id"]) == {"s", "other"}
    kept.close()


# B6
def test_what_cannot_be_copied_is_refused_in_a_line() -> None:
    here = source()

    with pytest.raises(StoreError, match=r"store 'gone\.duckdb' is not there"):
        copy("gone.duckdb", here)
    with pytest.raises(StoreError, match="store ':memory:' is source and target; give another"):
        copy(here, here)
    with pytest.raises(SessionNotFound, match=r"session 'x' is not in store ':memory:' \(1 ses"):
        copy(here, MemoryStore(), session_ids=["x"])


# B59
def test_the_command_copies_and_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    nb.load(DATA / "claude_export.json", store="a.duckdb")

    assert main(["copy", "a.duckdb", "b.duckdb", "--prefix", "mine/"]) == 0
    assert main(["copy", "a.duckdb", "b.jsonl"]) == 0

    assert "3 sessions added; 10 new entries" in capsys.readouterr().out
    found = nb.connect("b.duckdb")
    assert all(id.startswith("mine/claude:") for id in found.sessions()["id"])
    found.close()
    kinds = [json.loads(line)["type"] for line in Path("b.jsonl").read_text("utf-8").splitlines()]
    assert kinds.count("entry") == 10


# B59
def test_the_commands_import_and_export_other_formats(capsys: pytest.CaptureFixture[str]) -> None:
    samples = [str(DATA / name) for name in ("chatgpt_export.json", "sharegpt.json")]

    assert main(["import", *samples, "--store", "a.duckdb", "--hidden", "skip"]) == 0
    assert main(["export", "sharegpt:sg_3", "a.md", "--store", "a.duckdb", "--at", "2"]) == 0
    assert main(["import", samples[0], "--store", "a.duckdb", "--format", "pi"]) == 0

    told = capsys.readouterr().out
    assert "10 sessions added" in told and "no sessions in it" in told
    assert Path("a.md").read_text("utf-8").count("\n## ") == 2


# B3
def test_a_copied_import_still_grows_with_its_source(store: Store) -> None:
    here = MemoryStore()
    nb.load(DATA / "claude_export.json", store=here)
    copy(here, store)

    report = nb.load(DATA / "claude_export.json", store=store)

    assert report.entries == 0 and len(talks(store)) == 3
