"""What a DuckDB store does otherwise with long sessions: they are read by column."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore

LONG = 1_200

ODD: list[dict[str, object]] = [
    {"text": "Grüße, 你好 \U0001f600 \u2028 \x00 end", "preview": "\x00"},
    {"text": "x" * 200_000, "role": "assistant", "model": "m", "stop_reason": "stop"},
    {"input_tokens": 0, "output_tokens": 2**62, "reasoning_tokens": 1},
    {"cost_usd": 0.1 + 0.2, "seconds": 1e-300, "ttft_s": 0.0},
    {"meta": True, "moves_leaf": False, "run_id": "r", "source_id": "", "role": None},
    {"cache_read_tokens": -1, "cache_write_tokens": 7, "cost_usd": 3.0},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "long.duckdb"


def filled(path: Path, count: int) -> list[StoredEntry]:
    """Make a store of one session; return its entries as they were appended."""
    odd = [stored(**columns) for columns in ODD]  # type: ignore[arg-type]
    store = DuckDBStore(path)
    appended = store.create_session(
        SessionRecord(id="s", created_at=1), [*chain(count - len(odd)), *odd]
    )
    store.close()
    return list(appended)


@pytest.mark.parametrize("count", [20, LONG])
def test_entries_come_back_as_they_were_appended_however_many(path: Path, count: int) -> None:
    appended = filled(path, count)

    store = DuckDBStore(path)
    loaded = store.load_entries("s")
    store.close()

    assert loaded == appended
    assert [*map(repr, loaded)] == [*map(repr, appended)]  # of the same types
    assert {type(entry) for entry in loaded} == {StoredEntry}


def test_entries_come_by_seq_wherever_in_the_file_they_stand(path: Path) -> None:
    appended = filled(path, LONG)
    with duckdb.connect(path) as file:
        file.execute("create temp table kept as select * from nbd.entries where n <= 10")
        file.execute("delete from nbd.entries where n <= 10")
        file.execute("insert into nbd.entries select * from kept order by seq desc")

    store = DuckDBStore(path)
    loaded = store.load_entries("s")
    store.close()

    assert loaded == appended
