"""A medium that takes no more is told, and nothing that was acknowledged is lost (B63)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from damage import files_in, killed_store, tear

import nbdurable as nb
from nbdurable.errors import StoreError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SpoolDraft
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check

# Appends until the system lets no file grow further; says what was stored, then the error.
FILLER = """
import json, os, resource, sys
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore
store = DuckDBStore(sys.argv[1])
store.create_session(SessionRecord(id="s", created_at=1))
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
ids, error = [], ""
while not error:
    try:
        noise = '"%s"' % os.urandom(20_000).hex()
        ids += [entry.id for entry in store.append("s", [stored(payload=noise)])]
    except OSError as exc:
        error = str(exc)
print(json.dumps([ids, [entry.id for entry in store.load_entries("s")], error]))
store.close()
"""


def fill(folder: Path) -> None:
    """Leave no room on a small disk."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            return


# B63
def test_a_file_that_may_not_grow_is_told_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FILLER, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    acknowledged, read, error = json.loads(done.stdout)
    assert "chats.duckdb' is full (" in error
    assert error.endswith("; free space and try again")
    assert read == acknowledged
    store = DuckDBStore(path)
    assert [entry.id for entry in store.load_entries("s")] == acknowledged
    store.close()
    assert check(path).is_sound


# B63
def test_a_store_is_not_half_made_on_a_full_disk(small_disk: Path) -> None:
    fill(small_disk)

    with pytest.raises(StoreError, match=r"(disk|folder) .* (is full|cannot be written) \("):
        DuckDBStore(small_disk / "chats.duckdb")

    assert os.listdir(small_disk) == ["filler"]


# B63 B21
def test_a_session_goes_on_once_there_is_room(small_disk: Path) -> None:
    with nb.open("s", store=small_disk / "chats.duckdb", model=ScriptedModel("Yes.")) as chat:
        chat.run("Is there room?", show=None)
        fill(small_disk)
        with pytest.raises(StoreError, match="is full"):
            for _ in range(500):
                chat.append(nb.user("x" * 10_000))
        count = len(chat.entries())

        (small_disk / "filler").unlink()
        run = chat.run("And now?", show=None)

        assert run.text == "Yes."
        assert len(chat.entries()) == count + 2
    assert check(small_disk / "chats.duckdb").is_sound


# B63 B24
def test_an_answer_in_flight_without_room_is_told(small_disk: Path) -> None:
    store = DuckDBStore(small_disk / "chats.duckdb")
    store.spool(SpoolDraft(entry=stored()))
    fill(small_disk)

    with pytest.raises(StoreError, match=r"spool '.*' cannot be written \(No space left"):
        for _ in range(100):
            store.spool(SpoolDraft(entry=stored(payload=f'"{"x" * 10_000}"')))

    (small_disk / "filler").unlink()
    store.close()


# B63 B66
def test_a_repair_on_a_full_disk_changes_nothing(small_disk: Path) -> None:
    path = small_disk / "chats.duckdb"
    expected = killed_store(path)
    tear(path)
    fill(small_disk)
    before = files_in(small_disk)

    with pytest.raises(StoreError, match=r"chats\.duckdb'.* \(No space left on device\); free"):
        DuckDBStore(path)
    assert files_in(small_disk) == before

    (small_disk / "filler").unlink()
    with pytest.warns(UserWarning, match="is repaired without loss"):
        store = DuckDBStore(path)
    assert store.load_entries("s") == expected
    store.close()
