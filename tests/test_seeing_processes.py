"""What a handle sees of what another process wrote (B11), and that looking costs a stat."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sharing import Child, child

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.place import fingerprint

SIBLING = r"session 's' was continued elsewhere, to #\d+; this run grows a sibling"

# Does to session "s" what it is told, in a kernel of its own.
KERNEL = """
chat = nb.open("s", store=path, model=ScriptedModel("theirs"))
say("ready")
while word := told():
    if word == "run":
        chat.run("from there", show=None)
    elif word == "branch":
        chat.branch(1)
    elif word == "resume":
        chat.resume()
    elif word == "label":
        chat.label(1, "good")
    elif word == "sample":
        chat.sample(2, "tell me", show=None)
    say(chat.leaf_id)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


@pytest.fixture
def chat(path: Path) -> Iterator[nb.Session]:
    """A session with a question and its answer."""
    with nb.open("s", store=path, model=ScriptedModel("mine")) as session:
        session.run("q", show=None)
        yield session


@pytest.fixture
def other(chat: nb.Session, path: Path) -> Iterator[Child]:
    """Another kernel with the same session."""
    with child(KERNEL, path) as started:
        yield started


# B2 B11
def test_a_kernel_sees_the_run_of_another(chat: nb.Session, other: Child) -> None:
    leaf_id = other.ask("run")

    assert [entry.text for entry in chat.entries()] == ["q", "mine", "from there", "theirs"]
    assert chat.leaf_id != leaf_id
    assert chat.resume() == leaf_id


# B11
def test_a_run_beside_that_of_another_kernel_warns_once(chat: nb.Session, other: Child) -> None:
    other.ask("run")

    with pytest.warns(UserWarning, match=SIBLING) as said:
        chat.run("from here", show=None)
    chat.run("and on", show=None)

    assert len(said) == 1
    assert len(chat.leaves()) == 2


# B3 B11
def test_a_kernel_sees_where_another_moved(chat: nb.Session, other: Child) -> None:
    leaf_id = other.ask("branch")

    assert chat.resume() == leaf_id == chat[1].id


# B11 B70
def test_a_kernel_sees_the_label_of_another(chat: nb.Session, other: Child) -> None:
    other.ask("label")

    assert chat.path("good")[-1].id == chat[1].id


# B11 B43
def test_a_kernel_sees_the_experiment_of_another(chat: nb.Session, other: Child) -> None:
    before = len(chat.experiments())

    other.ask("sample")

    assert (before, len(chat.experiments())) == (0, 1)
    assert len(chat.leaves()) == 2


# B11
def test_both_kernels_go_on_where_the_other_was(chat: nb.Session, other: Child) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            other.ask("run")
            chat.resume()
            chat.run("mine", show=None)
            other.tell("resume")
            other.hear()

    assert len(chat.entries()) == 10


# B11
def test_looking_for_news_attaches_nothing(chat: nb.Session, other: Child) -> None:
    store = chat.image.store
    assert isinstance(store, DuckDBStore)
    chat.entries()
    attached, before = store._core.lease.generation, store.changes("s")

    again = [store.changes("s") for _ in range(3)]
    other.ask("run")
    after = store.changes("s")

    assert again == [before] * 3
    assert after > before
    assert store._core.lease.generation == attached


# B11 B68
def test_news_of_entries_and_moves_takes_one_turn(chat: nb.Session, other: Child) -> None:
    store = chat.image.store
    assert isinstance(store, DuckDBStore)
    chat.entries()
    attached = store._core.lease.generation
    leaf_id = other.ask("run")
    assert other.ask("branch") == chat.image.id_of(1)

    chat.entries()

    assert store._core.lease.generation == attached + 1
    assert leaf_id in chat.image.tree
    assert chat.image.position == chat.image.id_of(1)


# B11
def test_nothing_is_read_again_while_nobody_writes(chat: nb.Session, other: Child) -> None:
    store = chat.image.store
    assert isinstance(store, DuckDBStore)
    while fingerprint(store.name) is None:  # of a file written just now nothing is known
        time.sleep(0.005)
    chat.entries()
    attached = store._core.lease.generation

    chat.entries(), chat.messages(), chat.path(), chat.leaves()

    assert store._core.lease.generation == attached


# B11 B24
def test_a_commit_whose_process_was_killed_at_once_is_news(chat: nb.Session, path: Path) -> None:
    """No record beside the file can be behind it, because there is none."""
    program = """
from nbdurable.stores.duckdb.batch import Inserter
write = Inserter.write

def write_and_die(self, batch):
    write(self, batch)
    os.kill(os.getpid(), 9)

store = DuckDBStore(path)
say("ready")
told()
Inserter.write = write_and_die
store.append("s", [stored()])
"""
    before = chat.image.store.changes("s")
    with child(program, path) as dying:
        dying.tell()
        dying.process.wait()

    assert chat.image.store.changes("s") > before
    assert len(chat.entries()) == 3
    assert chat.append("on")[0].n == 4
