"""rerun: a sibling answer under the same question, with what the answer recorded."""

from __future__ import annotations

import threading
import warnings
from uuid import uuid4

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stores import Store


class Remark(nb.CustomEntry):
    kind = "remark in a test of reruns"
    text: str = ""


def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


def listen() -> str:
    """Listen."""
    return "silence"


def opened(store: Store, *steps: object, **options: object) -> tuple[nb.Session, ScriptedModel]:
    model = ScriptedModel(*steps or ("one", "two", "three", "four"))  # type: ignore[arg-type]
    return nb.open("s", store=store, model=model, **options), model  # type: ignore[arg-type]


# -- where the answer goes ---------------------------------------------------------------------


# B42
def test_a_rerun_gives_a_sibling_answer(store: Store) -> None:
    chat, model = opened(store)
    question, answer = chat.run("q", show=None).entries

    run = chat.rerun(show=None)

    (made,) = run.entries
    assert made.parent_id == answer.parent_id == question.id
    assert (run.text, chat.leaf_id) == ("two", made.id)
    assert model.requests[0].messages == model.requests[1].messages
    assert [entry.n for entry in chat.entries()] == [1, 2, 3]


# B42
def test_a_rerun_of_a_question_answers_it_again(store: Store) -> None:
    chat, _ = opened(store)
    question, _answer = chat.run("q", show=None).entries

    assert chat.rerun(question, show=None).entries[0].parent_id == question.id


# B42
def test_a_rerun_of_an_old_answer_leaves_what_followed(store: Store) -> None:
    chat, model = opened(store)
    first = chat.run("q", show=None)
    later = chat.run("and?", show=None)

    run = chat.rerun(first, show=None)

    assert run.entries[0].parent_id == first.entries[0].id
    assert [message.text for message in model.requests[-1].messages] == ["q"]
    assert [entry.id for entry in chat.leaves()] == [later.leaf_id, run.leaf_id]


# B42
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_rerun_within_a_turn_answers_its_question(store: Store, n: int) -> None:
    step = calls(("look", {"what": "up"}), ("look", {"what": "down"}))
    chat, model = opened(store, step, "seen", "anew", tools=[look])
    chat.run("q", show=None)
    assert [entry.role for entry in chat.entries(nb.MessageEntry)] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]

    run = chat.rerun(n, show=None)

    assert run.entries[0].parent_id == chat[1].id
    assert [message.text for message in model.requests[-1].messages] == ["q"]


# B42
@pytest.mark.parametrize("n", [1, 3])
def test_a_rerun_answers_all_of_a_runs_input(store: Store, n: int) -> None:
    chat, model = opened(store)
    chat.run("q", Remark("between"), show=None)

    run = chat.rerun(n, show=None)

    assert chat[2].kind == Remark.kind
    assert run.entries[0].parent_id == chat[2].id == chat[3].parent_id
    assert model.requests[1].messages == model.requests[0].messages


# B42
def test_a_rerun_keeps_meta_input_below_the_question(store: Store) -> None:
    chat, model = opened(store)
    chat.run("q", nb.meta("the rules"), show=None)

    for ref in (1, 2, 3):
        assert chat.rerun(ref, show=None).entries[0].parent_id == chat[2].id
    assert {len(request.messages) for request in model.requests} == {2}


# B42
def test_a_rerun_of_a_rerun_is_a_third_sibling(store: Store) -> None:
    chat, _ = opened(store)
    chat.run("q", show=None)
    again = chat.rerun(show=None)

    third = chat.rerun(again, show=None)

    assert third.entries[0].parent_id == chat[1].id
    assert [entry.text for entry in chat.leaves() if isinstance(entry, nb.MessageEntry)] == [
        "one",
        "two",
        "three",
    ]


# B42
def test_a_rerun_of_a_failed_answer_stands_beside_it(store: Store) -> None:
    chat, _ = opened(store, cut("half"), "whole")
    with pytest.raises(nb.errors.ModelError, match="broke off"):
        chat.run("q", show=None)

    run = chat.rerun(show=None)

    assert [entry.text for entry in chat.entries(nb.MessageEntry)] == ["q", "half", "whole"]
    assert run.entries[0].parent_id == chat[2].parent_id


