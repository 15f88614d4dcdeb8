"""A label in a replay stands where the notebook has put it so far, not where it ends (B56, B57)."""

from __future__ import annotations

import pytest

import nbdurable as nb
from nbdurable.errors import EntryNotFound
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from tests.replaying import held, opened


def moved(chat: nb.Session) -> list[str | None]:
    """Label, branch by it, move the label, branch by it again, as the cells of a notebook do."""
    places = []
    first = chat.run("one", show=None)
    second = chat.run("two", show=None)
    chat.label(first, "here")
    chat.branch("here")
    places.append(chat.leaf_id)
    chat.run("three", show=None)
    chat.label(first, None)
    chat.label(second, "here")
    chat.branch("here")
    places.append(chat.leaf_id)
    places.append(chat.run("four", show=None).leaf_id)
    return places


# B55 B56 B57
def test_a_notebook_that_moves_a_label_branches_the_same_way_twice(store: Store) -> None:
    first = moved(opened(store, ScriptedModel(lambda request: "An answer.")))
    before = held(store)
    model = ScriptedModel("never")

    again = moved(opened(store, model))

    assert again == first
    assert first[0] != first[1]
    assert (model.call_count, held(store)) == (0, before)


# B56
def test_a_label_that_the_handle_took_back_is_gone_though_it_is_stored_again(store: Store) -> None:
    chat = opened(store, ScriptedModel("one"))
    chat.run("Q", show=None)
    for text in ("here", None, "here"):
        chat.label(2, text)
    again = opened(store, ScriptedModel())
    again.run("Q", show=None)
    again.label(2, "here")
    again.label(2, None)

    with pytest.raises(EntryNotFound, match="entry 'here' is not in session 's'"):
        again.branch("here")


# B12 B56
def test_a_label_of_another_author_that_only_the_store_knows_is_found(store: Store) -> None:
    plain = opened(store, ScriptedModel("one"), replay=False)
    plain.run("Q", show=None)
    plain.label(2, "theirs", by="ana")
    again = opened(store, ScriptedModel())
    again.label(2, "mine")

    again.branch("theirs")

    assert again.leaf_id == again[2].id


# B12 B56
def test_a_label_on_two_entries_is_ambiguous_as_long_as_the_handle_has_said_so(
    store: Store,
) -> None:
    chat = opened(store, ScriptedModel("one"))
    chat.run("Q", show=None)
    chat.label(1, "here")
    chat.label(2, "here")
    again = opened(store, ScriptedModel())
    again.label(1, "here")

    again.branch("here")
    again.label(2, "here")

    assert again.leaf_id == again[1].id
    with pytest.raises(EntryNotFound, match="label 'here' is on 2 entries of session 's': #1, #2"):
        again.branch("here")


# B58 B70
def test_the_report_has_a_line_for_each_annotation(store: Store) -> None:
    chat = opened(store, ScriptedModel("one"))
    chat.run("Q", show=None)
    chat.label(1, "start")
    chat.rate(2, 5)
    again = opened(store, ScriptedModel())

    again.label(1, "start")
    again.rate(2, 4, name="tone")
    again.prefer(2, 1)

    assert [str(line) for line in again.replay_report().lines] == [
        "label replayed, #1",
        "rate made, #2",
        "prefer made, #2",
    ]
