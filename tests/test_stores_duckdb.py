from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from nbdurable.errors import (
    EntryError,
    EntryNotFound,
    StoreError,
    StoreLocked,
)
from nbdurable.ids import IdMaker
from nbdurable.stored import NOTHING, Annotation, Move, SessionRecord, digest_of
from nbdurable.stores.base import Store
from nbdurable.stores.conformance import StoreContract, chain, contents, stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.batch import Batch, Inserter
from nbdurable.stores.duckdb.plans import Plans
from nbdurable.stores.duckdb.writer import _Op

SESSION = SessionRecord(id="s", created_at=1)


class TestDuckDBStore(StoreContract):
    def make_store(self, folder: Path) -> DuckDBStore:
        return DuckDBStore(folder / "store.duckdb")

    def reopen(self, store: Store) -> DuckDBStore:
        store.close()
        return DuckDBStore(store.name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SESSION)
    yield made
    made.close()


def closed_store(path: Path) -> bytes:
    """Make a store of three entries at `path`; return the file's bytes."""
    store = DuckDBStore(path)
    store.create_session(SESSION, chain(3))
    store.close()
    return path.read_bytes()


def run_python(code: str, *args: str, env: dict[str, str] | None = None) -> str:
    """Run `code` in a new process; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(env or {})},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- refused values ------------------------------------------------------------------------------


def test_an_entry_id_that_is_no_uuid_is_refused(store: DuckDBStore) -> None:
    with pytest.raises(EntryError, match="entry id 'e1' is not a UUID in lower case"):
        store.append("s", [stored(id="e1")])


# B33
def test_a_number_that_no_column_holds_is_refused_alone(store: DuckDBStore) -> None:
    with pytest.raises(EntryError, match=r"a value cannot be stored in .*; give text, finite"):
        store.append("s", [stored(input_tokens=2**70)])

    store.append("s", [stored()])
    assert [entry.n for entry in store.load_entries("s")] == [1]


# B64
def test_a_lone_surrogate_beside_the_tree_becomes_a_replacement_character(
    store: DuckDBStore,
) -> None:
    given = Annotation(
        id=IdMaker()(),
        session_id="s",
        target_id=IdMaker()(),
        name="label",
        value_json='"best"',
        created_at=1,
        note="cut \ud83d",
    )

    store.annotate([given])

    assert store.load_annotations("s")[0].note == "cut \ufffd"


# case 38
def test_a_column_of_nulls_keeps_the_type_of_what_follows(store: DuckDBStore) -> None:
    payloads = ["null"] * 999 + ['{"a":1}', '{"b":"x"}', "[1,2]", '"1"', "1"]

    store.append("s", [stored(payload=payload, role=None, preview="") for payload in payloads])

    assert [entry.payload for entry in store.load_entries("s")] == payloads


# -- transactions --------------------------------------------------------------------------------


# B60
def test_calls_that_share_a_transaction_fail_alone(store: DuckDBStore) -> None:
    """Many threads at once, half of them refused: each gets its own answer."""
    outcomes: list[object] = [None] * 40
    start = threading.Barrier(len(outcomes))

    def work(i: int) -> None:
        start.wait()
        try:
            bad = {"parent_id": IdMaker()()} if i % 2 else {}
            outcomes[i] = store.append("s", [stored(**bad)])[0]
        except EntryError as exc:
            outcomes[i] = exc

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(outcomes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [isinstance(outcome, EntryError) for outcome in outcomes] == [False, True] * 20
    assert [entry.n for entry in store.load_entries("s")] == list(range(1, 21))


# B60
def test_a_value_that_fails_a_shared_transaction_fails_its_call_alone(store: DuckDBStore) -> None:
    """The writer's own thread queues three calls, which it must then take together."""
    writer = store._core.writer
    given = [stored(), stored(input_tokens=2**70), stored()]

    def queue_three(plans: Plans, batch: Batch) -> list[_Op]:
        ops = [
            _Op(lambda plans, batch, entry=entry: plans.append(batch, "s", [entry], NOTHING))
            for entry in given
        ]
        for op in ops:
            writer._queue.put([op])
        return ops

    first, bad, last = writer.run(queue_three)
    thread = writer._thread
    assert thread is not None

    assert first.wait(thread)[0].n == 1
    with pytest.raises(EntryError, match=r"a value cannot be stored in .*; give text, finite"):
        bad.wait(thread)
    assert last.wait(thread)[0].n == 2
    assert [entry.id for entry in store.load_entries("s")] == [given[0].id, given[2].id]


# B4
def test_a_cold_store_goes_on_where_the_file_ends(path: Path) -> None:
    closed_store(path)
    store = DuckDBStore(path)
    last = store.load_entries("s")[-1]

    [row] = store.append("s", [stored(parent_id=last.id, moves_leaf=None)])

    assert (row.seq, row.n, row.depth, row.moves_leaf) == (4, 4, 4, True)
    store.close()


# B60
def test_an_old_id_is_found_in_a_cold_file(path: Path) -> None:
    closed_store(path)
    store = DuckDBStore(path)
    first = store.load_entries("s")[0]
    store.create_session(SessionRecord(id="t", created_at=1))

    with pytest.raises(EntryError, match=f"entry '{first.id}' is already in session 's'"):
        store.append("t", [stored("t", id=first.id)])
    store.close()


# B3
def test_an_entry_of_another_session_is_no_place_to_move_to(store: DuckDBStore) -> None:
    store.create_session(SessionRecord(id="t", created_at=1))
    [entry] = store.append("t", [stored("t")])

    with pytest.raises(EntryNotFound, match=f"entry '{entry.id}' is not in session 's'"):
        store.move("s", entry.id, 1)


