"""Claude's export: the tree in its list, blocks before text, tools, files, the old flat form."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.ids import as_datetime
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "claude_export.json"
NOTE = "claude:33333333-0000-4000-8000-000000000001"
FLAT = "claude:33333333-0000-4000-8000-000000000003"


def talk(id: str = NOTE) -> Talk:
    store = MemoryStore()
    nb.load(FILE, store=store)
    return talks(store)[id]


def records() -> list[dict[str, Any]]:
    return list(json.loads(FILE.read_text("utf-8")))


def saved(value: object) -> Path:
    Path("conversations.json").write_text(json.dumps(value), "utf-8")
    return Path("conversations.json")


# case 55
def test_the_sample_has_its_sessions_entries_and_leaves(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [(s.entries, s.leaves) for s in report.sessions] == [(8, 2), (0, 0), (2, 1)]
    found = talks(store)[NOTE]
    assert found.leaves == {"c-a2b", "c-a3"} and found.position == "c-a3"
    assert [key for key, parent in found.parents.items() if parent is None] == ["c-h1"]


# case 55
def test_messages_without_parents_are_one_branch_in_their_order() -> None:
    flat = talk(FLAT)

    assert flat.parents == {"o1": None, "o2": "o1"}
    assert flat.stored("o2").created_at == flat.stored("o1").created_at


# case 55
def test_blocks_win_over_the_placeholder_text_which_is_kept() -> None:
    entry = talk().entry("c-a2")

    assert entry.blocks[-1].text == "Week 15."
    source = json.loads(talk().stored("c-a2").payload)["source"]
    assert source["text"] == "\n```\n(block not shown in this export)\n```\n"


# B30
def test_a_call_that_the_provider_answered_stands_beside_its_result_and_is_not_sent() -> None:
    call, result, _ = talk().entry("c-a2").blocks

    assert (call.name, call.arguments, call.provider_run) == (
        "calendar_lookup",
        {"day": "Tuesday"},
        True,
    )
    assert (result.call_id, result.text) == ("toolu_A1", "week 15")
    assert talk().view("c-a2").repairs[-1].kind != "missing_result"


# B44
def test_a_call_without_a_result_is_answered_in_the_view() -> None:
    value = records()
    message = next(m for m in value[0]["chat_messages"] if m["uuid"] == "c-a2")
    del message["content"][1]
    store = MemoryStore()

    nb.load(saved(value), store=store)

    view = talks(store)[NOTE].view("c-a2")
    assert [m.role for m in view.messages[-2:]] == ["assistant", "tool"]


# case 55
def test_the_text_of_an_attachment_is_read_by_the_model() -> None:
    attached = talk().entry("c-h1").blocks[1]

    assert (attached.type, attached.name) == ("file", "note.txt")
    assert attached.data == b"Meeting moved to Tuesday; bring slides."


# B37
def test_a_file_without_content_is_kept_by_name() -> None:
    (block,) = talk().entry("c-h3").blocks

    assert block.type == "opaque" and json.loads(block.raw)["file_name"] == "photo.jpg"


# B46
def test_thinking_without_a_signature_is_kept_and_not_sent() -> None:
    assert talk().entry("c-a1").blocks[0].text == "One line is enough."
    assert all(b.type != "thinking" for m in talk().view("c-a1").messages for b in m.blocks)


# B45
def test_blank_turns_are_kept_and_not_sent() -> None:
    view = talk().view("c-a3")

    assert "c-a3" in talk().keys
    assert [m.role for m in view.messages] == ["user", "assistant", "user", "assistant"]
    assert all(message.blocks for message in view.messages)


# B4
def test_times_are_utc_to_the_microsecond() -> None:
    assert as_datetime(talk().stored("c-h2").created_at).isoformat() == (
        "2025-04-02T08:00:02.123456+00:00"
    )


# case 1
def test_the_order_of_the_list_does_not_matter(store: Store) -> None:
    nb.load(FILE, store=store)
    value = records()
    random.Random(5).shuffle(value[0]["chat_messages"])

    report = nb.load(saved(value[:1]), store=store)

    assert report.entries == 0


# B2
def test_importing_again_adds_nothing(store: Store) -> None:
    nb.load(FILE, store=store)

    report = nb.load(FILE, store=store)

    assert [s.outcome for s in report.sessions] == ["unchanged"] * 3


# B3
def test_a_grown_file_adds_what_is_new(store: Store) -> None:
    nb.load(FILE, store=store)
    value = records()
    last = value[0]["chat_messages"][0]
    new = {**last, "uuid": "c-new", "parent_message_uuid": "c-a2b", "attachments": []}
    new["created_at"] = "2025-05-01T00:00:00Z"
    value[0]["chat_messages"].insert(0, new)

    report = nb.load(saved(value), store=store)

    assert report.entries == 1
    assert talks(store)[NOTE].parents["c-new"] == "c-a2b"
    assert talks(store)[NOTE].position == "c-new"


# B37
def test_a_sender_nobody_knows_is_kept_and_told(store: Store) -> None:
    value = records()
    value[0]["chat_messages"][1]["sender"] = "robot"

    report = nb.load(saved(value), store=store)

    assert "entry 'c-a1': the sender 'robot' is not known" in told(report)
    assert talks(store)[NOTE].stored("c-a1").kind == "claude:message"
    assert len(talks(store)[NOTE].keys) == 8


# B22
def test_an_imported_session_can_be_run_at_once(store: Store) -> None:
    nb.load(FILE, store=store)

    run = talks(store)[NOTE].open("Yes.").run("Is it Tuesday?", show=None)

    assert run.text == "Yes."
