"""B13, B14, B16, B19: the order of a run, its events and its receipts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import nbdurable as nb
from nbdurable.blocks import Usage
from nbdurable.models.base import Finish, RetryNotice, TextDelta
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.stores.base import Store

RECEIPTS = ("agent_start", "message_end")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def opened(store: Store, model: ScriptedModel, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=model, **options)  # type: ignore[arg-type]


def stored_ids(store: Store) -> list[str]:
    return [entry.id for entry in store.load_entries("s")]


def types(run: nb.Run) -> list[str]:
    """Return the types of a run's events, repeated updates once."""
    seen = [event.type for event in run.events]
    return [t for i, t in enumerate(seen) if t != "message_update" or seen[i - 1] != t]


# B13
def test_the_input_and_the_run_record_are_stored_before_the_model_is_called(store: Store) -> None:
    seen: list[tuple[int, int]] = []

    def step(request: object) -> str:
        seen.append((len(store.load_entries("s")), len(store.load_runs("s"))))
        return "Yes."

    opened(store, ScriptedModel(step)).run("Is it?", show=None)

    assert seen == [(1, 1)]


# B13
def test_a_tool_body_finds_the_message_that_called_it_in_the_store(store: Store) -> None:
    seen: list[list[str | None]] = []

    def look() -> str:
        seen.append([entry.role for entry in store.load_entries("s")])
        return "seen"

    model = ScriptedModel(calls(("look", {})), "Done.")

    opened(store, model, tools=[look]).run("Look.", show=None)

    assert seen == [["user", "assistant"]]


# B13 B28
def test_parallel_tool_bodies_find_the_message_that_called_them(store: Store) -> None:
    seen: list[list[str | None]] = []

    @nb.tool(parallel=True)
    def look(n: int) -> int:
        seen.append([entry.role for entry in store.load_entries("s")][:2])
        return n

    model = ScriptedModel(calls(("look", {"n": 1}), ("look", {"n": 2})), "Done.")

    opened(store, model, tools=[look]).run("Look.", show=None)

    assert seen == [["user", "assistant"]] * 2


# B13
def test_a_later_tool_of_a_step_finds_the_result_of_the_one_before_it(store: Store) -> None:
    seen: list[int] = []

    def look() -> str:
        seen.append(len(store.load_entries("s")))
        return "seen"

    model = ScriptedModel(calls(("look", {}), ("look", {})), "Done.")

    opened(store, model, tools=[look]).run("Look.", show=None)

    assert seen == [2, 3]


# B13
def test_every_message_is_stored_before_its_event_is_seen(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3.")
    run = opened(store, model, tools=[add]).run("Add.", wait=False, show=None)

    missing = [
        entry.id for event in run for entry in event.entries if entry.id not in stored_ids(store)
    ]

    assert missing == []


# B13 B7
def test_a_model_that_is_not_ready_stores_nothing(store: Store) -> None:
    class Missing(ScriptedModel):
        def check(self, params: object = None) -> None:
            raise nb.errors.ModelError("model 'x' has no weights; fetch them", reason="unavailable")

    with pytest.raises(nb.errors.ModelError, match="has no weights"):
        opened(store, Missing("never")).run("Hello", show=None)

    assert (store.load_entries("s"), store.load_runs("s")) == ([], [])


# B13
def test_the_answer_of_a_run_and_its_end_are_stored_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[tuple[int, bool]] = []
    real = store.append

    def spy(*args: object, **given: object) -> object:
        ends.append((len(args[1]), given.get("end") is not None))  # type: ignore[arg-type]
        return real(*args, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store), "append", lambda self, *a, **k: spy(*a, **k))

    opened(store, ScriptedModel("Yes.")).run("Is it?", show=None)

    assert ends == [(1, False), (1, True)]


# B14
def test_the_events_of_a_plain_answer_come_in_order(store: Store) -> None:
    run = opened(store, ScriptedModel("A few words.")).run("Say.", show=None)

    assert types(run) == [
        "agent_start",
        "step_start",
        "message_start",
        "message_update",
        "message_end",
        "step_end",
        "agent_end",
    ]


