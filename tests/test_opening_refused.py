"""What `open` refuses, what a refusal leaves, and what works without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from new_process import in_new_process

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores import Store
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.memory import MemoryStore

NOWHERE = "nosuchprovider/nosuchmodel"


def words(chat: nb.Session) -> list[str]:
    return [entry.text for entry in chat.entries(nb.MessageEntry)]


# -- failures (B6) -----------------------------------------------------------------------------


class Failing(MemoryStore):
    """A store whose named method fails."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.created: list[str] = []
        setattr(self, method, self._fail)

    def _fail(self, *arguments: object, **named: object) -> object:
        raise nb.errors.StoreError("the disk is gone; plug it in")

    def create_session(
        self, session: SessionRecord, entries: Sequence[StoredEntry] = ()
    ) -> tuple[StoredEntry, ...]:
        self.created.append(session.id)
        return super().create_session(session, entries)


# B6
@pytest.mark.parametrize("method", ["recover", "load_session"])
def test_a_store_error_is_raised_and_nothing_is_created_or_told(
    method: str, model: ScriptedModel
) -> None:
    store, told = Failing(method), []

    with pytest.raises(nb.errors.StoreError, match="the disk is gone"):
        nb.open("s", store=store, model=model, publisher=told.append)

    assert (store.created, told) == ([], [])


# B6
def test_entries_that_cannot_be_read_are_no_new_session(model: ScriptedModel) -> None:
    store, told = Failing("load_entries"), []
    MemoryStore.create_session(store, SessionRecord(id="s", created_at=1))

    with pytest.raises(nb.errors.StoreError, match="the disk is gone"):
        nb.open("s", store=store, model=model, publisher=told.append)

    assert (store.created, told) == ([], [])


# B6
@pytest.mark.parametrize("wrong", [{"model": "  "}, {"model": 3}, {"max_steps": 0}])
def test_what_open_refuses_leaves_no_session_and_no_file(wrong: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"blank|is of type int|max_steps is 0"):
        nb.open("s", store="s.duckdb", **wrong)  # type: ignore[arg-type]

    assert not Path("s.duckdb").exists()


# B6
def test_a_default_model_that_cannot_be_looked_up_frees_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with nb.open("s", store="s.duckdb", model=ScriptedModel("a")) as chat:
        chat.run("q", show=None)

    def fail(*arguments: object) -> object:
        raise nb.errors.StoreError("runs cannot be read; look at the disk")

    monkeypatch.setattr(DuckDBStore, "load_runs", fail)
    with pytest.raises(nb.errors.StoreError, match="runs cannot be read"):
        nb.open("s", store="s.duckdb")

    in_new_process(
        "import nbdurable as nb; nb.open('s', store='s.duckdb', model='local')\nprint(0)"
    )


# B6 case 28
def test_a_file_held_by_another_process_is_named_and_left_alone(model: ScriptedModel) -> None:
    from nbdurable.stores.duckdb import DuckDBStore

    kept = DuckDBStore("s.duckdb", exclusive=True)
    with nb.open("s", store=kept, model=model) as chat:
        chat.append("mine")

        found = in_new_process(
            "import json, nbdurable as nb\n"
            "from nbdurable.stores.duckdb import DuckDBStore\n"
            "try:\n"
            "    store = DuckDBStore('s.duckdb', timeout_s=0.2)\n"
            "    nb.open('new', store=store, model='local')\n"
            "except nb.errors.StoreLocked as exc:\n"
            "    print(json.dumps([exc.path, str(exc)]))"
        )

        assert isinstance(found, list)
        assert found[0] == chat.store and "s.duckdb" in found[1]
        assert [s.session.id for s in chat.image.store.list_sessions()] == ["s"]
    kept.close()


# B6
def test_a_folder_that_is_not_there_is_named(model: ScriptedModel) -> None:
    with pytest.raises(nb.errors.StoreError, match=r"absent.*s\.duckdb"):
        nb.open("s", store="absent/s.duckdb", model=model)


