"""The publisher hears of what happened to sessions, once it is stored, and of nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore

Told = list[SessionEvent]


class Note(nb.CustomEntry):
    kind = "publisher-note"


def types(told: Told) -> list[str]:
    return [event.type for event in told]


# -- what is told ----------------------------------------------------------------------------------


# B53
def test_opening_is_told_on_create_and_on_resume(store: Store) -> None:
    told: Told = []
    first = nb.open("s", store=store, model=ScriptedModel("ok"), publisher=told.append)
    first.run("one", show=None)

    second = nb.open("s", store=store, model=ScriptedModel(), publisher=told.append)

    assert types(told) == ["session_init", "session_init"]
    assert [(e.session_id, e.leaf_id) for e in told] == [("s", None), ("s", second.leaf_id)]


# B53
def test_verbs_are_told_in_order_each_with_its_session(store: Store) -> None:
    told: Told = []
    model = ScriptedModel("ok", "A summary.")
    chat = nb.open("s", store=store, model=model, publisher=told.append)
    chat.run("one", show=None)
    entry = chat.compact()
    chat.branch(1)
    child = chat.fork("child")

    assert entry is not None
    assert [(e.type, e.session_id) for e in told] == [
        ("session_init", "s"),
        ("session_compacted", "s"),
        ("session_branched", "s"),
        ("session_forked", "child"),
        ("session_init", "child"),
    ]
    assert (told[1].entry_id, told[1].leaf_id) == (entry.id, entry.id)
    assert (told[2].from_id, told[2].leaf_id) == (entry.id, chat[1].id)
    assert told[3].parent_session_id == "s"
    assert (told[3].leaf_id, told[4].leaf_id) == (child.leaf_id, child.leaf_id)


# B53
def test_what_is_told_is_stored_already(store: Store) -> None:
    seen: list[tuple[str, object]] = []

    def publisher(event: SessionEvent) -> None:
        moves = store.load_moves(event.session_id)
        entries = store.load_entries(event.session_id)
        stored = {
            "session_init": len(entries),
            "session_branched": moves[-1].entry_id == event.leaf_id if moves else None,
            "session_forked": len(entries),
            "session_compacted": entries[-1].id == event.entry_id if entries else None,
        }
        seen.append((event.type, stored[event.type]))

    model = ScriptedModel("ok", "A summary.")
    chat = nb.open("s", store=store, model=model, publisher=publisher)
    chat.run("one", show=None)
    chat.compact()
    chat.branch(2)
    chat.fork("child")

    assert seen == [
        ("session_init", 0),
        ("session_compacted", True),
        ("session_branched", True),
        ("session_forked", 2),
        ("session_init", 2),
    ]


# B19 B53
def test_a_run_at_another_entry_tells_of_its_branch_and_of_nothing_else(store: Store) -> None:
    told: Told = []
    chat = nb.open("s", store=store, model=ScriptedModel("ok"), publisher=told.append)
    chat.run("one", show=None)
    leaf = chat.leaf_id

    chat.run("other", at=None, show=None)

    assert types(told) == ["session_init", "session_branched"]
    assert (told[1].from_id, told[1].leaf_id) == (leaf, None)


# B53
def test_going_back_to_the_root_is_told(store: Store) -> None:
    told: Told = []
    chat = nb.open("s", store=store, model=ScriptedModel(), publisher=told.append)
    chat.append("one")

    chat.branch(None)

    assert (told[-1].type, told[-1].leaf_id) == ("session_branched", None)


# -- what is not -----------------------------------------------------------------------------------


def look() -> str:
    """Look."""
    return "seen"


# B53
@pytest.mark.parametrize(
    "verb",
    [
        lambda chat: chat.run("two", show=None),
        lambda chat: chat.run("two", move=False, show=None),
        lambda chat: chat.rerun(show=None),
        lambda chat: chat.edit(1, "uno", show=None),
        lambda chat: chat.edit(2, "better"),
        lambda chat: chat.append("x", Note()),
        lambda chat: chat.preview("x"),
        lambda chat: chat.context(),
        lambda chat: chat.entries(),
        lambda chat: chat.branch(chat.leaf_id),
        lambda chat: chat.run("two", at=chat.leaf_id, show=None),
        lambda chat: chat.compact(keep_turns=9),
        lambda chat: chat.close(),
    ],
    ids=[
        *("run", "detached", "rerun", "edit", "edit of an answer", "append", "preview", "context"),
        *("entries", "branch to the leaf", "run at the leaf", "nothing to compact", "close"),
    ],
)
def test_of_runs_appends_readings_and_what_changes_nothing_it_hears_nothing(
    store: Store, verb: Callable[[nb.Session], object]
) -> None:
    told: Told = []
    model = ScriptedModel(calls(("look", {})), "ok")
    chat = nb.open("s", store=store, model=model, tools=[look], publisher=told.append)
    chat.append("one", nb.assistant("I see."))

    verb(chat)

    assert types(told) == ["session_init"]


# B53
@pytest.mark.parametrize(
    ("verb", "error"),
    [
        (lambda chat: chat.branch(99), "entry #99 is not in session"),
        (lambda chat: chat.branch("nope"), "entry 'nope' is not in session"),
        (lambda chat: chat.fork("s"), "'s'"),
        (lambda chat: chat.fork("x", at=99), "entry #99 is not in session"),
        (lambda chat: chat.compact(), "gone"),
        (lambda chat: chat.run("two", show=None), "gone"),
        (lambda chat: chat.run("", at=None, show=None), "give input that is not blank"),
    ],
    ids=["branch", "branch to text", "fork", "fork at", "compact", "run", "run that cannot be"],
)
def test_of_a_failure_it_hears_nothing(
    store: Store, verb: Callable[[nb.Session], object], error: str
) -> None:
    told: Told = []
    model = ScriptedModel(nb.errors.ModelError("gone"))
    chat = nb.open("s", store=store, model=model, publisher=told.append)
    chat.append("one", nb.assistant("ok"))

    with pytest.raises(nb.errors.NbDurableError, match=error):
        verb(chat)

    assert types(told) == ["session_init"]


# B6 B53
def test_of_a_session_that_cannot_be_opened_it_hears_nothing(tmp_path: Path) -> None:
    told: Told = []
    (tmp_path / "chats.duckdb").write_text("no database")

    with pytest.raises(nb.errors.StoreError, match=r"chats\.duckdb"):
        nb.open("s", store=tmp_path / "chats.duckdb", model=ScriptedModel(), publisher=told.append)

    assert told == []


# B53
def test_of_a_move_that_cannot_be_stored_it_hears_nothing() -> None:
    class Full(MemoryStore):
        def move(self, *args: object) -> object:  # type: ignore[override]
            raise nb.errors.StoreError("the disk is full; free some space")

    told: Told = []
    chat = nb.open("s", store=Full(), model=ScriptedModel(), publisher=told.append)
    chat.append("one", "two")
    leaf = chat.leaf_id

    with pytest.raises(nb.errors.StoreError, match="the disk is full"):
        chat.branch(None)

    assert types(told) == ["session_init"]
    assert chat.leaf_id == leaf


# -- publishers that do something ------------------------------------------------------------------


# B53
def test_a_publisher_that_raises_is_logged_and_undoes_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def publisher(event: SessionEvent) -> None:
        raise ZeroDivisionError(f"over {event.type}")

    model = ScriptedModel("ok", "A summary.")
    chat = nb.open("s", store=store, model=model, publisher=publisher)
    chat.run("one", show=None)
    chat.compact()
    chat.branch(1)
    child = chat.fork("child")

    assert chat.leaf_id == chat[1].id
    assert store.load_moves("s")[-1].entry_id == chat[1].id
    assert len(child.entries()) == 1
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "the publisher failed on session_init of session 's'",
        "the publisher failed on session_compacted of session 's'",
        "the publisher failed on session_branched of session 's'",
        "the publisher failed on session_forked of session 'child'",
        "the publisher failed on session_init of session 'child'",
    ]
    assert all(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)


# B53
def test_a_publisher_may_call_verbs_of_the_session_it_hears_of(store: Store) -> None:
    told: Told = []
    chat: nb.Session | None = None

    def publisher(event: SessionEvent) -> None:
        told.append(event)
        if chat is None:
            return
        if event.type == "session_branched" and len(told) < 3:
            chat.append(Note())
            chat.run("Summarise.", show=None)
            chat.branch(1)
        elif event.type == "session_forked":
            with nb.open(event.session_id, store=store, model=ScriptedModel()) as child:
                child.append("from the publisher")

    chat = nb.open("s", store=store, model=ScriptedModel("ok"), publisher=publisher)
    chat.run("one", show=None)

    chat.branch(None)
    child = chat.fork("child")

    assert types(told) == [
        *("session_init", "session_branched", "session_branched", "session_forked"),
        "session_init",
    ]
    assert chat.leaf_id == chat[1].id
    assert [getattr(e, "text", "") for e in child.entries()] == ["one", "from the publisher"]


# B53
def test_handles_of_one_session_have_publishers_of_their_own(store: Store) -> None:
    told: Told = []
    heard: Told = []
    chat = nb.open("s", store=store, model=ScriptedModel(), publisher=told.append)
    other = nb.open("s", store=store, model=ScriptedModel(), publisher=heard.append)
    chat.append("one", "two")

    other.branch(1)

    assert types(told) == ["session_init"]
    assert types(heard) == ["session_init", "session_branched"]
