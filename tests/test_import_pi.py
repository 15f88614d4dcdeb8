"""pi's session files: settings and labels in the tree, tools, summaries, three versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "pi_session.jsonl"
ID = "pi:55555555-0000-4000-8000-000000000001"


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def saved(values: list[dict[str, Any]], name: str = "session.jsonl") -> Path:
    Path(name).write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return Path(name)


def talk(path: Path = FILE) -> Talk:
    store = MemoryStore()
    nb.load(path, store=store)
    (found,) = talks(store).values()
    return found


# case 57
def test_the_sample_has_its_entries_root_and_leaves(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [(s.id, s.entries, s.leaves) for s in report.sessions] == [(ID, 24, 2)]
    found = talks(store)[ID]
    assert [key for key, parent in found.parents.items() if parent is None] == ["a0000001"]
    assert found.leaves == {"a0000008", "b0000010"} and found.position == "b0000010"


# case 57
def test_the_model_view_from_the_end_begins_with_the_summary() -> None:
    view = talk().view("b0000010")

    assert len(view.messages) == 9
    assert "The user looked at the project" in view.messages[0].text
    assert not any("3 passed" in message.text for message in view.messages)


# case 19
def test_a_call_id_that_comes_again_keeps_both_pairs() -> None:
    found = talk()

    before, after = found.view("a0000006"), found.view("b0000006")
    assert before.messages[2].tool_results[0].text.endswith("README.md\n")
    assert [m.text for m in after.messages if m.role == "tool"][-2:] == ["# Demo", "main.py"]


# B70
def test_labels_and_the_name_are_said_beside_the_tree_too() -> None:
    found = talk()

    chat = found.open()
    assert chat.path("before picture")[-1].source_id == "a0000006"
    with pytest.raises(nb.errors.EntryNotFound, match="'start'"):
        chat.path("start")
    assert found.said("title") == [("a0000001", "Tour of the demo")]


# B37
def test_records_of_its_own_are_opaque_entries() -> None:
    found = talk()

    assert [e.kind for e in found.entries if e.kind.startswith("pi:")] == [
        "pi:model_change",
        "pi:thinking_level_change",
        "pi:message",
        "pi:custom",
        "pi:session_info",
        "pi:label",
        "pi:label",
        "pi:label",
    ]
    assert json.loads(found.entry("b000000c").raw)["data"] == {"count": 2}


# B46
def test_signed_thinking_goes_to_its_signer_only() -> None:
    found = talk()

    own = found.view("a0000004", "anthropic/claude-sonnet-4-5").messages[1].blocks
    other = found.view("a0000004", "openai/gpt-5-mini").messages[1].blocks
    assert [block.type for block in own] == ["thinking", "tool_call"]
    assert [block.type for block in other] == ["tool_call"]


# case 57
def test_costs_and_tokens_are_those_of_the_answers() -> None:
    found = talk().open()

    branches = found.branches_df().set_index("leaf_id")
    entry = found.entries(nb.MessageEntry)[1]
    assert (entry.message.reply.usage.input_tokens, entry.message.reply.cost_usd) == (120, 0.00096)
    assert len(branches) == 2


# B22
def test_an_aborted_answer_is_marked_with_its_error() -> None:
    reply = talk().entry("a0000008").message.reply

    assert (reply.stop_reason, reply.error) == ("aborted", "Request was aborted")


# B34
def test_a_message_that_is_not_displayed_is_meta() -> None:
    assert talk().entry("b000000a").meta
    assert talk().entry("b000000a").text == "Answer in one line."


# B22
def test_an_imported_session_can_be_run_at_once() -> None:
    run = talk().open("Done.").run("Go on.", show=None)

    assert run.text == "Done."


# B2
def test_importing_again_adds_nothing_and_a_grown_file_what_is_new(store: Store) -> None:
    nb.load(FILE, store=store)
    again = nb.load(FILE, store=store)
    new = {"type": "message", "id": "c1", "parentId": "a0000008"}
    new |= {"timestamp": "2026-02-03T10:00:00.000Z"}
    new |= {"message": {"role": "user", "content": "Look again."}}

    grown = nb.load(saved([*lines(), new]), store=store)

    assert (again.entries, grown.entries) == (0, 1)
    found = talks(store)[ID]
    assert found.parents["c1"] == "a0000008" and found.position == "c1"


# case 57
def test_version_1_is_one_branch_in_the_order_of_its_lines(store: Store) -> None:
    values = lines()[:7]
    for value in values:
        value.pop("parentId", None)
        value.pop("version", None)
        if value["type"] != "session":
            del value["id"]
    compaction = {"type": "compaction", "timestamp": "2026-02-03T09:30:00.000Z"}
    compaction |= {"summary": "Looked around.", "firstKeptEntryIndex": 3, "tokensBefore": 9}
    path = saved([*values, compaction])

    nb.load(path, store=store)
    again = nb.load(path, store=store)

    found = talks(store)[ID]
    assert found.keys == [f"line {n}" for n in range(1, 8)]
    assert found.parents["line 7"] == "line 6"
    assert found.entry("line 7").first_kept_id == found.stored("line 3").id
    assert again.entries == 0


# B2
def test_version_1_that_grew_adds_its_new_lines(store: Store) -> None:
    values = lines()[:7]
    for value in values[1:]:
        del value["parentId"], value["id"]
    nb.load(saved(values[:5]), store=store)

    report = nb.load(saved(values), store=store)

    assert report.entries == 2 and len(talks(store)[ID].leaves) == 1


# case 57
def test_version_2_calls_custom_messages_hook_messages(store: Store) -> None:
    hook = {"type": "message", "id": "h1", "parentId": None}
    hook |= {"timestamp": "2026-02-03T09:01:00.000Z"}
    hook["message"] = {"role": "hookMessage", "customType": "x", "content": "Mind the gap."}
    values = [{**lines()[0], "version": 2}, hook]

    nb.load(saved(values), store=store)

    assert talks(store)[ID].entry("h1").text == "Mind the gap."


# B41
def test_one_bad_line_does_not_stop_the_others(store: Store) -> None:
    text = FILE.read_text("utf-8").replace('"type": "message", "id": "b0000002"', '"type" "id"')
    Path("bad.jsonl").write_text(text, "utf-8")

    report = nb.load("bad.jsonl", store=store)

    assert report.entries == 23
    assert "line 11: the line cannot be read" in told(report)
    assert "line 12: session" in told(report)
    assert "entry 'b0000003': the parent 'b0000002' is missing" in told(report)


# B37
def test_a_file_without_its_header_is_a_session_all_the_same(store: Store) -> None:
    report = nb.load(saved(lines()[1:]), store=store)

    assert report.entries == 24
    assert "comes before any header" in told(report)


# case 57
def test_a_folder_of_files_is_a_session_each(store: Store) -> None:
    Path("sessions/project").mkdir(parents=True)
    for n in (1, 2):
        saved([{**lines()[0], "id": f"s{n}"}, *lines()[1:]], f"sessions/project/{n}.jsonl")

    report = nb.load("sessions", store=store)

    assert [s.id for s in report.sessions] == ["pi:s1", "pi:s2"]
