"""SQL over a library: it reads the store's views and tables, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frame_story import story

import nbdurable as nb
from nbdurable.errors import QueryError
from nbdurable.library import Library
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.memory import MemoryStore


@pytest.fixture(scope="module", params=["memory", "duckdb"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("sql")
    store = MemoryStore() if request.param == "memory" else DuckDBStore(folder / "s.duckdb")
    story(store).close()
    with nb.connect(store) as library:
        yield library
    store.close()


def counted(library: Library) -> list[int]:
    """Return how much the store holds."""
    query = "select (select count(*) from nbd.meta), count(*), sum(n) from entries where {}"
    row = library.sql(query.format("session_id = 's'")).iloc[0]
    return [int(value) for value in row]


def test_sql_takes_parameters_by_place_and_by_name(library: Library) -> None:
    by_place = library.sql("select n from entries where session_id = ? and n < ?", ["s", 3])
    by_name = library.sql("select n from entries where session_id = $id and n < 3", {"id": "s"})

    assert sorted(by_place["n"]) == sorted(by_name["n"]) == [1, 2]


def test_sql_takes_the_numbers_that_frames_give(library: Library) -> None:
    n = library.sql("select n from entries where session_id = 's' order by n")["n"]

    found = library.sql("select n from entries where session_id = 's' and n = ?", [n.max()])
    named = library.sql("select $n as n, $s as s", {"n": n.to_numpy()[0], "s": np.float32(0.5)})

    assert list(found["n"]) == [n.max()]
    assert named.iloc[0].to_list() == [1, 0.5]


@pytest.mark.parametrize("params", ["s", 3, None])
def test_sql_refuses_parameters_that_are_no_collection(library: Library, params: object) -> None:
    with pytest.raises(QueryError, match=r"params is .*; give a list of values"):
        library.sql("select ?", params)  # type: ignore[arg-type]


def test_sql_gives_fixed_dtypes_and_scalars(library: Library) -> None:
    frame = library.sql(
        "select sum(n) as whole, avg(n) as r, 1.5::decimal(5, 2) as d, true as flag, "
        "'x' as t, uuid() as u, [1, 2] as l, {'a': 1} as s, null as nothing, "
        "date '2026-01-02' as day, 9223372036854775808::hugeint as huge, 1 as t "
        "from entries"
    )

    assert [str(dtype) for dtype in frame.dtypes] == [
        "Int64", "Float64", "Float64", "boolean", "string", "string", "string", "string",
        "string", "datetime64[us]", "string", "Int64",
    ]  # fmt: skip
    assert list(frame.columns)[-1] == "t_1"
    assert (frame["l"][0], frame["s"][0], frame["huge"][0]) == (
        "[1,2]",
        '{"a":1}',
        "9223372036854775808",
    )


@pytest.mark.parametrize(
    "query",
    [
        "from sessions",
        "with mine as (select * from entries) select count(*) from mine",
        "select * from main.runs, range(3)",
        "select count(*) from nbd.moves",
        "describe entries",
        "select (select max(n) from entries)",
        "values (1), (2)",
    ],
)
def test_what_only_reads_the_store_is_answered(library: Library, query: str) -> None:
    assert len(library.sql(query)) > 0


WRITES = [
    "insert into nbd.meta values ('a', 'b')",
    "with a as (insert into nbd.meta values ('a', 'b') returning *) select * from a",
    "drop view entries",
    "drop table nbd.entries",
    "create table t as select 1",
    "update nbd.entries set n = 0",
    "attach 'other.duckdb'",
    "copy entries to 'out.csv'",
    "pragma database_list",
    "set threads = 1",
    "checkpoint",
    "install httpfs",
    "call checkpoint()",
    "explain analyze delete from nbd.entries",
    "begin",
    "select 1; drop table nbd.entries",
    "",
    "selec 1",
]
READS_ELSEWHERE = [
    "select * from 'secret.csv'",
    "select * from read_text('secret.csv')",
    "select * from read_csv_auto('secret.csv')",
    "select * from glob('*')",
    "select * from query('drop table nbd.entries')",
    "select * from checkpoint('nbd_file')",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select * from information_schema.tables",
    "select n from entries where exists (select * from read_blob('secret.csv'))",
    'select * from "secret.csv" where exists (with "secret.csv" as (select 1) select 1)',
    "select * from frame_in_scope",
    "select * from nbd_file.nbd.meta",
]


@pytest.mark.parametrize("query", WRITES + READS_ELSEWHERE)
def test_what_writes_or_reads_elsewhere_is_refused(library: Library, query: str) -> None:
    frame_in_scope = pd.DataFrame({"a": [1]})
    Path("secret.csv").write_text("a\n1\n")
    before = counted(library)

    with pytest.raises(QueryError, match=r"^query .*\S; \w+"):
        library.sql(query)

    assert counted(library) == before and len(frame_in_scope) == 1
    assert not Path("out.csv").exists() and not Path("other.duckdb").exists()
    with nb.open("later", store=library._held(), model=ScriptedModel("x")) as chat:
        assert chat.append(nb.user("the store still takes what is written"))


def test_a_query_that_fails_says_what_duckdb_found(library: Library) -> None:
    with pytest.raises(QueryError, match=r'failed .*column "nn" not found'):
        library.sql("select nn from entries")


def test_a_query_says_nothing_of_a_value_that_it_cannot_take(library: Library) -> None:
    with pytest.raises(QueryError, match="failed"):
        library.sql("select n from entries where n = ?", [])


def test_arrow_is_given_where_pyarrow_is(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(ImportError, match="pyarrow is not installed; run pip install pyarrow"):
        library.arrow("from entries")
