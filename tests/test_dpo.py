"""Preference pairs: two answers to one prompt, the better one first, in OpenAI's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.formats.dpo import preference_pairs
from nbdurable.models.chat_format import message_from_openai
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.stores import Store


def look(port: str) -> str:
    """Look at a port."""
    return f"2 m at {port}"


def opened(store: Store, *steps: Any, **options: Any) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*steps), **options)


def three(store: Store, *answers: str) -> nb.Session:
    """Return a session of one question (#1) with three answers (#2 to #4)."""
    chat = opened(store, *(answers or ("one", "two", "three")), system="Be brief.")
    chat.run("Name a sea.", show=None)
    chat.rerun(show=None)
    chat.rerun(show=None)
    return chat


def lines_of(chat: nb.Session) -> list[dict[str, Any]]:
    return [json.loads(line) for line in preference_pairs(chat.image).lines]


def texts_of(chat: nb.Session) -> list[tuple[str, str]]:
    return [
        (line["preferred_output"][-1]["content"], line["non_preferred_output"][-1]["content"])
        for line in lines_of(chat)
    ]


# -- what makes a pair -----------------------------------------------------------------------------


# B70
def test_a_preference_gives_one_line_per_loser(store: Store) -> None:
    chat = three(store)

    chat.prefer(2, 3, 4)

    assert lines_of(chat) == [
        {
            "input": {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Name a sea."},
                ]
            },
            "preferred_output": [{"role": "assistant", "content": "one"}],
            "non_preferred_output": [{"role": "assistant", "content": loser}],
        }
        for loser in ("two", "three")
    ]


# B70
def test_ratings_give_each_higher_with_each_lower_and_ties_nothing(store: Store) -> None:
    chat = three(store)
    chat.rate(2, 1)
    chat.rate(3, 3)
    chat.rate(4, 1)

    assert texts_of(chat) == [("two", "one"), ("two", "three")]


# B70
def test_ratings_of_other_names_or_authors_are_not_compared(store: Store) -> None:
    chat = three(store)
    chat.rate(2, 1)
    chat.rate(3, 3, name="tone")
    chat.rate(4, 5, by="ana")

    assert texts_of(chat) == []


# B70
def test_yes_is_better_than_no(store: Store) -> None:
    chat = three(store)
    chat.rate(2, False, name="safe")
    chat.rate(4, True, name="safe")

    assert texts_of(chat) == [("three", "one")]


# B70
def test_what_was_cleared_gives_no_line(store: Store) -> None:
    chat = three(store)
    chat.prefer(2, 3)
    chat.rate(2, 1)
    chat.rate(3, 2)

    chat.prefer(2, None)
    chat.rate(3, None)

    assert texts_of(chat) == []


# B70
def test_identical_pairs_come_once(store: Store) -> None:
    chat = three(store, "good", "bad", "bad")
    chat.prefer(2, 3, 4)
    chat.prefer(2, 3, by="ana")
    chat.rate(2, 2)
    chat.rate(3, 1)

    assert texts_of(chat) == [("good", "bad")]


# B70
def test_two_equal_answers_are_no_pair_and_counted(store: Store) -> None:
    chat = three(store, "same", "same", "other")
    chat.prefer(2, 3)
    chat.prefer(2, 3, by="ana")

    assert preference_pairs(chat.image).left_out == 1
    assert texts_of(chat) == []


# B70
def test_answers_to_other_questions_and_of_one_path_are_left_out(store: Store) -> None:
    chat = opened(store, "one", "two", "three")
    first = chat.run("a", show=None)
    second = chat.run("b", show=None)
    other = chat.run("c", at=None, show=None)
    chat.prefer(first, second, other)
    chat.prefer(2, 1, by="ana")
    chat.rate(first, 1)
    chat.rate(second, 2)

    assert preference_pairs(chat.image).left_out == 3
    assert texts_of(chat) == []


# B44 B70
def test_answers_whose_prompts_differ_by_a_repair_are_left_out(store: Store) -> None:
    """One has the result of a call that both share, the other a word that there is none."""
    chat = opened(store, calls(("look", {"port": "Kiel"})), "2 m", tools=[look])
    chat.run("Tide at Kiel?", show=None)
    chat.branch(2)
    (guess,) = chat.append(nb.assistant("A guess."))
    chat.prefer(guess, 4)

    assert preference_pairs(chat.image).left_out == 1
    assert texts_of(chat) == []


# B70
def test_a_session_without_annotations_gives_nothing(store: Store) -> None:
    pairs = preference_pairs(three(store).image)

    assert (pairs.lines, pairs.left_out) == ((), 0)


