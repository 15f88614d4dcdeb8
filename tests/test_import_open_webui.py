"""Open WebUI's chats: siblings by two models, fragments, failed answers, older shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.ids import as_datetime
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "open_webui_export.json"
ID = "open_webui:77777777-0000-4000-8000-000000000001"


def record() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text("utf-8"))[0])


def saved(value: object) -> Path:
    Path("chats.json").write_text(json.dumps(value), "utf-8")
    return Path("chats.json")


def loaded(value: object) -> Talk:
    store = MemoryStore()
    nb.load(saved(value), store=store)
    (found,) = talks(store).values()
    return found


# case 62
def test_the_sample_has_its_entries_and_leaves_and_reports_the_fragment(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [(s.id, s.entries, s.leaves) for s in report.sessions] == [(ID, 5, 2)]
    assert talks(store)[ID].leaves == {"w-a1", "w-a2"}
    assert told(report).count("entry 'w-orphan': it has no role") == 1
    ((_, source),) = talks(store)[ID].said("source")
    assert isinstance(source, dict) and source["fragments"]["w-orphan"]["content"] == "..."


# case 62
def test_two_models_answers_to_one_prompt_are_siblings() -> None:
    found = loaded([record()])

    assert found.parents["w-a1"] == found.parents["w-a1b"] == "w-u1"
    assert (found.stored("w-a1").model, found.stored("w-a1b").model) == ("m-small", "m-large")


# case 4
def test_a_position_that_is_no_message_falls_back_with_one_warning(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert talks(store)[ID].position == "w-a2"
    assert told(report).count("the position 'w-orphan' is not there") == 1


# case 4
def test_lists_of_children_are_not_looked_at(store: Store) -> None:
    nb.load(FILE, store=store)
    value = record()
    for message in value["chat"]["history"]["messages"].values():
        message["childrenIds"] = []

    report = nb.load(saved([value]), store=store)

    assert report.entries == 0


# case 62
def test_a_failed_answer_and_an_unfinished_one_are_marked() -> None:
    value = record()
    value["chat"]["history"]["messages"]["w-a1"]["done"] = False

    found = loaded([value])

    reply = found.entry("w-a2").message.reply
    assert (reply.stop_reason, reply.error) == ("error", "network dropped")
    assert found.entry("w-a1").message.stop_reason == "aborted"


# B70
def test_ratings_and_titles_are_said_beside_the_tree() -> None:
    value = record()
    value["chat"]["history"]["messages"]["w-a1b"]["annotation"] = {"rating": -1, "comment": "no"}

    found = loaded([value])

    assert found.said("rating") == [("w-a1b", -1.0)]
    assert found.said("title") == [("w-u1", "Bread")]


# B31
def test_pictures_and_texts_of_files_are_taken_in() -> None:
    value = record()
    value["chat"]["history"]["messages"]["w-u1"]["files"] = [
        {"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "file", "name": "a.txt", "file": {"data": {"content": "flour"}}},
        {"type": "image", "url": "https://example.com/a.png"},
    ]

    blocks = loaded([value]).entry("w-u1").blocks

    assert [block.type for block in blocks] == ["text", "image", "file", "opaque"]
    assert blocks[2].data == b"flour"


# B33
def test_a_bare_chat_and_one_without_a_tree_are_read_too() -> None:
    chat = record()["chat"]
    messages = list(chat["history"]["messages"].values())[:2]

    bare = loaded({"id": "x", **chat})
    flat = loaded([{"id": "y", "chat": {"history": {"messages": {}}, "messages": messages}}])

    assert (bare.id, len(bare.keys)) == ("open_webui:x", 5)
    assert flat.parents == {"w-u1": None, "w-a1": "w-u1"}


# B4
def test_times_in_milliseconds_are_seen_as_such() -> None:
    value = record()
    value["chat"]["history"]["messages"]["w-u1"]["timestamp"] = 1750000000000

    assert as_datetime(loaded([value]).stored("w-u1").created_at).year == 2025


# B2
def test_importing_again_adds_nothing_and_a_grown_file_what_is_new(store: Store) -> None:
    nb.load(FILE, store=store)
    again = nb.load(FILE, store=store)
    value = record()
    new = {"id": "w-new", "parentId": "w-a1", "role": "user", "content": "Why?"}
    value["chat"]["history"]["messages"]["w-new"] = new

    grown = nb.load(saved([value]), store=store)

    assert (again.entries, grown.entries) == (0, 1)
    assert talks(store)[ID].parents["w-new"] == "w-a1"


# B22
def test_an_imported_session_can_be_run_at_once(store: Store) -> None:
    nb.load(FILE, store=store)
    chat = talks(store)[ID].open("Twelve hours.")

    run = chat.run(show=None)

    assert run.text == "Twelve hours."
    assert chat.path(run)[-2].source_id == "w-u2"
