"""B56: which requests are equal, and what never counts."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from replaying import Never, opened, types

import nbdurable as nb
from nbdurable.inputs import as_entries
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.planning import Ask
from nbdurable.starting import start
from nbdurable.stores.base import Store


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


BASE: dict[str, Any] = {"system": "Be kind.", "temperature": 0.2, "tools": [add]}


def other_add(a: int, b: int) -> int:
    """Add two numbers."""
    return -1


other_add.__name__ = "add"


def told_add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


told_add.__name__ = "add"

DIFFERENT: dict[str, dict[str, Any]] = {
    "model": {"model": ScriptedModel("New.", name="other")},
    "system": {"system": "Be short."},
    "no system": {"system": None},
    "parameter": {"temperature": 0.9},
    "one parameter more": {"top_p": 0.5},
    "no tools": {"tools": []},
    "tool with another description": {"tools": [told_add]},
}


# B56
@pytest.mark.parametrize("what", DIFFERENT)
@pytest.mark.filterwarnings("ignore:this run at the root is made for real")
def test_what_the_caller_gave_otherwise_is_made(store: Store, what: str) -> None:
    model = ScriptedModel("Old.", "New.")
    opened(store, model, **BASE).run("q", show=None)

    given = {"model": model, **BASE, **DIFFERENT[what]}
    again = nb.open("s", store=store, replay=True, **given).run("q", show=None)

    assert again.text == "New."


INPUTS: dict[str, tuple[object, ...]] = {
    "words": ("r",),
    "meta": (nb.meta("q"),),
    "two messages": (nb.user("q"), "q"),
    "ephemeral words": ("q", nb.ephemeral("It snows.")),
    "no ephemeral words": ("q",),
}


# B56 B35
@pytest.mark.parametrize("what", INPUTS)
@pytest.mark.filterwarnings("ignore:this run at the root is made for real")
def test_other_input_is_made(store: Store, what: str) -> None:
    model = ScriptedModel("Old.", "New.")
    opened(store, model).run("q", nb.ephemeral("It rains."), show=None)

    assert opened(store, model).run(*INPUTS[what], show=None).text == "New."


# B56 B35
def test_equal_ephemeral_input_is_replayed_and_stands_where_it_was_said(store: Store) -> None:
    model = ScriptedModel("Old.")
    with opened(store, model) as chat:
        chat.run("q", nb.ephemeral("It rains."), show=None)

    again = opened(store, Never(name=model.name))
    again.run("q", nb.ephemeral("It rains."), show=None)

    assert [e.text for e in again.entries(nb.MessageEntry)] == ["q", "It rains.", "Old."]


# B56
def test_hooks_tool_bodies_keys_limits_and_the_order_of_parameters_do_not_count(
    store: Store,
) -> None:
    class Loud(nb.Hooks):
        pass

    model = ScriptedModel("Old.")
    opened(store, model, tools=[add], api_key="a", temperature=0.2, seed=1).run("q", show=None)

    again = opened(
        store,
        Never(name=model.name),
        tools=[other_add],
        seed=1,
        temperature=0.2,
        api_key="b",
        hooks=Loud(),
        max_steps=3,
        budget_usd=0.0,
    )

    assert again.run("q", show=None).text == "Old."


# B56
def test_a_setting_of_open_and_the_same_one_of_run_are_equal(store: Store) -> None:
    model = ScriptedModel("Old.")
    opened(store, model, system="Be kind.").run("q", temperature=0.2, show=None)

    again = opened(store, Never(name=model.name), temperature=0.2)

    assert again.run("q", system="Be kind.", show=None).text == "Old."


# B56
def test_bytes_of_an_image_count_and_its_name_does_not(store: Store) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(40_000)
    model = ScriptedModel("Old.", "New.")
    opened(store, model).run("What?", nb.image(png), show=None)

    assert opened(store, model).run("What?", nb.image(png), show=None).text == "Old."
    with pytest.warns(UserWarning, match="is made for real"):
        other = opened(store, model).run("What?", nb.image(png + b"\0"), show=None)
    assert other.text == "New."


# B56
def test_an_equal_run_from_another_leaf_does_not_answer(store: Store) -> None:
    model = ScriptedModel("a1", "q at a1", "q at the root")
    chat = opened(store, model)
    chat.run("a", show=None)
    chat.run("q", show=None)

    with pytest.warns(UserWarning, match="start #2 → the root"):
        again = opened(store, model).run("q", show=None)

    assert again.text == "q at the root"


# B56
def test_max_steps_is_a_finished_run(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})))
    first = opened(store, model, tools=[add], max_steps=1).run("Add.", show=None)

    again = opened(store, Never(), tools=[add], max_steps=1).run("Add.", show=None)

    assert (first.outcome, again.outcome, again.run_id) == ("max_steps", "max_steps", first.run_id)
    assert types(again) == types(first)


# B55 B32
def test_follow_up_input_of_a_hook_is_told_again(store: Store) -> None:
    class Once(nb.Hooks):
        def __init__(self) -> None:
            self.more = ["And more?"]

        def before_stop(self, message: object) -> object:
            return self.more.pop() if self.more else None

    model = ScriptedModel("One.", "Two.")
    first = opened(store, model, hooks=Once()).run("q", show=None)

    again = opened(store, Never(), hooks=Once()).run("q", show=None)

    assert types(again) == types(first)
    assert [e.id for e in again.entries] == [e.id for e in first.entries]


# B56
def test_runs_of_an_experiment_never_answer(store: Store) -> None:
    model = ScriptedModel("of a plan", "New.")
    plain = nb.open("s", store=store, model=model)
    ask = Ask(
        kind="run",
        input=as_entries("q"),
        leaf_id=None,
        moves=False,
        experiment_id="e",
        cell="0",
    )
    start(plain, ask, plain.settings, wait=True, show=None, tells=False)

    assert opened(store, model).run("q", show=None).text == "New."


# B56
def test_verbs_match_only_their_own_kind(store: Store) -> None:
    model = ScriptedModel("run", "edit", "rerun")
    chat = opened(store, model)
    first = chat.run("q", show=None)
    chat.edit(first, "q", show=None)
    chat.rerun(show=None)

    again = opened(store, Never(name=model.name))
    runs = [again.run("q", show=None)]
    runs.append(again.edit(runs[0], "q", show=None))
    runs.append(again.rerun(show=None))

    assert [run.text for run in runs] == ["run", "edit", "rerun"]


# B55 B2
def test_the_default_model_is_that_of_the_path_to_the_position(store: Store) -> None:
    nb.open("s", store=store, model=ScriptedModel("Old.", name="openai/none")).run("q", show=None)

    with pytest.warns(UserWarning, match="goes on with model 'openai/none'"):
        again = nb.open("s", store=store, replay=True)

    assert again.run("q", show=None).text == "Old."


# B55
def test_no_key_is_needed(store: Store) -> None:
    nb.open("s", store=store, model=ScriptedModel("Old.", name="openai/gpt-5-mini")).run(
        "q", show=None
    )

    again = nb.open("s", store=store, model="openai/gpt-5-mini", replay=True)

    assert again.run("q", show=None).text == "Old."


# B53 B55
def test_nothing_is_published_but_the_opening(store: Store, model: ScriptedModel) -> None:
    heard: list[str] = []
    first = opened(store, model)
    leaf = first.run("q", show=None).leaf_id
    first.compact()

    again = opened(store, Never(name=model.name), publisher=lambda event: heard.append(event.type))
    again.run("q", show=None)
    again.branch(None)
    again.branch(leaf)
    again.compact()

    assert heard == ["session_init"]


# B55
def test_a_known_parameter_warns_no_more_than_without_replay(
    store: Store, model: ScriptedModel
) -> None:
    opened(store, model).run("q", temperature=0.1, show=None)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(store, model).run("q", temperature=0.1, show=None)
