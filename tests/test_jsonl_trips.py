"""Recordings lose nothing: what is exported, imported and exported again is equal to the byte."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from recorded import Recorded, any_section, bare, busy, everything, lines, recording

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord
from nbdurable.stores import Store
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.jsonl import Section, lines_of, opened, section_of, write_recording
from nbdurable.stores.memory import MemoryStore

TRAPS_FILE = Path(__file__).parent / "data" / "text_traps.jsonl"
TRAPS = {
    trap["name"]: trap.get("text", trap.get("unit", "") * trap.get("repeat", 0))
    for trap in map(json.loads, TRAPS_FILE.read_bytes().splitlines())
}


def kept(section: Section, store: Store) -> Store:
    store.create_session(section.session, section.entries, beside=section.beside)
    return store


# -- whole stores --------------------------------------------------------------------------------


# B37 B48
def test_a_session_of_everything_makes_the_trip_between_kinds_of_store(tmp_path: Path) -> None:
    first, memory = DuckDBStore(tmp_path / "a.duckdb"), MemoryStore()
    chat = busy(first)
    chat.fork("child")
    busy(first, "other")
    exported = recording(first, tmp_path / "a.jsonl")

    nb.load(tmp_path / "a.jsonl", store=memory)
    through_memory = recording(memory, tmp_path / "b.jsonl")
    last = DuckDBStore(tmp_path / "b.duckdb")
    nb.load(tmp_path / "b.jsonl", store=last)

    assert exported == through_memory == recording(last, tmp_path / "c.jsonl")
    assert everything(first) == everything(memory) == everything(last)
    blobs = {str(line["sha256"]) for line in lines(tmp_path / "a.jsonl", "blob")}
    assert blobs and all(first.get_blob(sha) == last.get_blob(sha) for sha in blobs)
    first.close()
    last.close()


# B3 B37
def test_an_imported_session_reads_and_resumes_as_where_it_came_from(
    store: Store, tmp_path: Path
) -> None:
    chat = busy(store)
    chat.export("s.jsonl")
    other = MemoryStore()

    nb.load("s.jsonl", store=other)
    again = nb.open("s", store=other, model=ScriptedModel("ok"))

    assert again.leaf_id == chat.leaf_id
    assert [e.id for e in again.path(8)] == [e.id for e in chat.path(8)]
    assert again.messages() == chat.messages()
    assert again.entries(Recorded) == chat.entries(Recorded)
    assert [(run.run_id, run.outcome) for run in again.runs()] == [
        (run.run_id, run.outcome) for run in chat.runs()
    ]


# B4
def test_exporting_twice_gives_equal_bytes(store: Store, tmp_path: Path) -> None:
    busy(store)

    assert recording(store, tmp_path / "a.jsonl") == recording(store, tmp_path / "b.jsonl")


# B4
def test_what_else_is_in_a_store_does_not_show(tmp_path: Path) -> None:
    alone, crowded = MemoryStore(), MemoryStore()
    chat = busy(alone)
    chat.export("a.jsonl")
    nb.open("before", store=crowded, model=ScriptedModel("ok")).run("q", show=None)

    nb.load("a.jsonl", store=crowded)
    nb.open("s", store=crowded, model=ScriptedModel("ok")).export("b.jsonl")

    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


# B35
def test_ephemeral_input_is_in_no_recording(store: Store, tmp_path: Path) -> None:
    busy(store).export("s.jsonl")

    assert b"never stored" not in Path("s.jsonl").read_bytes()


# B69
def test_the_process_of_a_run_is_in_no_recording(store: Store, tmp_path: Path) -> None:
    busy(store).export("s.jsonl")

    assert [run for run in lines(Path("s.jsonl"), "run") if "owner" in run] == []


# -- random sessions -----------------------------------------------------------------------------


# B4 B37
@given(any_section())
@settings(max_examples=60)
def test_random_sessions_make_the_trip(section: Section) -> None:
    first, second = kept(section, MemoryStore()), MemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        exported = recording(first, Path(folder) / "a.jsonl")
        with opened(Path(folder) / "a.jsonl") as file:
            (read,) = file.sections(second.put_blob)
        kept(read, second)

        assert recording(second, Path(folder) / "b.jsonl") == exported
        assert everything(first) == everything(second)
        assert bare(section).beside == everything(second)[section.session.id].beside


# B4 B37
@given(any_section())
@settings(max_examples=6)
def test_random_sessions_make_the_trip_through_files(section: Section) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = kept(section, MemoryStore()), DuckDBStore(Path(folder) / "a.duckdb")
        exported = recording(first, Path(folder) / "a.jsonl")
        nb.load(Path(folder) / "a.jsonl", store=second)

        assert recording(second, Path(folder) / "b.jsonl") == exported
        assert everything(first) == everything(second)
        second.close()


# B64
def test_a_number_that_json_lacks_is_null(tmp_path: Path) -> None:
    store = MemoryStore()
    store.create_session(
        SessionRecord(id="s", created_at=1),
        [stored(cost_usd=float("nan"), seconds=float("inf"), ttft_s=1)],
    )

    exported = recording(store, tmp_path / "a.jsonl")
    other = MemoryStore()
    nb.load(tmp_path / "a.jsonl", store=other)

    (entry,) = other.load_entries("s")
    assert (entry.cost_usd, entry.seconds, entry.ttft_s) == (None, None, 1.0)
    assert recording(other, tmp_path / "b.jsonl") == exported


# -- text ------------------------------------------------------------------------------------------


# B64 case 31
@pytest.mark.parametrize("name", TRAPS)
def test_text_makes_the_trip(store: Store, tmp_path: Path, name: str) -> None:
    text = TRAPS[name]
    chat = nb.open("s", store=store, model=ScriptedModel("ok"), system=text)
    chat.append(nb.user(text), nb.assistant(text), Recorded(text=text))
    chat.run("q", show=None)
    chat.export("s.jsonl")
    other = MemoryStore()

    nb.load("s.jsonl", store=other)

    again = nb.open("s", store=other, model=ScriptedModel("ok"))
    assert [e.text for e in again.entries(nb.MessageEntry)][:2] == [text, text]
    assert again.entries(Recorded)[0].text == text
    ((run, _),) = other.load_runs("s")
    assert other.load_context(run.context_digest or "").system == text


# B64 case 31 case 33
def test_a_recording_is_strict_json_for_every_reader_of_lines(store: Store, tmp_path: Path) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.append(*(Recorded(text=text) for text in TRAPS.values()))
    path = chat.export("s.jsonl")

    found = lines(path)

    assert len(path.read_text("utf-8").splitlines()) == len(found)
    assert [line["type"] for line in found[:2]] == ["header", "session"]


# B64
def test_a_mended_message_keeps_its_flag(store: Store, tmp_path: Path) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.append("cut \ud83d here")
    chat.export("s.jsonl")
    other = MemoryStore()

    nb.load("s.jsonl", store=other)

    (entry,) = nb.open("s", store=other, model=ScriptedModel("ok")).entries(nb.MessageEntry)
    assert (entry.text, entry.is_repaired) == ("cut \ufffd here", True)


# -- bytes -----------------------------------------------------------------------------------------


# B61
def test_large_bytes_are_written_once_in_lines_of_bounded_size(
    store: Store, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 9_000
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.append(nb.file(data, media_type="application/x-thing"))
    chat.append(nb.file(data, media_type="application/x-thing"))
    path = chat.export("s.jsonl")

    parts = lines(path, "blob")
    other = MemoryStore()
    nb.load(path, store=other)

    assert len(parts) == 4
    assert max(map(len, path.read_bytes().split(b"\n"))) < 1_000_000
    assert other.get_blob(hashlib.sha256(data).hexdigest()) == data


# B61
def test_bytes_that_the_store_lost_are_named_and_left_out(tmp_path: Path) -> None:
    store = MemoryStore()
    busy(store)
    section = section_of(store, "s")
    bytes_lost = MemoryStore()
    kept(section, bytes_lost)

    with pytest.warns(UserWarning, match=r"bytes of entry #\d+ of session 's' are left out: blob"):
        write_recording(tmp_path / "s.jsonl", lines_of([section], bytes_lost.get_blob))

    assert lines(tmp_path / "s.jsonl", "blob") == []
