"""A library: sessions, search, spending and SQL over a whole store, reading only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frame_story import PRICE, story
from html_reader import TRAPS

import nbdurable as nb
from nbdurable.errors import QueryError, StoreClosed, StoreError
from nbdurable.library import Library
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore


@pytest.fixture
def library(store: Store) -> Iterator[Library]:
    story(store).close()
    with nb.connect(store) as library:
        yield library


def told(store: Store, *texts: str) -> None:
    with nb.open("t", store=store, model=ScriptedModel("x")) as chat:
        chat.append(*map(nb.user, texts))


# -- opening ---------------------------------------------------------------------------------------


def test_a_missing_file_is_refused_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.duckdb"

    with pytest.raises(StoreError, match=r"^store file '.*does not exist; give the path of"):
        nb.connect(path)

    assert not path.exists()


# B54
def test_a_library_shares_the_file_of_an_open_session(tmp_path: Path) -> None:
    path = tmp_path / "shared.duckdb"
    with nb.open("a", store=path, model=ScriptedModel("x")) as chat, nb.connect(path) as library:
        chat.append(nb.user("seen"))

        assert list(library.df()["text"]) == ["seen"]

    DuckDBStore(path).close()


def test_a_closed_library_says_so_and_closes_again(tmp_path: Path) -> None:
    path = tmp_path / "closed.duckdb"
    nb.open("a", store=path, model=ScriptedModel("x")).close()
    library = nb.connect(path)
    library.close()
    library.close()

    with pytest.raises(StoreClosed, match=r"library on .* is closed; connect\(\) again"):
        library.df()
    assert repr(library) == f"<Library {path}, closed>"


# -- sessions --------------------------------------------------------------------------------------


def test_sessions_come_with_title_counts_cost_and_lineage(library: Library) -> None:
    frame = library.sessions().set_index("id")

    assert list(frame.index) == ["f", "s", "e"]
    assert list(frame["title"]) == ["Where is it?", "Where is it?", ""]
    assert list(frame["entries"]) == [8, 15, 0]
    assert list(frame["branches"]) == [1, 5, 0]
    assert frame["parent_session_id"]["f"] == "s"
    assert frame["cost_usd"]["s"] == 5 * PRICE
    assert frame["models"]["s"] == "scripted"
    assert frame["last_at"]["s"] >= frame["created_at"]["s"]


def test_the_last_used_session_comes_first(library: Library, store: Store) -> None:
    with nb.open("e", store=store, model=ScriptedModel("x")) as chat:
        chat.append(nb.user("later"))

    assert list(library.sessions()["id"]) == ["e", "f", "s"]


def test_a_library_without_sessions_gives_frames_without_rows() -> None:
    with nb.connect(":memory:") as library:
        frames = [library.sessions(), library.df(), library.runs_df(), library.branches_df()]
        frames += [library.tools_df(), library.search("x"), library.spend()]

    assert [len(frame) for frame in frames] == [0] * 7
    assert not any(
        pd.api.types.is_object_dtype(dtype) for frame in frames for dtype in frame.dtypes
    )


def test_a_library_tells_of_the_path_to_each_position(library: Library) -> None:
    frame = library.df()

    on_path = frame[frame["on_path"].astype(bool)].groupby("session_id")["n"].apply(list)
    assert on_path["s"] == [1, 2, 3, 4, 5, 6, 7, 11, 12]
    assert on_path["f"] == list(range(1, 9))


# B3
def test_a_library_follows_a_session_that_moved_back(library: Library, store: Store) -> None:
    with nb.open("f", store=store, model=ScriptedModel("x")) as chat:
        chat.branch(3)

    frame = library.df()

    mine = frame[frame["session_id"] == "f"]
    assert list(mine["on_path"]) == [True] * 3 + [False] * 5


def test_interleaved_sessions_keep_their_own_turns_and_branches(store: Store) -> None:
    with (
        nb.open("a", store=store, model=ScriptedModel("x", repeat=True)) as one,
        nb.open("b", store=store, model=ScriptedModel("x", repeat=True)) as other,
        nb.connect(store) as library,
    ):
        for chat in (one, other, other, one):
            chat.run("Q", show=None)
        frame = library.df()

        for chat in (one, other):
            mine = frame[frame["session_id"] == chat.id].reset_index(drop=True)
            pd.testing.assert_frame_equal(mine, chat.df())
    assert frame["seq"].is_monotonic_increasing


# -- search ----------------------------------------------------------------------------------------


def test_a_search_finds_text_in_any_case_newest_first(library: Library) -> None:
    found = library.search("WHERE is")

    assert list(zip(found["session_id"], found["n"], strict=True)) == [("f", 3), ("s", 3)]
    assert found["snippet"][0] == "Where is it?"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("is lost", {"message"}),
        ("a summary", {"compaction"}),
        ("begin", {"remark"}),
        ("beam", {"hologram"}),
        ("CAFÉ", {"message"}),
    ],
)
def test_a_search_reads_results_summaries_custom_and_newer_entries(
    library: Library, text: str, kinds: set[str]
) -> None:
    assert set(library.search(text)["kind"]) == kinds


@pytest.mark.parametrize(
    "syntax", ['"type"', "blocks", "tool_call", '{"v"', "lookup", "fields", "\\u00e9", "points"]
)
def test_a_search_finds_nothing_in_what_only_json_says(library: Library, syntax: str) -> None:
    assert len(library.search(syntax)) == 0


def test_what_is_looked_for_is_literal(store: Store) -> None:
    told(store, "100 % sure", "100 x sure", "a_b", "aXb", "c.d", "cXd")
    with nb.connect(store) as library:
        found = [list(library.search(text)["n"]) for text in ("100 %", "a_b", "c.d", "%", "_")]

    assert found == [[1], [3], [5], [1], [3]]


# B64
@pytest.mark.parametrize(
    "text", ['say "no"', "back\\slash", "two\nlines", "tab\there", "nul\0nul", "u\u2028v", "a/b"]
)
def test_escapes_of_the_payload_neither_hide_nor_fake_a_find(store: Store, text: str) -> None:
    told(store, f"before {text} after", text.replace("\\", "\\\\n").replace("\n", "\\n"))
    with nb.connect(store) as library:
        found = library.search(text)

    assert 1 in set(found["n"])
    assert all(n == 1 for n in found["n"]) or "\n" not in text


@pytest.mark.parametrize("limit", [-1, True, "3", 1.5])
def test_a_search_refuses_what_is_no_limit(library: Library, limit: object) -> None:
    with pytest.raises(QueryError, match=r"limit is .*; give a whole number, or None for all"):
        library.search("it", limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["role", "model"])
def test_a_search_refuses_a_role_or_model_that_is_no_text(library: Library, name: str) -> None:
    with pytest.raises(QueryError, match=f"{name} is 5; give text"):
        library.search("it", **{name: 5})  # type: ignore[arg-type]


def test_a_search_takes_any_whole_number_as_its_limit(library: Library) -> None:
    assert len(library.search("it", limit=np.int64(1))) == 1
    assert len(library.search("it", limit=2**70)) == len(library.search("it", limit=None))


def test_a_search_keeps_to_role_model_time_and_limit(library: Library) -> None:
    later = datetime.now(UTC) + timedelta(days=1)

    assert set(library.search("it", role="user")["role"]) == {"user"}
    assert set(library.search("it", model="scripted")["model"]) == {"scripted"}
    assert len(library.search("it", since=later)) == 0
    assert len(library.search("it", since=date(2020, 1, 1))) == len(library.search("it"))
    assert len(library.search("it", since="2020-01-01T00:00:00+09:00", limit=1)) == 1
    assert len(library.search("it", model="other")) == 0


@pytest.mark.parametrize("since", ["yesterday", datetime(2026, 1, 1), 5, "2026-01-01T12:00:00"])
def test_a_since_that_names_no_instant_is_refused(library: Library, since: object) -> None:
    with pytest.raises(
        QueryError, match=r"since is .*(no ISO date or time|names no instant); give"
    ):
        library.search("it", since=since)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "  ", None])
def test_a_search_for_nothing_is_refused(library: Library, text: str | None) -> None:
    with pytest.raises(QueryError, match=r"search text is .*; give the words to look for"):
        library.search(text)  # type: ignore[arg-type]


def test_a_snippet_shows_the_find_in_a_long_text(store: Store) -> None:
    told(store, "x" * 5_000 + " The Needle\n" + "y" * 5_000)
    with nb.connect(store) as library:
        [snippet] = library.search("needle")["snippet"]

    assert "The Needle" in snippet and len(snippet) < 140
    assert snippet.startswith("…") and snippet.endswith("…")


# case 31 case 43
@pytest.mark.parametrize("trap", TRAPS)
def test_a_hostile_text_is_found_and_shown_as_text(store: Store, trap: str) -> None:
    text = TRAPS[trap]
    told(store, text + " needle")
    with nb.connect(store) as library:
        shown = library.search("needle")._repr_html_() + library._repr_html_()
        [found] = library.df()["text"]

    assert found == text + " needle"
    assert "<script" not in shown and "<img" not in shown and "<a " not in shown


# -- spending --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "key"), [("session", "s"), ("model", "scripted")])
def test_spending_counts_each_answer_once(library: Library, by: str, key: str) -> None:
    frame = library.spend(by)  # type: ignore[arg-type]

    assert list(frame.iloc[:, 0]) == [key]
    assert list(frame["cost_usd"]) == [5 * PRICE]
    assert (frame["messages"][0], frame["unpriced"][0]) == (6, 1)
    assert frame["total_tokens"][0] == 5 * 18


def test_spending_by_day_is_in_utc(library: Library) -> None:
    frame = library.spend()

    made = library.df()["created_at"]
    assert {*frame["day"]} <= {made.min().normalize(), made.max().normalize()}
    assert str(frame["day"].dtype) == "datetime64[us, UTC]"
    assert frame["cost_usd"].sum() == 5 * PRICE


def test_spending_by_anything_else_is_refused(library: Library) -> None:
    with pytest.raises(QueryError, match="spend cannot be told by 'mood'; choose one of day"):
        library.spend("mood")  # type: ignore[arg-type]


def test_a_library_shows_how_many_sessions_it_has(library: Library) -> None:
    assert repr(library).endswith(", 3 sessions>")


# B48
def test_all_sessions_are_exported_to_one_file_and_come_back(
    library: Library, tmp_path: Path
) -> None:
    path = library.export(tmp_path / "all.jsonl")

    with nb.connect(path) as copy:
        assert sorted(copy.sessions()["id"]) == ["e", "f", "s"]
        assert list(copy.df().sort_values(["session_id", "n"])["text"]) == list(
            library.df().sort_values(["session_id", "n"])["text"]
        )


def test_an_export_leaves_a_file_of_another_kind_alone(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")

    with pytest.raises(StoreError, match="is there and is no export of format 'jsonl'; choose"):
        library.export(path)

    assert path.read_text() == "mine"
