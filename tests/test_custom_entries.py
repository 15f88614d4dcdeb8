"""Custom entries: stored and shown, read by no model, and never lost for want of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError

import pytest

import nbdurable as nb
from nbdurable import entries as registry
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test the registry for itself."""
    monkeypatch.setattr(registry, "_REGISTRY", {})
    yield


def note_class() -> type[nb.CustomEntry]:
    class Note(nb.CustomEntry):
        kind = "note"
        text: str = ""
        stars: int = 0

    return Note


# -- their place -----------------------------------------------------------------------------------


# B36
def test_a_custom_entry_is_stored_and_shown_and_never_sent(store: Store) -> None:
    note = note_class()
    model = ScriptedModel("a", "b")
    chat = nb.open("s", store=store, model=model)
    chat.append(note(text="first of all"))  # type: ignore[call-arg]

    chat.run("one", note(text="between"), "two", show=None)  # type: ignore[call-arg]
    chat.append(note(text="at the end"))  # type: ignore[call-arg]
    chat.run("three", show=None)

    assert [m.text for m in model.requests[1].messages] == ["one", "two", "a", "three"]
    kinds = [type(entry).__name__ for entry in chat.transcript()]
    assert kinds == [
        *("Note", "MessageEntry", "Note", "MessageEntry"),
        *("MessageEntry", "Note", "MessageEntry", "MessageEntry"),
    ]
    assert [e.fields["text"] for e in chat.entries(note)] == [
        *("first of all", "between", "at the end")
    ]


# B18 B36
def test_a_custom_entry_appended_by_a_tool_comes_not_between_call_and_result(
    store: Store,
) -> None:
    note = note_class()

    def look() -> str:
        """Look."""
        chat.append(note(text="looking"))  # type: ignore[call-arg]
        return "seen"

    model = ScriptedModel(calls(("look", {})), "ok")
    chat = nb.open("s", store=store, model=model, tools=[look])

    chat.run("Look.", show=None)

    assert [m.role for m in model.requests[1].messages] == ["user", "assistant", "tool"]
    assert model.requests[1].messages[2].tool_results[0].text == "seen"
    assert [entry.kind for entry in chat.path()] == [
        *("message", "message", "note", "message", "message")
    ]


# B36
def test_a_session_of_custom_entries_alone_has_nothing_to_answer(store: Store) -> None:
    note = note_class()
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.append(note(text="x"))  # type: ignore[call-arg]

    with pytest.raises(nb.errors.RunError, match="nothing at the leaf that a model could answer"):
        chat.run(show=None)

    assert chat.compact() is None


# -- classes ---------------------------------------------------------------------------------------


# B36
def test_a_class_defined_again_reads_what_the_former_one_stored(store: Store) -> None:
    first = note_class()
    chat = nb.open("s", store=store, model=ScriptedModel())
    (made,) = chat.append(first(text="x", stars=3))  # type: ignore[call-arg]
    second = note_class()

    (found,) = chat.entries(second)

    assert isinstance(made, first)
    assert type(found) is second
    assert found.id == made.id
    assert found.fields == {"text": "x", "stars": 3}
    assert chat.entries(first) == []


# B36 B37
def test_a_class_with_other_fields_keeps_those_it_does_not_know(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel())
    chat.append(note_class()(text="x", stars=3))  # type: ignore[call-arg]

    class Note(nb.CustomEntry):
        kind = "note"
        text: str = ""
        colour: str = "red"

    (found,) = chat.entries(Note)

    assert (found.text, found.colour) == ("x", "red")
    assert found.fields == {"text": "x", "stars": 3, "colour": "red"}


# B37
@pytest.mark.parametrize("error", [TypeError, ValueError, KeyError, AttributeError, OSError])
def test_a_class_that_refuses_what_was_stored_leaves_the_session_readable(
    store: Store, error: type[Exception]
) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.append(note_class()(text="x", stars=3))  # type: ignore[call-arg]

    class Note(nb.CustomEntry):
        kind = "note"
        text: str = ""

        def __post_init__(self) -> None:
            raise error("no such notes any more")

    (found,) = chat.entries(nb.CustomEntry)

    assert not isinstance(found, Note)
    assert found.fields == {"text": "x", "stars": 3}
    assert registry.kind_of(found) == "note"


