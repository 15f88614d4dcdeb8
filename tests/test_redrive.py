"""redrive(): every user turn of a path asked again."""

from __future__ import annotations

import pytest

import nbdurable as nb
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from tests.exploring import children, echo, opened, rows


def talked(store: Store) -> nb.Session:
    chat = opened(store, echo("old"))
    chat.run("one", show=None)
    chat.run(nb.meta("m"), "two", show=None)
    chat.run("three", show=None)
    return chat


def said(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages]


# B42
def test_a_new_history_is_asked_turn_by_turn_after_its_own_answers(store: Store) -> None:
    chat, new = talked(store), echo("new")
    leaf = chat.leaf_id

    exp = chat.redrive(model=new)

    assert [said(request) for request in new.requests] == [
        ["one"],
        ["one", "new one", "m", "two"],
        ["one", "new one", "m", "two", "new two", "three"],
    ]
    assert [cell.axes for cell in exp] == [{"turn": 1}, {"turn": 2}, {"turn": 3}]
    assert chat.leaf_id == leaf
    assert children(store, store.load_entries("s")[0].id) == ["assistant"] * 2
    assert [entry.meta for entry in chat.path(exp[2].run)] == [0, 0, 1, 0, 0, 0, 0]


# B42
def test_a_recorded_history_is_asked_beside_the_recorded_answers(store: Store) -> None:
    chat, new = talked(store), echo("new")
    questions = [entry.id for entry in chat.entries() if getattr(entry, "text", "") in NUMBERS]

    chat.redrive(model=new, history="recorded")

    assert sorted(map(said, (request for request in new.requests)), key=len) == [
        ["one"],
        ["one", "old one", "m", "two"],
        ["one", "old one", "m", "two", "old two", "three"],
    ]
    assert [children(store, question).count("assistant") for question in questions] == [2, 2, 2]


NUMBERS = ("one", "two", "three")


def test_models_and_systems_vary_side_by_side(store: Store) -> None:
    a, b = echo("a"), echo("b")

    exp = talked(store).redrive(model=[a, b], system={"s": "S", "t": "T"})

    assert exp.axes == ("model", "system", "turn")
    assert [cell.text for cell in exp][:4] == ["a S one", "a S two", "a S three", "a T one"]
    assert len(exp) == 12


# B43
def test_a_chain_that_fails_goes_on_after_the_answers_it_has(store: Store) -> None:
    chat = talked(store)
    new = ScriptedModel("new one", ["half", ConnectionError("reset")], "new two", "new three")

    with pytest.warns(UserWarning, match="2 of 3 cells"):
        exp = chat.redrive(model=new, name="r")
    assert [cell.state for cell in exp] == ["done", "error", "missing"]
    chat.experiment("r")
    exp.resume()

    assert [cell.text for cell in exp] == ["new one", "new two", "new three"]
    assert said(new.requests[-1]) == ["one", "new one", "m", "two", "new two", "three"]
    assert new.call_count == 4


# B43
def test_an_equal_redrive_calls_nothing(store: Store) -> None:
    chat, new = talked(store), echo("new")
    chat.redrive(model=new)
    before = rows(store)

    chat.redrive(model=new)

    assert (new.call_count, rows(store)) == (3, before)


def test_an_unanswered_question_at_the_end_is_a_turn(store: Store) -> None:
    chat = opened(store)
    chat.append(nb.user("one"), nb.assistant("1"), nb.user("two"), nb.user("three"))

    exp = chat.redrive(model=echo("new"))

    assert [cell.text for cell in exp] == ["new one", "new three"]


def test_a_path_without_questions_is_refused(store: Store) -> None:
    with pytest.raises(nb.errors.TreeError, match="no user message to ask again"):
        opened(store).redrive(model=echo())
    with pytest.raises(ValueError, match="history is 'old'; give 'new' or 'recorded'"):
        talked(store).redrive(model=echo(), history="old")  # type: ignore[arg-type]
