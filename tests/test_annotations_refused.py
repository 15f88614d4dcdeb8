"""What a label, a rating and a preference may hold, and what is refused with nothing stored."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores import Store


@pytest.fixture
def chat(store: Store, model: ScriptedModel) -> nb.Session:
    """A session of one question (#1) with two answers."""
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    chat.rerun(show=None)
    return chat


# B64 B70
@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_a_score_that_is_not_finite_is_refused(chat: nb.Session, score: float) -> None:
    with pytest.raises(nb.errors.BadPayload, match=r"score .* is no finite number") as raised:
        chat.rate(2, score)

    assert raised.value.path == "score"
    assert chat.annotations() == []


# B70
def test_a_whole_number_that_no_float_holds_is_refused(chat: nb.Session) -> None:
    with pytest.raises(nb.errors.BadPayload, match="is no finite number"):
        chat.rate(2, 10**400)


class Grade(enum.IntEnum):
    GOOD = 3


SCORES: list[tuple[Any, object]] = [
    (np.float64(0.5), 0.5),
    (np.float32(0.5), 0.5),
    (np.int64(7), 7),
    (np.bool_(True), True),
    (np.array(2.5), 2.5),
    (Grade.GOOD, 3),
    (2**60 + 1, 2**60 + 1),
    (False, False),
    (-0.125, -0.125),
]


# B70
@pytest.mark.parametrize(("score", "stored"), SCORES, ids=range(len(SCORES)))
def test_scores_of_every_numeric_type_are_stored_as_plain_numbers(
    chat: nb.Session, score: Any, stored: object
) -> None:
    value = chat.rate(2, score).value

    assert (value, type(value)) == (stored, type(stored))


NO_SCORES = ["4", [1], np.array([1, 2]), b"1", object(), 1j]


# B70
@pytest.mark.parametrize("score", NO_SCORES, ids=range(len(NO_SCORES)))
def test_what_is_no_score_is_refused(chat: nb.Session, score: Any) -> None:
    with pytest.raises(nb.errors.EntryError, match="give a number, a bool, or None"):
        chat.rate(2, score)

    assert chat.annotations() == []


# B70
@pytest.mark.parametrize("name", ["label", "prefer", "confirm"])
def test_a_rating_cannot_take_a_name_that_means_something_else(chat: nb.Session, name: str) -> None:
    with pytest.raises(nb.errors.EntryError, match=f"name '{name}' of a rating means something"):
        chat.rate(2, 1, name=name)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("label", {"text": 7}, "label is 7 of type int; give text"),
    ("label", {"text": " \n"}, "label is .*, which is blank"),
    ("label", {"text": "x", "by": ""}, "author is '', which is blank"),
    ("label", {"text": "x", "by": 1}, "author is 1 of type int"),
    ("rate", {"score": 1, "name": ""}, "name of a rating is '', which is blank"),
    ("rate", {"score": 1, "name": None}, "name of a rating is None of type NoneType"),
    ("rate", {"score": 1, "note": 5}, "note of a rating is 5 of type int"),
]


# B70
@pytest.mark.parametrize(("verb", "given", "text"), WRONG, ids=range(len(WRONG)))
def test_what_is_no_text_is_refused(
    chat: nb.Session, verb: str, given: dict[str, Any], text: str
) -> None:
    with pytest.raises(nb.errors.EntryError, match=text):
        getattr(chat, verb)(2, **given)

    assert chat.annotations() == []


# B70
def test_a_preference_over_itself_or_nothing_is_refused(chat: nb.Session) -> None:
    with pytest.raises(nb.errors.EntryError, match=r"entry #2 was given nothing that it is better"):
        chat.prefer(2)
    with pytest.raises(nb.errors.EntryError, match="entry #2 cannot be better than itself"):
        chat.prefer(2, 3, chat[2])

    assert chat.annotations() == []


# B12 B70
def test_an_unknown_entry_or_the_root_cannot_be_annotated(chat: nb.Session) -> None:
    with pytest.raises(nb.errors.EntryNotFound, match="entry #99 is not in session 's'"):
        chat.label(99, "x")
    with pytest.raises(nb.errors.EntryNotFound, match="the root of session 's' is no entry"):
        chat.rate(None, 1)
    with pytest.raises(nb.errors.EntryNotFound, match="the root of session 's' is no entry"):
        chat.prefer(2, 3, None)

    assert chat.annotations() == []


# B54 B70
def test_a_closed_handle_annotates_nothing(chat: nb.Session) -> None:
    chat.close()

    for call in (lambda: chat.label(2, "x"), lambda: chat.rate(2, 1), chat.annotations):
        with pytest.raises(nb.errors.SessionClosed, match="was closed on this handle"):
            call()
