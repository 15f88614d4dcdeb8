"""The views, read from a closed file by DuckDB alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from nbdurable.blocks import (
    Message,
    Reply,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.codec import encode
from nbdurable.entries import MessageEntry, OpaqueEntry
from nbdurable.stored import Annotation, Context, RunEnd, RunRecord, SessionRecord, StoredEntry
from nbdurable.stores.conformance import new_id
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.views import VIEWS

AT = 1_750_000_000_123_456
WHEN = datetime(2025, 6, 15, 15, 6, 40, 123456, UTC)
QUESTION, CALL, RESULT, ANSWER, OTHER, OPAQUE = (new_id() for _ in range(6))


def message(id: str, parent_id: str | None, spoken: Message) -> StoredEntry:
    entry = MessageEntry(message=spoken)
    return encode(entry, id=id, session_id="s", parent_id=parent_id, created_at=AT, run_id="r")


def reply(cost_usd: float, **columns: object) -> Reply:
    usage = Usage(input_tokens=10, output_tokens=2, cache_read_tokens=3)
    return Reply(model="m", stop_reason="stop", usage=usage, cost_usd=cost_usd, **columns)  # type: ignore[arg-type]


def rows() -> list[StoredEntry]:
    call = ToolCallBlock("c1", "lookup", '{"order":1234}')
    said = Message("assistant", (ThinkingBlock("hm"), TextBlock("one"), TextBlock("two"), call))
    result = ToolResultBlock("c1", (TextBlock("paid"), TextBlock("sent")), True, "lookup")
    return [
        message(QUESTION, None, Message("user", (TextBlock("Why\u2028?\0"),))),
        message(CALL, QUESTION, Message("assistant", said.blocks, reply(0.25))),
        message(RESULT, CALL, Message("tool", (result,))),
        message(ANSWER, RESULT, Message("assistant", (TextBlock("So."),), reply(0.5))),
        message(OTHER, QUESTION, Message("assistant", (TextBlock("Or so."),))),
        encode(
            OpaqueEntry(raw="no json", stored_kind="message"),
            id=OPAQUE,
            session_id="s",
            parent_id=ANSWER,
            created_at=AT,
        ),
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views") / "chats.duckdb"
    store = DuckDBStore(path)
    store.create_session(SessionRecord(id="s", created_at=AT))
    store.create_session(SessionRecord(id="empty", created_at=AT, parent_session_id="s"))
    context = Context(digest="d", system="Be kind.", tools_json="[]")
    store.start_run(
        RunRecord(
            id="r",
            session_id="s",
            kind="run",
            created_at=AT,
            input_ids=(QUESTION,),
            context_digest="d",
            model="m",
        ),
        context,
    )
    end = RunEnd(run_id="r", session_id="s", outcome="done", created_at=AT, steps=2)
    store.append("s", rows(), end=end)
    marks = [("label", '"best"', None), ("rating", "3", "ann"), ("rating", "4", "ann")]
    marks += [("note", '"x"', None), ("note", "null", None)]
    store.annotate(
        [
            Annotation(
                id=new_id(),
                session_id="s",
                target_id=ANSWER,
                name=name,
                value_json=value,
                created_at=AT,
                by=by,
            )
            for name, value, by in marks
        ]
    )
    store.close()
    return path


@pytest.fixture
def plain(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("set timezone = 'America/Los_Angeles'")
        yield connection


def test_sessions_are_listed_with_title_counts_and_cost(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(
        "select id, parent_session_id, title, entries, leaves, cost_usd from sessions"
    ).fetchall()

    assert found == [("s", None, "Why ?", 6, 2, 0.75), ("empty", "s", "", 0, 0, None)]


# case 30
def test_times_are_instants_in_any_zone(plain: duckdb.DuckDBPyConnection) -> None:
    [(when, kind)] = plain.execute(
        "select distinct created_at, typeof(created_at) from entries"
    ).fetchall()

    assert (when, kind) == (WHEN, "TIMESTAMP WITH TIME ZONE")


def test_entries_come_in_order_with_their_columns(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(
        "select n, id::varchar, parent_id::varchar, depth, kind, role, output_tokens from entries"
    ).fetchall()

    assert found == [
        (1, QUESTION, None, 1, "message", "user", None),
        (2, CALL, QUESTION, 2, "message", "assistant", 2),
        (3, RESULT, CALL, 3, "message", "tool", None),
        (4, ANSWER, RESULT, 4, "message", "assistant", 2),
        (5, OTHER, QUESTION, 2, "message", "assistant", None),
        (6, OPAQUE, ANSWER, 5, "message", None, None),
    ]


# B64
def test_messages_have_their_spoken_text(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute("select text from messages").fetchall()

    assert [text for (text,) in found] == [
        "Why\u2028?\0",
        "one\ntwo",
        "paid\nsent",
        "So.",
        "Or so.",
        "",
    ]


def test_a_payload_that_is_no_json_hides_no_message(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute("select payload from messages where n = 6").fetchall()

    assert found == [(None,)]


def test_tool_calls_have_name_and_arguments(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(
        "select id::varchar, call_id, name, arguments, complete, provider_run from tool_calls"
    ).fetchall()

    assert found == [(CALL, "c1", "lookup", '{"order":1234}', True, False)]


def test_tool_results_have_text_and_error(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(
        "select id::varchar, call_id, name, is_error, text from tool_results"
    ).fetchall()

    assert found == [(RESULT, "c1", "lookup", True, "paid\nsent")]


def test_runs_have_their_end_and_context(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(
        "select id, model, input_ids, outcome, steps, system, started_at, ended_at from runs"
    ).fetchall()

    assert found == [("r", "m", [QUESTION], "done", 2, "Be kind.", WHEN, WHEN)]


def test_a_branch_is_an_entry_without_children(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute("select leaf_id::varchar, depth, preview from branches").fetchall()

    assert found == [(OTHER, 2, "Or so."), (OPAQUE, 5, "")]


def test_usage_sums_tokens_and_cost_by_model(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(
        "select session_id, model, messages, input_tokens, total_tokens, cost_usd from usage"
    ).fetchall()

    assert found == [("s", "m", 2, 20, 30, 0.75)]


# B70
def test_the_latest_annotation_counts_and_null_clears(plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute("select target_id, name, author, value_json from annotations").fetchall()

    assert found == [(ANSWER, "label", None, '"best"'), (ANSWER, "rating", "ann", "4")]


@pytest.mark.parametrize("alias", ["memories", "entries", "s"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_works_under_any_alias(path: Path, alias: str, view: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{path}' as {alias} (read_only)")

        assert connection.execute(f"select count(*) from {alias}.main.{view}").fetchone()