# B38
def test_entries_of_a_kind_are_those_of_the_class_and_its_subclasses_in_order(
    store: Store,
) -> None:
    class Mark(nb.CustomEntry):
        kind = "mark"
        text: str = ""

    class Score(Mark):
        kind = "score"
        points: int = 0

    class Other(nb.CustomEntry):
        kind = "other"

    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.append(Score(text="a", points=1), Other(), Mark(text="b"))
    chat.run("one", show=None)
    chat.append(Score(text="c"))
    chat.branch(1)
    chat.append(Mark(text="d"))

    assert [entry.text for entry in chat.entries(Mark)] == ["a", "b", "c", "d"]
    assert [entry.text for entry in chat.entries(Score)] == ["a", "c"]
    assert len(chat.entries(nb.CustomEntry)) == 5
    assert len(chat.entries(nb.MessageEntry)) == 2
    assert [entry.n for entry in chat.entries()] == [1, 2, 3, 4, 5, 6, 7]


# B38
def test_a_subclass_without_a_kind_of_its_own_is_stored_under_its_parents(store: Store) -> None:
    note = note_class()

    class Loud(note):  # type: ignore[misc, valid-type]
        volume: int = 11

    chat = nb.open("s", store=store, model=ScriptedModel())

    (made,) = chat.append(Loud(text="x"))

    assert type(made) is note
    assert made.fields == {"text": "x", "stars": 0, "volume": 11}


# B36
@pytest.mark.parametrize("kind", ["message", "compaction", "opaque", "", "a\0b", 7])
def test_a_kind_that_cannot_be_used_is_refused_when_the_class_is_made(kind: object) -> None:
    with pytest.raises(nb.errors.EntryError, match="of Note cannot be used; choose other text"):
        type("Note", (nb.CustomEntry,), {"kind": kind})


# B36
@pytest.mark.parametrize("name", ["id", "n", "seq", "parent_id", "run_id", "created_at", "fields"])
def test_a_field_that_every_entry_has_is_refused_when_the_class_is_made(name: str) -> None:
    members = {"kind": "note", "__annotations__": {name: "int"}, name: 0}

    with pytest.raises(nb.errors.EntryError, match=f"field '{name}' of Note cannot be used"):
        type("Note", (nb.CustomEntry,), members)


# B10 B36
def test_what_is_returned_cannot_change_what_is_stored(store: Store) -> None:
    class Note(nb.CustomEntry):
        kind = "note"
        tags: list[str] | None = None

    given = ["a"]
    chat = nb.open("s", store=store, model=ScriptedModel())
    (made,) = chat.append(Note(tags=given))
    given.append("b")
    made.tags.append("c")  # type: ignore[attr-defined]

    with pytest.raises(FrozenInstanceError, match="tags"):
        made.tags = []  # type: ignore[attr-defined]
    assert chat.entries(Note)[0].tags == ["a"]
    assert chat[1].fields == {"tags": ["a"]}  # type: ignore[attr-defined]


# B20
def test_one_object_given_twice_makes_two_entries_and_its_header_is_ignored(store: Store) -> None:
    note = note_class()(text="x", id="mine", seq=99)  # type: ignore[call-arg]
    chat = nb.open("s", store=store, model=ScriptedModel())

    first, second = chat.append(note, note)

    assert "mine" not in (first.id, second.id)
    assert second.parent_id == first.id
    assert [first.n, second.n] == [1, 2]


# B64 case 33
@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ({"score": float("nan")}, "fields.data.score", "nan"),
        ([1, {"best": float("-inf")}], "fields.data[1].best", "-inf"),
        ({"when": {1, 2}}, "fields.data.when", "of type set"),
        ({(1, 2): "x"}, "fields.data.(1, 2)", "under a key of type tuple"),
    ],
    ids=["nan", "inf", "set", "key"],
)
@pytest.mark.parametrize("verb", ["append", "run"])
def test_a_value_that_is_not_json_is_refused_with_its_place_and_nothing_is_stored(
    store: Store, verb: str, value: object, path: str, found: str
) -> None:
    class Note(nb.CustomEntry):
        kind = "note"
        data: object = None

    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)

    with pytest.raises(nb.errors.BadPayload, match=found) as caught:
        if verb == "append":
            chat.append("one", Note(data=1), Note(data=value))
        else:
            chat.run("one", Note(data=value), show=None)

    assert caught.value.path.endswith(path)
    assert store.load_entries("s") == []
    assert (chat.leaf_id, model.call_count) == (None, 0)
