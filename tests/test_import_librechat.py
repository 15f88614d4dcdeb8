"""LibreChat's conversations: messages in any order, parts, tools, unfinished answers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "librechat_export.json"
ID = "librechat:88888888-0000-4000-8000-000000000001"


def record() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text("utf-8")))


def saved(value: object) -> Path:
    Path("talk.json").write_text(json.dumps(value), "utf-8")
    return Path("talk.json")


def loaded(value: object) -> Talk:
    store = MemoryStore()
    nb.load(saved(value), store=store)
    (found,) = talks(store).values()
    return found


# case 62
def test_the_sample_has_its_entries_root_orphan_and_leaves(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [(s.id, s.entries, s.leaves) for s in report.sessions] == [(ID, 6, 3)]
    found = talks(store)[ID]
    assert found.parents == {
        "l1": None,
        "l2": "l1",
        "l2b": "l1",
        "l3": "l2",
        "l4": "l3",
        "l5": None,
    }
    assert found.leaves == {"l2b", "l4", "l5"} and found.position == "l4"
    assert "entry 'l5': the parent 'l4_' is missing; it is a root" in told(report)


# case 1
def test_the_order_of_messages_does_not_matter(store: Store) -> None:
    nb.load(FILE, store=store)
    for seed in range(20):
        value = record()
        random.Random(seed).shuffle(value["messages"])

        assert nb.load(saved(value), store=store).entries == 0


# case 1
def test_messages_inside_one_another_are_the_same_tree() -> None:
    value = record()
    by_id = {m["messageId"]: {**m, "children": []} for m in value["messages"]}
    roots = []
    for message in by_id.values():
        above = by_id.get(message["parentMessageId"])
        (above["children"] if above else roots).append(message)
    for message in by_id.values():
        del message["parentMessageId"]

    nested = loaded({**value, "recursive": True, "messages": roots})

    assert nested.parents == loaded(record()).parents


# case 62
def test_parts_win_over_text_and_an_unfinished_answer_is_marked() -> None:
    entry = loaded(record()).entry("l2b")

    assert [block.type for block in entry.blocks] == ["thinking", "text"]
    assert entry.text == "A bowline or a figure eight."
    assert entry.message.stop_reason == "aborted"


# B30
def test_a_call_with_its_output_is_a_pair_and_not_sent() -> None:
    value = record()
    call = {"id": "t1", "name": "knots", "args": '{"of": "loop"}', "output": "bowline"}
    value["messages"][1]["content"] = [
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": "A bowline."},
        {"type": "image_file", "image_file": {"filepath": "/images/x.png"}},
    ]

    found = loaded(value)

    made, result, text, picture = found.entry("l2").blocks
    assert (made.arguments, made.provider_run, result.text) == ({"of": "loop"}, True, "bowline")
    assert text.text == "A bowline." and picture.type == "opaque"
    assert [m.role for m in found.view("l3").messages] == ["user", "assistant", "user"]


# B22
def test_a_failed_answer_is_marked_with_its_text() -> None:
    value = record()
    value["messages"][1] |= {"error": True, "text": "quota"}

    reply = loaded(value).entry("l2").message.reply

    assert (reply.stop_reason, reply.error) == ("error", "quota")


# B70
def test_ratings_and_titles_are_said_beside_the_tree() -> None:
    value = record()
    value["messages"][1]["feedback"] = {"rating": "thumbsUp", "tag": "accurate"}

    found = loaded(value)

    assert found.said("rating") == [("l2", 1)]
    assert found.said("title") == [("l1", "Knots")]


# B2
def test_importing_again_adds_nothing_and_a_grown_file_what_is_new(store: Store) -> None:
    nb.load(FILE, store=store)
    again = nb.load(FILE, store=store)
    value = record()
    new = {**value["messages"][0], "messageId": "l6", "parentMessageId": "l2b"}
    value["messages"].append(new)

    grown = nb.load(saved(value), store=store)

    assert (again.entries, grown.entries) == (0, 1)
    assert talks(store)[ID].parents["l6"] == "l2b"


# B22
def test_an_imported_session_can_be_run_at_once(store: Store) -> None:
    nb.load(FILE, store=store)

    run = talks(store)[ID].open("Twice.").run("How often?", show=None)

    assert run.text == "Twice."
