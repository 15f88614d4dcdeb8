"""Answers in flight in a file that several processes have open (B24)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sharing import child

from nbdurable.stored import SessionRecord
from nbdurable.stores.duckdb import DuckDBStore

# Stores a question, spools a part of its answer, and waits to be killed.
ANSWERING = """
store = DuckDBStore(path)
store.create_session(SessionRecord(id="s", created_at=1))
[question] = store.append("s", [stored(text="why?")])
answer = stored(parent_id=question.id, moves_leaf=None, preview="because")
store.spool(SpoolDraft(entry=answer))
say("ready")
say(answer.id)
told()
"""

OPENER = """
say("ready")
told()
store = DuckDBStore(path)
say(len(store.recover()))
told()
"""

STREAMING = """
store = DuckDBStore(path)
say("ready")
told()
answer = stored(preview="half an answer")
store.spool(SpoolDraft(entry=answer))
say(answer.id)
told()
store.append("s", [answer._replace(preview="a whole answer")])
say("stored")
told()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "files"  # nothing but the store's own
    folder.mkdir()
    return folder / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SessionRecord(id="s", created_at=1))
    yield made
    made.close()


def spool_of(path: Path) -> Path:
    return Path(f"{path}.spool")


def killed_while_answering(path: Path) -> str:
    """Kill a child in mid-answer; return the id that the answer was to get."""
    with child(ANSWERING, path) as other:
        answer_id = other.hear()
        other.kill()
    return answer_id


# B24
def test_kernels_that_open_at_the_same_moment_recover_an_answer_once(path: Path) -> None:
    answer_id = killed_while_answering(path)

    with child(OPENER, path) as one, child(OPENER, path) as two, child(OPENER, path) as three:
        for opener in (one, two, three):
            opener.tell()
        recovered = [opener.hear() for opener in (one, two, three)]

    store = DuckDBStore(path)
    assert sorted(recovered) == ["0", "0", "1"]
    assert [entry.id for entry in store.load_entries("s")][1:] == [answer_id]
    store.close()


# B24 B68
def test_an_answer_in_flight_elsewhere_is_left_to_its_process(
    store: DuckDBStore, path: Path
) -> None:
    with child(STREAMING, path) as other:
        answer_id = other.ask()
        while_alive = store.recover(), store.load_entries("s")
        assert other.ask() == "stored"

    assert while_alive == ((), [])
    assert [(entry.id, entry.preview) for entry in store.load_entries("s")] == [
        (answer_id, "a whole answer")
    ]
    assert store.recover() == ()


# B24 B68
def test_an_answer_in_flight_elsewhere_is_recovered_once_its_process_was_killed(
    store: DuckDBStore, path: Path
) -> None:
    with child(STREAMING, path) as other:
        answer_id = other.ask()
        other.kill()

        [recovered] = store.recover()

    assert (recovered.id, recovered.preview) == (answer_id, "half an answer")
    store.close()
    assert os.listdir(path.parent) == ["chats.duckdb"]


# B24
def test_one_killed_while_it_recovers_leaves_the_answer_to_the_next(path: Path) -> None:
    answer_id = killed_while_answering(path)
    program = """
from nbdurable.stores.duckdb.writer import Writer
run = Writer.run

def run_and_die(self, plan):
    run(self, plan)
    os.kill(os.getpid(), 9)

Writer.run = run_and_die
say("ready")
told()
DuckDBStore(path).recover()
"""
    with child(program, path) as dying:
        dying.tell()
        dying.process.wait()

    store = DuckDBStore(path)
    again = store.recover()

    assert again == ()  # it was stored, and its spool is gone now
    assert [entry.id for entry in store.load_entries("s")][1:] == [answer_id]
    assert list(spool_of(path).glob("*.jsonl")) == []
    store.close()


# B24 B68
def test_a_lock_left_by_a_killed_process_is_taken_away(store: DuckDBStore, path: Path) -> None:
    with child("store = DuckDBStore(path)\nsay('ready')\ntold()", path) as other:
        alive = store._core.spool.others()
        other.kill()

        dead = store._core.spool.others(afresh=True)

    assert (alive, dead) == (True, False)
    assert len(list(spool_of(path).glob("*.lock"))) <= 3  # its own, and those of the queue


# B68
def test_a_folder_taken_away_while_it_is_made_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process made it, and took it away as the last to leave."""
    mkdir, taken_away = os.mkdir, []

    def made_elsewhere(name: str, *mode: int) -> None:
        if Path(name).suffix == ".spool" and not taken_away:
            taken_away.append(name)
            raise FileExistsError(name)
        mkdir(name, *mode)

    monkeypatch.setattr(os, "mkdir", made_elsewhere)
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=1))
    store.close()

    assert taken_away and not Path(f"{path}.spool").exists()


# B24 B69
@pytest.mark.parametrize("suffix", [".new", ".ask", ".done", ".asking"])
def test_texts_left_by_a_killed_process_go_at_the_next_open(
    store: DuckDBStore, path: Path, suffix: str
) -> None:
    folder = Path(f"{path}.spool")
    store.close()
    folder.mkdir()
    for name in ("1-dead.lock", f"1-dead{suffix}"):
        (folder / name).write_text("a violet submarine")

    DuckDBStore(path).close()

    assert not folder.exists()
