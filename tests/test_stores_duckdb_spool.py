from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from unwritable import immutable

from nbdurable.errors import StoreError
from nbdurable.stored import RunEnd, RunRecord, SessionRecord, SpoolDraft, StoredEntry
from nbdurable.stores.conformance import new_id, stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.spool import Spool

# Stores a question, spools two snapshots of its answer, says so, and waits to be killed.
ANSWERING = """
import sys
from nbdurable.stored import RunEnd, RunRecord, SessionRecord, SpoolDraft
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore
store = DuckDBStore(sys.argv[1])
store.create_session(SessionRecord(id="s", created_at=1))
question = stored(text="why?")
run = RunRecord(id="r", session_id="s", kind="run", created_at=1)
store.append("s", [question], start=run)
answer = stored(parent_id=question.id, moves_leaf=None, preview="be")
end = RunEnd(run_id="r", session_id="s", outcome="aborted", created_at=2, leaf_id=answer.id)
store.spool(SpoolDraft(entry=answer, end=end))
store.spool(SpoolDraft(entry=answer._replace(preview="because"), end=end))
print(answer.id, flush=True)
sys.stdin.read()
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
    with subprocess.Popen(
        [sys.executable, "-c", ANSWERING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        assert process.stdout is not None
        answer_id = process.stdout.readline().strip()
        process.kill()
    assert answer_id
    return answer_id


def left_by_another(path: Path, *drafts: SpoolDraft) -> None:
    """Leave a spool file as a process does that dies."""
    dead = Spool(str(path), "1-dead")
    for draft in drafts:
        dead.put(draft)
    dead.close()


# -- recovery ------------------------------------------------------------------------------------


# B24
def test_a_killed_answer_is_stored_once_with_its_newest_text(path: Path) -> None:
    answer_id = killed_while_answering(path)
    store = DuckDBStore(path)

    [recovered] = store.recover()
    again = store.recover()

    assert (recovered.id, recovered.preview) == (answer_id, "because")
    assert again == ()
    assert store.load_entries("s")[-1] == recovered
    store.close()


# B24
def test_a_killed_run_ends_with_its_recovered_answer(path: Path) -> None:
    answer_id = killed_while_answering(path)
    store = DuckDBStore(path)

    store.recover()

    [(_, end)] = store.load_runs("s")
    assert end is not None and (end.outcome, end.leaf_id) == ("aborted", answer_id)
    store.close()


# B3 B24
def test_a_recovered_answer_moves_the_position_from_its_parent(path: Path) -> None:
    killed_while_answering(path)
    store = DuckDBStore(path)

    [recovered] = store.recover()

    assert recovered.moves_leaf is True
    store.close()


# B3 B24
def test_a_recovered_answer_leaves_a_position_that_went_elsewhere(path: Path) -> None:
    killed_while_answering(path)
    store = DuckDBStore(path)
    store.move("s", None, 5)

    [recovered] = store.recover()

    assert recovered.moves_leaf is False
    store.close()


# B24
def test_recovery_leaves_no_file_behind(path: Path) -> None:
    killed_while_answering(path)
    store = DuckDBStore(path)

    store.recover()
    store.close()

    assert os.listdir(path.parent) == ["chats.duckdb"]


# B24
def test_an_answer_stored_before_the_kill_is_not_stored_again(
    store: DuckDBStore, path: Path
) -> None:
    [entry] = store.append("s", [stored()])
    left_by_another(path, SpoolDraft(entry=entry._replace(preview="a torn half")))

    assert store.recover() == ()
    assert store.load_entries("s") == [entry]
    assert list(spool_of(path).glob("*.jsonl")) == []


# B24
def test_an_answer_whose_question_was_never_stored_is_passed_over(
    store: DuckDBStore, path: Path
) -> None:
    lost, kept = stored(parent_id=new_id()), stored()
    left_by_another(path, SpoolDraft(entry=lost), SpoolDraft(entry=kept))

    assert [entry.id for entry in store.recover()] == [kept.id]


# B24
def test_a_torn_last_line_leaves_the_snapshot_before_it(store: DuckDBStore, path: Path) -> None:
    entry = stored(preview="whole")
    left_by_another(path, SpoolDraft(entry=entry))
    [file] = spool_of(path).glob("*.jsonl")
    file.write_bytes(file.read_bytes() + b'{"entry": {"id": "0')

    [recovered] = store.recover()

    assert recovered.preview == "whole"


# B24
def test_the_spool_of_a_living_process_is_left_alone(store: DuckDBStore, path: Path) -> None:
    alive = Spool(str(path), "1-alive")
    alive.put(SpoolDraft(entry=stored()))

    assert store.recover() == ()
    assert len(list(spool_of(path).glob("*.jsonl"))) == 1
    alive.close()


# B24
def test_a_store_does_not_recover_its_own_answers_in_flight(store: DuckDBStore) -> None:
    store.spool(SpoolDraft(entry=stored()))

    assert store.recover() == ()


# B24 B65
def test_a_fork_that_ends_does_not_free_its_parents_spool(store: DuckDBStore, path: Path) -> None:
    code = """
