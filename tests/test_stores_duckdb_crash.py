from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from nbdurable.errors import StoreLocked
from nbdurable.stored import NOTHING, SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore, place
from nbdurable.stores.duckdb.batch import Batch
from nbdurable.stores.duckdb.plans import Plans

# Appends pairs of entries for ever; prints the ids of a pair once it is acknowledged.
APPENDER = """
import os, sys
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain
from nbdurable.stores.duckdb import DuckDBStore
store = DuckDBStore(sys.argv[1])
if not store.list_sessions():
    store.create_session(SessionRecord(id="s", created_at=1))
os.write(1, b"ready\\n")
while True:
    pair = store.append("s", chain(2))
    os.write(1, " ".join(entry.id for entry in pair).encode() + b"\\n")
"""

# Opens a store and holds it until its input ends.
HOLDER = """
import sys
from nbdurable.stores.duckdb import DuckDBStore
store = DuckDBStore(sys.argv[1], exclusive=True)
print("ready", flush=True)
sys.stdin.read()
store.close()
"""


@contextmanager
def child(code: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """Run `code` in a new process, ready when the block starts and gone when it ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def killed_after(path: Path, pairs: int) -> list[str]:
    """Append in a child, kill it after `pairs` were acknowledged; return all acknowledged ids."""
    with child(APPENDER, path) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(pairs)]
        process.kill()
        lines += process.stdout.read().split("\n")
    return [id for line in lines for id in line.split() if len(line) >= 73]


def loaded(path: Path) -> list[str]:
    """Return the ids in session ``s`` of the file, opened anew, and check that none has a hole."""
    store = DuckDBStore(path)
    entries = store.load_entries("s")
    store.close()
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    return [entry.id for entry in entries]


# B24 case 36
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "chats.duckdb", []

    for seed in range(8):
        acknowledged += killed_after(path, random.Random(seed).randrange(1, 60))

        ids = loaded(path)
        assert set(acknowledged) <= set(ids)
        assert len(ids) % 2 == 0  # no append is half there


# B24 case 36
@pytest.mark.slow
def test_what_was_acknowledged_survives_sixty_kills(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "chats.duckdb", []

    for seed in range(60):
        acknowledged += killed_after(path, random.Random(seed).randrange(1, 60))

    assert set(acknowledged) <= set(loaded(path))


# B24 case 36
def test_a_cut_log_loses_whole_appends_from_its_end_only(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"
    acknowledged = killed_after(path, 5)
    log = Path(f"{path}.wal")
    os.truncate(log, log.stat().st_size - 10)

    ids = loaded(path)

    # At most the kill's unfinished pair and the one cut.
    assert set(acknowledged[:-2]) <= set(ids)
    assert len(ids) % 2 == 0


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose folder was synced."""
    paths: list[str] = []
    sync = place.sync_folder
    monkeypatch.setattr(place, "sync_folder", lambda path: (paths.append(path), sync(path)))
    return paths


# B24
def test_the_name_of_each_log_is_made_durable_once(tmp_path: Path, synced: list[str]) -> None:
    with closing(DuckDBStore(tmp_path / "chats.duckdb", exclusive=True)) as store:
        store.create_session(SessionRecord(id="s", created_at=1))
        synced.clear()
        store.append("s", chain(1))
        store.append("s", chain(1))
        with store._core.lease.held() as cursor:
            cursor.execute("checkpoint nbd_file")
        store._core.lease.sync_name()
        first_log = list(synced)

        for _ in range(3):
            store.append("s", chain(1))

        assert first_log == []  # the session's row was what made it
        assert synced == [store.name]


# B24
def test_the_name_of_a_log_that_others_made_is_not_trusted(
    tmp_path: Path, synced: list[str]
) -> None:
    path = tmp_path / "chats.duckdb"
    killed_after(path, 1)

    with closing(DuckDBStore(path)) as store:
        store.append("s", chain(1))

    assert synced.count(str(path)) == 1


# B68 case 28
def test_another_process_is_told_who_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"

    with (
        child(HOLDER, path) as process,
        pytest.raises(
            StoreLocked,
            match=rf"'{re.escape(str(path))}' is locked by another process \(.*{process.pid}\);",
        ) as caught,
    ):
        DuckDBStore(path, timeout_s=0)

    assert (caught.value.path, caught.value.pid) == (str(path), process.pid)


# B68
def test_a_file_freed_before_the_deadline_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"

    with child(HOLDER, path) as process:
        assert process.stdin is not None
        threading.Timer(0.05, process.stdin.close).start()
        store = DuckDBStore(path, timeout_s=60)

    store.close()


# B68
def test_a_killed_holder_leaves_nothing_to_clean_up(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"

    with child(HOLDER, path) as process:
        process.kill()
        process.wait()

        DuckDBStore(path, timeout_s=0).close()


# B24
def test_a_process_that_just_ends_leaves_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "files" / "chats.duckdb"
    path.parent.mkdir()
    code = APPENDER.replace("while True:", "for _ in range(3):")

    with child(code, path) as process:
        process.communicate()

    assert os.listdir(path.parent) == ["chats.duckdb"]
    assert len(loaded(path)) == 6


# B23
def test_an_interrupt_reaches_the_caller_and_does_not_tear_its_append(tmp_path: Path) -> None:
    """SIGINT comes once the append has begun; it goes on after the caller was told."""
    store = DuckDBStore(tmp_path / "chats.duckdb")
    store.create_session(SessionRecord(id="s", created_at=1))
    given, was_told, main = chain(3), threading.Event(), threading.main_thread().ident
    assert main is not None

    def interrupted(plans: Plans, batch: Batch) -> object:
        signal.pthread_kill(main, signal.SIGINT)
        assert was_told.wait(30)
        return plans.append(batch, "s", given, NOTHING)

    with pytest.raises(KeyboardInterrupt):
        store._core.writer.run(interrupted)
    was_told.set()
    store.append("s", [stored()])

    assert [row.id for row in store.load_entries("s")][:-1] == [entry.id for entry in given]
    store.close()
