"""B55, B56: a run whose equal is on record is told again; anything else is made."""

from __future__ import annotations

import asyncio
import threading
import warnings
from typing import Any

import pytest
from replaying import Never, held, opened, types

import nbdurable as nb
from nbdurable.inputs import as_entries
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.planning import Ask
from nbdurable.starting import start
from nbdurable.stores.base import Store


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# -- hits --------------------------------------------------------------------------------------


# B55
def test_replay_starts_at_the_root(store: Store, model: ScriptedModel) -> None:
    nb.open("s", store=store, model=model).run("q", show=None)

    assert opened(store, model).leaf_id is None


# B55
def test_an_equal_run_asks_no_model_and_writes_nothing(store: Store, model: ScriptedModel) -> None:
    first = opened(store, model).run("q", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name)).run("q", show=None)

    assert (again.run_id, again.text, again.leaf_id) == (first.run_id, first.text, first.leaf_id)
    assert held(store) == before


# B55
def test_a_run_that_was_made_without_replay_is_replayed(store: Store, model: ScriptedModel) -> None:
    first = nb.open("s", store=store, model=model).run("q", show=None)

    assert opened(store, Never(name=model.name)).run("q", show=None).run_id == first.run_id


# B55
def test_the_leaf_goes_along_the_replayed_run(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    ends = [chat.run(text, show=None).leaf_id for text in "abc"]

    again = opened(store, Never(name=model.name))

    for text, end in zip("abc", ends, strict=True):
        again.run(text, show=None)
        assert again.leaf_id == end


# B55 B14
def test_the_events_are_those_of_the_run_and_flagged(store: Store) -> None:
    model = ScriptedModel(
        [
            thinking("Hm."),
            *calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}), text="Sums"),
        ],
        "3 and 7.",
        cost_usd=0.25,
    )
    first = opened(store, model, tools=[add]).run(nb.meta("Be brief."), "Add.", show=None)

    again = opened(store, Never(name=model.name), tools=[add]).run(
        nb.meta("Be brief."), "Add.", show=None
    )

    assert all(event.replayed for event in again.events)
    assert not any(event.replayed for event in first.events)
    assert types(again) == types(first)
    pairs = [
        (made, told)
        for made, told in zip(
            (e for e in first.events if e.type != "message_update"),
            (e for e in again.events if e.type != "message_update"),
            strict=True,
        )
    ]
    for made, told in pairs:
        assert (made.type, made.entries, made.leaf_id, made.step) == (
            told.type,
            told.entries,
            told.leaf_id,
            told.step,
        )
        assert (made.call_id, made.name, made.arguments, made.result) == (
            told.call_id,
            told.name,
            told.arguments,
            told.result,
        )
        assert (made.usage, made.cost_usd, made.seconds) == (
            told.usage,
            told.cost_usd,
            told.seconds,
        )


# B55
def test_no_tool_is_called(store: Store) -> None:
    called = []

    def note(text: str) -> str:
        """Note."""
        called.append(text)
        return "noted"

    opened(store, ScriptedModel(calls(("note", {"text": "x"})), "Done."), tools=[note]).run(
        "Note x.", show=None
    )
    opened(store, Never(), tools=[note]).run("Note x.", show=None)

    assert called == ["x"]


# B55 B15
def test_every_form_of_reading_gives_the_replayed_run(store: Store, model: ScriptedModel) -> None:
    opened(store, model).run("q", show=None)

    def live() -> nb.Run:
        return opened(store, Never(name=model.name)).run("q", wait=False)

    async def in_a_loop() -> tuple[list[str], nb.Run]:
        return [event.type async for event in live()], await live()

    seen, awaited = asyncio.run(in_a_loop())
    assert seen[-1] == "agent_end"
    assert [event.type for event in live()] == seen
    assert "".join(live().stream()) == live().wait().text == awaited.text == "A scripted answer."
    live().cancel()  # of a run that is over: nothing happens


# B55 B19
def test_then_goes_on_from_a_replayed_run(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    first = chat.run("a", show=None)
    ends = [first.then(text, show=None).leaf_id for text in ("b", "c")]

    again = opened(store, Never(name=model.name)).run("a", show=None)

    assert [again.then(text, show=None).leaf_id for text in ("b", "c")] == ends


# B55 B19
def test_at_branches_first(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    first = chat.run("a", show=None)
    chat.run("b", show=None)
    beside = chat.run("c", at=first, show=None)
    before = held(store)

    again = opened(store, Never(name=model.name))
    for text in "ab":
        again.run(text, show=None)

    assert again.run("c", at=first.leaf_id, show=None).run_id == beside.run_id
    assert held(store) == before


# B55 B18
def test_detached_runs_are_replayed_and_leave_the_leaf(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    chat.run("a", show=None)
    made = [chat.run("b", move=False, show=None).run_id for _ in range(3)]

    again = opened(store, Never(name=model.name))
    leaf = again.run("a", show=None).leaf_id
    live = [again.run("b", move=False, wait=False) for _ in range(3)]

    assert [run.wait().run_id for run in live] == made
    assert again.leaf_id == leaf
    assert all(run.is_detached for run in live)


# B55 B18
def test_a_detached_run_that_began_beside_a_live_one_is_found_there(store: Store) -> None:
    held_model = ScriptedModel("Long.", "Side.")
    chat = opened(store, held_model)
    chat.run("a", show=None)
    go = threading.Event()
    slow = ScriptedModel(["Lo", go, "ng."], name=held_model.name)
    live = chat.run("long", model=slow, wait=False)
    beside = chat.run("side", move=False, show=None)
    go.set()
    live.wait()

    again = opened(store, Never(name=held_model.name))
    again.run("a", show=None)
    again.run("long", wait=False)

    assert beside.start_leaf_id != live.leaf_id
    assert again.run("side", move=False, show=None).run_id == beside.run_id


# B56
def test_equal_calls_at_one_leaf_take_equal_runs_in_stored_order(store: Store) -> None:
    model = ScriptedModel("one", "two", "three")
    chat = opened(store, model)
    for _ in range(3):
        chat.branch(None)
        chat.run("q", show=None)

    again = opened(store, Never(name=model.name))
    texts = []
    for _ in range(3):
        again.branch(None)
        texts.append(again.run("q", show=None).text)

    assert texts == ["one", "two", "three"]


# B56
def test_one_call_more_than_is_on_record_is_made(store: Store) -> None:
    model = ScriptedModel("one", "two")
    opened(store, model).run("q", show=None)

    again = opened(store, model)
    again.run("q", show=None)
    again.branch(None)
    more = again.run("q", show=None)

    assert (more.text, model.call_count) == ("two", 2)
    assert not more.events[0].replayed


# -- what counts -------------------------------------------------------------------------------

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
