"""Fork: a path copied to a session of its own, whose source knows nothing of it."""

from __future__ import annotations

import json
import threading

import pytest

import nbdurable as nb
from nbdurable.blocks import Message
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


class Note(nb.CustomEntry):
    kind = "fork-note"
    text: str = ""


def look() -> str:
    """Look."""
    return "seen"


def branched(store: Store, model: ScriptedModel | None = None) -> nb.Session:
    """Return a session of two branches, its leaf on the second."""
    chat = nb.open("s", store=store, model=model or ScriptedModel("ok"))
    chat.run("one", show=None)
    chat.run("two", show=None)
    chat.run("other", at=2, show=None)
    return chat


def words(chat: nb.Session) -> list[str]:
    return [entry.text for entry in chat.path() if isinstance(entry, nb.MessageEntry)]


# -- what is copied --------------------------------------------------------------------------------


# B48
def test_a_fork_has_the_active_path_only_under_fresh_ids(store: Store) -> None:
    chat = branched(store)

    child = chat.fork("child")

    assert words(child) == ["one", "ok", "other", "ok"]
    assert len(child.entries()) == 4
    assert not {e.id for e in child.entries()} & {e.id for e in chat.entries()}
    assert [e.n for e in child.entries()] == [1, 2, 3, 4]
    assert [e.created_at for e in child.path()] == [e.created_at for e in chat.path()]


# B48
def test_a_fork_names_its_source_session_and_entry(store: Store) -> None:
    chat = branched(store)

    child = chat.fork("child", at=3)

    record = store.load_session("child")
    assert child.parent_session_id == "s"
    assert (record.parent_session_id, record.parent_entry_id) == ("s", chat[3].id)
    assert words(child) == ["one", "ok", "two"]
    assert chat.parent_session_id is None


# B48 case 9
@pytest.mark.parametrize("at", [2, None], ids=["an entry", "the root"])
def test_what_is_appended_to_a_fork_lands_in_the_fork_alone(store: Store, at: int | None) -> None:
    chat = branched(store)
    before, leaf = store.load_entries("s"), chat.leaf_id

    child = chat.fork("child", at=at)
    child.run("mine", show=None)
    chat.image.refresh()

    assert store.load_entries("s") == before
    assert chat.leaf_id == leaf
    assert words(child)[-2:] == ["mine", "ok"]
    assert child.parent_session_id == "s"
    lineage = {s.session.id: s.session.parent_session_id for s in store.list_sessions()}
    assert lineage == {"s": None, "child": "s"}


# B48 case 9
def test_a_session_without_entries_can_be_forked(store: Store) -> None:
    child = nb.open("s", store=store, model=ScriptedModel("ok")).fork("child")

    child.run("one", show=None)

    assert child.parent_session_id == "s"
    assert words(child) == ["one", "ok"]


# B48
def test_a_fork_of_a_fork_names_the_fork(store: Store) -> None:
    child = branched(store).fork("child")

    grandchild = child.fork("grandchild")

    assert grandchild.parent_session_id == "child"
    assert words(grandchild) == words(child)


# B48 B50
@pytest.mark.parametrize("keep_turns", [0, 1])
def test_the_view_of_a_fork_equals_that_of_its_source(store: Store, keep_turns: int) -> None:
    steps = (calls(("look", {})), (thinking("hm", "c2ln"), "saw"), "plain", "A summary.")
    model = ScriptedModel(*steps, "after")
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run(nb.meta("Be brief."), "one", Note(text="x"), show=None)
    chat.run("two", show=None)
    chat.compact(keep_turns)
    chat.run("three", show=None)

    child = chat.fork("child")

    assert child.messages() == chat.messages()
    assert [m.text for m in child.messages()][-2:] == ["three", "after"]
    assert len(child.messages()) == 3 + 2 * keep_turns


