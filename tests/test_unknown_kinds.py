"""Kinds and versions that this process does not know: kept whole, readable, never sent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable import entries as registry
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import StoredEntry
from nbdurable.stores.base import Store


def put(
    store: Store, kind: str, payload: str, parent_id: str | None = None, n: int = 1
) -> StoredEntry:
    """Store an entry as another version of the package would."""
    entry = StoredEntry(
        id=f"0190b6d4-0000-7000-8000-{n:012x}",
        session_id="s",
        parent_id=parent_id,
        kind=kind,
        payload=payload,
        created_at=1,
    )
    return store.append("s", [entry])[0]


WRITER = """
import sys
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel

class Grade(nb.CustomEntry):
    kind = "grade"
    points: float
    by: str = ""
    more: object = None

with nb.open("s", store=sys.argv[1], model=ScriptedModel("ok")) as chat:
    chat.run("one", Grade(points=1.5, by="Zoë", more={"n": 2**60, "x": [None]}), show=None)
"""


# B37
def test_a_kind_without_a_class_in_this_process_keeps_all_its_fields(tmp_path: Path) -> None:
    path = str(tmp_path / "chats.duckdb")
    subprocess.run([sys.executable, "-c", WRITER, path], check=True, timeout=60)
    with nb.open("s", store=path, model=ScriptedModel("ok")) as chat:
        (found,) = chat.entries(nb.CustomEntry)
        with chat.fork("child") as child:
            (copied,) = child.entries(nb.CustomEntry)
            payloads = [
                next(e.payload for e in chat.image.store.load_entries(s) if e.kind == "grade")
                for s in ("s", "child")
            ]

    assert type(found) is nb.CustomEntry
    assert registry.kind_of(found) == "grade"
    assert found.fields == {"points": 1.5, "by": "Zoë", "more": {"n": 2**60, "x": [None]}}
    assert copied.fields == found.fields
    assert payloads[0] == payloads[1]


# B37
def test_an_entry_without_a_class_can_be_appended_again_as_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", {})

    class Note(nb.CustomEntry):
        kind = "note"
        text: str = ""

    chat = nb.open("s", store=store, model=ScriptedModel())
    chat.append(Note(text="x"))
    registry._REGISTRY.clear()

    (again,) = chat.append(chat[1])

    first, second = store.load_entries("s")
    assert (again.n, second.kind) == (2, "note")
    assert first.payload == second.payload


NEWER = [
    ("message", '{"v": 2, "role":"user",  "parts":[ 1e400, "\\u00e9" ]}'),
    ("note", '{"v":7,"fields":{"a":1,"a":2}}'),
    ("compaction", '{"v":2,"summary":"x","first_kept_id":"?"}'),
    ("hologram", '{"shape": "cube"}'),
    ("message", "not even JSON"),
]


# B37
@pytest.mark.parametrize(("kind", "payload"), NEWER)
def test_what_a_newer_version_wrote_is_opaque_and_kept_byte_for_byte(
    store: Store, kind: str, payload: str
) -> None:
    model = ScriptedModel("ok")
    nb.open("s", store=store, model=model).append("one")
    (first,) = store.load_entries("s")
    put(store, kind, payload, first.id)
    chat = nb.open("s", store=store, model=model)

    found = chat[2]
    chat.run("two", show=None)
    chat.fork("child").run("three", show=None)

    assert isinstance(found, nb.OpaqueEntry)
    assert (found.raw, found.stored_kind) == (payload, kind)
    assert found in chat.transcript()
    assert [m.text for m in model.requests[0].messages] == ["one", "two"]
    assert [m.text for m in model.requests[1].messages] == ["one", "two", "ok", "three"]
    assert store.load_entries("s")[1].payload == payload
    assert store.load_entries("child")[1].payload == payload
    assert store.load_entries("child")[1].kind == kind


# B37 B42
def test_an_opaque_entry_can_be_neither_rerun_nor_edited(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    put(store, "message", '{"v":2}')

    with pytest.raises(nb.errors.TreeError, match="entry #1 is of kind 'message', which cannot"):
        chat.rerun(1, show=None)
    with pytest.raises(nb.errors.TreeError, match="cannot be edited; give a user or an assistant"):
        chat.edit(1, "x", show=None)


# B37
def test_a_block_of_a_newer_version_is_kept_and_not_sent(store: Store) -> None:
    block = {"type": "smell", "strength": 1e300, "of": ["roses", None]}
    payload = json.dumps(
        {"v": 1, "role": "user", "blocks": [{"type": "text", "text": "one"}, block, "odd"]}
    )
    model = ScriptedModel("ok")
    nb.open("s", store=store, model=model)
    put(store, "message", payload)
    chat = nb.open("s", store=store, model=model)

    chat.run(show=None)
    chat.fork("child")

    assert [b.type for b in chat[1].blocks] == ["text", "opaque", "opaque"]  # type: ignore[attr-defined]
    assert json.loads(chat[1].blocks[1].raw) == block  # type: ignore[attr-defined]
    assert [b.type for m in model.requests[0].messages for b in m.blocks] == ["text"]
    assert store.load_entries("child")[0].payload == payload


# B3 B37 case 4
def test_a_session_whose_position_is_an_opaque_entry_opens_and_goes_on(store: Store) -> None:
    nb.open("s", store=store, model=ScriptedModel("ok")).run("one", show=None)
    last = store.load_entries("s")[-1]
    fresh = put(store, "message", '{"v":9}', last.id)
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    assert chat.leaf_id == fresh.id
    assert chat.run("two", show=None).text == "ok"
    assert [entry.n for entry in chat.path()] == [1, 2, 3, 4, 5]
