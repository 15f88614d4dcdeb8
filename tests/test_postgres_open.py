"""Opening a PostgreSQL store: what is made, what is refused, and what is never told (B69)."""

from __future__ import annotations

import json
import logging
import re
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import psycopg
import pytest
from ipywidgets import Widget
from postgres_server import PASSWORD, Server
from treeing import Page

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import EntryError, StoreError, StoreTooNew
from nbdurable.models.scripted import ScriptedModel, cut
from nbdurable.stored import Context, SessionRecord, SpoolDraft
from nbdurable.stores import open_store, release_store
from nbdurable.stores.conformance import stored
from nbdurable.stores.postgres import PostgresStore
from nbdurable.stores.postgres.address import read_address
from nbdurable.stores.postgres.texts import escaped, unescaped

pytestmark = pytest.mark.postgres

SECRET = quote(PASSWORD, safe="")


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.emptied()


# -- the one thing that changes --------------------------------------------------------------------


# B1 B2
def test_an_address_is_all_that_changes(url: str) -> None:
    with nb.open("chat", store=url, model=ScriptedModel("Because.", "So.")) as chat:
        chat.run("Why?", show=None)
        with nb.open("chat", store=url, model=ScriptedModel("x")) as twin:
            assert twin.image is chat.image
    with nb.open("chat", store=url, model=ScriptedModel("x")) as chat, nb.connect(url) as library:
        assert [entry.text for entry in chat.entries()] == ["Why?", "Because."]
        assert list(library.search("because")["n"]) == [2]
        assert list(library.sql("select count(*) as n from entries")["n"]) == [2]


# B24
def test_half_an_answer_is_recovered_by_the_next_opener(url: str) -> None:
    first = PostgresStore(url)
    first.create_session(SessionRecord(id="s", created_at=1))
    draft = stored(text="half an ans", moves_leaf=None)
    first.spool(SpoolDraft(entry=draft))
    first.close()

    with pytest.warns(UserWarning, match="an answer in session 's' was cut when its process ended"):
        chat = nb.open("s", store=url, model=ScriptedModel("x"))

    assert [entry.text for entry in chat.entries()] == ["half an ans"]
    chat.close()


# B5
def test_openers_that_race_make_the_tables_once(postgres: Server) -> None:
    url = postgres.database()

    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(PostgresStore, [url] * 4))

    stores[0].create_session(SessionRecord(id="s", created_at=1))
    assert [store.list_sessions()[0].session.id for store in stores] == ["s"] * 4
    for store in stores:
        store.close()


# -- refused ---------------------------------------------------------------------------------------


# B8
def test_a_database_without_a_store_is_refused_by_connect_and_left_as_it_is(
    postgres: Server,
) -> None:
    url = postgres.database()

    with pytest.raises(StoreError, match=r"holds no store; make it with open\(\)"):
        nb.connect(url)

    schemas = "select count(*) from pg_namespace where nspname in ('nbd', 'nbdurable')"
    assert postgres.sql(schemas, url) == [(0,)]


# B62
def test_a_newer_version_is_refused_and_left_as_it_is(postgres: Server) -> None:
    url = postgres.database()
    PostgresStore(url).close()
    postgres.sql("update nbd.meta set value = '99' where key = 'schema_version'", url)

    with pytest.raises(StoreTooNew, match=r"has schema version 99 and .* up to 1; install a newer"):
        PostgresStore(url)


# B63
def test_a_schema_of_somebody_else_is_refused_and_left_as_it_is(postgres: Server) -> None:
    url = postgres.database()
    postgres.sql("create schema nbdurable", url)

    with pytest.raises(StoreError, match=r"that is not ours; give a database of its own"):
        PostgresStore(url)

    assert postgres.sql("select to_regnamespace('nbd') is null", url) == [(True,)]


# B63
def test_a_database_that_cannot_hold_all_text_is_refused(postgres: Server) -> None:
    url = postgres.database("encoding 'LATIN1' locale 'C'")

    with pytest.raises(StoreError, match="has encoding LATIN1, which cannot hold all text; make"):
        PostgresStore(url)


# B63
def test_who_may_only_read_reads_and_is_told_at_a_write(postgres: Server) -> None:
    url = postgres.database()
    owner = PostgresStore(url)
    owner.create_session(SessionRecord(id="s", created_at=1), [stored()])
    owner.close()
    postgres.sql(
        "grant usage on schema nbd, nbdurable to guarded;"
        "grant select on all tables in schema nbd, nbdurable to guarded",
        url,
    )
    reader = PostgresStore(postgres.url(url.rpartition("/")[2], "guarded", SECRET))

    assert len(reader.load_entries("s")) == 1
    with pytest.raises(StoreError, match=r"cannot be written \(permission denied.*; ask for the"):
        reader.append("s", [stored()])
    reader.close()


# B9
def test_a_session_id_that_no_index_takes_is_refused_by_its_length(url: str) -> None:
    store = PostgresStore(url)

    with pytest.raises(EntryError, match=r"has 2,004 bytes, and .* up to 2,000; choose a shorter"):
        store.create_session(SessionRecord(id="é" * 1002, created_at=1))

    store.create_session(SessionRecord(id="é" * 1000, created_at=1), [stored("é" * 1000)])
    store.close()


# B64
def test_a_number_that_no_column_takes_is_refused_and_nothing_is_written(url: str) -> None:
    store = PostgresStore(url)
    store.create_session(SessionRecord(id="s", created_at=1))

    with pytest.raises(EntryError, match=r"stored in .* \(NumericValueOutOfRange\); give"):
        store.append("s", [stored(), stored(input_tokens=2**63)])

    assert store.append("s", [stored()])[0].n == 1
    store.close()


# -- texts -----------------------------------------------------------------------------------------