# B14
def test_the_events_of_a_tool_step_come_in_order(store: Store) -> None:
    def work(report: Callable[[str], None]) -> str:
        """Report, then return."""
        report("half way")
        return "worked"

    model = ScriptedModel(calls(("work", {})), "Done.")

    run = opened(store, model, tools=[work]).run("Work.", show=None)

    assert types(run)[3:8] == [
        "message_end",
        "tool_start",
        "tool_update",
        "tool_end",
        "message_end",
    ]
    assert types(run)[8:10] == ["step_end", "step_start"]
    assert [event.text for event in run.events if event.type == "tool_update"] == ["half way"]


# B14
def test_only_agent_start_and_message_end_carry_receipts(store: Store) -> None:
    model = ScriptedModel(
        [RetryNotice(1, 0.0, "busy"), thinking("Hm."), *calls(("add", {"a": 1, "b": 2}))], "3."
    )

    run = opened(store, model, tools=[add]).run("Add.", show=None)

    assert "retry" in types(run)
    assert {event.type for event in run.events if event.entries} == set(RECEIPTS)


# B14
def test_the_first_receipt_has_all_stored_input_and_the_new_leaf(store: Store) -> None:
    chat = opened(store, ScriptedModel("Yes."))

    run = chat.run(nb.meta("Be brief."), "Is it?", nb.ephemeral("It rains."), show=None)

    start = run.events[0]
    assert [entry.id for entry in start.entries] == stored_ids(store)[:2]
    assert start.leaf_id == start.entries[-1].id
    assert run.input_ids == tuple(entry.id for entry in start.entries)


# B14
def test_each_message_end_has_exactly_the_entry_of_its_leaf(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), "3 and 7.")

    run = opened(store, model, tools=[add]).run("Add.", show=None)

    ends = [event for event in run.events if event.type == "message_end"]
    assert [[entry.id for entry in event.entries] for event in ends] == [
        [event.leaf_id] for event in ends
    ]
    assert [event.leaf_id for event in ends] == stored_ids(store)[1:]


# B14
def test_input_that_a_hook_adds_gets_its_receipt(store: Store) -> None:
    class Once:
        def __init__(self) -> None:
            self.more = ["And why?"]

        def before_stop(self, message: object) -> str | None:
            return self.more.pop() if self.more else None

    chat = opened(store, ScriptedModel("Yes.", "Because."), hooks=Once())

    run = chat.run("Is it?", show=None)

    assert [entry.id for entry in run.entries] == stored_ids(store)
    assert [message.text for message in run.messages] == ["Is it?", "Yes.", "And why?", "Because."]


