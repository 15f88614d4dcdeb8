"""B18: one foreground run per session and process, and what may go on beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store


class Note(nb.CustomEntry):
    kind = "note"
    text: str = ""


def opened(store: Store, *steps: object, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*steps), **options)  # type: ignore[arg-type]


def live(chat: nb.Session, text: str = "Hello", **options: object) -> nb.Run:
    return chat.run(text, wait=False, show=None, **options)  # type: ignore[arg-type]


REFUSED: dict[str, Callable[[nb.Session], object]] = {
    "run": lambda chat: chat.run("2", show=None),
    "live run": lambda chat: live(chat, "2"),
    "run at": lambda chat: chat.run("2", at=None, show=None),
    "rerun": lambda chat: chat.rerun(1, show=None),
    "edit": lambda chat: chat.edit(1, "2", show=None),
    "branch": lambda chat: chat.branch(None),
    "fork": lambda chat: chat.fork(),
    "compact": lambda chat: chat.compact(),
    "append": lambda chat: chat.append(nb.user("2")),
    "mixed append": lambda chat: chat.append(Note(text="x"), nb.user("2")),
    "resume": lambda chat: chat.resume(),
}


# B18
@pytest.mark.parametrize("verb", REFUSED)
def test_a_verb_that_moves_the_leaf_is_refused_during_a_run(store: Store, verb: str) -> None:
    go = threading.Event()
    told: list[str] = []
    chat = opened(store, ["one", go], publisher=lambda event: told.append(event.type))
    run = live(chat, "1")
    next(iter(run.stream()))

    with pytest.raises(nb.errors.RunActive, match="going on in this process") as caught:
        REFUSED[verb](chat)
    go.set()

    assert caught.value.run is run
    assert (run.wait().text, run.outcome, told) == ("one", "done", ["session_init"])
    assert len(store.load_entries("s")) == 2


# B18
def test_a_second_handle_is_refused_as_well(store: Store) -> None:
    go = threading.Event()
    run = live(opened(store, [go, "one"]))
    other = opened(store, "two")

    with pytest.raises(nb.errors.RunActive, match="wait"):
        other.run("2", show=None)

    go.set()
    run.wait()
    with pytest.warns(UserWarning, match="continued elsewhere"):
        assert other.run("2", show=None).text == "two"


# B18
def test_a_run_of_another_session_is_not_hindered(store: Store) -> None:
    go = threading.Event()
    run = live(opened(store, [go, "one"]))
    other = nb.open("other", store=store, model=ScriptedModel("two"))

    assert other.run("2", show=None).text == "two"

    go.set()
    run.wait()


# B18
def test_the_next_run_starts_as_soon_as_the_end_is_seen(store: Store) -> None:
    chat = opened(store, *["x"] * 40)

    for number in range(20):
        for event in live(chat, str(number)):
            last = event.type
        assert last == "agent_end"

    assert len(store.load_entries("s")) == 40


# B18 B36
def test_a_custom_entry_beside_a_run_does_not_part_a_call_from_its_result(store: Store) -> None:
    in_tool, go = threading.Event(), threading.Event()

    def work() -> str:
        in_tool.set()
        go.wait(20)
        return "worked"

    model = ScriptedModel(calls(("work", {})), "Done.")
    chat = nb.open("s", store=store, model=model, tools=[work])
    run = live(chat)
    in_tool.wait(20)

    chat.append(Note(text="between"))
    go.set()
    run.wait()

    assert [message.role for message in model.requests[-1].messages] == [
        "user",
        "assistant",
        "tool",
    ]
    kinds = [entry.role or entry.kind for entry in store.load_entries("s")]
    assert kinds == ["user", "assistant", "note", "tool", "assistant"]
    assert len(chat.path()) == 5


# B18
def test_detached_runs_overlap_and_move_nothing(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, "zero", [go, "a"], [go, "b"])
    leaf = chat.run("0", show=None).leaf_id
    runs = [live(chat, text, move=False) for text in ("1", "2")]

    go.set()
    for run in runs:
        run.wait()

    assert [run.start_leaf_id for run in runs] == [leaf] * 2
    assert sorted(run.text for run in runs) == ["a", "b"]
    assert (chat.leaf_id, opened(store, "x").leaf_id) == (leaf, leaf)


# B18
def test_a_detached_run_begins_at_the_leaf_before_the_foreground_run(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, "zero", ["one", go], "aside")
    leaf = chat.run("0", show=None).leaf_id
    run = live(chat, "1")
    next(iter(run.stream()))

    aside = chat.run("2", move=False, show=None)
    go.set()
    run.wait()

    assert aside.start_leaf_id == leaf
    assert chat.leaf_id == run.leaf_id


# B18
def test_a_detached_run_of_another_handle_begins_at_that_handles_leaf(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, "zero", ["one", go])
    first = chat.run("0", show=None)
    other = opened(store, "aside")
    other.branch(first.input_ids[0])
    with pytest.warns(UserWarning, match="continued elsewhere"):
        run = live(chat, "1")
    next(iter(run.stream()))

    aside = other.run("2", move=False, show=None)
    go.set()
    run.wait()

    assert aside.start_leaf_id == first.input_ids[0]