# B64
@pytest.mark.parametrize("text", ["a\0b\0", "\ufdd0", "\ufdd1\0", "\ufdd1\ufdd1\ufdd0\ufdd0x", "é"])
def test_text_with_nul_survives(url: str, text: str) -> None:
    store = PostgresStore(url)

    store.save_context(Context(digest="d", system=text, tools_json="[]"))

    assert store.load_context("d").system == text
    assert unescaped(escaped(text)) == text and "\0" not in escaped(text)
    store.close()


# B64
def test_half_a_character_is_stored_as_its_replacement(url: str) -> None:
    store = PostgresStore(url)

    store.save_context(Context(digest="d", system="cut \ud83d", tools_json="[]"))

    assert store.load_context("d").system == "cut \ufffd"
    store.close()


# -- nothing removed, nothing told -----------------------------------------------------------------


FORBID = """
    create function forbid() returns trigger language plpgsql
        as $$ begin raise exception '% of %', tg_op, tg_table_name; end $$;
    do $$ declare name text; begin
        for name in select tablename from pg_tables where schemaname = 'nbd' loop
            execute format('create trigger forbid before update or delete or truncate on nbd.%I '
                'execute function forbid()', name);
        end loop; end $$
"""


# B10 B13
def test_rows_are_only_ever_added(postgres: Server) -> None:
    url = postgres.database()
    PostgresStore(url).close()
    postgres.sql(FORBID, url)

    with nb.open("s", store=url, model=ScriptedModel("A", cut("Half"), "B", repeat=True)) as chat:
        chat.run("Q", show=None)
        with pytest.raises(nb.errors.ModelError):
            chat.run("R", show=None)
        chat.label(2, "x")
        chat.label(2, None)
        chat.branch(1)
        chat.run("Again", nb.file(b"x" * 40_000, "text/plain"), show=None)
        chat.sample(2, "Q", show=None).wait()
        chat.fork("f").close()

    with pytest.raises(psycopg.errors.RaiseException, match="DELETE of entries"):
        postgres.sql("delete from nbd.entries", url)


# B69
@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://me:s3cret@db.example.com/chats", "postgresql://db.example.com/chats"),
        ("postgres://me:s3cret@db.example.com:6432/a%2Fb", "postgresql://db.example.com:6432/a%2Fb"),
        ("postgresql://db/chats?password=s3cret&user=me", "postgresql://db/chats"),
        ("postgresql://me:s3cret@[::1]:6432/chats", "postgresql://[::1]:6432/chats"),
        ("postgresql://a:1,b:2/chats?password=s3cret", "postgresql://a:1,b:2/chats"),
        ("postgresql://me:s3cret@/chats?host=/run/pg&port=6432",
         "postgresql:///chats?host=/run/pg&port=6432"),
    ],
)  # fmt: skip
def test_the_name_of_a_store_is_its_place_alone(address: str, name: str) -> None:
    found = read_address(address)

    assert found.name == name
    assert "s3cret" not in repr(found) and "me:" not in found.name


# B69
@pytest.mark.parametrize(
    "address",
    ["postgresql://me:s3/cret@host/db", "postgresql://me:53/cret@host/db",
     "postgresql://me:s3cret@h/d?nonsense=s3cret", "postgresql://me:s3?cret@h/d",
     "postgresql://me:%zz-s3cret@h/d", "postgresql://me:s3cret\0@h/d",
     "postgresql://me:s3cret@127.0.0.1:1/d"],
)  # fmt: skip
def test_an_address_that_leads_nowhere_is_told_without_its_password(address: str) -> None:
    with pytest.raises(StoreError, match=r"^(address of|store) .*; \w+") as caught:
        open_store(address)

    told = "".join(traceback.format_exception(caught.value))
    assert not re.search("s3|53|cret", str(caught.value)) and "s3cret" not in told


# B69
def test_a_wrong_password_is_told_without_it(postgres: Server) -> None:
    with pytest.raises(StoreError, match=r"cannot be reached \(.*password authentication failed"):
        open_store(postgres.url("emptied", "guarded", "wr0ng-s3cret"))


# B69
def test_the_password_reaches_no_place(
    postgres: Server,
    url: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    postgres.sql(
        "grant usage on schema nbd, nbdurable to guarded;"
        "grant all on all tables in schema nbd, nbdurable to guarded;"
        "grant all on all sequences in schema nbd to guarded",
        url,
    )
    address = postgres.url("emptied", "guarded", SECRET)
    told = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with nb.open(store=address, model=ScriptedModel("A")) as chat:
            chat.run("Q", show=None)
            told += [repr(chat), chat.store, str(chat.runs()), repr(chat.image.store)]
            path = chat.export("out.jsonl")
            with Page(chat) as page:
                told += [json.dumps(page.settled()), json.dumps(Widget.get_manager_state())]
        with nb.connect(address) as library:
            told += [repr(library), library._repr_html_()]
        for arguments in (["ls", address], ["show", address, "none"], ["check", address]):
            main(arguments)
        store = open_store(address)
        postgres.kill_backends(url)
        with pytest.raises(StoreError) as refused:
            store.get_blob("none")
        told.append("".join(traceback.format_exception(refused.value)))
        release_store(store)
    told += [str(warning.message) for warning in caught]
    told += [caplog.text, path.read_text(), *capsys.readouterr()]
    with psycopg.connect(url) as connection:
        for table in ("meta", "sessions", "entries", "runs", "contexts"):
            told.append(str(connection.execute(f"select * from nbd.{table}").fetchall()))  # type: ignore[call-overload]

    assert any("A" in one for one in told)
    for secret in (PASSWORD, SECRET, PASSWORD.split("/")[0]):
        assert not [one for one in told if secret in one]
