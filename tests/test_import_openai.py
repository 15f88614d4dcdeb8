"""OpenAI's chat and fine-tuning records: contents, calls old and new, preferences, doubles."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

FILE = DATA / "openai_finetune.jsonl"


def saved(*values: object) -> Path:
    Path("train.jsonl").write_text("".join(json.dumps(v) + "\n" for v in values), "utf-8")
    return Path("train.jsonl")


def sample() -> list[Talk]:
    store = MemoryStore()
    report = nb.load(FILE, store=store)
    return [talks(store)[session.id] for session in report.sessions]


def loaded(value: object) -> Talk:
    store = MemoryStore()
    nb.load(saved(value), store=store)
    (found,) = talks(store).values()
    return found


def said(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": list(messages)}


# case 59
def test_the_sample_has_eight_sessions_the_last_empty(store: Store) -> None:
    report = nb.load(FILE, store=store)

    assert [s.entries for s in report.sessions] == [3, 5, 5, 2, 2, 4, 3, 0]
    assert report.format == "openai" and report.unread == ()


# case 59
def test_a_preference_is_two_branches_and_a_preference() -> None:
    found = sample()[6]
    chat = found.open()

    assert found.leaves == {"message 2", "message 3"} and found.position == "message 2"
    ((_, value),) = found.said("prefer")
    assert value == {"over": [found.stored("message 3").id]}
    chat.export("pairs.jsonl", "dpo")
    pair = json.loads(Path("pairs.jsonl").read_text("utf-8"))
    assert pair["preferred_output"][0]["content"] == "The North Sea."


# case 59
def test_weights_names_and_tools_are_kept() -> None:
    second, third = sample()[1:3]

    assert json.loads(second.stored("message 3").payload)["source"] == {"weight": 0}
    assert json.loads(second.stored("message 2").payload)["source"] == {"name": "visitor_1"}
    ((_, source),) = third.said("source")
    assert isinstance(source, dict) and source["tools"][0]["function"]["name"] == "get_tide"


# case 59
def test_system_and_developer_text_is_meta() -> None:
    first, second = sample()[:2]

    assert first.stored("message 1").meta and second.stored("message 1").meta
    assert json.loads(second.stored("message 1").payload)["source"] == {"role": "developer"}


# B44
def test_calls_are_answered_in_call_order() -> None:
    view = sample()[2].view("message 5")

    assert [m.text for m in view.messages if m.role == "tool"] == ["1.4 m", "2.1 m"]


# case 59
def test_arguments_may_be_an_object() -> None:
    (call,) = sample()[3].entry("message 2").message.tool_calls

    assert call.arguments == {"port": "Portville"}


# case 23
def test_a_function_call_that_was_cut_is_kept_and_never_sent() -> None:
    found = sample()[5]

    (call,) = found.entry("message 2").message.tool_calls
    assert (call.raw, call.complete) == ('{"port":', False)
    assert found.entry("message 3").message.tool_results[0].call_id == call.id
    assert [m.role for m in found.view("message 4").messages] == ["user"]


# case 21
def test_content_null_absent_empty_and_in_parts_come_back_as_they_are() -> None:
    found = loaded(
        said(
            {"role": "user", "content": None},
            {"role": "assistant"},
            {"role": "user", "content": ""},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "user", "content": 7},
        )
    )

    messages = [found.entry(key).message for key in found.keys]
    assert [m.null_content for m in messages] == [True, True, False, False, False, False]
    assert [m.text for m in messages] == ["", "", "", "", "hi", "7"]


# B31
def test_a_picture_is_taken_in() -> None:
    block = sample()[4].entry("message 1").blocks[1]

    assert (block.type, block.media_type, len(block.data)) == ("image", "image/png", 8)


# case 59
def test_equal_records_are_numbered_and_found_again(store: Store) -> None:
    record = said({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})
    path = saved(record, record)

    report = nb.load(path, store=store)
    again = nb.load(path, store=store)

    first, second = (session.id for session in report.sessions)
    assert second == f"{first}#2"
    assert [s.outcome for s in again.sessions] == ["unchanged"] * 2


# B2
def test_importing_again_in_another_order_adds_nothing(store: Store) -> None:
    nb.load(FILE, store=store)
    lines = FILE.read_text("utf-8").splitlines()
    random.Random(1).shuffle(lines)
    Path("other.jsonl").write_text("\n".join(lines), "utf-8")

    report = nb.load("other.jsonl", store=store)

    assert report.entries == 0 and len(talks(store)) == 8


# B37
def test_one_bad_line_and_odd_messages_do_not_stop_the_others(store: Store) -> None:
    good = said({"role": "user", "content": "a"}, {"role": "robot", "content": "b"}, "c")  # type: ignore[arg-type]
    text = saved(good).read_text("utf-8")
    Path("train.jsonl").write_text(f'{text}{{"messages": [\n{{"x": 1}}\n"y"\n', "utf-8")

    report = nb.load("train.jsonl", store=store)

    assert report.entries == 2
    assert "line 1: session" in told(report) and "the role 'robot' is not known" in told(report)
    assert "line 2: the line cannot be read" in told(report)
    assert "line 3: the line is no conversation" in told(report)
    assert "line 4: the line is no conversation" in told(report)


# B22
def test_an_imported_session_can_be_run_at_once() -> None:
    for found in sample()[:7]:
        assert found.open("Yes.").run("And then?", show=None).text == "Yes."
