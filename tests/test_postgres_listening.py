"""A shown tree follows what another machine stores in PostgreSQL, told by the server (B11)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import Server
from treeing import Page

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.notebook.tree import poller
from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.postgres import PostgresStore, line, listening

pytestmark = pytest.mark.postgres

LISTENING = "select count(*) from pg_stat_activity where query = 'listen nbdurable'"


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.emptied()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    made = PostgresStore(url)
    for name in ("s", "t", "u"):
        made.create_session(SessionRecord(id=name, created_at=1))
    yield made
    made.close()


@pytest.fixture
def other(store: PostgresStore, url: str) -> Iterator[PostgresStore]:
    """Another machine's store on the same database."""
    made = PostgresStore(url)
    yield made
    made.close()


@pytest.fixture
def never_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the server tells can wake anybody."""
    monkeypatch.setattr(listening, "POLL_S", 3_600.0)


class Woken:
    """Somebody who watches, and counts how often he is woken."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def reached(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, 30), self.count


def ended(store: PostgresStore, thread: threading.Thread | None) -> None:
    """Wait until a store's listening thread has ended."""
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive() and store._listener._thread is None


# B11
@pytest.mark.usefixtures("never_polled")
def test_a_shown_tree_follows_another_machine_and_asks_nothing_meanwhile(
    store: PostgresStore, other: PostgresStore
) -> None:
    with nb.open("s", store=store, model=ScriptedModel("x")) as chat, Page(chat) as page:
        others = nb.open("s", store=other, model=ScriptedModel("Theirs."))

        others.run("Q", show=None)
        page.until(lambda: len(page.state["columns"]["at"]) == 2)
        others.label(2, "here")
        page.until(lambda: page.state["marks"].get("2", {}).get("labels") == ["here"])

        assert page.tree.feed not in poller.POLLER._all
        others.close()


# B11
@pytest.mark.usefixtures("never_polled")
def test_who_watches_a_session_is_woken_by_no_other_session(
    store: PostgresStore, other: PostgresStore
) -> None:
    mine, last = Woken(), Woken()
    store.watch("s", mine)
    mine.reached(2)  # at once, and when the server is listened to
    store.watch("u", last)

    for name in ("t", "u"):
        other.append(name, [stored(name)])
    last.reached(2)

    assert (mine.count, last.count) == (2, 2)
    other.move("s", None, 1)
    mine.reached(3)


# B11 B54
def test_one_connection_listens_while_anything_is_watched_and_no_longer(
    store: PostgresStore, postgres: Server
) -> None:
    woken = Woken(), Woken()
    before = postgres.sql(LISTENING)
    stops = [store.watch(name, wake) for name, wake in zip("st", woken, strict=True)]
    thread = store._listener._thread
    woken[0].reached(2)
    woken[1].reached(2)
    during = postgres.sql(LISTENING)

    stops[0]()
    stops[0]()
    still = postgres.sql(LISTENING)
    stops[1]()
    ended(store, thread)

    assert (before, during, still, postgres.sql(LISTENING)) == ([(0,)], [(1,)], [(1,)], [(0,)])
    again = Woken()
    store.watch("s", again)
    again.reached(2)
    store.append("s", [stored()])
    again.reached(3)


# B54
def test_closing_the_store_ends_the_listening(store: PostgresStore, postgres: Server) -> None:
    woken = Woken()
    stop = store.watch("s", woken)
    thread = store._listener._thread
    woken.reached(2)

    store.close()

    ended(store, thread)
    assert postgres.sql(LISTENING) == [(0,)]
    stop()
    with pytest.raises(nb.errors.StoreClosed, match="is closed; open it again"):
        store.watch("s", woken)


# B11 B67
@pytest.mark.parametrize("trouble", ["backends", "server"])
def test_a_connection_that_is_lost_is_made_anew_and_nothing_is_missed(
    store: PostgresStore, other: PostgresStore, postgres: Server, url: str, trouble: str
) -> None:
    woken = Woken()
    store.watch("s", woken)
    woken.reached(2)

    if trouble == "backends":
        postgres.kill_backends(url)
    else:
        postgres.restart("immediate")
    woken.reached(4)  # when it was lost, and when the server is listened to again
    count = woken.count
    other.append("s", [stored()])

    woken.reached(count + 1)
    assert postgres.sql(LISTENING) == [(1,)]


# B11
@pytest.mark.parametrize("listen", ["select 1", "listen to nothing"], ids=["a pooler", "no LISTEN"])
def test_where_the_server_tells_nothing_the_tree_follows_all_the_same(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch, listen: str
) -> None:
    """A pooler takes LISTEN and passes nothing on; some servers do not know the word."""
    monkeypatch.setattr(listening, "_LISTEN", listen)
    monkeypatch.setattr(listening, "PROBE_S", 0.05)
    monkeypatch.setattr(listening, "POLL_S", 0.01)
    with nb.open("s", store=store, model=ScriptedModel("x")) as chat, Page(chat) as page:
        other.append("s", [stored()])

        page.until(lambda: len(page.state["columns"]["at"]) == 1)


# B13 B67
def test_a_server_that_cannot_tell_stores_all_the_same(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "TELL", "select pg_no_such_function($1::text[])")

    told = [store.append("s", chain(2)), store.append("s", [stored()])]

    assert [[entry.n for entry in entries] for entries in told] == [[1, 2], [3]]
    assert [entry.n for entry in store.load_entries("s")] == [1, 2, 3]


# B11
def test_what_is_refused_is_not_told(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("listen nbdurable")
        [entry] = store.append("s", [stored()])
        with pytest.raises(nb.errors.EntryError, match="is already in session"):
            store.append("s", [entry])
        store.append("s", [stored()])
        store.create_session(SessionRecord(id="new", created_at=1))

        told = [note.payload for note in connection.notifies(timeout=5, stop_after=2)]

    assert told == [listening.topic("s")] * 2
    assert "s" not in told[0]  # who may listen learns nothing of what sessions are called


# B21
def test_a_watcher_that_fails_is_logged_and_the_next_is_woken(
    store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("no")

    woken = Woken()
    store.watch("s", fail)
    store.watch("s", woken)
    woken.reached(1)
    count = woken.count

    store.append("s", [stored()])

    woken.reached(count + 1)
    assert "a watcher failed" in caplog.text