# B42
def test_a_rerun_of_an_answer_written_by_hand(store: Store) -> None:
    chat, _ = opened(store)
    question, answer = chat.append(nb.user("q"), nb.assistant("by hand"))

    assert chat.rerun(answer, show=None).entries[0].parent_id == question.id


# B42
@pytest.mark.parametrize("what", ["compaction", "custom", "opaque"])
def test_a_rerun_of_what_is_no_message_is_refused(store: Store, what: str) -> None:
    chat, model = opened(store)
    chat.run("q", show=None)
    if what == "compaction":
        chat.compact()
    elif what == "custom":
        chat.append(Remark("r"))
    else:
        (row,) = store.load_entries("s", after_n=1)
        newer = {"kind": "message", "payload": '{"v": 99}', "role": None}
        store.append("s", [row._replace(id=str(uuid4()), parent_id=row.id, **newer)])
        assert isinstance(chat[3], nb.OpaqueEntry) and chat.resume() == chat[3].id
    before = (chat.entries(), chat.leaf_id, model.call_count)

    with pytest.raises(nb.errors.TreeError, match=r"entry #3 is of kind .* cannot be rerun"):
        chat.rerun(show=None)

    assert (chat.entries(), chat.leaf_id, model.call_count) == before


# B42
def test_a_rerun_of_an_answer_without_a_question_is_refused(store: Store) -> None:
    chat, _ = opened(store)
    chat.append(nb.assistant("hello"))

    with pytest.raises(nb.errors.TreeError, match="has no user message above it"):
        chat.rerun(show=None)


# B42 B18
def test_a_detached_rerun_leaves_leaf_and_position(store: Store) -> None:
    chat, _ = opened(store)
    first = chat.run("q", show=None)

    run = chat.rerun(move=False, show=None)

    assert run.entries[0].parent_id == first.entries[0].id
    assert chat.leaf_id == first.leaf_id == nb.open("s", store=store, model="local").leaf_id


# B42 B18
def test_a_rerun_during_a_run_is_refused_and_leaves_it(store: Store) -> None:
    go = threading.Event()
    chat, model = opened(store, "one", ("half", go))
    chat.run("q", show=None)
    live = chat.run("more", wait=False)
    model.wait_for_request(2)

    with pytest.raises(nb.errors.RunActive, match="has run"):
        chat.rerun(2, show=None)
    go.set()

    assert live.wait().text == "half"
    assert len(chat.leaves()) == 1


# -- with what (B42) ---------------------------------------------------------------------------


# B42
@pytest.mark.parametrize("ref", [1, 2])
def test_a_rerun_takes_what_the_answer_recorded(store: Store, ref: int) -> None:
    first, _ = opened(store, system="Be brief.", tools=[look], temperature=0.25, seed=7)
    first.run("q", show=None)
    chat, model = opened(store, system="Other.", tools=[look, listen], temperature=0.9, top_p=0.5)

    chat.rerun(ref, show=None)

    (request,) = model.requests
    assert request.system == "Be brief."
    assert [tool.name for tool in request.tools] == ["look"]
    assert request.params == {"temperature": 0.25, "seed": 7}


# B42
def test_what_a_rerun_is_given_comes_first(store: Store) -> None:
    chat, _ = opened(store, system="Be brief.", tools=[look], temperature=0.25, seed=7)
    chat.run("q", show=None)
    other = ScriptedModel("other", name="other")

    run = chat.rerun(
        model=other, system=None, tools=[listen], temperature=1.0, max_tokens=9, show=None
    )

    (request,) = other.requests
    assert request.system is None
    assert [tool.name for tool in request.tools] == ["listen"]
    assert request.params == {"temperature": 1.0, "seed": 7, "max_tokens": 9}
    assert (run.model, chat.model) == ("other", "scripted")


