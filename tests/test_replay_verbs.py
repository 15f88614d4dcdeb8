"""B56: append, branch, edit, rerun, compact, fork and resume in replay."""

from __future__ import annotations

import warnings

import pytest
from replaying import Never, held, opened

import nbdurable as nb
from nbdurable.errors import SessionExists
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


class Mark(nb.CustomEntry):
    kind = "mark of a replay test"
    text: str = ""


# -- append ------------------------------------------------------------------------------------


# B56
def test_an_equal_append_returns_what_is_stored(store: Store, model: ScriptedModel) -> None:
    first = opened(store, model).append(nb.user("Q"), nb.assistant("A"), Mark("m"))
    before = held(store)

    again = opened(store, model)
    found = again.append(nb.user("Q"), nb.assistant("A"), Mark("m"))

    assert found == first
    assert again.leaf_id == first[-1].id
    assert held(store) == before


# B56
@pytest.mark.parametrize(
    "other", [nb.user("R"), nb.meta("Q"), nb.assistant("Q"), Mark("Q"), nb.user("Q", "more")]
)
def test_another_append_is_made(store: Store, model: ScriptedModel, other: nb.Entry) -> None:
    (first,) = opened(store, model).append("Q")

    (made,) = opened(store, model).append(other)

    assert made.id != first.id
    assert made.parent_id is None