# B41
@pytest.mark.slow
def test_a_session_of_100_000_entries_is_stored_and_read(store: DuckDBStore) -> None:
    given = chain(100_000)

    store.append("s", given)
    [added] = store.append("s", [stored(parent_id=given[-1].id)])

    assert added.depth == 100_001
    assert [entry.id for entry in store.load_entries("s", 99_998)] == [
        given[-2].id,
        given[-1].id,
        added.id,
    ]


# B67
def test_a_stored_row_is_not_written_again_after_an_unknown_outcome(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit succeeds and then reports a fault, as when the autocheckpoint fails."""
    write = Inserter.write

    def write_and_fail(self: Inserter, batch: Batch) -> None:
        write(self, batch)
        raise duckdb.FatalException("FATAL Error: Transaction COMMIT succeeded")

    monkeypatch.setattr(Inserter, "write", write_and_fail)
    [row] = store.append("s", [stored()])
    monkeypatch.undo()

    assert store.load_entries("s") == [row]


# B67
def test_moves_of_one_transaction_are_not_repeated_when_its_outcome_is_unknown(
    store: DuckDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored, and the file is not to be had to look."""
    write = Inserter.write

    def write_and_fail(self: Inserter, batch: Batch) -> None:
        write(self, batch)
        monkeypatch.undo()
        monkeypatch.setattr(store._core.lease, "reattach", locked)
        raise duckdb.FatalException("FATAL Error: Transaction COMMIT succeeded")

    def locked(generation: int) -> None:
        raise StoreLocked("store is locked", path=store.name, pid=None)

    def move(plans: Plans, batch: Batch) -> Move:
        return plans.move(batch, "s", None, 1)

    monkeypatch.setattr(Inserter, "write", write_and_fail)
    with pytest.raises(StoreError, match=r"outcome of a write to store .* is not known"):
        store._core.writer.run_all([move, move])

    assert len(store.load_moves("s")) == 2


# -- full disk -----------------------------------------------------------------------------------


# B63 B67
@pytest.mark.parametrize("threshold", ["2MB", "1GB"], ids=["checkpoint", "log"])
def test_a_full_disk_is_told_and_loses_nothing_acknowledged(
    small_disk: Path, threshold: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = DuckDBStore(small_disk / "chats.duckdb", exclusive=True)
    store.create_session(SESSION)
    lease = store._core.lease
    with lease.held() as cursor:
        cursor.execute(f"set global wal_autocheckpoint = '{threshold}'")
    acknowledged = []

    with pytest.raises(StoreError, match=r"disk of store '.*' is full \(.*\); free space and"):
        while True:
            noise = f'"{os.urandom(20_000).hex()}"'
            acknowledged += store.append("s", [stored(payload=noise)])

    assert lease.generation > 1 if threshold == "2MB" else lease.generation == 1
    assert store.load_entries("s") == acknowledged
    with caplog.at_level(logging.CRITICAL, "nbdurable"):
        store.close()
    store = DuckDBStore(small_disk / "chats.duckdb")
    assert store.load_entries("s") == acknowledged
    store.close()


# -- the machine ---------------------------------------------------------------------------------


# case 30
def test_times_do_not_depend_on_the_time_zone(path: Path) -> None:
    code = """
import sys, time
from nbdurable.stores.conformance import contents
from nbdurable.stores.duckdb import DuckDBStore
store = DuckDBStore(sys.argv[1])
print(contents(store))
store.close()
print(time.tzname, file=sys.stderr)
"""
    closed_store(path)
    store = DuckDBStore(path)
    expected = str(contents(store))
    store.close()

    for zone in ("America/Los_Angeles", "Pacific/Auckland"):
        assert run_python(code, str(path), env={"TZ": zone}) == expected


# B66
def test_a_digest_covers_every_stored_column(store: DuckDBStore) -> None:
    store.append("s", chain(5))

    assert all(entry.digest == digest_of(entry) for entry in store.load_entries("s"))


# case 37
def test_no_extension_is_installed_or_loaded_from_outside(store: DuckDBStore) -> None:
    with store._core.lease.held() as cursor:
        rows = cursor.execute(
            "select name, value from duckdb_settings() where name in "
            "('autoinstall_known_extensions', 'autoload_known_extensions') order by name"
        ).fetchall()
        loaded = cursor.execute(
            "select extension_name from duckdb_extensions() "
            "where loaded and install_mode <> 'STATICALLY_LINKED'"
        ).fetchall()

    assert [value for _, value in rows] == ["false", "false"]
    assert loaded == []


# B65
def test_a_forked_process_is_refused_and_loses_nothing(path: Path) -> None:
    code = """
import os, sys
from nbdurable.errors import StoreError
from nbdurable.stored import SessionRecord
from nbdurable.stores.duckdb import DuckDBStore
store = DuckDBStore(sys.argv[1])
store.create_session(SessionRecord(id="before", created_at=1))
child = os.fork()
if child == 0:
    for touch in (store.list_sessions, lambda: DuckDBStore(sys.argv[1])):
        try:
            touch()
            print("not refused", flush=True)
        except StoreError as exc:
            print("is its fork" in str(exc), flush=True)
    store.close()
    sys.exit()
os.waitpid(child, 0)
store.create_session(SessionRecord(id="after", created_at=1))
print([summary.session.id for summary in store.list_sessions()])
store.close()
"""

    assert run_python(code, str(path)).splitlines() == ["True", "True", "['after', 'before']"]
