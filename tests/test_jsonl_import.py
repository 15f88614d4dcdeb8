"""Importing a recording: new sessions, grown ones, known ones, and what is told of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from new_process import in_new_process
from recorded import Recorded, busy, everything, recording

import nbdurable as nb
from nbdurable.errors import ImportFormatError, StoreError
from nbdurable.formats.report import ImportedSession, ImportReport, Oddity
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import Annotation
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore


def opened(store: Store, session_id: str = "s") -> nb.Session:
    return nb.open(session_id, store=store, model=ScriptedModel("one", "two", "three", "four"))


def outcomes(report: ImportReport) -> list[tuple[str, str, int]]:
    return [(session.id, session.outcome, session.entries) for session in report.sessions]


def words(store: Store, session_id: str = "s") -> list[str]:
    return [e.text for e in opened(store, session_id).entries(nb.MessageEntry)]


# -- again ---------------------------------------------------------------------------------------


# B2
def test_importing_a_file_twice_adds_nothing_and_says_so(store: Store, tmp_path: Path) -> None:
    source = MemoryStore()
    busy(source)
    recording(source, tmp_path / "a.jsonl")
    first = nb.load(tmp_path / "a.jsonl", store=store)
    before = everything(store)

    again = nb.load(tmp_path / "a.jsonl", store=store)

    assert outcomes(first) == [("s", "added", 15)]
    assert outcomes(again) == [("s", "unchanged", 0)]
    assert again.entries == 0 and again.skipped == again.sessions
    assert everything(store) == before


# B3
def test_a_session_that_grew_adds_what_is_new(store: Store, tmp_path: Path) -> None:
    source = MemoryStore()
    chat = opened(source)
    chat.run("q", show=None)
    chat.export("a.jsonl")
    nb.load("a.jsonl", store=store)
    last = chat.run("r", show=None)
    chat.append(Recorded(text="note"))
    chat.branch(1)
    source.annotate(
        [
            Annotation(
                id="n",
                session_id="s",
                target_id=last.leaf_id or "",
                name="label",
                value_json='"x"',
                created_at=1,
            )
        ]
    )
    chat.export("a.jsonl")

    report = nb.load("a.jsonl", store=store)

    assert outcomes(report) == [("s", "grown", 3)]
    assert report.oddities == ()
    assert everything(store) == everything(source)
    assert opened(store).leaf_id == chat.leaf_id


# B3
def test_a_session_that_only_moved_is_moved(store: Store, tmp_path: Path) -> None:
    chat = opened(MemoryStore())
    chat.run("q", show=None)
    chat.export("a.jsonl")
    nb.load("a.jsonl", store=store)
    chat.branch(1)
    chat.export("a.jsonl")

    report = nb.load("a.jsonl", store=store)

    assert outcomes(report) == [("s", "grown", 0)]
    assert opened(store).leaf_id == chat.leaf_id


# B24
def test_a_run_that_went_on_when_it_was_exported_ends_with_a_later_file(
    store: Store, tmp_path: Path
) -> None:
    source = MemoryStore()
    chat = opened(source)
    chat.run("q", show=None)
    chat.export("whole.jsonl")
    lines = Path("whole.jsonl").read_bytes().split(b"\n")[:-2]
    kept = MemoryStore()
    nb.load("whole.jsonl", store=kept)
    ((run, _),) = kept.load_runs("s")
    store.create_session(kept.load_session("s"), kept.load_entries("s")[:1])
    store.start_run(run)
    assert [found.outcome for found in opened(store).runs()] == ["interrupted"]
    assert any(b'"run_end"' in line for line in lines)

    report = nb.load("whole.jsonl", store=store)

    assert outcomes(report) == [("s", "grown", 1)]
    assert [found.outcome for found in opened(store).runs()] == ["done"]


# B3
def test_a_session_that_went_on_here_too_keeps_its_position(store: Store, tmp_path: Path) -> None:
    chat = opened(MemoryStore())
    chat.run("q", show=None)
    chat.export("a.jsonl")
    nb.load("a.jsonl", store=store)
    here = opened(store)
    here.run("mine", show=None)
    chat.run("theirs", show=None)
    chat.export("a.jsonl")

    report = nb.load("a.jsonl", store=store)
    again = nb.load("a.jsonl", store=store)

    assert outcomes(report) == [("s", "grown", 2)]
    assert "went on here too" in str(report.oddities[0])
    assert outcomes(again) == [("s", "unchanged", 0)]
    assert words(store) == ["q", "one", "mine", "one", "theirs", "two"]
    assert opened(store).leaf_id == here.leaf_id
    assert len(here.leaves()) == 2


# B3
def test_an_older_file_adds_nothing_to_a_newer_session(store: Store, tmp_path: Path) -> None:
    chat = opened(store)
    chat.run("q", show=None)
    chat.export("old.jsonl")
    chat.run("r", show=None)
    before = everything(store)

    report = nb.load("old.jsonl", store=store)

    assert outcomes(report) == [("s", "unchanged", 0)]
    assert everything(store) == before


# B4
def test_an_entry_of_other_content_is_reported_and_nothing_added(
    store: Store, tmp_path: Path
) -> None:
    chat = opened(store)
    chat.run("secret", show=None)
    chat.export("a.jsonl", redact=lambda text: text.replace("secret", "***"))
    before = everything(store)

    report = nb.load("a.jsonl", store=store)

    assert outcomes(report) == [("s", "refused", 0)]
    assert "is here with another content; nothing of the session was added" in str(report)
    assert everything(store) == before


# B62
def test_what_an_older_version_read_otherwise_stays_as_it_is_stored(
    store: Store, tmp_path: Path
) -> None:
    source = MemoryStore()
    chat = opened(source)
    chat.append("q")
    older = [entry._replace(preview="", meta=True) for entry in source.load_entries("s")]
    store.create_session(source.load_session("s"), older)
    before = store.load_entries("s")
    chat.append("r")
    chat.export("a.jsonl")

    report = nb.load("a.jsonl", store=store)

    assert outcomes(report) == [("s", "grown", 1)]
    what = "entry #1 was stored by a version that read its meta, preview otherwise"
    assert f"{what}; it stays as it is stored" in str(report)
    assert store.load_entries("s")[:1] == before


# B11
def test_an_open_handle_sees_what_was_imported(store: Store, tmp_path: Path) -> None:
    source = MemoryStore()
    chat = opened(source)
    chat.append("q")
    chat.export("a.jsonl")
    nb.load("a.jsonl", store=store)
    here = opened(store)
    chat.append("r")
    chat.export("a.jsonl")

    nb.load("a.jsonl", store=store)

    assert [e.text for e in here.entries(nb.MessageEntry)] == ["q", "r"]


# -- where to ------------------------------------------------------------------------------------


# B1
def test_without_a_store_the_default_one_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    opened(MemoryStore()).export("a.jsonl")
    monkeypatch.setenv("NBDURABLE_STORE", "mine.duckdb")

    report = nb.load("a.jsonl")

    assert Path("mine.duckdb").exists()
    assert Path(report.store).name == "mine.duckdb"


# B2
def test_an_imported_session_is_read_by_another_process(tmp_path: Path) -> None:
    chat = opened(MemoryStore())
    chat.run("q", show=None)
    chat.export("a.jsonl")
    nb.load("a.jsonl", store="b.duckdb")

    found = in_new_process(
        "import json, nbdurable as nb\n"
        "chat = nb.open('s', store='b.duckdb', model='local')\n"
        "print(json.dumps([e.text for e in chat.path()]))"
    )

    assert found == ["q", "one"]


# B1
def test_nothing_is_imported_to_a_recording(tmp_path: Path) -> None:
    opened(MemoryStore()).export("a.jsonl")
    before = Path("a.jsonl").read_bytes()

    with pytest.raises(StoreError, match=r"a\.jsonl' is never written, so nothing can be imp"):
        nb.load("a.jsonl", store="a.jsonl")

    assert Path("a.jsonl").read_bytes() == before


def test_an_unknown_format_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ImportFormatError, match=r"format 'x' is of no import .* 'jsonl'"):
        nb.load("a.jsonl", store=":memory:", format="x")


# B6
def test_a_store_that_fails_gets_no_half_a_session(tmp_path: Path) -> None:
    class Failing(MemoryStore):
        def create_session(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            raise StoreError("the disk is full; free some space")

    busy(MemoryStore()).export("a.jsonl")
    store = Failing()

    with pytest.raises(StoreError, match="the disk is full"):
        nb.load("a.jsonl", store=store)

    assert store.list_sessions() == []


# -- the report ----------------------------------------------------------------------------------

HOSTILE = "<script>window.__hit=1</script>\x1b[2J\u202e"


def hostile_report() -> ImportReport:
    return ImportReport(
        path=HOSTILE,
        format="jsonl",
        store=HOSTILE,
        sessions=(ImportedSession(id=HOSTILE, outcome="added", entries=3, leaves=1),),
        oddities=(Oddity(text=HOSTILE, line=7, session_id=HOSTILE),),
    )


def test_a_report_counts_what_came_and_what_did_not() -> None:
    sessions = tuple(
        ImportedSession(id=outcome, outcome=outcome, entries=entries, leaves=2)
        for outcome, entries in (("added", 5), ("grown", 2), ("unchanged", 0), ("refused", 0))
    )

    report = ImportReport(path="a.jsonl", format="jsonl", store="b.duckdb", sessions=sessions)

    assert (report.entries, report.leaves) == (7, 8)
    assert [session.id for session in report.skipped] == ["unchanged", "refused"]
    assert repr(report).splitlines()[0] == (
        "a.jsonl into b.duckdb: 1 session added, 1 session grown, 1 session unchanged, "
        "1 session refused; 7 new entries"
    )


# case 43
def test_a_report_shows_hostile_texts_as_text() -> None:
    html, text = hostile_report()._repr_html_(), repr(hostile_report())

    assert "<script" not in html and "&lt;script" in html
    assert not {"\x1b", "\u202e"} & {*html, *text}


def test_a_long_report_is_cut_and_counted() -> None:
    sessions = tuple(
        ImportedSession(id=f"s{n}", outcome="added", entries=1, leaves=1) for n in range(1_000)
    )
    odd = tuple(Oddity(text=f"odd {n}") for n in range(1_000))

    report = ImportReport(path="a", format="jsonl", store="b", sessions=sessions, oddities=odd)

    assert len(repr(report).splitlines()) == 43
    assert "and 980 more sessions" in repr(report) and "and 980 more" in repr(report)


# case 51
def test_a_report_as_a_frame_has_a_row_per_session_and_per_other_oddity() -> None:
    sessions = tuple(
        ImportedSession(id=id, outcome="added", entries=n, leaves=1) for n, id in enumerate("ab")
    )
    odd = (
        Oddity(text="first", line=7, session_id="b"),
        Oddity(text="second", session_id="b"),
        Oddity(text="of no session", line=9),
    )

    frame = ImportReport(path="a", format="jsonl", store="b", sessions=sessions, oddities=odd).df()

    assert frame.astype(object).where(frame.notna(), None).values.tolist() == [
        ["a", "added", 0, 1, 0, 0, None, None, None, None],
        ["b", "added", 1, 1, 0, 0, None, 7, None, "first"],
        ["b", None, None, None, None, None, None, None, None, "second"],
        [None, None, None, None, None, None, None, 9, None, "of no session"],
    ]
    empty = ImportReport(path="a", format="jsonl", store="b").df()
    assert list(empty.dtypes) == list(frame.dtypes) and len(empty) == 0


def test_a_report_of_an_empty_file_says_so(tmp_path: Path) -> None:
    recording(MemoryStore(), tmp_path / "a.jsonl")

    report = nb.load(tmp_path / "a.jsonl", store=":memory:")

    assert "no sessions in it; 0 new entries" in repr(report)
    assert json.dumps(outcomes(report)) == "[]"