# B56
def test_equal_appends_take_equal_entries_in_stored_order(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    made = []
    for _ in range(2):
        chat.branch(None)
        made += chat.append("Q")

    again = opened(store, model)
    found = []
    for _ in range(3):
        again.branch(None)
        found += again.append("Q")

    assert found[:2] == made
    assert found[2].id not in [entry.id for entry in made]


# B56
def test_a_shorter_append_does_not_take_the_beginning_of_a_longer_one_again(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    chat.append(nb.user("Q"), nb.assistant("A"))
    chat.branch(None)
    (alone,) = chat.append("Q")

    again = opened(store, model)
    again.append(nb.user("Q"), nb.assistant("A"))
    again.branch(None)

    assert again.append("Q") == (alone,)


# B56
def test_the_input_of_a_run_never_answers_an_append(store: Store, model: ScriptedModel) -> None:
    opened(store, model).run("Q", show=None)

    (made,) = opened(store, model).append("Q")

    assert made.n == 3


# B56
def test_an_append_of_nothing_is_nothing(store: Store, model: ScriptedModel) -> None:
    assert opened(store, model).append() == ()


# -- branch and the position -------------------------------------------------------------------


# B56 B3
def test_branch_moves_only_the_handle(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    run = chat.run("a", show=None)
    before = held(store)

    chat.branch(run.entries[0])

    assert chat.leaf_id == run.entries[0].id
    assert held(store) == before
    assert nb.open("s", store=store, model=model).leaf_id == run.leaf_id


# B56 B3
def test_the_first_write_after_a_branch_stores_the_move(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    run = chat.run("a", show=None)
    chat.branch(run.entries[0])

    (mark,) = chat.append(Mark("here"))

    assert [move.entry_id for move in store.load_moves("s")] == [run.entries[0].id]
    assert nb.open("s", store=store, model=model).leaf_id == mark.id


# B56 B11
def test_a_write_after_moves_in_memory_warns_of_no_sibling(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    for text in "abc":
        chat.run(text, show=None)

    again = opened(store, model)
    again.run("a", show=None)
    with warnings.catch_warnings():  # which are errors, but for that of the miss
        warnings.filterwarnings("ignore", "this run at #2 is made for real")
        made = again.run("new", show=None)

    assert again.image.stored(made.entries[0].id).parent_id == chat[2].id


# B56 B3
def test_a_custom_entry_after_replayed_runs_is_where_the_session_resumes(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    for text in "ab":
        chat.run(text, show=None)

    again = opened(store, model)
    again.run("a", show=None)
    (mark,) = again.append(Mark("here"))

    assert nb.open("s", store=store, model=model).leaf_id == mark.id


# B58
def test_resume_goes_to_the_stored_position(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    chat.run("a", show=None)
    end = chat.run("b", show=None).leaf_id

    again = opened(store, Never(name=model.name))

    assert again.resume() == end == again.leaf_id


# -- edit and rerun ----------------------------------------------------------------------------


# B56 B42
def test_an_equal_edit_is_replayed(store: Store) -> None:
    model = ScriptedModel("one", "two")
    chat = opened(store, model)
    made = chat.edit(chat.run("a", show=None), "b", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name))
    found = again.edit(again.run("a", show=None), "b", show=None)

    assert found.run_id == made.run_id
    assert held(store) == before


# B56 B42
def test_an_equal_edit_of_an_answer_returns_the_one_that_is_stored(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    made = chat.edit(chat.run("a", show=None).leaf_id, "My words.")
    before = held(store)

    again = opened(store, Never(name=model.name))
    found = again.edit(again.run("a", show=None).leaf_id, "My words.")

    assert (found, again.leaf_id) == (made, made.id)
    assert held(store) == before


# B56
def test_an_appended_answer_is_no_edit(store: Store, model: ScriptedModel) -> None:
    (question,) = opened(store, model).append("Q")
    chat = opened(store, model)
    (_, said) = chat.append("Q", nb.assistant("A"))

    again = opened(store, model)
    edited = again.edit(said.id, "A")

    assert question.id != said.parent_id or edited.id != said.id
    assert edited.id != said.id


# B56 B42
def test_reruns_are_replayed_by_their_target(store: Store) -> None:
    model = ScriptedModel("one", "two", "three")
    chat = opened(store, model)
    chat.run("a", show=None)
    made = [chat.rerun(show=None).run_id, chat.rerun(show=None).run_id]
    before = held(store)

    again = opened(store, Never(name=model.name))
    again.run("a", show=None)

    assert [again.rerun(show=None).run_id, again.rerun(show=None).run_id] == made
    assert held(store) == before


# B56 B42
def test_a_rerun_of_another_answer_does_not_answer(store: Store) -> None:
    model = ScriptedModel("one", "two", "of one", "of two")
    chat = opened(store, model)
    answers = [chat.run("a", show=None).leaf_id, chat.rerun(temperature=0.1, show=None).leaf_id]
    for answer in answers:
        chat.rerun(answer, temperature=0.5, show=None)

    again = opened(store, Never(name=model.name))

    assert again.rerun(answers[1], temperature=0.5, show=None).text == "of two"


# B56 B42
def test_a_rerun_of_a_question_off_the_path_takes_the_answer_that_stood_there_then(
    store: Store,
) -> None:
    models = [ScriptedModel(name, name=name) for name in ("one", "two")]
    chat = opened(store, models[0])
    question = chat.run("a", show=None).entries[0]
    chat.branch(None)
    made = chat.rerun(question.id, temperature=0.5, show=None)

    again = opened(store, Never(name="one"))
    again.run("a", show=None)
    again.branch(None)

    assert again.rerun(question.id, temperature=0.5, show=None).run_id == made.run_id


# -- compact -----------------------------------------------------------------------------------


# B56 B49
def test_an_equal_compact_is_replayed(store: Store) -> None:
    model = ScriptedModel("one", "two", "A summary.", "three")
    chat = opened(store, model)
    chat.run("a", show=None)
    chat.run("b", show=None)
    made = chat.compact(keep_turns=1)
    chat.run("c", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name))
    again.run("a", show=None)
    again.run("b", show=None)

    assert again.compact(keep_turns=1) == made
    assert made is not None and again.leaf_id == made.id
    assert again.run("c", show=None).text == "three"
    assert held(store) == before


# B56
@pytest.mark.parametrize("other", [{"keep_turns": 1}, {"prompt": "In verse."}])
def test_another_compact_is_made(store: Store, other: dict[str, object]) -> None:
    model = ScriptedModel("one", "two", "First.", "Second.")
    chat = opened(store, model)
    chat.run("a", show=None)
    chat.run("b", show=None)
    chat.compact()

    again = opened(store, model)
    again.run("a", show=None)
    again.run("b", show=None)
    with pytest.warns(UserWarning, match="differs in something that is not on record"):
        made = again.compact(**other)  # type: ignore[arg-type]

    assert made is not None and made.text == "Second."  # type: ignore[attr-defined]


# B56 B52
def test_a_run_that_compacted_first_is_found_at_the_leaf_before(store: Store) -> None:
    model = ScriptedModel("one " * 200, "A summary.", "two")
    chat = opened(store, model, compact_above=150)
    chat.run("a", show=None)
    made = chat.run("b", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name), compact_above=150)
    again.run("a", show=None)
    found = again.run("b", show=None)

    assert (found.run_id, again.leaf_id) == (made.run_id, made.leaf_id)
    assert [e.id for e in found.entries] == [e.id for e in made.entries]
    assert [e.leaf_id for e in found.events if e.entries] == [
        e.leaf_id for e in made.events if e.entries
    ]
    assert any(entry.kind == "compaction" for entry in again.path())
    assert held(store) == before


# B56
def test_an_automatic_compaction_never_answers_a_compact(store: Store) -> None:
    model = ScriptedModel("one " * 200, "Automatic.", "two", "Asked for.")
    chat = opened(store, model, compact_above=150)
    chat.run("a", show=None)
    chat.run("b", show=None)

    again = opened(store, model)
    again.run("a", show=None)
    made = again.compact()

    assert made is not None and made.text == "Asked for."  # type: ignore[attr-defined]


# -- fork --------------------------------------------------------------------------------------


# B56 B48
@pytest.mark.parametrize("named", [None, "child"])
def test_a_matched_fork_opens_in_replay_at_its_last_copied_entry(
    store: Store, named: str | None
) -> None:
    model = ScriptedModel("one", "in the child", "two")
    chat = opened(store, model)
    chat.run("a", show=None)
    child = chat.fork(named)
    made = child.run("b", show=None)
    chat.run("c", show=None)
    before = held(store), held(store, child.id)

    again = opened(store, Never(name=model.name))
    again.run("a", show=None)
    found = again.fork(named)

    assert found.id == child.id
    assert found.leaf_id == child[2].id
    assert found.run("b", show=None).run_id == made.run_id
    assert again.run("c", show=None).text == "two"
    assert (held(store), held(store, child.id)) == before


# B56
def test_forks_at_one_entry_are_taken_in_stored_order(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    chat.run("a", show=None)
    made = [chat.fork().id for _ in range(3)]

    again = opened(store, Never(name=model.name))
    again.run("a", show=None)

    assert [again.fork().id for _ in range(3)] == made


# B56
def test_a_fork_of_another_entry_is_made(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    run = chat.run("a", show=None)
    made = chat.fork()

    again = opened(store, model)
    again.run("a", show=None)
    other = again.fork(at=run.entries[0])

    assert other.id != made.id
    assert other.replay is not None and len(other.entries()) == 1


# B56 B48
def test_an_id_that_is_taken_by_no_such_fork_is_refused(store: Store, model: ScriptedModel) -> None:
    nb.open("child", store=store, model=model)
    chat = opened(store, model)
    chat.run("a", show=None)

    with pytest.raises(SessionExists, match="'child'"):
        chat.fork("child")