# B14
def test_the_last_event_sums_usage_and_cost(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3.", usage=Usage(5, 3), cost_usd=0.25)

    run = opened(store, model, tools=[add]).run("Add.", show=None)

    end = run.events[-1]
    assert (end.type, end.usage, end.cost_usd) == ("agent_end", Usage(10, 6), 0.5)
    assert (run.usage, run.cost) == (Usage(10, 6), 0.5)


# B14 B22
def test_a_failed_run_ends_with_agent_error(store: Store) -> None:
    chat = opened(store, ScriptedModel(nb.errors.ModelError("the provider is down")))
    run = chat.run("Hello", wait=False, show=None)

    with pytest.raises(nb.errors.ModelError, match="the provider is down"):
        run.wait()

    last = run.events[-1]
    assert (last.type, last.outcome, last.error) == ("agent_error", "error", "the provider is down")


# B14
def test_retries_are_told_in_the_midst_of_their_step(store: Store) -> None:
    model = ScriptedModel([RetryNotice(1, 0.0, "429"), RetryNotice(2, 0.0, "503"), "At last."])

    run = opened(store, model).run("Hello", show=None)

    assert [(e.attempt, e.error) for e in run.events if e.type == "retry"] == [
        (1, "429"),
        (2, "503"),
    ]
    assert types(run)[2:5] == ["message_start", "retry", "retry"]


# B16
def test_a_reply_in_one_piece_gets_its_events(store: Store) -> None:
    model = ScriptedModel([TextDelta("All at once."), Finish()])

    run = opened(store, model).run("Say.", show=None)

    assert types(run)[2:5] == ["message_start", "message_update", "message_end"]
    assert store.load_entries("s")[-1].id == run.leaf_id


# B16
def test_a_reply_without_any_delta_is_stored_and_told(store: Store) -> None:
    chat = opened(store, ScriptedModel([Finish(usage=Usage(3, 0))], "Now I speak."))

    run = chat.run("Say nothing.", show=None)

    assert types(run)[2:4] == ["message_start", "message_end"]
    assert [entry.role for entry in store.load_entries("s")] == ["user", "assistant"]
    assert (run.outcome, run.text, run.usage) == ("done", "", Usage(3, 0))
    assert chat.run("Speak.", show=None).text == "Now I speak."


# B19
def test_at_branches_first_and_then_runs(store: Store) -> None:
    told: list[nb.SessionEvent] = []
    chat = opened(store, ScriptedModel("one", "two", "three"), publisher=told.append)
    first = chat.run("1", show=None)
    second = chat.run("2", show=None)

    third = chat.run("3", at=first, show=None)

    assert [entry.text for entry in chat.path()] == ["1", "one", "3", "three"]  # type: ignore[attr-defined]
    assert third.start_leaf_id == first.leaf_id
    assert [(e.type, e.leaf_id, e.from_id) for e in told[1:]] == [
        ("session_branched", first.leaf_id, second.leaf_id)
    ]


# B19
def test_at_the_root_begins_a_second_tree(store: Store) -> None:
    chat = opened(store, ScriptedModel("one", "two"))
    chat.run("1", show=None)

    chat.run("2", at=None, show=None)

    assert [entry.parent_id for entry in store.load_entries("s")][::2] == [None, None]


# B19 B12
def test_at_an_unknown_entry_changes_nothing(store: Store) -> None:
    chat = opened(store, ScriptedModel("one"))
    leaf = chat.run("1", show=None).leaf_id

    with pytest.raises(nb.errors.EntryNotFound, match="'nowhere'"):
        chat.run("2", at="nowhere", show=None)

    assert (chat.leaf_id, len(store.load_entries("s"))) == (leaf, 2)


# B19
def test_then_runs_at_the_end_of_its_run_wherever_the_leaf_is(store: Store) -> None:
    chat = opened(store, ScriptedModel("a", "b", "c"))
    first = chat.run("1", show=None)
    chat.branch(None)

    second = first.then("2", show=None)
    third = first.then("3", show=None)

    assert [run.start_leaf_id for run in (second, third)] == [first.leaf_id] * 2
    assert chat.leaf_id == third.leaf_id


# B19 B18
def test_then_of_a_detached_run_leaves_the_leaf(store: Store) -> None:
    chat = opened(store, ScriptedModel("a", "b", "c"))
    leaf = chat.run("1", show=None).leaf_id
    aside = chat.run("2", move=False, show=None)

    more = aside.then("3", show=None)

    assert (more.start_leaf_id, more.is_detached) == (aside.leaf_id, True)
    assert chat.leaf_id == leaf


# B19
def test_then_of_a_live_run_is_refused(store: Store) -> None:
    go = threading.Event()
    run = opened(store, ScriptedModel([go, "done"])).run("1", wait=False, show=None)

    with pytest.raises(nb.errors.RunError, match="still goes on"):
        run.then("2")

    go.set()
    assert run.wait().text == "done"


# B19
def test_the_leaf_is_the_last_stored_entry_while_a_run_goes_on(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel(["Hel", go, "lo"])
    chat = opened(store, model)

    run = chat.run("1", wait=False, show=None)
    model.wait_for_request()
    during = (chat.leaf_id, run.leaf_id)
    go.set()
    run.wait()

    ids = stored_ids(store)
    assert during == (ids[0], ids[0])
    assert (chat.leaf_id, run.leaf_id) == (ids[1], ids[1])
