"""Chat messages that stand alone in a file, without a record around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from importing import Talk

import nbdurable as nb
from nbdurable.errors import ImportFormatError
from nbdurable.formats.report import ImportReport
from nbdurable.stores.memory import MemoryStore

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "4"},
]


def loaded(path: Path, text: str) -> tuple[ImportReport, MemoryStore]:
    path.write_text(text)
    store = MemoryStore()
    return nb.load(path, store=store), store


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CHAT),
        json.dumps(CHAT) + "\n",
        json.dumps(CHAT, indent=2),
        "".join(json.dumps(one) + "\n" for one in CHAT),
        json.dumps({"messages": CHAT}),
        json.dumps([CHAT]),
    ],
    ids=["list", "list and line end", "indented", "lines", "record", "list of lists"],
)
def test_bare_messages_are_the_conversation_that_a_record_of_them_is(
    tmp_path: Path, text: str
) -> None:
    whole, _ = loaded(tmp_path / "record.json", json.dumps({"messages": CHAT}))

    report, store = loaded(tmp_path / "chat.json", text)

    assert (report.format, report.entries, report.unread) == ("openai", 3, ())
    assert [session.id for session in report.sessions] == [s.id for s in whole.sessions]
    talk = Talk(store, report.sessions[0].id)
    assert [entry.preview for entry in talk.entries] == ["Be brief.", "What is 2 + 2?", "4"]


def test_two_lists_of_messages_are_two_conversations(tmp_path: Path) -> None:
    report, _ = loaded(tmp_path / "chats.json", json.dumps([CHAT, CHAT[1:]]))

    assert [session.entries for session in report.sessions] == [3, 2]


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "admin", "name": "Ann"}],
        [{"role": "user", "name": "Bob"}],
        [{"role": "admin", "content": "x"}],
        [{"content": "x"}],
    ],
)
def test_what_only_looks_like_messages_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ImportFormatError, match="is of no format that is known"):
        loaded(tmp_path / "people.json", json.dumps(value))


def test_messages_inside_a_damaged_record_are_not_taken_for_a_conversation(tmp_path: Path) -> None:
    whole = json.dumps({"messages": CHAT})
    broken = whole.replace('"Be brief."', '"Be" brief."', 1)

    report, _ = loaded(tmp_path / "chats.json", f"[{broken}, {whole}]")

    assert [session.entries for session in report.sessions] == [3]
    assert len(report.unread) == 1
