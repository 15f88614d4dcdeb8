"""Who waits for a shared file has its appends done by whoever holds it, and told only if stored."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from sharing import Child, child

from nbdurable.errors import EntryError, StoreLocked
from nbdurable.stored import RunEnd, RunRecord, SessionRecord, StoredEntry
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore, turns
from nbdurable.stores.duckdb.errands import Append, Errand

# Holds the file, and does meanwhile what it is told to.
HOLDER = """
import duckdb
from contextlib import ExitStack
from nbdurable.stores.duckdb.batch import Inserter
from nbdurable.stores.duckdb.errands import Request
store, hold = DuckDBStore(path), ExitStack()
errands = store._core.writer._errands
say("ready")
while word := told():
    match word:
        case "hold":
            hold.enter_context(store._core.lease.held())
        case "take up":
            errands.take_up()
        case "append, and be killed in the commit":
            Inserter.write = lambda inserter, batch: os.kill(os.getpid(), 9)
            store.append("s", [stored()])
        case "append in silence":
            Request.answer = lambda request, results: None
            store.append("s", [stored()])
        case "append, and be cut short":
            answer = Request.answer
            def half(request, results):
                answer(request, results)
                os.truncate(request.path, 20)
            Request.answer = half
            store.append("s", [stored()])
        case "append":
            store.append("s", [stored()])
        case "keep bytes, and fail in the commit":
            write = Inserter.write
            def fail(inserter, batch):
                hold.close()
                Inserter.write = write
                raise duckdb.IOException("No space left on device")
            Inserter.write = fail
            try:
                store.put_blob("a" * 64, b"bytes")
                say(len(store.get_blob("a" * 64)))
            except nb.errors.StoreError as exc:
                say(exc)
            continue
        case "let go":
            hold.close()
    say("done")
"""

Asked = Future[tuple[StoredEntry, ...]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SessionRecord(id="s", created_at=1))
    yield made
    made.close()


@pytest.fixture
def holder(store: DuckDBStore, path: Path) -> Iterator[Child]:
    """Another process, which holds the file."""
    with child(HOLDER, path) as started:
        started.ask("hold")
        yield started


class Asker:
    """Appends in threads, up to the moment when each waits for its turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        came = turns._Wait.came
        self._waits = threading.Event()
        self._pool = ThreadPoolExecutor(1)

        def told(wait: turns._Wait, deadline: float) -> bool:
            self._waits.set()
            return came(wait, deadline)

        monkeypatch.setattr(turns._Wait, "came", told)

    def append(self, store: DuckDBStore, *entries: StoredEntry, **more: object) -> Asked:
        """Append, and return once that waits for its turn."""
        asked = self._pool.submit(store.append, "s", entries, **more)  # type: ignore[arg-type]
        assert self._waits.wait(30)
        return asked

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def asker(store: DuckDBStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asker]:
    made = Asker(monkeypatch)
    yield made
    made.close()


def beside(path: Path) -> list[str]:
    """What processes have left for each other."""
    folder = Path(f"{path}.spool")
    return [file.suffix for file in folder.iterdir() if file.suffix in (".ask", ".done", ".asking")]


# B4 B68
def test_who_holds_the_file_appends_for_those_who_wait(
    store: DuckDBStore, holder: Child, asker: Asker
) -> None:
    attached = store._core.lease.generation
    run = RunRecord(id="r", session_id="s", kind="run", created_at=2, input_ids=("a", "b"))
    end = RunEnd(run_id="r", session_id="s", outcome="done", created_at=3)
    first = stored(preview="first", cost_usd=1)

    asked = asker.append(store, first, stored(parent_id=first.id), start=run, end=end)
    holder.ask("append")
    holder.ask("let go")
    mine = asked.result()

    assert store._core.lease.generation == attached
    assert [(entry.seq, entry.n, entry.depth) for entry in mine] == [(2, 2, 1), (3, 3, 2)]
    assert tuple(store.load_entries("s", 1)) == mine
    assert store.load_runs("s") == [(run, end)]


# B11 B68
def test_what_was_done_elsewhere_is_known_to_the_next_append(
    store: DuckDBStore, holder: Child, asker: Asker
) -> None:
    asked = asker.append(store, stored())
    holder.ask("append")
    holder.ask("let go")
    [mine] = asked.result()

    [below] = store.append("s", [stored(parent_id=mine.id)])

    assert (below.seq, below.n, below.depth) == (mine.seq + 1, mine.n + 1, 2)


# B24 B67 B68
@pytest.mark.parametrize("how", ["take up", "append, and be killed in the commit"])
def test_a_request_taken_up_by_one_who_was_killed_before_the_commit_is_stored_once(
    store: DuckDBStore, holder: Child, asker: Asker, path: Path, how: str
) -> None:
    asked = asker.append(store, stored())
    holder.ask(how)
    assert ".ask" not in beside(path)
    holder.kill()

    stored_once = list(asked.result())
    assert store.load_entries("s") == stored_once
    assert beside(path) == []  # where its text would be


