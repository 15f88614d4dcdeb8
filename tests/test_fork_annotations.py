"""What was said of copied entries comes along with a fork, in the same transaction."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stored import Annotation
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore


@pytest.fixture
def chat(store: Store, model: ScriptedModel) -> nb.Session:
    """A session of two turns (#1 to #4) and another answer to the first (#5)."""
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    chat.run("more", show=None)
    chat.rerun(2, show=None)
    chat.branch(4)
    return chat


def said(chat: nb.Session) -> list[tuple[Any, ...]]:
    return [(chat[a.target_id].n, a.name, a.by, a.value, a.note) for a in chat.annotations()]


# B48 B70
def test_annotations_of_copied_entries_come_along(chat: nb.Session, store: Store) -> None:
    chat.label(1, "start", by="ana")
    chat.rate(4, 0.5, name="tone", note="dry")
    chat.rate(5, 1)
    before = store.load_annotations("s")

    child = chat.fork("child")

    assert said(child) == [
        (1, "label", "ana", "start", None),
        (4, "tone", None, 0.5, "dry"),
    ]
    assert child["start"].id != chat["start"].id
    copied = store.load_annotations("child")
    assert [a.created_at for a in copied] == [a.created_at for a in before[:2]]
    assert not {a.id for a in copied} & {a.id for a in before}
    assert store.load_annotations("s") == before


# B48 B70
def test_the_latest_counts_in_the_child_too(chat: nb.Session, store: Store) -> None:
    chat.rate(2, 1)
    chat.label(2, "x")
    chat.rate(2, 2)
    chat.label(2, None)

    child = chat.fork("child")

    assert said(child) == [(2, "rating", None, 2, None)]
    assert [a.value_json for a in store.load_annotations("child")] == ["1", '"x"', "2", "null"]


# B48 B70
def test_only_what_was_said_of_the_copied_part_comes_along(chat: nb.Session) -> None:
    chat.label(2, "here")
    chat.label(3, "beyond")

    child = chat.fork("child", at="here")

    assert said(child) == [(2, "label", None, "here", None)]
    assert said(chat.fork("empty", at=None)) == []


# B48 B70
def test_ids_inside_a_preference_are_those_of_the_copies(chat: nb.Session) -> None:
    chat.prefer(4, 2, 5)

    child = chat.fork("child")

    (copied,) = child.annotations()
    assert copied.target_id == child[4].id
    assert copied.value == {"over": [child[2].id, chat[5].id]}


# B48 B70
def test_what_is_said_in_a_fork_is_said_there_alone(chat: nb.Session) -> None:
    chat.label(2, "x")
    child = chat.fork("child")

    child.label(2, "y")
    chat.rate(2, 5)

    assert said(child) == [(2, "label", None, "y", None)]
    assert said(chat)[0] == (2, "label", None, "x", None)


# B29 B48
def test_the_answer_to_a_question_about_a_tool_comes_along(store: Store) -> None:
    model = ScriptedModel(calls(("look", {})), "done")
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    answer = {"call_id": "c", "allow": True}
    given = Annotation(
        id="a",
        session_id="s",
        target_id=chat[2].id,
        name="confirm",
        value_json=json.dumps(answer),
        created_at=1,
    )
    store.annotate([given])

    chat.fork("child")

    (copied,) = store.load_annotations("child")
    assert replace(copied, id="a", target_id=given.target_id, session_id="s", counter=0) == given


# B48
def test_entries_and_annotations_are_copied_in_one_call_of_the_store() -> None:
    class Watched(MemoryStore):
        def annotate(self, annotations: Any) -> tuple[Annotation, ...]:
            assert all(a.session_id != "child" for a in annotations), "a copy in pieces"
            return super().annotate(annotations)

    chat = nb.open("s", store=Watched(), model=ScriptedModel("ok"))
    chat.run("q", show=None)
    chat.label(1, "x")

    child = chat.fork("child")

    assert child["x"].n == 1
