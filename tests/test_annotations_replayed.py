"""In replay, what was said before is matched and not said again (B56)."""

from __future__ import annotations

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.replay import Replay
from nbdurable.stored import Annotation
from nbdurable.stores import Store


def opened(store: Store, model: ScriptedModel, replay: Replay | None = None) -> nb.Session:
    chat = nb.open("s", store=store, model=model)
    chat.replay = replay
    return chat


def notebook(chat: nb.Session) -> list[Annotation]:
    """Annotate as the cells of a notebook do, one call twice."""
    return [
        chat.label(1, "start"),
        chat.rate(2, 1, by="ana"),
        chat.rate(2, 2, by="ana"),
        chat.rate(2, 1, by="ana"),
        chat.rate(2, None, by="ana"),
        chat.prefer(2, 3, by="ana"),
        chat.label(1, None),
        chat.rate(2, 1, note="why"),
    ]


@pytest.fixture
def before(store: Store, model: ScriptedModel) -> list[Annotation]:
    """What the notebook made when it ran first."""
    chat = opened(store, model)
    chat.run("q", show=None)
    chat.rerun(show=None)
    return notebook(chat)


# B56 B70
@pytest.mark.parametrize("is_only", [False, True])
def test_equal_calls_match_what_is_stored_and_write_nothing(
    store: Store, model: ScriptedModel, before: list[Annotation], is_only: bool
) -> None:
    chat = opened(store, model, Replay(is_only=is_only))

    again = notebook(chat)

    assert again == before
    assert len({annotation.id for annotation in again}) == 8
    assert store.load_annotations("s") == before


# B56 B70
def test_the_nth_equal_call_takes_the_nth_stored_and_the_next_is_written(
    store: Store, model: ScriptedModel, before: list[Annotation]
) -> None:
    chat = opened(store, model, Replay())

    made = [chat.rate(2, 1, by="ana") for _ in range(4)]

    assert made[:2] == [before[1], before[3]]
    assert store.load_annotations("s") == [*before, made[2], made[3]]


DIFFERENT = {
    "value": lambda chat: chat.rate(2, 3, by="ana"),
    "type of value": lambda chat: chat.rate(2, True, by="ana"),
    "author": lambda chat: chat.rate(2, 1),
    "name": lambda chat: chat.rate(2, 1, name="tone", by="ana"),
    "note": lambda chat: chat.rate(2, 1, by="ana", note="why"),
    "target": lambda chat: chat.rate(3, 1, by="ana"),
    "loser": lambda chat: chat.prefer(2, 1, by="ana"),
    "label": lambda chat: chat.label(1, "other"),
}


# B56 B70
@pytest.mark.parametrize("what", DIFFERENT)
@pytest.mark.parametrize("is_only", [False, True])
def test_a_call_that_differs_in_anything_is_written(
    store: Store, model: ScriptedModel, before: list[Annotation], what: str, is_only: bool
) -> None:
    chat = opened(store, model, Replay(is_only=is_only))

    made = DIFFERENT[what](chat)

    assert store.load_annotations("s") == [*before, made]


# B56 B70
def test_without_replay_an_equal_call_is_said_again(
    store: Store, model: ScriptedModel, before: list[Annotation]
) -> None:
    again = notebook(opened(store, model))

    assert store.load_annotations("s") == [*before, *again]


# B56 B70
def test_each_opening_in_replay_counts_anew(
    store: Store, model: ScriptedModel, before: list[Annotation]
) -> None:
    for _ in range(3):
        assert notebook(opened(store, model, Replay())) == before

    assert store.load_annotations("s") == before
