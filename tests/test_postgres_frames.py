"""Frames, search and SQL over PostgreSQL: what a DuckDB store says, to the row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from frame_story import copy, story
from postgres_server import Server

import nbdurable as nb
from nbdurable.errors import QueryError
from nbdurable.library import Library
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.dictionary import data_dictionary
from nbdurable.stores.duckdb.views import VIEWS
from nbdurable.stores.postgres import PostgresStore

pytestmark = pytest.mark.postgres

FRAMES = ["sessions", "df", "runs_df", "branches_df", "tools_df", "spend"]
LANGUAGES = ["C", "C.UTF-8"]


@pytest.fixture(scope="module", params=LANGUAGES)
def twins(
    request: pytest.FixtureRequest, postgres: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Library, Library]]:
    """The same sessions in a DuckDB store and in a database of some language."""
    folder = tmp_path_factory.mktemp("twins")
    url = postgres.database(f"encoding 'UTF8' locale '{request.param}'")
    postgres.sql("create schema other; create table other.secrets (n int)", url)
    plain, shared = DuckDBStore(folder / "s.duckdb"), PostgresStore(url)
    story(plain).close()
    with nb.open("s", store=plain, model=ScriptedModel("x")) as chat:
        chat.append(nb.user("CAFÉ noir\0 \ufdd0 \\u0000"), nb.user('a "quoted" \ud83d word'))
    for n, payload in enumerate(ODD):
        plain.append("s", [stored(payload=payload, kind="message" if n % 2 else "hologram")])
    copy(plain, shared, ["e", "s", "f"])
    with nb.connect(plain) as first, nb.connect(shared) as second:
        yield first, second
    plain.close()
    shared.close()


ORDER = dict.fromkeys(("entries", "messages"), " order by seq")  # the others have their own

# What a newer version may store, each as a message and as something else.
ODD = [
    payload
    for payload in (
        "null", "[]", "3", '"text"', "", "{", '{"blocks":3}', '{"blocks":[3,null,"x"]}',
        '{"blocks":[{"type":"text"},{"type":"text","text":null},{"type":"text","text":"b"}]}',
        '{"fields":{"z":"1","a":"2","n":3,"u":"\\\\u0000","v":"\\u0000x"}}', '{"fields":[1]}',
        '{"blocks":[{"type":"tool_result","call_id":"c","content":[{"type":"text","text":"t"}]}]}',
        '{"blocks":[{"type":"tool_result","call_id":"c","content":7}]}',
        '{"blocks":[{"type":"tool_call","id":"c","name":"f","arguments":"{\\"a\\":}"}]}',
    )
    for _ in range(2)
]  # fmt: skip


def plain_rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return rows with missing values as None."""
    listed = [
        [None if pd.isna(value) else value for value in frame[name]] for name in frame.columns
    ]
    return list(zip(*listed, strict=True))


# B59
@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_that_of_a_duckdb_store(twins: tuple[Library, Library], name: str) -> None:
    plain, shared = (getattr(library, name)() for library in twins)

    pd.testing.assert_frame_equal(shared, plain)
    assert len(plain) > 0


# B59
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_and_rows_of_a_duckdb_store(
    twins: tuple[Library, Library], view: str
) -> None:
    columns = [column.name for column in data_dictionary() if column.view == view]
    quoted = ", ".join(f'"{name}"' for name in columns)
    query = f"select {quoted} from {view}{ORDER.get(view, '')}"

    plain, shared = (library.sql(query) for library in twins)

    for name in columns:
        if (view, name) != ("messages", "payload"):  # JSON, which DuckDB spaces otherwise
            assert plain_rows(shared[[name]]) == plain_rows(plain[[name]]), name


# B59
@pytest.mark.parametrize(
    "text", ["lost", "café", "NOIR\0", "\ufdd0", 'a "QUOTED"', "\\u0000", "%_", "beam"]
)
def test_a_search_finds_what_it_finds_in_a_duckdb_store(
    twins: tuple[Library, Library], text: str
) -> None:
    plain, shared = (library.search(text) for library in twins)

    pd.testing.assert_frame_equal(shared, plain)
    assert len(plain) > 0


# -- SQL -------------------------------------------------------------------------------------------


@pytest.fixture
def shared(twins: tuple[Library, Library]) -> Library:
    return twins[1]


def test_sql_takes_parameters_by_place_and_by_name(shared: Library) -> None:
    marks = shared.sql("select n from entries where session_id = ? and n < ?", ["s", 3])
    dollars = shared.sql("select n from entries where session_id = $1 and n < $2", ["s", 3])
    named = shared.sql(
        "select n, '$id ?' as t from entries where session_id = $id and n < $n and $id <> ''",
        {"id": "s", "n": marks["n"].max() + 1},
    )

    assert sorted(marks["n"]) == sorted(dollars["n"]) == sorted(named["n"]) == [1, 2]
    assert set(named["t"]) == {"$id ?"}


