"""A recording as a store: loaded into memory, never written, shared while it is held (B1)."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from recorded import Recorded, busy, look

import nbdurable as nb
from nbdurable.errors import SessionNotFound, StoreClosed, StoreError
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores import open_store, release_store
from nbdurable.stores.jsonl import RecordingStore
from nbdurable.stores.memory import MemoryStore

LOST = r"recording '.*rec\.jsonl' is never written, so what is added here is lost at close; export"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording of one busy session."""
    return busy(MemoryStore()).export(tmp_path / "rec.jsonl")


def opened(path: Path | str, session_id: str | None = "s") -> nb.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nb.open(session_id, store=path, model=ScriptedModel("new"), tools=[look])


# B1
def test_a_recording_is_opened_and_said_to_be_lost_at_close(path: Path) -> None:
    before = path.read_bytes()

    with pytest.warns(UserWarning, match=LOST):
        chat = nb.open("s", store=path, model=ScriptedModel("new"))

    assert len(chat.entries()) == 15
    assert chat.store == str(path)
    chat.run("more", show=None)
    chat.close()
    assert path.read_bytes() == before


# B1
@pytest.mark.parametrize("session_id", [None, "S"])
def test_a_new_session_in_a_recording_names_those_it_holds(
    path: Path, session_id: str | None
) -> None:
    with pytest.warns(UserWarning) as told:
        nb.open(session_id, store=path, model=ScriptedModel("new"))

    said = [str(w.message) for w in told]
    assert [text for text in said if "is new; recording" in text and "holds 's', so give" in text]
    assert [text for text in said if "open it again by this id" in text] == []


# B1 B55
def test_a_recording_that_is_only_replayed_says_nothing_of_loss(path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        chat = nb.open("s", store=path, model="local", replay="only", tools=[look])

    assert [str(w.message) for w in told if "lost at close" in str(w.message)] == []
    assert chat.leaf_id is None


# B55 B56
def test_what_was_recorded_is_replayed_without_a_call(path: Path) -> None:
    recorder = ScriptedModel(calls(("look", {"place": "home"})), "Empty.", "Still.", "Aside.")

    def notebook(chat: nb.Session) -> list[str]:
        first = chat.run("Where?", nb.ephemeral("now"), show=None)
        chat.append(Recorded(text="noted"))
        second = chat.run("And now?", temperature=0.5, show=None)
        chat.branch(first)
        return [first.text, second.text, chat.run("Aside?", show=None).text]

    def open_it(store: object, model: ScriptedModel, **more: object) -> nb.Session:
        return nb.open("s", store=store, model=model, system="Be brief.", tools=[look], **more)  # type: ignore[arg-type]

    first = open_it(MemoryStore(), recorder)
    said = notebook(first)
    first.export(path)
    silent = ScriptedModel()

    again = open_it(path, silent, replay="only")

    assert notebook(again) == said == ["Empty.", "Still.", "Aside."]
    assert silent.requests == ()
    assert len(again.entries()) == len(first.entries())


# B1
def test_the_warning_names_the_line_that_opened(path: Path) -> None:
    with pytest.warns(UserWarning, match=LOST) as told:
        nb.open("s", store=path, model=ScriptedModel("new"))

    assert [warning.filename for warning in told] == [__file__]


# B1
def test_what_was_added_is_gone_after_the_last_close(path: Path) -> None:
    chat = opened(path)
    chat.run("more", show=None)
    chat.close()

    assert len(opened(path).entries()) == 15


# B1
def test_what_was_added_is_kept_by_an_export(path: Path, tmp_path: Path) -> None:
    chat = opened(path)
    chat.run("more", show=None)

    chat.export(tmp_path / "mine.jsonl")

    assert len(opened(tmp_path / "mine.jsonl").entries()) == 17


# B1
def test_an_export_over_the_recording_itself_is_what_the_next_opening_reads(path: Path) -> None:
    with opened(path) as chat:
        chat.run("more", show=None)
        chat.export(path)

    assert len(opened(path).entries()) == 17


# B1 B5
def test_two_openings_share_one_store_while_it_is_held(path: Path) -> None:
    first, second = opened(path), opened(path.parent / "." / path.name)
    first.append("more")

    assert len(second.entries()) == 16
    assert second.image is first.image
    first.close()
    second.append("still")
    assert len(second.entries()) == 17
    second.close()


# B54
def test_the_last_release_closes_a_recording(path: Path) -> None:
    first, second = open_store(path), open_store(str(path))
    release_store(first)
    assert second is first and len(second.list_sessions()) == 1

    release_store(second)

    with pytest.raises(StoreClosed, match="is closed"):
        second.list_sessions()


# B1
def test_without_an_id_a_fresh_session_is_made(path: Path) -> None:
    chat = opened(path, None)

    assert chat.entries() == []
    assert len(opened(path).entries()) == 15


# B2
def test_an_unknown_id_makes_a_session_in_memory(path: Path) -> None:
    opened(path, "new").append("q")

    again = RecordingStore(path)
    with pytest.raises(SessionNotFound, match="'new'"):
        again.load_session("new")


# B1
def test_a_recording_that_is_not_there_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"file '.*gone\.jsonl' is not there"):
        nb.open("s", store=tmp_path / "gone.jsonl")

    assert list(tmp_path.glob("gone*")) == []


# B1
def test_a_file_of_something_else_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"messages": []}\n')

    with pytest.raises(StoreError, match=r"chats\.jsonl' is no store: line 1 of .* is no header"):
        nb.open("s", store=path)


# B48
def test_a_recording_can_be_forked_and_branched_in_memory(path: Path) -> None:
    chat = opened(path)

    child = chat.fork("child")
    chat.branch(None)

    assert child.messages()
    assert chat.leaf_id is None
    assert opened(path, "child").parent_session_id == "s"


# B24
def test_a_run_without_an_end_is_interrupted_wherever_it_is_read(tmp_path: Path) -> None:
    store = MemoryStore()
    chat = nb.open("s", store=store, model=ScriptedModel("one"))
    chat.run("q", show=None)
    path = chat.export(tmp_path / "rec.jsonl", at=1)

    again = opened(path)

    assert [run.outcome for run in again.runs()] == ["interrupted"]
    assert again.run(show=None).text == "new"
