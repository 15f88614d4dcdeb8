"""Redaction: no text that somebody said leaves the house as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from recorded import Recorded, busy, lines, look

import nbdurable as nb
from nbdurable.errors import EntryError
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.stored import Annotation, Beside, ExperimentRecord, RunRecord
from nbdurable.stores.conformance import stored
from nbdurable.stores.memory import MemoryStore

SECRET = "Tulip4711"


def hide(text: str) -> str:
    return re.sub("Tulip|4711", "###", text)


def secretive() -> nb.Session:
    """Return a session that has the secret in every place where a text can be."""

    def dial(who: str, number: int) -> str:
        """Dial Tulip4711."""
        return f"no answer from {SECRET}"

    model = ScriptedModel(
        calls(("dial", {"who": SECRET, "number": 4711, "more": {SECRET: [SECRET]}})),
        (thinking(f"about {SECRET}", signature="signed"), f"It is {SECRET}."),
        (f"half of {SECRET}", nb.errors.ModelError(f"bad key {SECRET}")),
        f"Summary with {SECRET}.",
    )
    store = MemoryStore()
    chat = nb.open("s", store=store, model=model, system=f"Call {SECRET}.", tools=[dial])
    chat.run(
        f"Who is {SECRET}?",
        nb.meta(f"skill of {SECRET}"),
        Recorded(text=SECRET, score=4711.0),
        nb.file(f"name,{SECRET}\n".encode(), "text/csv", name=f"{SECRET}.csv"),
        nb.file((f"{SECRET} " * 9_000).encode(), "text/plain", name="long.txt"),
        stop=[SECRET],
        show=None,
    )
    with pytest.raises(nb.errors.ModelError):
        chat.run("x" * 115 + SECRET, show=None)
    entry = chat.compact()
    assert entry is not None
    store.append("s", [stored("s", entry.id, kind="future", payload=json.dumps({SECRET: SECRET}))])
    store.append("s", [stored("s", entry.id, kind="text", payload=f"no JSON, {SECRET}")])
    told = {"label": json.dumps(SECRET), "rating": "0.5"}
    store.annotate(
        [
            Annotation(
                id=name,
                session_id="s",
                target_id=entry.id,
                name=name,
                value_json=value,
                created_at=1,
                by="ann",
                note=f"since {SECRET}",
            )
            for name, value in told.items()
        ]
    )
    _experiment(store)
    return chat


def _experiment(store: MemoryStore) -> None:
    key = json.dumps({"input": SECRET, "model": "openai/x"}, separators=(",", ":"))
    plan = {
        "kind": "grid",
        "leaf": "01890000-0000-7000-8000-000000000000",
        "meanings": {"input": {json.dumps(SECRET): "d" * 64}},
        "cells": [{"axes": json.loads(key)}],
    }
    store.save_experiment(
        ExperimentRecord(
            id="plan", session_id="s", name="grid", plan_json=json.dumps(plan), created_at=1
        )
    )
    run = RunRecord(id="r", session_id="s", kind="grid", created_at=1, cell=key)
    store.append("s", beside=Beside(runs=(run,)))


def exported(redact: Any = hide) -> tuple[nb.Session, MemoryStore]:
    """Return a session and the store into which its redacted export was imported."""
    chat, store = secretive(), MemoryStore()
    chat.export("s.jsonl", redact=redact)
    report = nb.load("s.jsonl", store=store)
    assert [session.outcome for session in report.sessions] == ["added"]
    return chat, store


# B37 B69
def test_the_secret_is_in_no_line() -> None:
    chat, _ = exported()

    plain = chat.export("plain.jsonl").read_bytes()
    data = Path("s.jsonl").read_bytes()

    assert plain.count(SECRET.encode()) > 20 and plain.count(b"4711") > 20
    assert b"Tulip" not in data and b"4711" not in data
    assert data.count(b"###") > 20


# B37
def test_a_preview_shows_no_half_of_what_is_hidden() -> None:
    chat, store = exported()

    assert any("Tul" in e.preview for e in chat.image.store.load_entries("s"))
    assert not any("Tul" in e.preview for e in store.load_entries("s"))


# B37
def test_files_of_text_are_redacted_whatever_their_size() -> None:
    chat, store = exported()

    again = nb.open("s", store=store, model=ScriptedModel("ok"))
    before = [b for e in chat.entries(nb.MessageEntry) for b in e.blocks if b.type == "file"]
    after = [b for e in again.entries(nb.MessageEntry) for b in e.blocks if b.type == "file"]

    assert [block.data for block in after] == [
        hide(block.data.decode()).encode() for block in before
    ]
    assert after[0].name == "######.csv"
    assert len(lines(Path("s.jsonl"), "blob")) == 1


# B37
def test_the_first_line_says_that_it_was_redacted() -> None:
    chat, _ = exported()

    assert lines(Path("s.jsonl"), "header")[0]["redacted"] is True
    assert "redacted" not in lines(chat.export("plain.jsonl"), "header")[0]


# B46
def test_thinking_that_was_changed_is_no_longer_signed() -> None:
    chat, store = exported()
    again = nb.open("s", store=store, model=ScriptedModel("ok"))

    def signatures(session: nb.Session) -> list[str | None]:
        blocks = [b for e in session.entries(nb.MessageEntry) for b in e.blocks]
        return [block.signature for block in blocks if block.type == "thinking"]

    assert (signatures(chat), signatures(again)) == (["signed"], [None])


# B37
def test_ids_order_shape_and_position_stay() -> None:
    chat, store = exported()

    again = nb.open("s", store=store, model=ScriptedModel("ok"))

    assert [(e.id, e.parent_id, e.n, type(e)) for e in again.entries()] == [
        (e.id, e.parent_id, e.n, type(e)) for e in chat.entries()
    ]
    assert again.leaf_id == chat.resume()
    assert [run.outcome for run in again.runs()] == [run.outcome for run in chat.runs()]
    assert [a.value_json for a in store.load_annotations("s")] == ['"######"', "0.5"]


# B37
def test_a_cell_still_fits_its_plan() -> None:
    _, store = exported()

    (plan,) = store.load_experiments("s")
    cells = [cell["axes"] for cell in json.loads(plan.plan_json)["cells"]]
    cell = next(run.cell for run, _ in store.load_runs("s") if run.cell)

    assert json.loads(cell) == cells[0] == {"input": "######", "model": "openai/x"}
    assert json.loads(plan.plan_json)["meanings"] == {"input": {'"######"': "d" * 64}}


# B2
def test_a_redacted_context_does_not_stand_for_the_real_one() -> None:
    chat, store = exported()
    kept = {run.context_digest for run, _ in store.load_runs("s")}
    real = {run.context_digest for run, _ in chat.image.store.load_runs("s")}

    assert not (kept - {None}) & real
    assert {store.load_context(digest).system for digest in kept if digest} == {"Call ######."}


# B37
def test_hiding_everything_gives_a_session_that_can_be_read() -> None:
    _, store = exported(lambda text: "█")

    again = nb.open("s", store=store, model=ScriptedModel("ok"))

    assert {e.text for e in again.entries(nb.MessageEntry)} == {"█", ""}
    assert again.run("q", show=None).text == "ok"
    assert [e.fields for e in again.entries(Recorded)] == [{"text": "█", "score": "█"}]


# B37
def test_what_has_no_secret_is_written_as_it_is() -> None:
    chat = busy(MemoryStore())

    chat.export("a.jsonl", redact=lambda text: text)
    chat.export("b.jsonl")

    first, second = (Path(name).read_bytes().split(b"\n")[1:-2] for name in ("a.jsonl", "b.jsonl"))
    assert first == second


# B64
def test_half_a_character_from_redact_is_mended() -> None:
    _, store = exported(lambda text: text.replace("Tulip", "\ud83d"))

    assert store.load_entries("s")[0].preview.startswith("Who is \ufffd4711?")


# B37
def test_redact_must_return_text() -> None:
    chat = nb.open("s", store=MemoryStore(), model=ScriptedModel("ok"), tools=[look])
    chat.append("q")

    with pytest.raises(EntryError, match="redact returned 'NoneType' for a text; return text"):
        chat.export("a.jsonl", redact=lambda text: None)  # type: ignore[arg-type, return-value]
