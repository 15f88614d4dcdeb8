"""A label is a reference: text is an id first, then a label, never an ordinal."""

from __future__ import annotations

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores import Store


@pytest.fixture
def chat(store: Store, model: ScriptedModel) -> nb.Session:
    """A session of two questions (#1, #3) and their answers, #2 labelled."""
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    chat.run("more", show=None)
    chat.label(2, "before refund")
    return chat


# B12
def test_every_verb_takes_a_label(chat: nb.Session) -> None:
    ref, target = "before refund", chat[2]

    assert chat[ref] == target
    assert [entry.n for entry in chat.path(ref)] == [1, 2]
    assert len(chat.preview("x", at=ref)["messages"]) == 3  # type: ignore[arg-type]
    assert len(chat.fork(at=ref).entries()) == 2
    assert chat.run("on", at=ref, show=None).entries[0].parent_id == target.id
    assert chat.rerun(ref, show=None).entries[0].parent_id == chat[1].id
    edited = chat.edit(ref, "mine")
    assert isinstance(edited, nb.Entry) and edited.parent_id == chat[1].id
    chat.branch(ref)
    assert chat.leaf_id == target.id


# B12
def test_text_is_an_id_before_it_is_a_label(chat: nb.Session) -> None:
    chat.label(2, chat[4].id)

    assert chat[chat[4].id].n == 4


# B12
def test_a_label_that_looks_like_an_ordinal_is_a_label(chat: nb.Session) -> None:
    chat.label(2, "4")

    assert chat["4"].n == 2
    assert chat[4].n == 4


# B12
def test_a_label_on_several_entries_means_none_and_lists_them(chat: nb.Session) -> None:
    chat.label(4, "before refund", by="ana")
    leaf = chat.leaf_id

    with pytest.raises(
        nb.errors.EntryNotFound,
        match=r"label 'before refund' is on 2 entries of session 's': #2, #4; give one of these",
    ) as raised:
        chat.branch("before refund")

    assert raised.value.entry_id == "before refund"
    assert chat.leaf_id == leaf


# B12
def test_a_label_on_very_many_entries_lists_a_few(chat: nb.Session) -> None:
    chat.append(*[nb.user(f"{n}") for n in range(5, 31)])
    for n in range(5, 31):
        chat.label(n, "x")

    with pytest.raises(nb.errors.EntryNotFound, match=r"on 26 entries .*#14 and 16 more; give one"):
        chat["x"]


# B12 B70
def test_a_label_that_two_authors_gave_one_entry_is_not_ambiguous(chat: nb.Session) -> None:
    chat.label(2, "before refund", by="ana")
    assert chat["before refund"].n == 2

    chat.label(2, None)
    assert chat["before refund"].n == 2

    chat.label(2, "other", by="ana")
    with pytest.raises(nb.errors.EntryNotFound, match="'before refund' is not in session"):
        chat["before refund"]


# B12 B70
def test_a_label_that_moved_means_the_entry_that_has_it_now(chat: nb.Session) -> None:
    chat.label(2, None)
    chat.label(4, "before refund")

    assert chat["before refund"].n == 4


# B12
def test_an_unknown_label_names_those_that_come_near(chat: nb.Session) -> None:
    chat.label(4, "after")

    with pytest.raises(nb.errors.EntryNotFound, match=r"near it: 'before refund'$"):
        chat["befor refund"]


# B12
def test_a_label_of_another_session_is_unknown(
    chat: nb.Session, store: Store, model: ScriptedModel
) -> None:
    other = nb.open("other", store=store, model=model)
    other.append("x")

    with pytest.raises(nb.errors.EntryNotFound, match="is not in session 'other'"):
        other["before refund"]


# B12 B64
@pytest.mark.parametrize(
    "text",
    [
        "tide \ud83c cut",
        "nul \0 and \u2028",
        "<b>&'\"",
        "'; drop table nbd.annotations; --",
        "naïve 漢字 👩‍👩‍👧",
        "x" * 100_000,
        " spaced ",
    ],
    ids=range(7),
)
def test_any_text_that_can_be_seen_is_a_label(chat: nb.Session, text: str) -> None:
    made = chat.label(4, text, by=text)
    rated = chat.rate(4, 1, name=text, by=text, note=text)

    assert chat[text].n == 4
    assert made.value == text.replace("\ud83c", "\ufffd")
    assert chat.annotations()[-2:] == [made, rated]
    assert rated.note == rated.by == rated.name == made.value