# -- without a model (B7) ----------------------------------------------------------------------


# B7
def test_without_a_model_append_branch_and_read_work(store: Store) -> None:
    chat = nb.open("s", store=store, model=NOWHERE)

    first, _ = chat.append(nb.user("Q"), nb.assistant("A"))
    chat.branch(first)

    assert words(chat) == ["Q", "A"]
    assert [entry.id for entry in chat.path()] == [first.id]
    assert [message.text for message in chat.messages()] == ["Q"]
    assert len(chat.leaves()) == 1 and len(chat.transcript()) == 1


# B7
@pytest.mark.parametrize("verb", ["run", "run at", "rerun", "edit", "compact"])
def test_without_a_model_a_run_says_what_is_missing_and_stores_nothing(
    store: Store, verb: str
) -> None:
    chat = nb.open("s", store=store, model=NOWHERE)
    first, _ = chat.append(nb.user("Q"), nb.assistant("A"))
    before = (chat.entries(), chat.leaf_id, store.load_moves("s"))

    with pytest.raises(nb.errors.ModelError, match="nosuch") as raised:
        if verb == "run":
            chat.run("hello", show=None)
        elif verb == "run at":
            chat.run("hello", at=None, show=None)
        elif verb == "rerun":
            chat.rerun(show=None)
        elif verb == "edit":
            chat.edit(first, "other", show=None)
        else:
            chat.compact()

    assert raised.value.reason == "unavailable"
    assert (chat.entries(), chat.leaf_id, store.load_moves("s")) == before
    assert store.load_runs("s") == [] and chat.runs() == []


# B7
def test_a_session_goes_on_after_a_refused_run(store: Store, model: ScriptedModel) -> None:
    chat = nb.open("s", store=store, model=NOWHERE)
    with pytest.raises(nb.errors.ModelError, match="nosuch"):
        chat.run("hello", show=None)

    assert chat.run("hello", model=model, show=None).text == "A scripted answer."


# -- ids (B8, B9) ------------------------------------------------------------------------------


# B8
def test_a_fork_to_a_taken_id_is_refused(store: Store, model: ScriptedModel) -> None:
    nb.open("taken", store=store, model=model)
    chat = nb.open("s", store=store, model=model)
    chat.append("x")

    with pytest.raises(nb.errors.SessionExists, match="'taken'"):
        chat.fork("taken")

    assert nb.open("taken", store=store, model=model).entries() == []


ODD_IDS = [
    "it's",
    'say "hi"',
    "a/b\\c",
    " two  words ",
    "🦆🇩🇪",
    "x" * 1_000,
    "; drop table nbd",
    "%_",
]


# B9
@pytest.mark.parametrize("session_id", ODD_IDS, ids=range(len(ODD_IDS)))
def test_odd_ids_are_legal(store: Store, model: ScriptedModel, session_id: str) -> None:
    nb.open(session_id, store=store, model=model).run("q", show=None)

    again = nb.open(session_id, store=store, model=model)

    assert again.id == session_id and len(again.entries()) == 2
    assert [summary.session.id for summary in store.list_sessions()] == [session_id]


# B9
@pytest.mark.parametrize("session_id", ["", "a\0b", 7, "cut \ud83e"])
def test_what_is_no_text_is_no_id(store: Store, model: ScriptedModel, session_id: str) -> None:
    with pytest.raises(nb.errors.EntryError, match="session id"):
        nb.open(session_id, store=store, model=model)

    assert store.list_sessions() == []


# B9
@pytest.mark.parametrize("session_id", ["", "a\0b", 7, "cut \ud83e"])
def test_what_is_no_text_is_no_id_of_a_fork(
    store: Store, model: ScriptedModel, session_id: str
) -> None:
    chat = nb.open("s", store=store, model=model)

    with pytest.raises(nb.errors.EntryError, match="session id"):
        chat.fork(session_id)

    assert [summary.session.id for summary in store.list_sessions()] == ["s"]
