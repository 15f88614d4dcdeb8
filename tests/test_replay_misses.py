"""B58, B29: what a call without an equal on record does, says and leaves behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from replaying import Never, held, opened

import nbdurable as nb
from nbdurable.errors import ReplayMiss
from nbdurable.models.scripted import ScriptedModel
from nbdurable.replay.record import Request, difference
from nbdurable.stores.base import Store

# -- what differs ------------------------------------------------------------------------------

ASKED = Request(
    kind="run",
    start="#4",
    input=("q",),
    preview="q",
    model="m",
    system="Be kind.",
    tools=(("add", "{1}"),),
    params=(("temperature", "0.2"),),
)

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "start": ({"start": "the root"}, "start the root → #4"),
    "input": ({"input": ("r",), "preview": "r"}, "input 'r' → 'q'"),
    "bytes": ({"input": ("r",)}, "input"),
    "long input": (
        {"input": ("r",), "preview": "r" * 100},
        "input '" + "r" * 38 + "… → 'q'",
    ),
    "ephemeral": ({"ephemeral": ("d",)}, "ephemeral input"),
    "model": ({"model": "n"}, "model 'n' → 'm'"),
    "system": ({"system": None}, "system text"),
    "value": ({"params": (("temperature", "0.9"),)}, "temperature 0.9 → 0.2"),
    "one more": ({"params": ()}, "temperature unset → 0.2"),
    "tools": ({"tools": ()}, "tools none → add"),
    "schema": ({"tools": (("add", "{2}"),)}, "description or schema of tool 'add'"),
    "two": ({"model": "n", "params": ()}, "model 'n' → 'm', temperature unset → 0.2"),
}


# B58
@pytest.mark.parametrize("what", CHANGES)
def test_a_difference_names_what_changed(what: str) -> None:
    values, words = CHANGES[what]

    assert difference(ASKED, replace(ASKED, **values)) == words


# B58
def test_a_miss_that_is_made_says_what_differs(store: Store) -> None:
    model = ScriptedModel("Old.", "New.")
    opened(store, model, temperature=0.2).run("q", show=None)

    with pytest.warns(UserWarning) as said:
        opened(store, model, temperature=0.9).run("q", show=None)

    assert [str(one.message) for one in said] == [
        "this run at the root is made for real: the nearest recorded run, which ended at #2, "
        "differs in temperature 0.2 → 0.9"
    ]
    assert said[0].filename == __file__


# B58
def test_the_first_time_nothing_is_said(store: Store) -> None:
    model = ScriptedModel("An answer.")
    chat = opened(store, model)

    for text in "abc":  # warnings are errors
        chat.run(text, show=None)

    assert chat.replay_report().misses == 3


# B58
def test_a_call_beyond_the_end_of_the_record_is_just_new(
    store: Store, model: ScriptedModel
) -> None:
    opened(store, model).run("a", show=None)

    again = opened(store, model)
    again.run("a", show=None)
    again.run("b", show=None)  # warnings are errors

    assert model.call_count == 2


# B55 B56
@pytest.mark.filterwarnings("ignore:this run at")
def test_an_edited_call_grows_a_sibling_and_the_original_is_free_again(store: Store) -> None:
    model = ScriptedModel("a", "b", "c", "b2", "c2")

    def notebook(words: str) -> list[str]:
        chat = opened(store, model)
        return [chat.run(text, show=None).text for text in ("A", words, "C")]

    first = notebook("B")
    edited = notebook("B?")
    calls_then = model.call_count

    assert (first, edited) == (["a", "b", "c"], ["a", "b2", "c2"])
    assert notebook("B") == first
    assert notebook("B?") == edited
    assert model.call_count == calls_then == 5


# -- replay="only" -----------------------------------------------------------------------------


# B58
def test_only_refuses_a_miss_and_names_the_nearest_run(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model, temperature=0.2)
    chat.run("What is a monad?", show=None)
    chat.run("And a burrito?", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name), temperature=0.9, replay="only")
    with pytest.raises(ReplayMiss) as raised:
        again.run("What is a monad?", show=None)

    assert str(raised.value) == (
        "no recorded run answers this run at the root: the nearest recorded run, which ended at "
        "#2, differs in temperature 0.2 → 0.9; open with replay=True, or with replay_model=, to "
        "have it answered"
    )
    assert held(store) == before
    assert again.leaf_id is None


# B58
def test_only_names_a_run_of_another_place_when_nothing_is_nearer(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    chat.run("a", show=None)
    chat.run("b", show=None)

    again = opened(store, Never(name=model.name), replay="only")
    again.run("a", show=None)
    again.append("in between")
    with pytest.raises(ReplayMiss, match=r"ended at #4, differs in start #2 → #5, input 'b' → 'c'"):
        again.run("c", show=None)


# B58
def test_only_says_when_there_is_nothing_on_record(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model, replay="only")

    with pytest.raises(ReplayMiss, match="session 's' has no other recorded run of that kind"):
        chat.run("q", show=None)


# B58
def test_only_refuses_rerun_edit_and_compact_alike(store: Store, model: ScriptedModel) -> None:
    opened(store, model).run("q", show=None)
    again = opened(store, Never(name=model.name), replay="only")
    run = again.run("q", show=None)
    before = held(store)

    with pytest.raises(ReplayMiss, match="this rerun at #1"):
        again.rerun(show=None)
    with pytest.raises(ReplayMiss, match="this edit at the root"):
        again.edit(run, "r", show=None)
    with pytest.raises(ReplayMiss, match="this compact at #2"):
        again.compact()
    assert held(store) == before


# B58
def test_only_lets_pass_what_needs_no_model(store: Store, model: ScriptedModel) -> None:
    again = opened(store, Never(name=model.name), replay="only")

    (said,) = again.append("noted")

    assert again.leaf_id == said.id


# -- replay_model ------------------------------------------------------------------------------


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_replay_model_answers_misses_and_the_next_replay_finds_them(store: Store) -> None:
    asked, stand_in = ScriptedModel("Dear.", name="dear"), ScriptedModel("Free.", name="free")
    opened(store, asked).run("a", show=None)

    again = opened(store, Never(name="dear"), replay_model=stand_in)
    texts = [again.run(text, show=None).text for text in "ab"]
    third = opened(store, Never(name="dear"))
    found = [third.run(text, show=None) for text in "ab"]

    assert texts == [run.text for run in found] == ["Dear.", "Free."]
    assert [run.model for run in found] == ["dear", "free"]
    assert [entry.model for entry in store.load_entries("s")] == [None, "dear", None, "free"]
    assert stand_in.call_count == 1


# B58 B2
def test_a_stand_in_does_not_become_the_default_model(store: Store) -> None:
    stand_in = ScriptedModel("Free.", name="free")
    opened(store, Never(name="openai/dear"), replay_model=stand_in).run("a", show=None)

    with pytest.warns(UserWarning, match="goes on with model 'openai/dear'"):
        again = nb.open("s", store=store, replay=True)

    assert again.run("a", show=None).text == "Free."