import os, sys
from nbdurable.stored import SpoolDraft
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb.spool import Spool
spool = Spool(sys.argv[1], "1-parent")
spool.put(SpoolDraft(entry=stored()))
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"

        recovered = store.recover()
        process.kill()

    assert recovered == ()
    assert len(store.recover()) == 1


# -- what ends a draft ---------------------------------------------------------------------------


# B24
def test_an_appended_answer_leaves_the_spool(store: DuckDBStore, path: Path) -> None:
    entry = stored()
    store.spool(SpoolDraft(entry=entry))

    store.append("s", [entry])

    [file] = spool_of(path).glob("*.jsonl")
    assert file.read_bytes() == b""


# B24
def test_unspool_forgets_one_answer_and_keeps_the_others(path: Path) -> None:
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=1))
    dropped, kept = stored(), stored()
    for entry in (dropped, kept):
        store.spool(SpoolDraft(entry=entry))

    store.unspool(dropped.id)
    store.unspool(new_id())
    store.close()

    store = DuckDBStore(path)
    assert [entry.id for entry in store.recover()] == [kept.id]
    store.close()


def test_a_clean_close_leaves_no_spool(store: DuckDBStore, path: Path) -> None:
    entry = stored()
    store.spool(SpoolDraft(entry=entry))
    store.append("s", [entry])

    store.close()

    assert os.listdir(path.parent) == ["chats.duckdb"]


# -- size and text -------------------------------------------------------------------------------


# B54
def test_a_spool_that_cannot_be_removed_does_not_fail_a_close(
    path: Path,
) -> None:
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=1))
    draft = stored()
    store.spool(SpoolDraft(entry=draft))
    store.append("s", [draft])

    with immutable(spool_of(path)):
        store.close()

    store = DuckDBStore(path)
    assert (store.recover(), len(store.load_entries("s"))) == ((), 1)
    store.close()
    assert os.listdir(path.parent) == [path.name]


# B24
def test_a_long_answer_does_not_grow_the_spool_without_end(path: Path) -> None:
    spool = Spool(str(path), "1-mine")
    entry = stored()

    for i in range(40):
        spool.put(SpoolDraft(entry=entry._replace(payload="x" * 1_000_000, preview=str(i))))

    [file] = spool_of(path).glob("*.jsonl")
    assert file.stat().st_size < 9_000_000
    spool.close()


# B24
def test_a_rewritten_spool_keeps_every_answer_in_flight(store: DuckDBStore, path: Path) -> None:
    small, large = stored(), stored()
    drafts = [SpoolDraft(entry=small)]
    drafts += [
        SpoolDraft(entry=large._replace(payload='"' + "x" * 3_000_000 + f'{i}"')) for i in range(5)
    ]
    left_by_another(path, *drafts)

    assert [(entry.id, entry.payload[-3:]) for entry in store.recover()] == [
        (small.id, small.payload[-3:]),
        (large.id, 'x4"'),
    ]


# B64
@pytest.mark.parametrize("text", ["\u2028\u2029\x85", "\0", "\n", "\U0001f468\u200d\U0001f469"])
def test_any_text_survives_the_spool(store: DuckDBStore, path: Path, text: str) -> None:
    entry = stored(text=text)
    left_by_another(path, SpoolDraft(entry=entry))

    assert [row.payload for row in store.recover()] == [entry.payload]


# B63
def test_a_spool_that_cannot_be_written_is_named(path: Path) -> None:
    spool_of(path).write_text("in the way")

    with pytest.raises(StoreError, match=r"spool '.*\.spool.*' cannot be written \(.*\); free"):
        DuckDBStore(path)

    assert spool_of(path).read_text() == "in the way"
    assert not path.exists()


def full_draft(entry: StoredEntry) -> SpoolDraft:
    end = RunEnd(run_id="r", session_id="s", outcome="error", created_at=3, error="cut")
    return SpoolDraft(entry=entry, end=end)


# B24
def test_an_answer_of_a_run_never_started_is_kept_without_its_end(
    store: DuckDBStore, path: Path
) -> None:
    entry = stored()
    left_by_another(path, full_draft(entry))

    assert [row.id for row in store.recover()] == [entry.id]


# B24
def test_a_line_that_cannot_be_read_is_set_aside_and_told(
    store: DuckDBStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = stored()
    left_by_another(path, SpoolDraft(entry=entry))
    [file] = spool_of(path).glob("*.jsonl")
    file.write_bytes(b"\0\0\0\n" + file.read_bytes())

    recovered = store.recover()

    assert [row.id for row in recovered] == [entry.id]
    assert "line 1 of spool" in caplog.text
    assert file.with_suffix(".unread").exists()


# B24
def test_a_run_that_ended_otherwise_keeps_its_first_end(store: DuckDBStore, path: Path) -> None:
    store.start_run(RunRecord(id="r", session_id="s", kind="run", created_at=1))
    store.end_run(RunEnd(run_id="r", session_id="s", outcome="done", created_at=2))
    left_by_another(path, full_draft(stored()))

    assert len(store.recover()) == 1
    [(_, end)] = store.load_runs("s")
    assert end is not None and end.outcome == "done"
