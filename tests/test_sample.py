"""sample(): sibling answers beside the leaf."""

from __future__ import annotations

import threading

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from tests.exploring import children, echo, opened, rows


# B43
def test_a_sample_stores_its_input_once_and_its_answers_as_siblings(store: Store) -> None:
    chat = opened(store, ScriptedModel("a", "b", "c"))

    exp = chat.sample(3, "Say a letter.")

    assert sorted(cell.text for cell in exp) == ["a", "b", "c"]
    (question,) = [entry for entry in store.load_entries("s") if entry.role == "user"]
    assert children(store, question.id) == ["assistant"] * 3
    assert [dict(cell.axes) for cell in exp] == [{"sample": n} for n in (1, 2, 3)]


# B18 B3
def test_a_sample_moves_neither_leaf_nor_position(store: Store) -> None:
    chat = opened(store)
    leaf = chat.run("Hello", show=None).leaf_id

    chat.sample(2, "And?")

    assert (chat.leaf_id, opened(store).leaf_id) == (leaf, leaf)
    assert not any(entry.moves_leaf for entry in store.load_entries("s")[2:])
    assert [record.moves for record, _ in store.load_runs("s")] == [True, False, False]


# B43
def test_a_sample_made_again_adds_as_many_answers(store: Store) -> None:
    model = echo()
    chat = opened(store, model)

    for _ in range(2):
        chat.sample(2, "Q", name="twice")

    assert model.call_count == 4
    assert rows(store) == {"entries": 6, "runs": 4, "plans": 2, "moves": 0}
    assert [exp.name for exp in chat.experiments()] == ["twice", "twice"]
    assert chat.experiment("twice").id == chat.experiments()[1].id


# B43 B22
def test_a_sample_without_input_answers_what_waits_at_the_leaf(store: Store) -> None:
    chat = opened(store)
    (question,) = chat.append(nb.user("Why?"))

    chat.sample(2)

    assert children(store, question.id) == ["assistant"] * 2


# B43 B42
@pytest.mark.parametrize("ref", ["leaf", "answer", "question"])
def test_a_sample_without_input_gives_siblings_of_a_finished_answer(store: Store, ref: str) -> None:
    chat = opened(store)
    run = chat.run("Why?", show=None)
    at = {"leaf": nb.LEAF, "answer": run, "question": run.input_ids[0]}[ref]

    chat.sample(2, at=at)

    assert children(store, run.input_ids[0]) == ["assistant"] * 3
    assert chat.leaf_id == run.leaf_id


# B43
def test_a_sample_from_mid_conversation_asks_with_the_path_to_there(store: Store) -> None:
    model = echo()
    chat = opened(store, model)
    first = chat.run("one", show=None)
    chat.run("two", show=None)

    exp = chat.sample(2, "three", at=first)

    assert [m.text for m in model.requests[-1].messages] == ["one", "echo one", "three"]
    assert {cell.run.start_leaf_id for cell in exp if cell.run} == {
        entry.id for entry in store.load_entries("s") if entry.preview == "three"
    }


# B43
def test_an_input_of_several_entries_is_one_question(store: Store) -> None:
    model = echo()
    chat = opened(store, model)

    chat.sample(2, nb.meta("Be brief."), "Q")

    assert [e.role for e in store.load_entries("s")] == ["user", "user", "assistant", "assistant"]
    assert [m.text for m in model.requests[-1].messages] == ["Be brief.", "Q"]


# B18
def test_a_sample_goes_on_beside_a_foreground_run(store: Store) -> None:
    go = threading.Event()
    chat = opened(store, ScriptedModel([go, "one"]))
    run = chat.run("1", wait=False, show=None)

    exp = chat.sample(2, "2", model=echo())
    go.set()
    run.wait()

    assert [cell.state for cell in exp] == ["done", "done"]
    assert chat.leaf_id == run.leaf_id
    assert children(store, None) == ["user", "user"]


# B35
def test_ephemeral_input_is_refused_as_it_could_not_be_resumed(store: Store) -> None:
    chat = opened(store)

    with pytest.raises(nb.errors.EntryError, match="ephemeral input is never stored"):
        chat.sample(2, nb.ephemeral("The build is red."), "Q")

    assert rows(store) == {"entries": 0, "runs": 0, "plans": 0, "moves": 0}


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
def test_a_number_of_samples_that_is_none_is_refused(store: Store, n: object) -> None:
    with pytest.raises(ValueError, match=r"n is .*; give a whole number, 1 or more"):
        opened(store).sample(n, "Q")  # type: ignore[arg-type]


# B29
@pytest.mark.parametrize("verb", ["sample", "grid", "redrive", "then"])
def test_a_tool_with_effects_is_refused_at_the_call(store: Store, verb: str) -> None:
    @nb.tool(effects=True)
    def send(text: str) -> str:
        """Send."""
        return text

    chat = opened(store, tools=[send])
    chat.run("Hello", show=None)
    exp = chat.sample(1, "Q", tools=[])
    before = rows(store)
    verbs = {
        "sample": lambda: chat.sample(2, "Q"),
        "grid": lambda: chat.grid("Q", temperature=[0, 1]),
        "redrive": lambda: chat.redrive(model=echo()),
        "then": lambda: chat.sample(1, "Q", effects="run").then("more"),
    }

    with pytest.raises(nb.errors.RunError, match="tool 'send', which has effects, once for each"):
        verbs[verb]()

    assert exp[0].state == "done"
    assert verb == "then" or rows(store) == before


# B29
def test_a_tool_with_effects_runs_where_that_is_allowed(store: Store) -> None:
    sent: list[str] = []

    @nb.tool(effects=True)
    def send(text: str) -> str:
        """Send."""
        sent.append(text)
        return "sent"

    def step(request: object) -> object:
        last = request.messages[-1]  # type: ignore[attr-defined]
        return "Done." if last.role == "tool" else calls(("send", {"text": "x"}))

    chat = opened(store, ScriptedModel(step), tools=[send])

    exp = chat.sample(2, "Q", effects="run")

    assert (sent, [cell.text for cell in exp]) == (["x", "x"], ["Done.", "Done."])


# B7
def test_a_model_that_is_not_available_stores_nothing(store: Store) -> None:
    chat = opened(store)

    with pytest.raises(nb.errors.ModelError, match="no provider can be named"):
        chat.sample(2, "Q", model="no-such-model")

    assert rows(store) == {"entries": 0, "runs": 0, "plans": 0, "moves": 0}
