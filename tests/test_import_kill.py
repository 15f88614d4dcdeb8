"""A kill in the middle of an import of many sessions: each is whole or absent, and all come."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from new_process import killed_after

import nbdurable as nb
from nbdurable.stores.duckdb import DuckDBStore

SESSIONS, MESSAGES = 60, 40

IMPORTER = """
import nbdurable as nb
from nbdurable.formats import importing
importing._PART_ENTRIES = 300  # of one transaction, so that there are eight
from nbdurable.stores import open_store
store = open_store("killed.duckdb")
print("ready", flush=True)
nb.load("conversations.json", store=store)
"""


def talk(number: int) -> dict[str, Any]:
    """A conversation of branches; each tenth has a file that is kept beside the entries."""
    said = []
    for place in range(MESSAGES):
        above = place - 1 if place % 7 else place - 3
        message = {
            "uuid": f"{number}-{place}",
            "parent_message_uuid": f"{number}-{above}" if above >= 0 else None,
            "sender": ("human", "assistant")[place % 2],
            "text": f"message {place} of talk {number} " * 10,
            "created_at": f"2026-01-02T03:{place % 60:02d}:00Z",
        }
        said.append(message)
    if number % 10 == 0:
        text = f"{number} " * 10_000
        said[0]["attachments"] = [{"file_name": "a.txt", "extracted_content": text}]
    return {
        "uuid": f"talk-{number}",
        "name": f"Talk {number}",
        "created_at": "2026-01-02T03:00:00Z",
        "chat_messages": said,
        "settings": {"number": number},
    }


def state(path: Path) -> dict[str, object]:
    """All that a file holds of each session, but for counters of the whole store."""
    store = DuckDBStore(path)
    try:
        return {
            (id := summary.session.id): (
                summary.session,
                [entry._replace(seq=0, digest="") for entry in store.load_entries(id)],
                [move.entry_id for move in store.load_moves(id)],
                [(note.id, note.value) for note in store.load_annotations(id)],
                [
                    store.get_blob(block["sha256"])
                    for block in json.loads(store.load_entries(id)[0].payload)["blocks"]
                    if "sha256" in block
                ],
            )
            for summary in store.list_sessions()
        }
    finally:
        store.close()


def check_kills(kills: int, seed: int) -> None:
    Path("conversations.json").write_text(json.dumps([talk(n) for n in range(SESSIONS)]))
    began = time.monotonic()
    nb.load("conversations.json", store="undisturbed.duckdb")
    took_s = time.monotonic() - began
    whole, path, chosen = (
        state(Path("undisturbed.duckdb")),
        Path("killed.duckdb"),
        random.Random(seed),
    )
    assert len(whole) == SESSIONS

    for _ in range(kills):
        killed_after(chosen.uniform(0, took_s), IMPORTER)

        found = state(path)
        assert found == {id: whole[id] for id in found}
        if len(found) == SESSIONS:
            path.unlink()

    report = nb.load("conversations.json", store=path)
    assert {session.outcome for session in report.sessions} <= {"added", "unchanged"}
    assert state(path) == whole
    assert nb.load("conversations.json", store=path).entries == 0


# B4 B24
def test_an_import_killed_at_any_moment_leaves_no_half_session_and_is_completed_later() -> None:
    check_kills(3, seed=4)


# B4 B24
@pytest.mark.slow
def test_an_import_killed_at_twenty_moments_leaves_no_half_session() -> None:
    check_kills(20, seed=20)
