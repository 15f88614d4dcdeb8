"""Importing what is known: seen from outlines of many sessions, without reading what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from importing import DATA, outcomes, told

import nbdurable as nb
from nbdurable.stored import StoredEntry
from nbdurable.stores.duckdb import DuckDBStore

FILES = ["chatgpt_export.json", "claude_export.json", "open_webui_export.json", "pi_session.jsonl"]


class Unread(DuckDBStore):
    """A store of which no entry is read."""

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        assert super().load_entries(session_id, after_n) == []
        return []


def talk(number: int, text: str = "Hi.") -> dict[str, object]:
    said = [{"uuid": f"m{number}-{n}", "sender": "human", "text": f"{text} {n}"} for n in range(5)]
    return {"uuid": f"t{number}", "name": "T", "chat_messages": said}


def saved(values: object) -> Path:
    Path("conversations.json").write_text(json.dumps(values), "utf-8")
    return Path("conversations.json")


# B2
@pytest.mark.parametrize("name", FILES)
def test_what_is_known_is_seen_without_reading_its_entries(name: str) -> None:
    first = nb.load(DATA / name, store="s.duckdb")
    store = Unread("s.duckdb")

    again = nb.load(DATA / name, store=store)

    store.close()
    assert [s.outcome for s in again.sessions] == ["unchanged"] * len(first.sessions)
    assert [s.leaves for s in again.sessions] == [s.leaves for s in first.sessions]


# B2
def test_what_has_no_time_at_all_is_known_again() -> None:
    saved([talk(n) for n in range(3)])
    nb.load("conversations.json", store="s.duckdb")
    store = Unread("s.duckdb")

    again = nb.load("conversations.json", store=store)

    store.close()
    assert [outcome for _, outcome, _ in outcomes(again)] == ["unchanged"] * 3


# B4
def test_one_changed_message_among_known_sessions_is_seen() -> None:
    values = [talk(n) for n in range(5)]
    nb.load(saved(values), store="s.duckdb")
    values[3]["chat_messages"][-1]["text"] = "Ho."  # type: ignore[index]

    again = nb.load(saved(values), store="s.duckdb")

    assert outcomes(again)[3] == ("t3", "grown", 1)
    assert [entries for _, _, entries in outcomes(again)] == [0, 0, 0, 1, 0]
    assert told(again).count("it is other than when it was imported") == 1


# B70
def test_a_title_that_changed_is_said_beside_known_entries() -> None:
    values = [talk(1)]
    nb.load(saved(values), store="s.duckdb")
    values[0]["name"] = "Another"

    again = nb.load(saved(values), store="s.duckdb")

    assert outcomes(again) == [("t1", "grown", 0)]


# B3
def test_a_position_that_moved_in_the_source_moves_here() -> None:
    values = [{**talk(1), "current_leaf_message_uuid": "m1-4"}]
    nb.load(saved(values), store="s.duckdb")
    values[0]["current_leaf_message_uuid"] = "m1-2"

    again = nb.load(saved(values), store="s.duckdb")

    assert outcomes(again) == [("t1", "grown", 0)]
    chat = nb.open("claude:t1", store="s.duckdb", model="local")
    assert chat.path()[-1].source_id == "m1-2"
    chat.close()
