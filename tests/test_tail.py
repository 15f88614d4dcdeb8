"""What others wrote is learned from a record beside the file, and only from one that is true."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from damage import flip, log_of
from sharing import Child, child

from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore, upkeep
from nbdurable.stores.duckdb.checking import check
from nbdurable.stores.duckdb.repair import RepairNotice

# Appends to session "s", or moves its position to the root. Its log is left to the test.
WRITER = """
from nbdurable.stores.duckdb import upkeep
upkeep.Upkeep.shorten = lambda *_: None
store = DuckDBStore(path)
say("ready")
while word := told():
    if word == "move":
        say(store.move("s", None, 5).seq)
    else:
        say(store.append("s", [stored(preview=word, moves_leaf=None)])[0].seq)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


@pytest.fixture
def store(path: Path) -> Iterator[DuckDBStore]:
    made = DuckDBStore(path)
    made.create_session(SessionRecord(id="s", created_at=1), chain(2))
    yield made
    made.close()


@pytest.fixture
def other(store: DuckDBStore, path: Path) -> Iterator[Child]:
    with child(WRITER, path) as started:
        yield started


@pytest.fixture
def queries(store: DuckDBStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the writer of this process asks the file."""
    asked: list[str] = []
    look_up = store._core.writer._state._lookup

    def told(query: str, params: object) -> list[tuple[object, ...]]:
        asked.append(query)
        return look_up(query, params)  # type: ignore[arg-type]

    monkeypatch.setattr(store._core.writer._state, "_lookup", told)
    return asked


def record(path: Path) -> Path:
    return Path(f"{path}.spool", "tail.json")


# B11 B68
def test_what_another_process_appended_needs_no_query(
    store: DuckDBStore, other: Child, queries: list[str]
) -> None:
    seqs: list[int] = []
    for _ in range(2):  # the first of each asks
        seqs.append(store.append("s", [stored()])[0].seq)
        seqs.append(int(other.ask("append")))
    queries.clear()

    for _ in range(3):
        [mine] = store.append("s", [stored()])
        seqs += [mine.seq, int(other.ask("append"))]

    assert seqs == list(range(3, 13))
    assert [entry.n for entry in store.load_entries("s")] == list(range(1, 13))
    assert queries == []


# B3 B68
def test_where_another_process_moved_the_position_is_in_the_record(
    store: DuckDBStore, other: Child, queries: list[str]
) -> None:
    store.append("s", [stored()])
    other.ask("append")
    last = store.append("s", [stored()])[0]
    other.ask("move")
    queries.clear()

    [below] = store.append("s", [stored(parent_id=last.id, moves_leaf=None)])
    [root] = store.append("s", [stored(moves_leaf=None)])

    assert (below.moves_leaf, root.moves_leaf) == (False, True)
    assert queries == []


# B24 B68
@pytest.mark.parametrize("spoil", ["stale", "torn", "gone", "of another length"])
def test_a_record_that_does_not_fit_the_file_is_not_believed(
    store: DuckDBStore, other: Child, path: Path, spoil: str
) -> None:
    store.append("s", [stored()])
    other.ask("append")
    store.append("s", [stored()])
    before = record(path).read_bytes()
    other.ask("append")
    now = record(path).read_bytes()
    match spoil:
        case "stale":
            record(path).write_bytes(before)
        case "torn":
            record(path).write_bytes(now[:-9])
        case "gone":
            record(path).unlink()
        case _:
            state, rows = json.loads(now)
            state[1][1] += 1
            rows[-1][0] += 7
            record(path).write_text(json.dumps([state, rows]))

    [mine] = store.append("s", [stored()])

    assert (mine.seq, mine.n) == (7, 7)


# B24 B68
def test_a_record_leaves_nothing_out_after_its_writer_forgot(
    store: DuckDBStore, other: Child, path: Path
) -> None:
    """As after a commit that failed, while another process wrote."""
    store.append("s", [stored()])
    other.ask("append")
    store.append("s", [stored()])
    store._core.writer._state.reset()
    other.ask("append")

    [mine] = store.append("s", [stored()])
    _, rows = json.loads(record(path).read_bytes())

    assert [row[0] for row in rows] == list(range(rows[0][0], mine.seq + 1))
    assert int(other.ask("append")) == mine.seq + 1 == 8


# B66 B68
def test_what_a_repair_cut_off_is_forgotten(
    store: DuckDBStore, other: Child, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep.Upkeep, "shorten", lambda *_: None)  # which would empty it
    store.append("s", [stored()])
    lost = int(other.ask("append"))
    [mine] = store.append("s", [stored()])
    flip(log_of(path), log_of(path).stat().st_size - 300)

    with pytest.warns(RepairNotice, match="or less, are lost"):
        [after] = store.append("s", [stored()])

    assert (mine.seq, after.seq) == (lost + 1, lost + 1)
    assert check(path).is_sound
