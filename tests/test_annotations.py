"""Labels, ratings and preferences: said beside the tree, the latest of each author counts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from new_process import in_new_process

import nbdurable as nb
from nbdurable.annotations import Marks, Preference, Rating
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import Annotation
from nbdurable.stores import Store


@pytest.fixture
def chat(store: Store, model: ScriptedModel) -> nb.Session:
    """A session of one question (#1) with three answers (#2 to #4)."""
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    chat.rerun(show=None)
    chat.rerun(show=None)
    return chat


def said(chat: nb.Session) -> list[tuple[Any, ...]]:
    return [(chat[a.target_id].n, a.name, a.by, a.value) for a in chat.annotations()]


def annotation(counter: int, value: object, **columns: Any) -> Annotation:
    given = {"target_id": "e1", "name": "label", "value_json": json.dumps(value), **columns}
    return Annotation(id=f"a{counter}", session_id="s", created_at=0, counter=counter, **given)


# -- what counts -----------------------------------------------------------------------------------


# B70
def test_the_latest_of_a_target_name_and_author_counts(chat: nb.Session) -> None:
    chat.rate(2, 1)
    chat.rate(2, 5, name="tone")
    chat.rate(2, 3, by="ana")
    chat.rate(3, 9)

    chat.rate(2, 4, note="read twice")

    assert said(chat) == [
        (2, "tone", None, 5),
        (2, "rating", "ana", 3),
        (3, "rating", None, 9),
        (2, "rating", None, 4),
    ]
    assert chat.annotations()[-1].note == "read twice"


# B70
def test_no_author_is_an_author_of_its_own(chat: nb.Session) -> None:
    chat.rate(2, 1)
    chat.rate(2, 2, by="ana")

    chat.rate(2, None, by="ana")

    assert said(chat) == [(2, "rating", None, 1)]


# B70
def test_none_clears_and_nothing_is_removed(chat: nb.Session, store: Store) -> None:
    chat.label(2, "good")
    chat.rate(2, True)
    chat.prefer(2, 3)

    chat.label(2, None)
    chat.rate(2, None)
    chat.prefer(2, None)

    assert chat.annotations() == []
    kept = [(a.name, a.value_json) for a in store.load_annotations("s")]
    assert kept[3:] == [("label", "null"), ("rating", "null"), ("prefer", "null")]
    assert [name for name, value in kept[:3]] == ["label", "rating", "prefer"]
    assert kept[0][1] == '"good"'


# B70
def test_what_was_cleared_can_be_said_again(chat: nb.Session) -> None:
    chat.label(2, "a")
    chat.label(2, None)

    chat.label(2, "b")

    assert said(chat) == [(2, "label", None, "b")]
    assert chat["b"].n == 2


# B70
def test_annotations_write_no_entries_and_move_nothing(chat: nb.Session, store: Store) -> None:
    before, leaf, moves = store.load_entries("s"), chat.leaf_id, store.load_moves("s")

    chat.label(1, "start")
    chat.rate(2, 0.5)
    chat.prefer(2, 3, 4)

    assert store.load_entries("s") == before
    assert store.load_moves("s") == moves
    assert chat.leaf_id == leaf


# B70
def test_what_is_returned_is_what_is_stored(chat: nb.Session, store: Store) -> None:
    made = [
        chat.label(2, "x", by="ana"),
        chat.rate(3, 0.25, name="tone", by="judge", note="dry"),
        chat.prefer(2, 3, 4, by="ana"),
    ]

    assert made == store.load_annotations("s")
    assert [a.value for a in made] == ["x", 0.25, {"over": [chat[3].id, chat[4].id]}]
    assert (made[1].by, made[1].note) == ("judge", "dry")


# B12 B70
def test_every_reference_means_an_entry_to_annotate(chat: nb.Session) -> None:
    run = chat.runs()[0]
    chat.label(2, "named")

    made = [chat.rate(ref, 1) for ref in (2, np.int64(2), chat[2], chat[2].id, run, "named")]

    assert {a.target_id for a in made} == {chat[2].id}
    assert chat.rate(nb.LEAF, 1).target_id == chat.leaf_id
    preferred = chat.prefer(run, chat[3], chat.runs()[2])
    assert preferred.value == {"over": [chat[3].id, chat[4].id]}


# B70
def test_a_later_preference_of_a_winner_takes_the_place_of_the_earlier(chat: nb.Session) -> None:
    chat.prefer(2, 3)
    chat.prefer(2, 4)

    pairs = chat.image.annotations().preferences()

    assert pairs == [Preference(winner_id=chat[2].id, loser_id=chat[4].id)]


# B70
def test_of_two_contrary_preferences_of_an_author_the_later_counts(chat: nb.Session) -> None:
    chat.prefer(2, 3, 4)
    chat.prefer(3, 2)
    chat.prefer(2, 3, by="ana")

    pairs = chat.image.annotations().preferences()

    ids = {chat[n].id: n for n in (2, 3, 4)}
    assert [(ids[p.winner_id], ids[p.loser_id], p.by) for p in pairs] == [
        (2, 4, None),
        (3, 2, None),
        (2, 3, "ana"),
    ]


# B70
def test_marks_are_labels_and_ratings_and_nothing_else(chat: nb.Session, store: Store) -> None:
    target = chat[2].id
    chat.label(2, "a")
    chat.label(2, "b", by="ana")
    chat.rate(2, False, name="safe", by="judge", note="hm")
    chat.prefer(2, 3)
    confirm = {"call_id": "c", "allow": True}
    store.annotate([annotation(0, confirm, target_id=target, name="confirm")])

    marks = chat.image.annotations().marks()

    rating = Rating(name="safe", score=False, by="judge", note="hm")
    assert marks[target] == Marks(("a", "b"), (rating,))


# -- who sees it -----------------------------------------------------------------------------------


# B11 B70
def test_handles_of_one_session_see_each_others(store: Store, model: ScriptedModel) -> None:
    one, other = (nb.open("s", store=store, model=model) for _ in range(2))
    one.append("x")

    one.label(1, "here", by="one")
    other.label(1, "there", by="other")

    assert one["there"].n == other["here"].n == 1
    assert said(one) == said(other)


# B11 B70
def test_what_another_process_said_is_seen(tmp_path: Path, model: ScriptedModel) -> None:
    path = tmp_path / "chats.duckdb"
    with nb.open("s", store=path, model=model) as chat:
        chat.run("q", show=None)
        chat.label(1, "start", by="ana")
        chat.rate(2, 4.5, note="good")

    found = in_new_process(
        "import json, sys, nbdurable as nb\n"
        "from nbdurable.models.scripted import ScriptedModel\n"
        "chat = nb.open('s', store=sys.argv[1], model=ScriptedModel())\n"
        "chat.rate('start', False, name='clear')\n"
        "print(json.dumps([[a.name, a.by, a.value, a.note] for a in chat.annotations()]))\n",
        str(path),
    )

    assert found == [
        ["label", "ana", "start", None],
        ["rating", None, 4.5, "good"],
        ["clear", None, False, None],
    ]
    with nb.open("s", store=path, model=model) as again:
        assert said(again)[-1] == (1, "clear", None, False)


# B11 B70
def test_a_label_on_an_entry_that_is_not_known_yet_is_found(
    store: Store, model: ScriptedModel
) -> None:
    """Another process stores entry and label between the two looks of a verb."""
    chat = nb.open("s", store=store, model=model)
    (first,) = chat.append("mine")
    (row,) = store.load_entries("s")
    theirs = "01890000-0000-7000-8000-000000000001"
    look = store.load_annotations

    def late(session_id: str, after: int = 0) -> list[Annotation]:
        store.append("s", [row._replace(id=theirs, parent_id=row.id)])
        store.annotate([annotation(0, "late", target_id=theirs)])
        store.load_annotations = look  # type: ignore[method-assign]
        return look(session_id, after)

    store.load_annotations = late  # type: ignore[method-assign]

    assert chat["late"].id == theirs
    assert chat[1] == first


# B70
def test_an_entry_can_be_annotated_during_a_foreground_run(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel("one", ("t", go, "wo"))
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    run = chat.run("again", wait=False, show=None)
    model.wait_for_request(2)

    chat.label(2, "before")
    chat.rate(2, 1)
    chat.prefer(2, 1)
    on_input = chat.label(run, "input")

    assert on_input.target_id == chat[3].id
    go.set()
    assert run.wait().text == "two"
    assert [name for _, name, _, _ in said(chat)] == ["label", "rating", "prefer", "label"]


# B10 B70
def test_many_threads_may_annotate_at_once(chat: nb.Session) -> None:
    def annotate(author: str) -> None:
        for score in range(20):
            chat.rate(2, score, by=author)
            chat.label(2, f"{author} {score}", by=author)
            assert chat[f"{author} {score}"].n == 2

    threads = [threading.Thread(target=annotate, args=(f"a{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(value for _, name, _, value in said(chat) if name == "rating") == [19] * 6
    assert len(chat.annotations()) == 12


# B70
def test_ten_thousand_annotations_are_read_once_and_found_by_key(chat: nb.Session) -> None:
    target = chat[2].id
    store = chat.image.store
    store.annotate(
        [annotation(0, f"label {i}", target_id=target, by=f"a{i}") for i in range(10_000)]
    )
    loaded: list[int] = []
    look = store.load_annotations

    def counted(session_id: str, after: int = 0) -> list[Annotation]:
        found = look(session_id, after)
        loaded.append(len(found))
        return found

    store.load_annotations = counted  # type: ignore[method-assign]
    for i in range(0, 10_000, 50):
        assert chat[f"label {i}"].n == 2
    store.load_annotations = look  # type: ignore[method-assign]

    # a look that found nothing is one after the file was let go, which costs little
    assert [found for found in loaded if found] == [10_000]
    assert len(chat.annotations()) == 10_000
