"""Forms to take a session to: pi's, chat messages, examples to tune a model on."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from importing import DATA, Talk, outcomes, talks
from recorded import any_section

import nbdurable as nb
from nbdurable.annotations import LABEL
from nbdurable.errors import StoreError
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stored import StoredEntry
from nbdurable.stores.jsonl import Section
from nbdurable.stores.memory import MemoryStore

PI = DATA / "pi_session.jsonl"
PI_ID = "pi:55555555-0000-4000-8000-000000000001"


def look(port: str) -> str:
    """Look at a port."""
    return f"2 m at {port}"


def chat() -> nb.Session:
    """A question with a call, its answer, and a second answer beside it."""
    model = ScriptedModel(calls(("look", {"port": "Bern"})), "Two.", "Second.", "Third.")
    made = nb.open("s", store=MemoryStore(), model=model, system="Be brief.", tools=[look])
    made.run("How high?", show=None)
    made.rerun(2, show=None)
    return made


def objects(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").split("\n") if line]


def loaded(path: str | Path) -> Talk:
    store = MemoryStore()
    nb.load(path, store=store)
    (found,) = talks(store).values()
    return found


# -- pi ------------------------------------------------------------------------------------------


def content(entry: StoredEntry) -> tuple[object, ...]:
    return (entry.id, entry.parent_id, entry.kind, entry.payload, entry.created_at, entry.source_id)


# B48
def test_a_session_of_pi_goes_back_to_pi_as_it_came() -> None:
    first = loaded(PI)
    first.open().export("out.jsonl", "pi")

    second = loaded("out.jsonl")

    assert second.id == PI_ID
    assert [content(e) for e in second.entries] == [content(e) for e in first.entries]
    assert second.position == first.position == "b0000010"
    assert second.said(LABEL) == first.said(LABEL)
    assert second.said("title") == first.said("title")


# B37
def test_lines_of_pi_come_back_with_their_ids_parents_and_values() -> None:
    loaded(PI).open().export("out.jsonl", "pi")

    before, after = objects(PI), objects("out.jsonl")

    assert [line.get("id") for line in after] == [line.get("id") for line in before]
    assert [line.get("parentId") for line in after] == [line.get("parentId") for line in before]
    same = [a == b for a, b in zip(after, before, strict=True)]
    assert same.count(False) <= 4  # texts that stood bare stand in parts


# B3
def test_what_was_added_here_goes_to_pi_with_its_labels_and_leaf() -> None:
    talk = loaded(PI)
    here = talk.open("Fine.")
    run = here.run("And now?", show=None)
    here.label(run, "mine")
    here.branch(talk.stored("a0000006").id)
    here.export("out.jsonl", "pi")

    again = loaded("out.jsonl")

    assert len(again.keys) == 24 + 2 + 1
    assert [entry.preview for entry in again.entries][24:26] == ["And now?", "Fine."]
    assert again.parents[str(again.position)] == "a0000006"
    labels = {value for _, value in again.said(LABEL) if value}
    assert {"mine", "before picture"} <= labels


# B3
def test_a_move_alone_goes_to_pi_as_an_entry_under_the_position() -> None:
    talk = loaded(PI)
    here = talk.open()
    here.branch(talk.stored("a0000006").id)
    here.export("out.jsonl", "pi")

    again = loaded("out.jsonl")

    assert again.parents[str(again.position)] == "a0000006"
    assert len(again.keys) == 25 and again.view(str(again.position)).messages[-1].text == (
        "Two entries: src and README.md."
    )


# B37
def test_any_session_goes_to_pi_and_is_valid_there() -> None:
    chat().export("out.jsonl", "pi")

    back = loaded("out.jsonl")

    lines = objects("out.jsonl")
    assert lines[0] | {"timestamp": ""} == {
        "type": "session",
        "version": 3,
        "id": "s",
        "timestamp": "",
        "cwd": ".",
    }
    assert [line["message"]["role"] for line in lines[1:] if line["type"] == "message"] == [
        *["user", "assistant", "toolResult", "assistant", "assistant"]
    ]
    assert len(back.leaves) == 2
    assert back.view(str(back.position)).messages[-1].text == "Second."


# -- chat messages -------------------------------------------------------------------------------


# B47
def test_one_path_is_written_as_it_would_be_sent() -> None:
    made = chat()
    made.export("out.json", at=4)

    (written,) = [json.loads(Path("out.json").read_text("utf-8"))]

    assert [m["role"] for m in written["messages"]] == [
        *["system", "user", "assistant", "tool", "assistant"]
    ]
    assert written["messages"][0]["content"] == "Be brief."
    assert written["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"port": "Bern"}'
    assert written["tools"][0]["function"]["name"] == "look"


# case 59
def test_what_was_imported_from_openai_goes_back_with_weights_roles_and_tools() -> None:
    store = MemoryStore()
    nb.load(DATA / "openai_finetune.jsonl", store=store)
    with pytest.warns(UserWarning, match="2 branches left out of 'out.jsonl'"):
        nb.connect(store).export("out.jsonl", format="finetune")

    written = objects("out.jsonl")

    terse = next(one for one in written if "Be terse" in str(one))
    assert terse["messages"][0]["role"] == "developer"
    assert [m.get("weight") for m in terse["messages"]] == [None, None, 0, None, 1]
    assert terse["messages"][1]["name"] == "visitor_1"
    tides = next(one for one in written if "Tides at" in str(one))
    assert tides["parallel_tool_calls"] is True and len(tides["tools"]) == 1
    arguments = [c["function"]["arguments"] for c in tides["messages"][1]["tool_calls"]]
    assert all(isinstance(json.loads(text), dict) for text in arguments)
    assert [m["tool_call_id"] for m in tides["messages"] if m["role"] == "tool"] == [
        *["call_1", "call_2"]
    ]


# case 59
def test_what_is_written_is_read_by_our_own_reader() -> None:
    chat().export("out.jsonl", "finetune")
    store = MemoryStore()

    report = nb.load("out.jsonl", store=store)

    assert report.format == "openai" and [s.entries for s in report.sessions] == [5, 3]
    assert report.oddities == ()


# B70
def test_each_branch_that_ends_in_an_answer_is_an_example() -> None:
    made = chat()
    made.branch(1)
    made.append(nb.user("Unanswered."))

    with pytest.warns(UserWarning, match=r"1 branch left out of 'out\.jsonl': an example ends in"):
        made.export("out.jsonl", "finetune")

    assert [m["messages"][-1]["content"] for m in objects("out.jsonl")] == ["Two.", "Second."]


# -- all of them ---------------------------------------------------------------------------------


# B69
@pytest.mark.parametrize("name", ["a.json", "a.pi", "a.finetune"])
def test_texts_are_redacted_also_in_what_an_import_kept(name: str) -> None:
    store = MemoryStore()
    line = {"messages": [{"role": "user", "content": "I am Anna", "name": "Anna", "x": ["Anna"]}]}
    line["messages"].append({"role": "assistant", "content": "Hello Anna", "weight": 1})
    Path("in.jsonl").write_text(json.dumps({**line, "user": "Anna"}) + "\n")
    nb.load("in.jsonl", store=store)
    (talk,) = talks(store).values()
    format = {"a.json": None, "a.pi": "pi", "a.finetune": "finetune"}[name]

    talk.open().export(name, format, redact=lambda text: text.replace("Anna", "***"))

    text = Path(name).read_text("utf-8")
    assert "Anna" not in text and "I am ***" in text


# B37
@pytest.mark.parametrize(("name", "format"), [("a.json", None), ("a", "pi"), ("a", "finetune")])
def test_an_export_replaces_its_like_and_nothing_else(name: str, format: str | None) -> None:
    made = chat()
    made.export(name, format)
    made.export(name, format)
    Path("other").write_text("notes")

    with pytest.raises(StoreError, match=r"file 'other' is there and is no export of format"):
        made.export("other", format or "openai")

    assert Path("other").read_text() == "notes"


# B2
def test_a_session_of_pi_that_went_on_there_comes_back_grown() -> None:
    store = MemoryStore()
    nb.load(PI, store=store)
    talks(store)[PI_ID].open().export("out.jsonl", "pi")

    report = nb.load("out.jsonl", store=store)

    assert outcomes(report) == [(PI_ID.partition(":")[2], "unchanged", 0)]


FORMS = ["jsonl", "markdown", "html", "openai", "finetune", "pi", "parquet"]


# B37
@settings(max_examples=8)
@given(any_section())
def test_any_session_goes_to_every_form(section: Section) -> None:
    store = MemoryStore()
    store.create_session(section.session, section.entries, beside=section.beside)
    made = nb.open(section.session.id, store=store, model="local")

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form in FORMS:
            made.export(Path(folder) / form, form)
            if made.leaf_id:
                made.export(Path(folder) / f"{form}-at", form, at=made.leaf_id)

        assert len(list(Path(folder).iterdir())) in (len(FORMS), 2 * len(FORMS))