# -- what stands in a line -------------------------------------------------------------------------


# B70
def test_the_prompt_is_what_the_model_read_up_to_where_the_answers_part(store: Store) -> None:
    chat = opened(store, (thinking("hm", "c2ln"), "hello"), "one", "two")
    chat.run(nb.meta("Be kind."), "Hi.", show=None)
    good = chat.run("Name a sea.", show=None)
    bad = chat.rerun(show=None)
    chat.prefer(good, bad)

    (line,) = lines_of(chat)

    assert line["input"]["messages"] == [
        {"role": "user", "content": "Be kind."},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "Name a sea."},
    ]


# B70
def test_answers_with_tools_are_whole_and_compared_by_their_last_entry(store: Store) -> None:
    steps = (calls(("look", {"port": "Kiel"})), "2 m", "I cannot know.")
    chat = opened(store, *steps, tools=[look])
    good = chat.run("Tide at Kiel?", show=None)
    bad = chat.rerun(show=None)
    chat.rate(good, 5)
    chat.rate(bad, 1)

    (line,) = lines_of(chat)

    assert [m["role"] for m in line["preferred_output"]] == ["assistant", "tool", "assistant"]
    call = line["preferred_output"][0]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("look", {"port": "Kiel"})
    assert line["non_preferred_output"] == [{"role": "assistant", "content": "I cannot know."}]
    assert [tool["function"]["name"] for tool in line["input"]["tools"]] == ["look"]


# B70
def test_a_system_text_that_only_one_answer_had_is_left_out(store: Store) -> None:
    chat = opened(store, "one", "two", system="Be brief.")
    good = chat.run("q", show=None)
    bad = chat.rerun(system="Rhyme.", show=None)
    chat.prefer(good, bad)

    (line,) = lines_of(chat)

    assert line["input"]["messages"] == [{"role": "user", "content": "q"}]


# B70
def test_an_answer_that_a_person_edited_is_the_better_one_of_its_prompt(store: Store) -> None:
    chat = three(store)
    mine = chat.edit(2, "The Baltic.")
    assert isinstance(mine, nb.Entry)
    chat.prefer(mine, 2)

    (line,) = lines_of(chat)

    assert line["preferred_output"] == [{"role": "assistant", "content": "The Baltic."}]
    assert line["input"]["messages"][0] == {"role": "system", "content": "Be brief."}


# B22 B70
def test_of_a_failed_answer_the_words_that_came_count(store: Store) -> None:
    chat = opened(store, "one", ("pa", RuntimeError("down")), RuntimeError("down"))
    good = chat.run("q", show=None)
    failed = []
    for _ in range(2):
        with pytest.raises(nb.errors.ModelError, match="down") as raised:
            chat.rerun(show=None)
        failed.append(raised.value.run)
    chat.prefer(good, *failed)

    assert texts_of(chat) == [("one", "pa")]
    assert preference_pairs(chat.image).left_out == 1


# B70
def test_texts_survive_the_trip_and_lines_are_lines(store: Store) -> None:
    trap = "a\nb\u2028c\0 <b> 漢字 \ud83c 👩‍👩‍👧"
    chat = three(store, trap, "two", "three")
    chat.prefer(2, 3)

    (line,) = preference_pairs(chat.image).lines

    assert "\n" not in line
    line.encode()
    output = json.loads(line)["preferred_output"][0]["content"]
    assert output == trap.replace("\ud83c", "\ufffd")


# case 59
def test_a_line_has_the_shape_of_the_published_sample_and_reads_back(store: Store) -> None:
    sample = json.loads((Path(__file__).parent / "data" / "openai_preference.jsonl").read_text())
    chat = three(store, "The North Sea.", "sea", "x")
    chat.prefer(2, 3)

    (line,) = lines_of(chat)

    assert line.keys() == sample.keys()
    assert line["input"].keys() <= sample["input"].keys()
    for side in ("preferred_output", "non_preferred_output"):
        assert line[side] == sample[side]
        assert message_from_openai(line[side][0]).text == sample[side][0]["content"]


# B70
def test_a_long_session_gives_many_pairs_without_reading_a_run_twice(store: Store) -> None:
    chat = three(store)
    for entry in (2, 3, 4):
        chat.rate(entry, entry)
    loaded: list[str] = []
    look_up = store.load_runs

    def counted(session_id: str) -> Any:
        loaded.append(session_id)
        return look_up(session_id)

    store.load_runs = counted  # type: ignore[method-assign]
    pairs = preference_pairs(chat.image)
    store.load_runs = look_up  # type: ignore[method-assign]

    assert len(pairs.lines) == 3
    assert loaded == ["s"]