# B48
def test_ids_inside_copied_entries_are_those_of_the_copies(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok", "ok", "A summary."))
    chat.run("one", show=None)
    chat.run("two", show=None)
    kept = chat.compact(keep_turns=1)

    child = chat.fork("child")

    (copied,) = child.entries(nb.CompactionEntry)
    assert isinstance(kept, nb.CompactionEntry)
    assert kept.first_kept_id == chat[3].id
    assert copied.first_kept_id == child[3].id
    assert (copied.summary, copied.usage, copied.model) == (kept.summary, kept.usage, kept.model)
    own = {entry.id for entry in chat.entries()}
    payloads = [entry.payload for entry in store.load_entries("child")]
    assert not [id for id in own for payload in payloads if id in payload]


# B37 B48
def test_payloads_are_copied_byte_for_byte(store: Store) -> None:
    chat = branched(store)
    chat.append(Note(text="é\u2028"))

    chat.fork("child")

    source = {entry.id: entry.payload for entry in store.load_entries("s")}
    copies = [entry.payload for entry in store.load_entries("child")]
    assert copies == [source[entry.id] for entry in chat.path()]


# B42 B48
def test_an_answer_copied_to_a_fork_is_made_again_with_its_recorded_settings(
    store: Store,
) -> None:
    model = ScriptedModel("ok", "again")
    chat = nb.open("s", store=store, model=model, temperature=0.1)
    chat.run("one", system="Rhyme.", show=None)
    child = chat.fork("child")

    child.rerun(show=None)

    assert model.requests[1].system == "Rhyme."
    assert model.requests[1].params == {"temperature": 0.1}
    assert [entry.n for entry in child.path()] == [1, 3]


# -- the child's handle ----------------------------------------------------------------------------


# B48
def test_the_child_takes_over_model_parameters_tools_hooks_and_publisher(store: Store) -> None:
    told: list[SessionEvent] = []
    seen: list[str] = []

    class Watch:
        def after_step(self, message: Message, results: object) -> None:
            seen.append(message.text)

    model = ScriptedModel("ok", calls(("look", {})), "saw")
    chat = nb.open(
        "s",
        store=store,
        model=model,
        system="Be brief.",
        tools=[look],
        hooks=Watch(),
        publisher=told.append,
        temperature=0.3,
        max_steps=9,
    )
    chat.run("one", show=None)

    child = chat.fork("child")
    child.run("Look.", show=None)
    child.branch(1)

    request = model.requests[-1]
    assert (request.system, request.params) == ("Be brief.", {"temperature": 0.3})
    assert [tool.name for tool in request.tools] == ["look"]
    assert seen == ["ok", "", "saw"]
    assert (told[-1].type, told[-1].session_id) == ("session_branched", "child")
    assert child.settings.max_steps == 9


# B48 B54
def test_a_child_lives_on_when_its_source_is_closed(store: Store) -> None:
    chat = branched(store)
    child = chat.fork("child")

    chat.close()
    child.run("more", show=None)

    assert words(child)[-2:] == ["more", "ok"]


# B54
def test_closing_a_child_leaves_its_source_open(tmp_path: object) -> None:
    chat = nb.open("s", store=f"{tmp_path}/chats.duckdb", model=ScriptedModel("ok"))

    chat.fork("child").close()

    assert chat.run("one", show=None).text == "ok"
    chat.close()


# B48
def test_a_fork_without_an_id_makes_one(store: Store) -> None:
    chat = branched(store)

    first, second = chat.fork(), chat.fork()

    assert len({first.id, second.id, "s"}) == 3
    assert {s.session.id for s in store.list_sessions()} == {"s", first.id, second.id}


# -- refusals --------------------------------------------------------------------------------------


# B8 B48
def test_a_taken_id_is_refused_and_nothing_is_written_or_told(store: Store) -> None:
    told: list[SessionEvent] = []
    nb.open("taken", store=store, model=ScriptedModel()).append("x")
    chat = nb.open("s", store=store, model=ScriptedModel("ok"), publisher=told.append)
    chat.run("one", show=None)
    told.clear()

    for taken in ("taken", "s"):
        with pytest.raises(nb.errors.SessionExists, match=f"'{taken}'"):
            chat.fork(taken)

    assert told == []
    assert [len(store.load_entries(s)) for s in ("taken", "s")] == [1, 2]


# B9 B48
@pytest.mark.parametrize("id", ["", "a\0b"])
def test_an_id_that_no_session_can_have_is_refused(store: Store, id: str) -> None:
    chat = branched(store)

    with pytest.raises(nb.errors.EntryError, match="session id"):
        chat.fork(id)

    assert len(store.list_sessions()) == 1


# B39 B48
def test_an_entry_of_another_session_is_refused(store: Store) -> None:
    chat = branched(store)
    (foreign,) = nb.open("other", store=store, model=ScriptedModel()).append("x")

    with pytest.raises(nb.errors.EntryNotFound, match="is not in session 's'"):
        chat.fork("child", at=foreign)

    assert {s.session.id for s in store.list_sessions()} == {"s", "other"}


# B18 B48
def test_a_fork_during_a_foreground_run_is_refused_and_the_run_unharmed(store: Store) -> None:
    go = threading.Event()
    chat = nb.open("s", store=store, model=ScriptedModel(("o", go, "k")))
    run = chat.run("one", wait=False, show=None)

    with pytest.raises(nb.errors.RunActive, match=r"has run .* going on"):
        chat.fork("child")

    go.set()
    assert run.wait().text == "ok"
    assert len(store.list_sessions()) == 1


# B48
def test_a_fork_is_one_call_of_the_store() -> None:
    """What fails in the middle of a copy leaves no session behind."""

    class Failing(MemoryStore):
        def create_session(
            self, session: SessionRecord, entries: object = (), **beside: object
        ) -> tuple[StoredEntry, ...]:
            if session.id == "child":
                raise nb.errors.StoreError("the disk is full; free some space")
            return super().create_session(session, entries, **beside)  # type: ignore[arg-type]

        def append(self, session_id: str, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            assert session_id != "child", "a copy in pieces"
            return super().append(session_id, *args, **kwargs)  # type: ignore[arg-type]

    store = Failing()
    chat = branched(store)

    with pytest.raises(nb.errors.StoreError, match="the disk is full"):
        chat.fork("child")

    assert [s.session.id for s in store.list_sessions()] == ["s"]
    assert json.dumps(words(chat)) == '["one", "ok", "other", "ok"]'
