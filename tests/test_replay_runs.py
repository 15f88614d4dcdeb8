"""B55, B56: a run whose equal is on record is told again; anything else is made."""

from __future__ import annotations

import asyncio
import threading

from pydantic import BaseModel
from replaying import Never, held, opened, types

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.stores.base import Store


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


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


# B56 B11
def test_what_others_have_run_meanwhile_is_found(store: Store) -> None:
    model = ScriptedModel("a", "b")
    again = opened(store, model)
    again.run("A", show=None)
    other = nb.open("s", store=store, model=model).run("B", show=None)

    assert again.run("B", show=None).run_id == other.run_id


# B55
def test_the_data_of_a_replayed_run_is_of_the_class_that_was_asked_for(store: Store) -> None:
    class City(BaseModel):
        name: str

    model = ScriptedModel('{"name": "Rome"}')
    made = opened(store, model).run("q", schema=City, show=None)

    again = opened(store, Never(name=model.name)).run("q", schema=City, show=None)

    assert made.data == again.data == City(name="Rome")
