"""Opening a session: its id, its store, its model, what is said, and what a failure leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from new_process import in_new_process

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore


def words(chat: nb.Session) -> list[str]:
    return [entry.text for entry in chat.entries(nb.MessageEntry)]


# -- names and places (B1) ---------------------------------------------------------------------


# B1
def test_a_session_without_an_id_gets_one_and_says_so(store: Store, model: ScriptedModel) -> None:
    with pytest.warns(UserWarning, match=r"session '.+' was made in .+; open it again by this id"):
        chat = nb.open(store=store, model=model)

    assert chat.id and store.load_session(chat.id).id == chat.id


# B1
def test_the_id_that_is_shown_opens_the_session_again(model: ScriptedModel) -> None:
    with pytest.warns(UserWarning, match="was made in") as said:
        nb.open(model=model).close()
    shown_id = str(said[0].message).split("'")[1]

    with nb.open(shown_id, model=model) as again:
        assert again.id == shown_id and again.entries() == []


# B1
def test_two_sessions_without_an_id_are_two(store: Store, model: ScriptedModel) -> None:
    with pytest.warns(UserWarning, match="was made in"):
        first, second = nb.open(store=store, model=model), nb.open(store=store, model=model)

    assert first.id != second.id


# B1
def test_what_open_says_points_at_the_callers_line(store: Store, model: ScriptedModel) -> None:
    with pytest.warns(UserWarning, match="was made in") as said:
        nb.open(store=store, model=model)

    assert said[0].filename == __file__


# B1
def test_the_default_store_is_a_file_in_the_working_folder(model: ScriptedModel) -> None:
    with nb.open("s", model=model) as chat:
        chat.append("kept")

    assert Path("nbdurable.duckdb").is_file()


# B1
def test_a_variable_names_the_default_store(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NBDURABLE_STORE", str(tmp_path / "mine.duckdb"))

    with nb.open("s", model=model) as chat:
        assert chat.store == str(tmp_path / "mine.duckdb")

    assert not Path("nbdurable.duckdb").exists()


# B1
def test_a_memory_store_is_gone_with_its_session(model: ScriptedModel) -> None:
    with nb.open("s", store=":memory:", model=model) as chat:
        chat.append("gone")

    with nb.open("s", store=":memory:", model=model) as again:
        assert again.entries() == []
    assert list(Path().iterdir()) == []


# -- resuming (B2) -----------------------------------------------------------------------------


# B2
def test_an_unknown_id_is_created_once_and_a_known_one_resumed(
    store: Store, model: ScriptedModel
) -> None:
    first = nb.open("s", store=store, model=model)
    first.run("hello", show=None)

    again = nb.open("s", store=store, model=model)

    assert again.entries() == first.entries()
    assert again.leaf_id == first.leaf_id
    assert [summary.session.id for summary in store.list_sessions()] == ["s"]


# B2
def test_a_new_process_reads_the_same_session(model: ScriptedModel) -> None:
    with nb.open("s", store="s.duckdb", model=model) as chat:
        chat.run("hello", show=None)
        chat.append(nb.user("Q"), nb.assistant("A"))
        here = [[e.id, e.parent_id, e.seq, e.n, e.text] for e in chat.entries(nb.MessageEntry)]
        leaf_id = chat.leaf_id

    there = in_new_process(
        "import json, nbdurable as nb\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n"
        "rows = [[e.id, e.parent_id, e.seq, e.n, e.text] for e in chat.entries()]\n"
        "print(json.dumps([rows, chat.leaf_id]))"
    )

    assert there == [here, leaf_id]


# B2
def test_a_new_process_continues_where_the_last_one_ended(model: ScriptedModel) -> None:
    with nb.open("s", store="s.duckdb", model=model) as chat:
        before = chat.run("hello", show=None).leaf_id

    in_new_process(
        "import nbdurable as nb\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n"
        "chat.append('from there')\n"
        "print('null')"
    )

    with nb.open("s", store="s.duckdb", model=model) as again:
        assert words(again) == ["hello", "A scripted answer.", "from there"]
        assert again.path()[-1].parent_id == before


# B2
def test_system_tools_and_parameters_do_not_carry_over(store: Store, model: ScriptedModel) -> None:
    def clock() -> str:
        """Tell the time."""
        return "noon"

    first = nb.open("s", store=store, model=model, system="Be brief.", tools=[clock], seed=7)
    first.run("hello", show=None)

    nb.open("s", store=store, model=model).run("again", show=None)

    given, anew = model.requests
    assert (given.system, len(given.tools), given.params) == ("Be brief.", 1, {"seed": 7})
    assert (anew.system, anew.tools, anew.params) == (None, (), {})


# -- the default model (B2) --------------------------------------------------------------------


# B2
def test_a_new_session_has_the_local_model(store: Store) -> None:
    assert nb.open("s", store=store).model == "local"


# B2
def test_a_resumed_session_goes_on_with_its_last_model_and_says_so(store: Store) -> None:
    nb.open("s", store=store, model=ScriptedModel("a", name="openai/first")).run("q", show=None)
    nb.open("s", store=store, model=ScriptedModel("a", name="openai/second")).run("q", show=None)

    with pytest.warns(UserWarning, match="'s' goes on with model 'openai/second'") as said:
        again = nb.open("s", store=store)

    assert again.model == "openai/second"
    assert said[0].filename == __file__


# B2
def test_the_default_model_is_that_of_the_path_not_of_a_later_branch(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("a", name="openai/first"))
    here = chat.run("q", show=None).leaf_id
    chat.run("elsewhere", model=ScriptedModel("a", name="openai/other"), at=None, show=None)
    chat.branch(here)

    with pytest.warns(UserWarning, match="model 'openai/first'"):
        again = nb.open("s", store=store)

    assert again.model == "openai/first"


# B2
def test_a_fork_goes_on_with_the_model_of_the_path_it_copied(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("a", name="openai/first"))
    chat.run("q", show=None)
    chat.fork("child").close()

    with pytest.warns(UserWarning, match="'child' goes on with model 'openai/first'"):
        again = nb.open("child", store=store)

    assert again.model == "openai/first"


# B2
def test_the_model_of_a_summary_is_not_that_of_the_conversation(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("a", name="openai/first"))
    chat.run("q", show=None)
    chat.compact(model=ScriptedModel("summary", name="openai/cheap"))

    with pytest.warns(UserWarning, match="model 'openai/first'"):
        again = nb.open("s", store=store)

    assert again.model == "openai/first"


# B2
def test_the_variable_comes_before_the_last_model(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    nb.open("s", store=store, model=ScriptedModel("a", name="openai/first")).run("q", show=None)
    monkeypatch.setenv("NBDURABLE_MODEL", "openai/mine")

    assert nb.open("s", store=store).model == "openai/mine"
    assert nb.open("new", store=store).model == "openai/mine"


# -- racing (B5) -------------------------------------------------------------------------------


# B5
@pytest.mark.parametrize("where", ["shared", "by path"])
def test_racing_openers_of_one_id_make_one_session(
    store: Store, where: str, model: ScriptedModel
) -> None:
    place: Store | str = store if where == "shared" else "race.duckdb"
    start = threading.Barrier(8)
    opened: list[nb.Session] = []

    def open_it() -> None:
        start.wait()
        opened.append(nb.open("same", store=place, model=model))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {chat.id for chat in opened} == {"same"} and len(opened) == 8
    assert len(opened[0].image.store.list_sessions()) == 1
    assert len({id(chat.image) for chat in opened}) == 1
    for chat in opened:
        chat.close()


class Beaten(MemoryStore):
    """A store in which another opener is faster, between the look and the creation."""

    def create_session(
        self, session: SessionRecord, entries: Sequence[StoredEntry] = ()
    ) -> tuple[StoredEntry, ...]:
        super().create_session(SessionRecord(id=session.id, created_at=1))
        return super().create_session(session, entries)


# B5
def test_the_slower_opener_gets_the_session_of_the_faster(model: ScriptedModel) -> None:
    store = Beaten()

    chat = nb.open("s", store=store, model=model)

    assert chat.image.record.created_at == 1
    assert len(store.list_sessions()) == 1


# B5
def test_opening_again_in_mid_run_shares_the_activity(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel(("half", go, " whole"))
    run = nb.open("s", store=store, model=model).run("q", wait=False)
    model.wait_for_request()

    again = nb.open("s", store=store, model=model)
    with pytest.raises(nb.errors.RunActive, match=r"has run .+ going on") as raised:
        again.run("me too", show=None)
    go.set()

    assert raised.value.run is run
    assert run.wait().text == "half whole"
    assert words(again) == ["q", "half whole"]


# B5
def test_two_processes_that_race_make_one_session() -> None:
    script = (
        "import nbdurable as nb, sys\n"
        "with nb.open('s', store='s.duckdb', model='local') as chat:\n"
        "    chat.append(sys.argv[1])\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", script, name], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    errors = [racer.communicate(timeout=60)[1] for racer in racers]

    assert [racer.returncode for racer in racers] == [0, 0], errors
    with nb.open("s", store="s.duckdb", model="local") as chat:
        assert sorted(words(chat)) == ["one", "two"]
        assert len(chat.image.store.list_sessions()) == 1
