"""The one way to say which entry is meant, and what the API hands out."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.references import Reference
from nbdurable.stores import Store


class Tagged(nb.CustomEntry):
    kind = "tagged in a test of references"
    tags: Any = None


@pytest.fixture
def chat(store: Store, model: ScriptedModel) -> nb.Session:
    return nb.open("s", store=store, model=model)


# -- references (B12) --------------------------------------------------------------------------


# B12
def test_an_id_an_entry_and_an_ordinal_mean_the_same(chat: nb.Session) -> None:
    entry = chat.append(nb.user("a"), nb.assistant("b"), nb.user("c"))[1]

    refs: list[Reference] = [entry.id, entry, 2, np.int64(2), np.uint8(2), chat[2]]
    refs.append(chat.tree().get(entry.id))

    assert {chat[ref].id for ref in refs} == {entry.id}


# B12
def test_a_run_means_its_last_entry(chat: nb.Session) -> None:
    run = chat.run("q", show=None)
    chat.run("more", show=None)

    assert chat[run] == run.entries[-1]
    assert chat.path(run) == list(run.entries)
    assert chat.path(chat.runs()[0]) == list(run.entries)


# B12
def test_a_run_that_stored_nothing_means_where_it_began(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("a", RuntimeError("down"), name="m"))
    start = chat.run("q", show=None)
    with pytest.raises(nb.errors.ModelError, match="down") as raised:
        chat.rerun(show=None)

    assert raised.value.run is not None
    assert chat[raised.value.run] == start.entries[0]


# B12
def test_every_verb_takes_every_reference(chat: nb.Session) -> None:
    run = chat.run("q", show=None)
    question, answer = run.entries

    for ref in (question.id, question, 1):
        chat.branch(ref)
        assert chat.leaf_id == question.id
        assert chat.path(ref) == [question]
        assert chat.fork(at=ref).path()[0].n == 1
        assert chat.preview("x", at=ref)["messages"]
        assert chat.run("on", at=ref, show=None).entries[0].parent_id == question.id
        assert chat.rerun(ref, show=None).entries[0].parent_id == question.id
        edited = chat.edit(ref, "other", show=None)
        assert isinstance(edited, nb.Run) and edited.entries[0].parent_id is None
    chat.branch(run)
    assert chat.leaf_id == answer.id


# B12
def test_none_is_the_root_everywhere(chat: nb.Session) -> None:
    chat.run("q", show=None)

    assert chat.path(None) == []
    assert len(chat.preview("x", at=None)["messages"]) == 1  # type: ignore[arg-type]
    assert chat.run("new root", at=None, show=None).entries[0].parent_id is None
    assert chat.fork(at=None).entries() == []
    chat.branch(None)
    assert chat.leaf_id is None


# B12
def test_the_leaf_is_the_default(chat: nb.Session) -> None:
    chat.run("q", show=None)
    chat.branch(1)

    assert chat.path() == chat.path(nb.LEAF) == [chat[1]]
    assert chat[nb.LEAF] == chat[1]
    assert chat.rerun(show=None).entries[0].parent_id == chat[1].id


# B12
@pytest.mark.parametrize("text", ["1", "#1", "", "q"])
def test_text_is_an_id_never_an_ordinal(chat: nb.Session, text: str) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryNotFound, match=rf"entry '{text}' is not in session 's'"):
        chat[text]


# B12
@pytest.mark.parametrize("n", [0, -1, 3, 10**30])
def test_an_ordinal_out_of_range_names_the_range(chat: nb.Session, n: int) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryNotFound, match=rf"entry #{n} is .*there are #1 to #2"):
        chat[n]


# B12
def test_an_ordinal_in_an_empty_session_says_so(chat: nb.Session) -> None:
    with pytest.raises(nb.errors.EntryNotFound, match=r"entry #1 .*it has no entries yet"):
        chat[1]


# B12
def test_an_unknown_id_lists_near_ones(chat: nb.Session) -> None:
    (entry,) = chat.append("q")
    wrong = entry.id[:-1] + ("0" if entry.id[-1] != "0" else "1")

    with pytest.raises(nb.errors.EntryNotFound, match=rf"near it: {entry.id}") as raised:
        chat.branch(wrong)

    assert raised.value.entry_id == wrong


NO_REFERENCES = [True, False, np.bool_(True), 1.0, np.float64(1), [1], object(), b"1", (1,)]


# B12
@pytest.mark.parametrize("ref", NO_REFERENCES, ids=range(len(NO_REFERENCES)))
def test_what_is_no_reference_is_refused(chat: nb.Session, ref: Any) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryNotFound, match="means no entry; give an id, an ordinal"):
        chat.branch(ref)


# B12 B43
def test_a_cell_is_no_reference_and_its_run_is_named(chat: nb.Session) -> None:
    cell = chat.grid(["q"], show=None)[0]

    with pytest.raises(nb.errors.EntryNotFound, match=r"of type Cell means .*give its run: \.run"):
        chat.label(cell, "best")  # type: ignore[arg-type]

    assert chat.label(cell.run, "best").target_id == cell.entry.id  # type: ignore[union-attr]


# B12
@pytest.mark.parametrize("verb", ["item", "rerun", "edit"])
def test_the_root_is_refused_where_an_entry_is_needed(chat: nb.Session, verb: str) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryNotFound, match=r"the root of session 's' is no entry"):
        if verb == "item":
            chat[None]
        elif verb == "rerun":
            chat.rerun(None, show=None)
        else:
            chat.edit(None, "x", show=None)


# B12
def test_entries_and_runs_of_another_session_are_unknown(
    chat: nb.Session, store: Store, model: ScriptedModel
) -> None:
    foreign = nb.open("other", store=store, model=model).run("q", show=None)
    chat.run("q", show=None)

    for ref in (foreign, foreign.entries[0], foreign.entries[0].id):
        with pytest.raises(nb.errors.EntryNotFound, match="is not in session 's'"):
            chat.path(ref)
        with pytest.raises(nb.errors.EntryNotFound, match="is not in session 's'"):
            chat.edit(ref, "x", show=None)


# B12
def test_a_draft_is_no_entry_of_the_session(chat: nb.Session) -> None:
    chat.run("q", show=None)

    with pytest.raises(nb.errors.EntryNotFound, match="is not in session"):
        chat.branch(nb.user("q"))


# -- what is handed out (B10) ------------------------------------------------------------------


# B10
def test_entries_cannot_be_changed(chat: nb.Session) -> None:
    run = chat.run("q", show=None)

    for entry in (*run.entries, *chat.entries()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            entry.id = "other"  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError):
            entry.message.blocks[0].text = "other"  # type: ignore[attr-defined]


# B10
@pytest.mark.parametrize("verb", ["entries", "path", "leaves", "transcript", "runs"])
def test_a_list_that_is_changed_changes_nothing(chat: nb.Session, verb: str) -> None:
    chat.run("q", show=None)
    before = [repr(item) for item in getattr(chat, verb)()]

    getattr(chat, verb)().clear()

    assert [repr(item) for item in getattr(chat, verb)()] == before != []


# B10
def test_a_tree_that_grows_is_a_copy(chat: nb.Session) -> None:
    chat.run("q", show=None)
    mine = chat.tree()
    row = mine.nodes[0]._replace(id="mine", n=99)

    mine.add([row])

    assert len(chat.tree()) == 2 and "mine" not in chat.tree()


# B10
def test_values_of_a_custom_entry_are_copies(chat: nb.Session) -> None:
    given = {"a": [1]}
    (made,) = chat.append(Tagged(given))
    given["a"].append(2)
    assert isinstance(made, Tagged)
    made.tags["a"].append(3)
    made.fields["tags"]["a"].append(4)  # type: ignore[index,call-overload,union-attr]

    (read,) = chat.entries(Tagged)
    read.tags["a"].append(5)

    assert chat.entries(Tagged)[0].tags == {"a": [1]}


# B10
def test_arguments_of_a_call_are_copies(store: Store) -> None:
    def count(what: list[int]) -> int:
        """Count."""
        what.append(9)
        return len(what)

    model = ScriptedModel(calls(("count", {"what": [1]})), "two")
    chat = nb.open("s", store=store, model=model, tools=[count])
    chat.run("q", show=None)

    call = chat.entries(nb.MessageEntry)[1].message.tool_calls[0]
    assert call.arguments == {"what": [1]}
    call.arguments["what"].append(2)  # type: ignore[union-attr]

    assert chat.entries(nb.MessageEntry)[1].message.tool_calls[0].arguments == {"what": [1]}


# B10
def test_a_preview_is_a_copy(chat: nb.Session) -> None:
    request = chat.preview("q")
    request["messages"].clear()  # type: ignore[union-attr]

    assert len(chat.preview("q")["messages"]) == 1  # type: ignore[arg-type]


# B10
def test_every_verb_works_from_another_thread(chat: nb.Session) -> None:
    done: list[object] = []

    def use() -> None:
        run = chat.run("q", show=None)
        chat.append("more")
        chat.branch(run)
        chat.rerun(show=None)
        chat.edit(1, "other", show=None)
        chat.compact()
        chat.fork().close()
        done.extend([chat.entries(), chat.messages(), chat.runs(), chat.context(), chat.resume()])

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()

    assert len(done) == 5


# B10
def test_readers_go_on_while_a_model_is_checked_and_answers(store: Store) -> None:
    class Slow(ScriptedModel):
        def check(self, params: object = None) -> None:
            checking.set()
            assert go.wait(10)

    checking, go, answer = threading.Event(), threading.Event(), threading.Event()
    model = Slow((answer, "late"))
    chat = nb.open("s", store=store, model=model)
    thread = threading.Thread(target=lambda: chat.run("q", show=None))
    thread.start()

    assert checking.wait(10)
    assert chat.entries() == []
    chat.append("before")
    go.set()
    request = model.wait_for_request()
    assert [entry.text for entry in chat.entries(nb.MessageEntry)] == ["before", "q"]
    answer.set()
    thread.join()

    assert [message.text for message in request.messages] == ["before", "q"]
    assert len(chat.leaves()) == 1