# B24 B67 B68
@pytest.mark.parametrize("how", ["append in silence", "append, and be cut short"])
def test_a_request_stored_by_one_who_was_killed_before_the_answer_is_stored_once(
    store: DuckDBStore, holder: Child, asker: Asker, how: str
) -> None:
    asked = asker.append(store, stored(preview="mine"))
    holder.ask(how)
    holder.kill()
    [mine] = asked.result()

    assert mine in store.load_entries("s")
    assert [entry.preview for entry in store.load_entries("s")].count("mine") == 1


# B60 B68
def test_what_is_refused_is_refused_to_who_asked_and_to_nobody_else(
    store: DuckDBStore, holder: Child, asker: Asker
) -> None:
    holder.ask("let go")
    [known] = store.append("s", [stored()])
    holder.ask("hold")

    asked = asker.append(store, stored(id=known.id))
    assert holder.ask("append") == "done"
    holder.ask("let go")

    with pytest.raises(EntryError, match=f"{known.id}' is already in session"):
        asked.result()
    assert len(store.load_entries("s")) == 2


# B60 B67 B68
def test_an_entry_of_the_same_id_is_not_taken_for_the_one_that_was_asked_for(
    store: DuckDBStore, holder: Child, asker: Asker
) -> None:
    holder.ask("let go")
    [known] = store.append("s", [stored(preview="known")])
    holder.ask("hold")

    asked = asker.append(store, stored(id=known.id, preview="another"))
    holder.ask("take up")
    holder.kill()

    with pytest.raises(EntryError, match=f"{known.id}' is already in session"):
        asked.result()


# B68
def test_a_request_that_nobody_took_up_by_the_deadline_is_taken_back(
    store: DuckDBStore, holder: Child, asker: Asker, path: Path
) -> None:
    store._core.lease._timeout_s = 0.2

    with pytest.raises(StoreLocked, match="is locked by another process"):
        asker.append(store, stored()).result()
    assert beside(path) == []
    holder.ask("append")
    holder.ask("let go")

    assert len(store.load_entries("s")) == 1


# B24 B68
def test_what_a_dead_process_asked_for_is_not_done(
    store: DuckDBStore, holder: Child, path: Path
) -> None:
    """It may have been killed long ago; its spool says what was in flight."""
    folder = Path(f"{path}.spool")
    Errand(folder / "1-dead", "1-dead 0", [Append("s", (stored(),))]).post()
    os.utime(folder / "1-dead.ask", (0, 0))
    (folder / "1-dead.lock").touch()

    holder.ask("append")
    holder.ask("let go")

    assert len(store.load_entries("s")) == 1
    assert beside(path) == []


# B68
def test_a_request_that_cannot_be_read_harms_nobody(
    store: DuckDBStore, holder: Child, asker: Asker, path: Path
) -> None:
    asked = asker.append(store, stored())
    (request,) = Path(f"{path}.spool").glob("*.ask")
    request.write_text(request.read_text().replace("preview", "of a newer version"))

    assert holder.ask("append") == "done"
    holder.ask("let go")

    assert [entry.n for entry in asked.result()] == [2]


# B67 B68
def test_what_others_stored_after_a_failure_is_not_taken_for_what_failed(
    store: DuckDBStore, holder: Child, asker: Asker
) -> None:
    """The asker gets the file between the failed commit and the look what came of it."""
    asked = asker.append(store, stored())

    assert holder.ask("keep bytes, and fail in the commit") == "5"
    assert [entry.n for entry in asked.result()] == [1]


# B60 B68
def test_a_request_that_cannot_be_stored_fails_nobody_else(
    store: DuckDBStore, holder: Child, asker: Asker
) -> None:
    asked = asker.append(store, stored(created_at=2**70))

    assert holder.ask("append") == "done"
    holder.ask("let go")

    with pytest.raises(EntryError, match="cannot be stored in"):
        asked.result()
    assert [entry.n for entry in store.load_entries("s")] == [1]


# B68
def test_a_file_that_is_kept_is_kept_from_errands_too(
    store: DuckDBStore, path: Path, asker: Asker
) -> None:
    program = """
store = DuckDBStore(path, exclusive=True)
say("ready")
while told():
    say(store.append("s", [stored()])[0].n)
"""
    store._core.lease._timeout_s = 0.5
    with child(program, path) as keeper:
        asked = asker.append(store, stored())
        assert keeper.ask() == "1"

        with pytest.raises(StoreLocked):
            asked.result()
        assert keeper.ask() == "2"
