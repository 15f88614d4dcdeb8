"""A kill in the middle of an import or an export leaves all of a session or nothing of it."""

from __future__ import annotations

import random
from pathlib import Path

from new_process import killed_after
from recorded import lines

import nbdurable as nb
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.jsonl import lines_of, opened, section_of, write_recording
from nbdurable.stores.memory import MemoryStore

ENTRIES = 3_000

IMPORTER = """
import nbdurable as nb
from nbdurable.stores import open_store
store = open_store("b.duckdb")
print("ready", flush=True)
nb.load("a.jsonl", store=store)
"""
EXPORTER = """
from pathlib import Path
from nbdurable.formats.jsonl import export_store
from nbdurable.stores.jsonl import RecordingStore
store = RecordingStore("a.jsonl")
print("ready", flush=True)
while True:
    export_store(store, Path("b.jsonl"))
"""


def made(path: Path) -> None:
    """Write a recording of one long session."""
    store = MemoryStore()
    store.create_session(SessionRecord(id="s", created_at=1), chain(ENTRIES))
    write_recording(path, lines_of([section_of(store, "s")], store.get_blob))


# B4 B24
def test_a_killed_import_leaves_the_whole_session_or_none_of_it() -> None:
    made(Path("a.jsonl"))
    chosen = random.Random(8)

    for _ in range(6):
        killed_after(chosen.uniform(0, 0.6), IMPORTER)
        store = DuckDBStore("b.duckdb")
        held = [summary.entries for summary in store.list_sessions()]
        store.close()

        assert held in ([], [ENTRIES])

    assert nb.load("a.jsonl", store="b.duckdb").entries in (0, ENTRIES)


# B24
def test_a_killed_export_leaves_a_whole_file() -> None:
    made(Path("a.jsonl"))
    before = Path("a.jsonl").read_bytes()
    Path("b.jsonl").write_bytes(before)
    chosen = random.Random(9)

    for _ in range(4):
        killed_after(chosen.uniform(0, 0.5), EXPORTER)

        with opened(Path("b.jsonl")) as recording:
            (section,) = recording.sections(lambda sha256, data: None)
        assert len(section.entries) == ENTRIES
        assert len(lines(Path("b.jsonl"), "end")) == 1