def test_sql_gives_fixed_dtypes_and_scalars(shared: Library) -> None:
    frame = shared.sql(
        "select count(*) as whole, avg(n) as r, 1.5::numeric(5, 2) as d, true as flag, 'x' as t, "
        "gen_random_uuid() as u, array[1, 2] as l, '{\"a\": 1}'::jsonb as s, null as nothing, "
        "date '2026-01-02' as day, interval '1 day' as i, '\\x00'::bytea as b, "
        "nbdurable.make_timestamptz(1750000000123456) as at, 1 as t from entries"
    )

    assert [str(dtype) for dtype in frame.dtypes] == [
        "Int64", "Float64", "Float64", "boolean", "string", "string", "string", "string", "string",
        "datetime64[us]", "timedelta64[us]", "object", "datetime64[us, UTC]", "Int64",
    ]  # fmt: skip
    assert (frame["l"][0], frame["s"][0], list(frame)[-1]) == ("[1,2]", '{"a": 1}', "t_1")
    assert frame["at"][0] == datetime(2025, 6, 15, 15, 6, 40, 123456, UTC)


@pytest.mark.parametrize(
    "query",
    [
        "with mine as (select * from entries) select count(*) from mine",
        "select * from nbdurable.runs, generate_series(1, 3)",
        "select count(*) from nbd.moves",
        "select (select max(n) from entries)",
        "values (1), (2)",
        "select value->>'text' from entries, json_array_elements(nbd.list_in(null)) value "
        "right join (select 1) one on true",
    ],
)
def test_what_only_reads_the_store_is_answered(shared: Library, query: str) -> None:
    assert len(shared.sql(query)) > 0


@pytest.mark.parametrize(
    "query",
    [
        "insert into nbd.meta values ('a', 'b')",
        "with a as (insert into nbd.meta values ('a', 'b') returning *) select * from a",
        "drop view nbdurable.entries",
        "create table t as select 1",
        "update nbd.entries set n = 0",
        "select n from nbd.entries for update",
        "copy nbd.entries to stdout",
        "explain analyze delete from nbd.entries",
        "set transaction read write",
        "commit",
        "begin",
        "do $$ begin delete from nbd.meta; end $$",
        "select nextval('nbd.seq')",
        "select set_config('transaction_read_only', 'off', true), nextval('nbd.seq')",
        "analyze delete from nbd.entries",
        "select 1; delete from nbd.entries",
        "select 1; rollback; delete from nbd.meta",
        "select pg_read_file('PG_VERSION')",
        "select n from entries where query_to_xml('select * from other.secrets', true, true, '')"
        " is not null",
        "select pg_sleep(n) from entries",
        "",
        "selec 1",
        "select nn from entries",
        "select * from pg_catalog.pg_authid",
        "select * from information_schema.tables",
        "select n from entries where exists (select * from other.secrets)",
        "select * from pg_ls_dir('.')",
        "select * from pg_get_keywords()",
        "select n from entries where n = ?",
    ],
)
def test_what_writes_or_reads_elsewhere_is_refused(shared: Library, query: str) -> None:
    counts = "select count(*), sum(n), (select count(*) from nbd.meta) from nbd.entries"
    before = plain_rows(shared.sql(counts))

    with pytest.raises(QueryError, match=r"^query .*\S; \w+"):
        shared.sql(query)

    assert plain_rows(shared.sql(counts)) == before
    shared._held().put_blob("a", b"the store still takes what is written")


# B59
@pytest.mark.parametrize(
    "joined",
    [
        "entries e join annotations a on a.target_id = e.id",
        "entries e join entries p on p.id = e.parent_id",
        "entries e join messages m using (id)",
        "entries e join branches b on b.leaf_id = e.id",
        "entries e join sessions s on s.parent_entry_id = e.id",
        "entries e join sessions s on s.position_id = e.id",
        "entries e join runs r on r.id = e.run_id",
        "entries e join runs r on r.leaf_id = e.id",
        "entries e join runs r on r.start_leaf_id = e.id",
        "entries e join runs r on r.rerun_of = e.id",
    ],
)
def test_rows_are_joined_by_ids_as_in_a_duckdb_store(
    twins: tuple[Library, Library], joined: str
) -> None:
    plain, shared = (library.sql(f"select e.seq from {joined} order by 1") for library in twins)

    assert list(shared["seq"]) == list(plain["seq"])
    assert len(plain) > 0
