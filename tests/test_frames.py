"""Frames of a session: columns, dtypes, what they tell, equal to SQL and in every store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from frame_story import PRICE, copy, mark, story

import nbdurable as nb
from nbdurable.frames.layout import BRANCHES, ENTRIES, RUNS, TOOLS
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.memory import MemoryStore

FRAMES: dict[str, dict[str, Any]] = {
    "df": ENTRIES,
    "runs_df": RUNS,
    "branches_df": BRANCHES,
    "tools_df": TOOLS,
}


@pytest.fixture
def chat(store: Store) -> Iterator[nb.Session]:
    with story(store) as chat:
        yield chat


def column(frame: pd.DataFrame, name: str) -> list[object]:
    """Return a column's values, missing ones as None."""
    return [None if pd.isna(value) else value for value in frame[name]]


# -- columns and dtypes ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_has_its_columns_and_dtypes(chat: nb.Session, name: str) -> None:
    frame = getattr(chat, name)()

    assert dict(frame.dtypes) == FRAMES[name]
    assert len(frame) > 0


# case 51
@pytest.mark.parametrize("name", FRAMES)
def test_zero_rows_have_the_same_columns_and_dtypes(store: Store, name: str) -> None:
    with nb.open("empty", store=store, model=ScriptedModel("x")) as chat:
        frame = getattr(chat, name)()

    assert len(frame) == 0
    assert dict(frame.dtypes) == FRAMES[name]


# case 51
def test_a_session_without_an_answer_keeps_its_dtypes(store: Store) -> None:
    with nb.open("asked", store=store, model=ScriptedModel("x")) as chat:
        chat.append(nb.user("Q"))

        frame = chat.df()

    assert dict(frame.dtypes) == ENTRIES
    assert frame["model"][0] is pd.NA and frame["cost_usd"][0] is pd.NA


# case 51
@pytest.mark.parametrize("name", FRAMES)
def test_every_cell_is_a_scalar_and_every_column_can_be_grouped(
    chat: nb.Session, name: str
) -> None:
    frame = getattr(chat, name)()

    for label in frame.columns:
        assert all(pd.api.types.is_scalar(value) for value in frame[label])
        assert frame.groupby(label, dropna=False).size().sum() == len(frame)
        assert len(frame.drop_duplicates(label)) == frame[label].nunique(dropna=False)


# B61 case 40
def test_a_frame_holds_no_bytes(store: Store) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + os.urandom(40_000)
    with nb.open("seen", store=store, model=ScriptedModel("x")) as chat:
        chat.run("Look:", nb.image(picture), show=None)

        frame = chat.df()

    assert frame["text"][0] == "Look:"
    assert frame.memory_usage(deep=True).sum() < 40_000
    assert all(not isinstance(value, bytes) for label in frame for value in frame[label])


# case 38
def test_types_are_never_guessed_from_what_is_stored(store: Store) -> None:
    with nb.open("odd", store=store, model=ScriptedModel("x")) as chat:
        chat.append(*[nb.user(text) for text in ("12", "1e5", "true", "null", "2026-11-30", "NaN")])

        frame = chat.df()

    assert list(frame["text"]) == ["12", "1e5", "true", "null", "2026-11-30", "NaN"]


# case 30
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Auckland"])
def test_times_are_utc_in_any_zone_of_the_process(tmp_path: Path, zone: str) -> None:
    path = tmp_path / "zones.duckdb"
    with nb.open("z", store=path, model=ScriptedModel("x")) as chat:
        [stored] = chat.append(nb.user("Q"))
    program = (
        "import sys, nbdurable as nb\n"
        "with nb.connect(sys.argv[1]) as library:\n"
        "    sql = library.sql('select created_at from entries')\n"
        "    for frame in (library.df(), sql):\n"
        "        print(frame['created_at'].dtype, frame['created_at'][0].isoformat(), sep='|')\n"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program, path],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    assert stored.created_at is not None
    for line in printed:
        dtype, text = line.split("|")
        assert dtype == "datetime64[us, UTC]"
        assert datetime.fromisoformat(text) == stored.created_at.astimezone(UTC)
        assert text.endswith("+00:00")
    assert len(printed) == 2


def test_a_frame_without_texts_has_all_other_columns_and_the_same_values(chat: nb.Session) -> None:
    frame = chat.df(texts=False)

    pd.testing.assert_frame_equal(frame, chat.df().drop(columns=["preview", "text", "data"]))


# -- what it says ----------------------------------------------------------------------------------