# B42 B69
def test_parameters_that_are_not_recorded_are_this_handles(store: Store) -> None:
    first, _ = opened(store, api_key="old", temperature=0.25)
    first.run("q", show=None)
    chat, model = opened(store, api_key="new", temperature=0.9)

    chat.rerun(show=None)

    assert model.requests[0].params == {"api_key": "new", "temperature": 0.25}


# B42
def test_a_rerun_takes_the_model_that_answered(store: Store) -> None:
    chat, model = opened(store)
    chat.run("q", model=ScriptedModel("a", name="nosuchprovider/recorded"), show=None)

    with pytest.raises(nb.errors.ModelError, match="nosuchprovider"):
        chat.rerun(show=None)

    assert model.call_count == 0 and len(chat.entries()) == 2
    assert chat.rerun(model=model, show=None).text == "one"


# B42
def test_a_rerun_of_a_question_takes_its_answer_on_the_path(store: Store) -> None:
    chat, model = opened(store)
    chat.run("q", system="first", show=None)
    chat.rerun(system="second", show=None)

    chat.rerun(1, show=None)
    chat.branch(2)
    chat.rerun(1, show=None)

    assert [request.system for request in model.requests] == ["first", "second", "second", "first"]


# B42
def test_an_unanswered_question_is_answered_as_this_handle_would(store: Store) -> None:
    first, _ = opened(store, ConnectionError("down"), system="First.")
    with pytest.raises(nb.errors.ModelError, match="down"):
        first.run("q", show=None)
    chat, model = opened(store, system="Mine.")

    chat.rerun(show=None)

    assert model.requests[0].system == "Mine."


# B42
def test_a_recorded_tool_that_is_missing_is_named(store: Store) -> None:
    first, _ = opened(store, tools=[look, listen])
    first.run("q", show=None)
    chat, model = opened(store, tools=[look])
    before = (chat.leaf_id, store.load_moves("s"), store.load_runs("s"))

    with pytest.raises(nb.errors.RunError, match=r"tool 'listen' of run .* \(look\); open the"):
        chat.rerun(show=None)

    assert (chat.leaf_id, store.load_moves("s"), store.load_runs("s")) == before
    assert chat.rerun(tools=[], show=None).text == "one"
    assert model.requests[0].tools == ()


# B42 B35
@pytest.mark.parametrize("ref", [1, 2])
def test_ephemeral_input_cannot_be_sent_again_and_that_is_said(store: Store, ref: int) -> None:
    chat, model = opened(store)
    chat.run("q", nb.ephemeral("hush"), show=None)

    with pytest.warns(UserWarning, match="had ephemeral input, which is not stored") as said:
        chat.rerun(ref, show=None)

    assert said[0].filename == __file__
    assert [message.text for message in model.requests[0].messages] == ["q", "hush"]
    assert [message.text for message in model.requests[1].messages] == ["q"]


# B42
def test_a_rerun_without_ephemeral_input_says_nothing(store: Store) -> None:
    chat, _ = opened(store)
    chat.run("q", show=None)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chat.rerun(show=None)


# B42
def test_a_rerun_records_which_answer_it_makes_again(store: Store) -> None:
    chat, _ = opened(store)
    chat.run("q", show=None)
    chat.rerun(show=None)
    chat.rerun(1, show=None)

    records = [record for record, _ in store.load_runs("s")]
    assert [record.kind for record in records] == ["run", "rerun", "rerun"]
    assert [record.rerun_of for record in records] == [None, chat[2].id, chat[3].id]
    assert {record.start_leaf_id for record in records[1:]} == {chat[1].id}


# B42 B48
def test_a_rerun_in_a_fork_takes_what_its_source_recorded(store: Store) -> None:
    first, _ = opened(store, system="Be brief.", temperature=0.25)
    first.run("q", show=None)
    first.fork("child").close()
    model = ScriptedModel("a")
    child = nb.open("child", store=store, model=model)

    child.rerun(show=None)

    assert model.requests[0].system == "Be brief."
    assert model.requests[0].params == {"temperature": 0.25}
