"""``export(path, format="dpo")``: pairs to a file, whole, redacted where asked for."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores import Store


def look(port: str) -> str:
    """Look at a port of Anna."""
    return f"2 m at {port}"


@pytest.fixture
def chat(store: Store) -> nb.Session:
    """A session of one question (#1) with three answers (#2 to #4)."""
    chat = nb.open("s", store=store, model=ScriptedModel("one", "two", "three"), system="Be brief.")
    chat.run("Name a sea, Anna.", show=None)
    chat.rerun(show=None)
    chat.rerun(show=None)
    return chat


def read(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes().decode()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


# B70
def test_pairs_are_written_one_a_line_and_again_in_their_place(chat: nb.Session) -> None:
    chat.prefer(2, 3)
    first = chat.export("pairs.jsonl", format="dpo")
    chat.prefer(2, 3, 4)

    assert len(read(first)) == 1
    again = chat.export("pairs.jsonl", format="dpo")

    assert again == Path("pairs.jsonl")
    assert [line["non_preferred_output"][0]["content"] for line in read(again)] == ["two", "three"]
    assert [path.name for path in Path().iterdir() if path.suffix != ".duckdb"] == ["pairs.jsonl"]


# B70
def test_nothing_to_write_is_told_and_gives_an_empty_file(chat: nb.Session) -> None:
    with pytest.warns(UserWarning, match=r"session 's' has no answer that is preferred") as said:
        chat.export("pairs.jsonl", format="dpo")

    assert said[0].filename == __file__
    assert read(Path("pairs.jsonl")) == []


# B70
def test_pairs_that_are_left_out_are_counted_aloud(chat: nb.Session) -> None:
    chat.prefer(2, 1, 3)

    with pytest.warns(UserWarning, match=r"1 pair of session 's' left out of 'pairs\.jsonl'"):
        chat.export("pairs.jsonl", format="dpo")

    assert len(read(Path("pairs.jsonl"))) == 1


# B70
def test_a_file_that_holds_something_else_is_not_replaced(chat: nb.Session) -> None:
    chat.prefer(2, 3)
    chat.export("own.jsonl")
    before = Path("own.jsonl").read_bytes()

    with pytest.raises(nb.errors.StoreError, match=r"'own\.jsonl' is there and is no export of"):
        chat.export("own.jsonl", format="dpo")

    assert Path("own.jsonl").read_bytes() == before


# B70
def test_at_an_entry_only_pairs_with_an_answer_on_its_path_are_written(chat: nb.Session) -> None:
    chat.label(4, "third")
    chat.prefer(2, 3, 4)

    chat.export("pairs.jsonl", format="dpo", at="third")

    (line,) = read(Path("pairs.jsonl"))
    assert line["non_preferred_output"][0]["content"] == "three"


# B69 B70
def test_every_text_goes_through_redact(store: Store) -> None:
    steps = (calls(("look", {"port": "Annaport"})), "Anna sees 2 m.", "Ask Anna.")
    chat = nb.open("s", store=store, model=ScriptedModel(*steps), tools=[look], system="Of Anna.")
    good = chat.run(nb.meta("Anna is kind."), "Tide, Anna?", show=None)
    chat.prefer(good, chat.rerun(show=None))

    chat.export("pairs.jsonl", format="dpo", redact=lambda text: text.replace("Anna", "NAME"))

    text = Path("pairs.jsonl").read_text("utf-8")
    assert "Anna" not in text
    (line,) = read(Path("pairs.jsonl"))
    assert line["input"]["messages"][0]["content"] == "Of NAME."
    assert "NAMEport" in line["preferred_output"][0]["tool_calls"][0]["function"]["arguments"]
    assert line["input"]["tools"][0]["function"]["description"] == "Look at a port of NAME."
    assert chat[1].text == "Anna is kind."  # type: ignore[attr-defined]


# B48 B70
def test_a_fork_exports_what_was_said_in_it_with_the_system_text_of_its_source(
    chat: nb.Session,
) -> None:
    child = chat.fork("child", at=2)
    mine = child.edit(2, "The Baltic.")
    assert isinstance(mine, nb.Entry)
    child.prefer(mine, 2)

    child.export("pairs.jsonl", format="dpo", redact=str.upper)

    (line,) = read(Path("pairs.jsonl"))
    assert line["input"]["messages"][0]["content"] == "BE BRIEF."
    assert line["preferred_output"][0]["content"] == "THE BALTIC."


# B70
def test_exporting_warns_of_nothing_when_all_is_well(chat: nb.Session) -> None:
    chat.rate(2, 1)
    chat.rate(3, 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = chat.export("pairs.jsonl", format="dpo")

    assert len(read(path)) == 1
