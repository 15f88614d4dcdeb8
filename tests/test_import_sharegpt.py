"""ShareGPT's records: words for roles, doubled ids, calls and observations, odd values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "sharegpt.json"


def sample() -> dict[str, Talk]:
    store = MemoryStore()
    nb.load(FILE, store=store)
    return talks(store)


def saved(value: object) -> Path:
    Path("share.json").write_text(json.dumps(value), "utf-8")
    return Path("share.json")


def loaded(*turns: dict[str, Any]) -> Talk:
    store = MemoryStore()
    nb.load(saved([{"id": "x", "conversations": list(turns)}]), store=store)
    return talks(store)["sharegpt:x"]


# case 60
def test_the_sample_has_seven_sessions_one_empty_and_two_of_one_id(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [(s.id.partition(":")[2], s.entries) for s in report.sessions] == [
        ("sg_1", 5),
        ("sg_1#2", 4),
        ("sg_3", 4),
        ("sg_4", 2),
        ("sg_5", 3),
        ("sg_6", 2),
        ("sg_7", 0),
    ]


# case 60
def test_a_call_and_its_observation_are_a_pair_of_a_made_up_id() -> None:
    found = sample()["sharegpt:sg_3"]

    (call,) = found.entry("message 2").message.tool_calls
    (result,) = found.entry("message 3").message.tool_results
    assert (call.name, call.arguments) == ("convert", {"km": 5})
    assert result.call_id == call.id and result.text == '{"miles": 3.107}'
    assert found.view("message 4").repairs == ()


# case 60
def test_roles_are_mapped_and_an_unknown_one_is_kept_as_a_name(store: Store) -> None:
    report = nb.load(FILE, store=store)

    found = talks(store)["sharegpt:sg_4"]
    assert [entry.role for entry in found.entries] == ["user", "assistant"]
    assert json.loads(found.stored("message 2").payload)["source"] == {"from": "bing"}
    assert "the role 'bing' is not known; it is taken for the assistant's" in told(report)


# case 60
def test_turns_need_not_alternate() -> None:
    found = sample()["sharegpt:sg_1#2"]

    assert [e.role for e in found.entries] == ["assistant", "user", "user", "assistant"]


# case 21
def test_null_and_empty_values_are_told_apart() -> None:
    found = sample()["sharegpt:sg_5"]

    first, second, third = (found.entry(key).message for key in found.keys)
    assert (first.null_content, first.blocks) == (True, ())
    assert (second.null_content, second.text) == (False, "")
    assert third.text == "<div>Raw <b>html</b> page copy</div>"


# case 60
def test_records_with_chat_keys_are_read_as_such() -> None:
    assert [e.preview for e in sample()["sharegpt:sg_6"].entries] == [
        "Chat keys in a share file.",
        "Pass through.",
    ]


# B44
def test_several_calls_of_one_turn_are_answered_in_order() -> None:
    calls = [{"name": "a", "arguments": {}}, {"name": "b", "arguments": "{}"}]
    found = loaded(
        {"from": "human", "value": "go"},
        {"from": "function_call", "value": json.dumps(calls)},
        {"from": "observation", "value": "one"},
        {"from": "observation", "value": "two"},
    )

    view = found.view("message 4")

    assert [m.text for m in view.messages if m.role == "tool"] == ["one", "two"]
    assert view.repairs == ()


# case 23
def test_a_call_that_cannot_be_read_is_text() -> None:
    found = loaded({"from": "function_call", "value": "get_weather(Bern"})

    assert found.entry("message 1").text == "get_weather(Bern"


# B2
def test_importing_again_or_with_more_records_adds_only_what_is_new(store: Store) -> None:
    nb.load(FILE, store=store)
    value = json.loads(FILE.read_text("utf-8"))
    value.insert(0, {"id": "sg_8", "conversations": [{"from": "human", "value": "new"}]})

    again = nb.load(FILE, store=store)
    grown = nb.load(saved(value), store=store)

    assert (again.entries, grown.entries) == (0, 1)


# case 60
def test_one_id_in_two_files_is_two_sessions_though_they_begin_alike(store: Store) -> None:
    turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    nb.load(saved([{"id": "x", "conversations": turns}]), store=store)
    other = [turns[0], {"from": "gpt", "value": "Good day"}]

    nb.load(saved([{"id": "x", "conversations": other}]), store=store)

    assert list(talks(store)) == ["sharegpt:x", "sharegpt:x#2"]


# B2
def test_a_record_that_went_on_grows_its_session(store: Store) -> None:
    turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    nb.load(saved([{"id": "x", "conversations": turns}]), store=store)
    turns.append({"from": "human", "value": "How are you?"})

    report = nb.load(saved([{"id": "x", "conversations": turns}]), store=store)

    assert [(s.id, s.outcome, s.entries) for s in report.sessions] == [("sharegpt:x", "grown", 1)]