def test_the_path_to_the_leaf_is_marked(chat: nb.Session) -> None:
    on_path = {n for n, is_on in zip(chat.df()["n"], chat.df()["on_path"], strict=True) if is_on}

    assert on_path == {entry.n for entry in chat.path()}


def test_the_path_is_that_of_the_handle_that_asks(chat: nb.Session) -> None:
    chat.branch(None)

    assert not chat.df()["on_path"].any()


def test_turns_and_steps_count_along_each_path(chat: nb.Session) -> None:
    frame = chat.df()

    assert column(frame, "turn") == [None, None, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 2, 2]
    assert column(frame, "step") == [None, None, None, 1, 1, 2] + [None, 1] * 2 + [
        1, 1, None, 1, 1,
    ]  # fmt: skip


def test_an_entry_belongs_to_the_branch_of_the_newest_leaf_below_it(chat: nb.Session) -> None:
    assert list(chat.df()["branch"]) == [15] * 7 + [8, 10, 10, 15, 15, 13, 14, 15]


def test_depth_and_parents_are_those_of_the_tree(chat: nb.Session) -> None:
    frame = chat.df()

    nodes = chat.tree().nodes
    assert column(frame, "parent_id") == [node.parent_id for node in nodes]
    assert list(frame["depth"]) == [len(chat.tree().path(node.id)) for node in nodes]


def test_text_is_what_an_entry_says(chat: nb.Session) -> None:
    texts = column(chat.df(), "text")

    for entry, text in zip(chat.entries(), texts, strict=True):
        if isinstance(entry, nb.MessageEntry | nb.CompactionEntry):
            assert text == entry.text
    assert texts[0] == "Begin %_"


# B37
def test_an_entry_of_a_newer_version_or_of_no_version_is_a_row(chat: nb.Session) -> None:
    frame = chat.df()

    assert column(frame, "text")[12:] == ["café", "", "beam"]
    assert list(frame["kind"])[12:] == ["message", "message", "hologram"]


def test_a_failed_answer_has_its_error(chat: nb.Session) -> None:
    frame = chat.df()

    failed = frame[frame["error"].notna()]
    assert list(failed["n"]) == [10]
    assert "broke off before its end" in failed["error"].iloc[0]
    assert list(failed["stop_reason"]) == ["error"]


def test_answers_have_the_parameters_of_their_run(chat: nb.Session) -> None:
    frame = chat.df()

    assert set(frame[frame["model"].notna()]["params"]) == {'{"temperature":0.5}'}
    assert frame[frame["model"].isna()]["params"].isna().all()


def test_a_rerun_names_the_answer_it_repeats(chat: nb.Session) -> None:
    frame = chat.df()

    assert frame["rerun_of"][10] == frame["id"][7]
    assert frame["rerun_of"].notna().sum() == 1


# B70
def test_labels_and_ratings_are_the_latest_and_cleared_ones_are_gone(chat: nb.Session) -> None:
    frame = chat.df()

    assert column(frame, "label") == [None] * 5 + ["best"] + [None] * 9
    assert column(frame, "rating") == [None] * 5 + [5.0] + [None] * 9
    assert json.loads(frame["ratings"][5]) == [
        {"name": "rating", "by": "ann", "value": 3},
        {"name": "rating", "by": "bob", "value": 5},
        {"name": "tone", "by": None, "value": 0.5},
    ]
    assert frame["ratings"].notna().sum() == 1


