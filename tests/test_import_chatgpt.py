"""ChatGPT's export: its tree, what it hides, its tools, its ratings, whole folders of it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from importing import DATA, Talk, outcomes, talks, told

import nbdurable as nb
from nbdurable.ids import as_datetime
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "chatgpt_export.json"
HERBS = "chatgpt:11111111-0000-4000-8000-000000000001"
PRIMES = "chatgpt:11111111-0000-4000-8000-000000000003"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def herbs(**kwargs: Any) -> Talk:
    store = MemoryStore()
    nb.load(FILE, store=store, **kwargs)
    return talks(store)[HERBS]


def records() -> list[dict[str, Any]]:
    return list(json.loads(FILE.read_text("utf-8")))


def saved(value: object, name: str = "conversations.json") -> Path:
    Path(name).write_text(json.dumps(value), "utf-8")
    return Path(name)


# case 53
def test_the_sample_has_its_sessions_entries_and_leaves(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [(s.outcome, s.entries, s.leaves, s.hidden) for s in report.sessions] == [
        ("added", 14, 3, 2),
        ("added", 0, 0, 0),
        ("added", 3, 2, 0),
    ]
    assert (report.format, report.hidden, report.entries) == ("chatgpt", 2, 17)
    assert "seconds since 1970 UTC" in report.times
    found = talks(store)
    assert found[HERBS].leaves == {"a2", "a3", "a4"}
    assert found[HERBS].position == "a4"


# case 53
def test_edits_and_second_answers_are_siblings() -> None:
    parents = herbs().parents

    assert parents["sys"] is None
    assert parents["u2"] == parents["u2-edit"] == "a1"
    assert parents["a3"] == parents["a3-regen"] == "u2-edit"


# case 53
def test_an_entry_without_its_parent_is_a_root_and_told() -> None:
    store = MemoryStore()

    report = nb.load(FILE, store=store)

    primes = talks(store)[PRIMES]
    assert primes.parents == {"q": None, "p": "q", "lost": None}
    assert primes.position == "p"
    assert "entry 'lost': the parent 'gone' is missing; it is a root" in told(report)
    assert "the position 'deleted-node' is not there" in told(report)
    assert json.loads(primes.stored("lost").payload)["source"] == {"missing_parent": "gone"}


# B34
def test_what_the_source_hides_is_meta() -> None:
    talk = herbs()

    assert [key for key in talk.keys if talk.stored(key).meta] == ["sys", "ctx"]
    assert talk.entry("ctx").text == "The reader likes short lists.\nUse metric units."
    assert "sys" not in [entry.source_id for entry in talk.open().transcript()]


# case 2
def test_what_the_source_hides_can_be_left_out_of_the_path() -> None:
    talk = herbs(hidden="skip")

    assert len(talk.keys) == 12
    assert talk.parents["u1"] is None and talk.leaves == {"a2", "a3", "a4"}


# case 2
def test_a_hidden_message_in_mid_path_is_skipped_without_a_tear() -> None:
    value = records()[0]
    value["mapping"]["a1"]["message"]["metadata"]["is_visually_hidden_from_conversation"] = True
    store = MemoryStore()

    nb.load(saved([value]), store=store, hidden="skip")

    assert talks(store)[HERBS].parents["u2"] == "u1"


# B44
def test_code_and_its_output_are_a_call_and_its_result() -> None:
    view = herbs().view("recap")

    call, result = view.messages[-2:]
    assert call.tool_calls[0].name == "python"
    assert call.tool_calls[0].arguments == {
        "code": "import math\nprint(round(math.pi*10**2*13/1000, 1))"
    }
    assert result.tool_results[0].call_id == call.tool_calls[0].id
    assert result.text == "4.1\n"


# B46
def test_thoughts_are_thinking_and_are_not_sent() -> None:
    talk = herbs()

    (block,) = talk.entry("th").blocks
    assert block.type == "thinking" and block.text.startswith("Comparing volumes")
    assert all(b.type != "thinking" for m in talk.view("a4").messages for b in m.blocks)


# B37
def test_unknown_content_is_kept_raw() -> None:
    talk = herbs()

    (block,) = talk.entry("recap").blocks
    assert json.loads(block.raw)["content_type"] == "reasoning_recap"


# B22
def test_a_partial_answer_is_marked() -> None:
    entry = herbs().entry("a4")

    assert entry.message.stop_reason == "aborted"
    assert "\ue200cite\ue202turn0\ue201" in entry.text


# B4
def test_times_are_utc_and_missing_ones_come_from_above() -> None:
    talk = herbs()

    assert as_datetime(talk.stored("u1").created_at).isoformat() == (
        "2025-03-10T09:46:40.125000+00:00"
    )
    assert talk.stored("sys").created_at == talk.stored("u1").created_at


# B69
def test_models_titles_and_what_has_no_place_are_kept() -> None:
    talk = herbs()

    assert talk.stored("a1").model == "gpt-4o" and talk.stored("a4").model == "o3"
    assert talk.said("title") == [("sys", "Herbs 🌿 <script>alert(1)</script>")]
    assert json.loads(talk.stored("u1").payload)["source"]["metadata"] == {"request_id": "r-1"}


# B22
def test_an_imported_session_can_be_run_at_once() -> None:
    chat = herbs().open("Thyme it is.")

    run = chat.run("Which one, then?", show=None)

    assert run.text == "Thyme it is."
    assert len(chat.path()) == 14 - 3 + 2


# B42
def test_an_imported_answer_can_be_answered_again() -> None:
    talk = herbs()
    chat = talk.open("The right one.")

    run = chat.rerun(talk.stored("a3").id, show=None)

    assert chat.path(run)[-1].parent_id == talk.stored("u2-edit").id


# B2
def test_importing_again_adds_nothing(store: Store) -> None:
    nb.load(FILE, store=store)
    before = {id: talk.entries for id, talk in talks(store).items()}

    report = nb.load(FILE, store=store)

    assert [s.outcome for s in report.sessions] == ["unchanged"] * 3
    assert "3 sessions unchanged; 0 new entries" in str(report)
    assert {id: talk.entries for id, talk in talks(store).items()} == before


def grown() -> list[dict[str, Any]]:
    value = records()
    node = json.loads(json.dumps(value[0]["mapping"]["a2"]))
    node.update(id="new", parent="a2")
    node["message"].update(id="new", create_time=1741700000.5)
    node["message"]["content"]["parts"] = ["Said later."]
    value[0]["mapping"]["new"] = node
    value[0]["current_node"] = "new"
    return value


# B3
def test_a_grown_file_adds_what_is_new_under_its_parent(store: Store) -> None:
    nb.load(FILE, store=store)

    report = nb.load(saved(grown()), store=store)

    assert outcomes(report)[0][1:] == ("grown", 1)
    talk = talks(store)[HERBS]
    assert talk.parents["new"] == "a2" and talk.position == "new"


# B3
def test_a_grown_file_stands_beside_what_was_added_here(store: Store) -> None:
    nb.load(FILE, store=store)
    chat = talks(store)[HERBS].open("mine")
    chat.run("Mine?", show=None)

    report = nb.load(saved(grown()), store=store)

    assert outcomes(report)[0][1:] == ("grown", 1)
    assert "went on here too" in told(report)
    again = talks(store)[HERBS].open()
    assert again.leaf_id == chat.leaf_id and len(again.leaves()) == 3


# B3
def test_a_branch_made_here_keeps_its_position(store: Store) -> None:
    nb.load(FILE, store=store)
    talk = talks(store)[HERBS]
    talk.open().branch(talk.stored("a3").id)

    nb.load(saved(grown()), store=store)

    assert talks(store)[HERBS].open().leaf_id == talk.stored("a3").id


# B4
def test_a_message_that_changed_stands_beside_what_is_stored(store: Store) -> None:
    nb.load(FILE, store=store)
    value = records()
    value[0]["mapping"]["a2"]["message"]["content"]["parts"] = ["Every third day."]

    report = nb.load(saved(value), store=store)
    again = nb.load(saved(value), store=store)

    assert outcomes(report)[0][1:] == ("grown", 1)
    assert "it is other than when it was imported as #" in told(report)
    assert "changed in the source, or more is read of it now; both are kept" in told(report)
    assert outcomes(again)[0][1:] == ("unchanged", 0)
    texts = [e.preview for e in talks(store)[HERBS].entries if e.source_id == "a2"]
    assert texts == ["Every second day.", "Every third day."]


# B41
def test_the_order_of_nodes_does_not_matter(store: Store) -> None:
    nb.load(FILE, store=store)
    value = records()
    for talk in value:
        talk["mapping"] = dict(reversed(talk["mapping"].items()))

    report = nb.load(saved(value[::-1]), store=store)

    assert report.entries == 0


# -- folders and archives ------------------------------------------------------------------------


def folder() -> Path:
    value = records()
    where = Path("export")
    where.mkdir()
    (where / "conversations-000.json").write_text(json.dumps(value[:1]), "utf-8")
    (where / "conversations-001.json").write_text(json.dumps(value[1:]), "utf-8")
    (where / "user.json").write_text('{"id": "user-1", "email": "x@example.com"}')
    (where / "file-EXAMPLE1-pot.png").write_bytes(PNG)
    rated = {"id": "a1", "conversation_id": HERBS.partition(":")[2], "rating": "thumbs_up"}
    (where / "message_feedback.json").write_text(json.dumps([rated]))
    return where


@pytest.mark.parametrize("form", ["folder", "zip", "files"])
def test_split_exports_are_read_as_one(store: Store, form: str) -> None:
    where = folder()
    path: Any = where
    if form == "zip":
        path = Path("export.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in where.iterdir():
                archive.write(file, f"mine/{file.name}")
    if form == "files":
        path = sorted(where.glob("conversations-*.json"))

    report = nb.load(path, store=store)

    assert [s.entries for s in report.sessions] == [14, 0, 3]
    if form != "files":
        assert talks(store)[HERBS].said("rating") == [("a1", 1)]
        block = talks(store)[HERBS].entry("u2-edit").blocks[0]
        assert (block.type, block.name, block.data) == ("image", "file-EXAMPLE1-pot.png", PNG)
        assert "user.json: no conversation of a format that is known" in told(report)


def test_one_conversation_in_two_files_is_one_session(store: Store) -> None:
    first, second = saved(records(), "a.json"), saved(grown(), "b.json")

    report = nb.load([first, second], store=store)

    assert [s.outcome for s in report.sessions] == [
        *["added"] * 3,
        "grown",
        *["unchanged"] * 2,
    ]


# case 53
def test_two_conversations_of_one_id_are_numbered(store: Store) -> None:
    value = records()
    value[2]["conversation_id"] = value[0]["conversation_id"]

    report = nb.load(saved(value), store=store)
    again = nb.load(saved(value), store=store)

    assert [s.id for s in report.sessions][2] == f"{HERBS}#2"
    assert [s.outcome for s in again.sessions] == ["unchanged"] * 3
