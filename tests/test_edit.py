"""edit: a sibling of what was said, by the user or in the model's place."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores import Store


class Aside(nb.CustomEntry):
    kind = "aside in a test of edits"
    text: str = ""


def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


@pytest.fixture
def answers() -> ScriptedModel:
    return ScriptedModel("one", "two", "three", "four")


@pytest.fixture
def chat(store: Store, answers: ScriptedModel) -> nb.Session:
    return nb.open("s", store=store, model=answers)


def ran(made: nb.Run | nb.Entry) -> nb.Run:
    assert isinstance(made, nb.Run)
    return made


def stored(made: nb.Run | nb.Entry) -> nb.MessageEntry:
    assert isinstance(made, nb.MessageEntry)
    return made


# -- what a user said --------------------------------------------------------------------------


# B42
def test_an_edit_of_a_question_is_a_sibling_that_is_answered(
    chat: nb.Session, answers: ScriptedModel
) -> None:
    chat.run("first", show=None)
    question, answer = chat.run("second", show=None).entries

    run = ran(chat.edit(question, "other", show=None))

    said, answered = run.entries
    assert (said.parent_id, answered.parent_id) == (question.parent_id, said.id)
    assert run.text == "three" and chat.leaf_id == answered.id
    assert [message.text for message in answers.requests[-1].messages] == ["first", "one", "other"]
    assert [entry.id for entry in chat.leaves()] == [answer.id, answered.id]


# B42 B39
def test_an_edit_of_the_first_message_is_another_root(
    chat: nb.Session, answers: ScriptedModel
) -> None:
    question = chat.run("q", show=None).entries[0]

    run = ran(chat.edit(question, "other", show=None))

    assert run.entries[0].parent_id is None
    assert [node.n for node in chat.tree().roots()] == [1, 3]
    assert [message.text for message in answers.requests[-1].messages] == ["other"]


# B42
def test_what_is_edited_stays_as_it_was(chat: nb.Session) -> None:
    chat.run("q", show=None)
    before = chat.entries()

    chat.edit(1, "other", show=None)

    assert chat.entries()[:2] == before


# B42 B3
def test_an_edit_is_where_a_fresh_handle_begins(chat: nb.Session, store: Store) -> None:
    chat.run("q", show=None)

    run = ran(chat.edit(1, "other", show=None))

    assert nb.open("s", store=store, model="local").leaf_id == run.leaf_id


# B42
def test_an_edit_takes_what_a_run_takes(chat: nb.Session, answers: ScriptedModel) -> None:
    chat.run("q", show=None)
    other = ScriptedModel("other", name="other")

    options = {"model": other, "system": "Be brief.", "tools": [look], "temperature": 0.5}
    run = ran(chat.edit(1, "a", nb.meta("m"), Aside("note"), show=None, **options))

    (request,) = other.requests
    assert answers.call_count == 1
    assert (run.model, request.system, len(request.tools)) == ("other", "Be brief.", 1)
    assert request.params == {"temperature": 0.5}
    assert [message.text for message in request.messages] == ["a", "m"]
    assert [entry.kind for entry in run.entries][2] == Aside.kind


# B42
def test_an_edit_that_is_not_waited_for_is_live(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel("one", ("half", go, " whole"))
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)

    run = ran(chat.edit(1, "other", wait=False))
    model.wait_for_request(2)
    assert not run.is_done
    go.set()

    assert run.wait().text == "half whole"


# B42 B18
def test_a_detached_edit_leaves_leaf_and_position(chat: nb.Session, store: Store) -> None:
    first = chat.run("q", show=None)

    run = ran(chat.edit(1, "other", move=False, show=None))

    assert run.text == "two" and run.is_detached
    assert chat.leaf_id == first.leaf_id == nb.open("s", store=store, model="local").leaf_id


# B42
def test_an_edit_that_fails_keeps_the_new_words(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("one", ConnectionError("down"), "two"))
    chat.run("q", show=None)

    with pytest.raises(nb.errors.ModelError, match="down"):
        chat.edit(1, "other", show=None)

    assert chat.path() == [chat[3]] and chat[3].parent_id is None
    assert chat.run(show=None).entries[0].parent_id == chat[3].id


# B42 B12
def test_an_edit_of_a_run_edits_its_input(chat: nb.Session) -> None:
    run = chat.run(nb.meta("rules"), "q", show=None)
    chat.run("more", show=None)

    made = ran(chat.edit(run, "other", show=None))

    assert [entry.text for entry in chat.path(made) if isinstance(entry, nb.MessageEntry)] == [
        "rules",
        "other",
        "three",
    ]


# B42 B12
def test_an_edit_of_a_rerun_edits_the_question_it_answered(chat: nb.Session) -> None:
    chat.run("first", show=None)
    question = chat.run("q", show=None).entries[0]
    again = chat.rerun(show=None)

    made = ran(chat.edit(again, "other", show=None))

    assert made.entries[0].parent_id == question.parent_id
    assert made.text == "four"


# B42 B12
def test_an_edit_of_a_past_run_edits_its_input(chat: nb.Session, store: Store) -> None:
    chat.run("q", show=None)
    chat.rerun(show=None)
    again = nb.open("s", store=store, model=ScriptedModel("new"))

    for run in again.runs():
        assert ran(again.edit(run, "other", show=None)).entries[0].parent_id is None


# -- what the model said -----------------------------------------------------------------------


# B42
def test_an_edit_of_an_answer_is_a_persons_words_and_runs_nothing(
    chat: nb.Session, answers: ScriptedModel, store: Store
) -> None:
    question, answer = chat.run("q", show=None).entries

    made = stored(chat.edit(answer, "better"))

    assert (made.role, made.text, made.author) == ("assistant", "better", "human")
    assert made.parent_id == question.id and made.run_id is None
    assert answers.call_count == 1 and len(store.load_runs("s")) == 1
    assert chat.leaf_id == made.id == nb.open("s", store=store, model="local").leaf_id
    assert chat.entries() == [question, answer, made]


# B42
def test_the_conversation_goes_on_from_an_edited_answer(
    chat: nb.Session, answers: ScriptedModel
) -> None:
    run = chat.run("q", show=None)
    chat.edit(run.entries[1], "better")

    chat.run("and?", show=None)

    assert [message.text for message in answers.requests[-1].messages] == ["q", "better", "and?"]


# B42
def test_an_author_is_kept(chat: nb.Session, store: Store) -> None:
    chat.run("q", show=None)
    chat.edit(2, "better")
    chat.close()

    authors = [
        entry.author for entry in nb.open("s", store=store, model="local").entries(nb.MessageEntry)
    ]

    assert authors == [None, None, "human"]


# B42
def test_an_edit_of_an_answer_with_calls_drops_the_calls(store: Store) -> None:
    model = ScriptedModel(calls(("look", {"what": "up"})), "seen", "on")
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run("q", show=None)

    chat.edit(2, "no need to look")
    chat.run("and?", show=None)

    assert [message.role for message in model.requests[-1].messages] == [
        "user",
        "assistant",
        "user",
    ]


# B42
def test_an_edit_of_an_answer_takes_no_options_of_a_run(chat: nb.Session) -> None:
    chat.run("q", show=None)

    with pytest.raises(TypeError, match="edit of an assistant entry runs nothing, so 'model'"):
        chat.edit(2, "better", model="local")

    assert len(chat.entries()) == 2


# B42
@pytest.mark.parametrize("input", [(nb.user("a"), nb.user("b")), (Aside("x"),)])
def test_an_edit_of_an_answer_takes_one_message(
    chat: nb.Session, input: tuple[nb.Entry, ...]
) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryError, match="takes one message; give its new words"):
        chat.edit(2, *input)

    assert len(chat.entries()) == 2


# -- what cannot be edited ---------------------------------------------------------------------


# B42
@pytest.mark.parametrize("n", [1, 2])
def test_an_edit_without_new_words_is_refused(chat: nb.Session, n: int) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryError, match=rf"edit of entry #{n} was given no input"):
        chat.edit(n)

    assert len(chat.entries()) == 2


# B42
@pytest.mark.parametrize("what", ["tool", "custom", "compaction"])
def test_only_user_and_assistant_messages_can_be_edited(store: Store, what: str) -> None:
    model = ScriptedModel(calls(("look", {"what": "up"})), "seen")
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run("q", show=None)
    n = 3 if what == "tool" else 5
    if what == "custom":
        chat.append(Aside("x"))
    elif what == "compaction":
        chat.compact()
    before = (chat.entries(), chat.leaf_id)

    with pytest.raises(nb.errors.TreeError, match=rf"entry #{n} .* cannot be edited"):
        chat.edit(n, "other", show=None)

    assert (chat.entries(), chat.leaf_id) == before


# B42
def test_an_edit_with_bad_input_moves_nothing(chat: nb.Session, store: Store) -> None:
    run = chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryError, match="absent"):
        chat.edit(1, Path("absent.txt"), show=None)

    assert chat.leaf_id == run.leaf_id and store.load_moves("s") == []


# B42 B18
@pytest.mark.parametrize("n", [1, 2])
def test_an_edit_during_a_run_is_refused_and_leaves_it(store: Store, n: int) -> None:
    go = threading.Event()
    model = ScriptedModel("one", ("half", go))
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    live = chat.run("more", wait=False)
    model.wait_for_request(2)

    with pytest.raises(nb.errors.RunActive, match="has run"):
        chat.edit(n, "other")
    go.set()

    assert live.wait().text == "half"
    assert len(chat.entries()) == 4