# B70
def test_an_annotation_that_no_frame_understands_is_passed_over(
    chat: nb.Session, store: Store
) -> None:
    for value in (float("nan"), float("inf"), [1], {"a": 1}, "3"):
        mark(store, chat, 3, "rating", value)
    mark(store, chat, 3, "label", 7)

    frame = chat.df()

    assert [column(frame, name)[2] for name in ("label", "rating", "ratings")] == [None] * 3


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        ('{"a": 1}', '{"a":1}'),
        ('```json\n{"a": 2}\n```', '{"a":2}'),
        ('{"a": "one"}', None),
        ("no json", None),
    ],
)
def test_an_answer_that_fits_its_schema_has_its_data(
    store: Store, answer: str, data: str | None
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    with nb.open("d", store=store, model=ScriptedModel(answer, answer)) as chat:
        run = chat.run("with", show=None, schema=schema)
        chat.run("without", show=None)

        frame = chat.df()

    assert column(frame, "data") == [None, data, None, None]
    assert run.data == (None if data is None else json.loads(data))


# -- runs, branches, tools -------------------------------------------------------------------------


def test_every_run_is_a_row_however_it_ended(chat: nb.Session) -> None:
    frame = chat.runs_df()

    assert list(frame["kind"]) == ["run", "run", "run", "rerun", "compact", "run"]
    assert list(frame["status"]) == ["done", "done", "error", "done", "done", "interrupted"]
    assert column(frame, "outcome") == ["done", "done", "error", "done", "done", None]
    assert column(frame, "input")[:3] == ["Where is it?", "Write to them.", "Call them."]
    assert column(frame, "answer")[:2] == ["It is lost.", "Sorry."]
    assert column(frame, "cost_usd") == [2 * PRICE, PRICE, None, PRICE, PRICE, None]
    assert column(frame, "input_tokens")[:2] == [22, 11]


def test_a_run_that_goes_on_is_running(store: Store) -> None:
    import threading

    go = threading.Event()
    with nb.open("live", store=store, model=ScriptedModel(("a", go, "b"))) as chat:
        run = chat.run("Q", wait=False)
        next(iter(run.stream()))

        status = list(chat.runs_df()["status"])
        go.set()
        run.wait()

        assert (status, list(chat.runs_df()["status"])) == (["running"], ["done"])


def test_a_branch_sums_its_path(chat: nb.Session) -> None:
    frame = chat.branches_df()

    assert list(frame["n"]) == [leaf.n for leaf in chat.leaves()] == [8, 10, 13, 14, 15]
    assert column(frame, "parted_n") == [7, 6, 12, 12, 12]
    assert list(frame["turns"]) == [2, 2, 3, 2, 2]
    assert column(frame, "cost_usd") == [3 * PRICE, 2 * PRICE, *[4 * PRICE] * 3]
    assert list(frame["input_tokens"]) == [33, 22, 44, 44, 44]
    assert set(frame["started_at"]) == {chat.df()["created_at"][0]}


def test_a_tool_call_stands_beside_its_result(chat: nb.Session) -> None:
    [row] = chat.tools_df().to_dict("records")

    assert (row["n"], row["name"], row["arguments"]) == (4, "lookup", '{"order": 12}')
    assert (row["result"], row["result_n"], row["is_error"]) == ("order 12 is lost", 5, False)
    assert (row["args_valid"], row["complete"], row["is_orphan"]) == (True, True, False)


# -- equal to SQL, and in every store --------------------------------------------------------------

VIEW_OF = {"df": "entries", "runs_df": "runs", "branches_df": "branches", "tools_df": "tool_calls"}


@pytest.mark.parametrize("name", VIEW_OF)
def test_columns_of_one_name_agree_with_sql_to_the_row(
    chat: nb.Session, store: Store, name: str
) -> None:
    frame = getattr(chat, name)()
    view = VIEW_OF[name]
    order = "counter" if view == "runs" else "seq"

    with nb.connect(store) as library:
        found = library.sql(f"select * from {view} where session_id = ? order by {order}", ["s"])

    shared = [label for label in frame.columns if label in found.columns]
    assert len(shared) >= 10
    for label in shared:
        pd.testing.assert_series_equal(frame[label], found[label])


@pytest.mark.parametrize("name", [*FRAMES, "sessions", "spend"])
def test_memory_and_file_give_equal_frames(tmp_path: Path, name: str) -> None:
    memory, file = MemoryStore(), DuckDBStore(tmp_path / "copy.duckdb")
    story(memory).close()
    copy(memory, file, ["e", "s", "f"])

    with nb.connect(memory) as one, nb.connect(file) as other:
        frames = [getattr(library, name)() for library in (one, other)]

    pd.testing.assert_frame_equal(*frames)
    assert len(frames[0]) > 0
    file.close()


def test_a_session_that_is_closed_gives_no_frame(store: Store) -> None:
    chat = nb.open("c", store=store, model=ScriptedModel("x"))
    chat.close()
    frames: list[Callable[[], object]] = [chat.df, chat.runs_df, chat.branches_df, chat.tools_df]

    for frame in frames:
        with pytest.raises(nb.errors.SessionClosed, match="session 'c' was closed on this handle"):
            frame()


# B11
def test_a_frame_shows_what_another_handle_wrote(store: Store) -> None:
    with (
        nb.open("two", store=store, model=ScriptedModel("x")) as one,
        nb.open("two", store=store, model=ScriptedModel("x")) as other,
    ):
        other.append(nb.user("from there"))

        assert list(one.df()["text"]) == ["from there"]
