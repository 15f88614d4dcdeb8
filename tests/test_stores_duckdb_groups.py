"""How rows of a file lie in groups: what a checkpoint may put together."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import stored
from nbdurable.stores.duckdb import DuckDBStore


# B61
@pytest.mark.parametrize(("chars", "groups"), [(100, 1), (40_000, 3)])
def test_a_checkpoint_merges_groups_of_rows_only_where_their_texts_are_short(
    tmp_path: Path, chars: int, groups: int
) -> None:
    """All that is merged is in memory at once, which of long texts is hundreds of megabytes."""
    path = tmp_path / "s.duckdb"

    for session_id in "abc":
        store = DuckDBStore(path)
        entries = [stored(session_id, text=f"{place}".ljust(chars, "-")) for place in range(20)]
        store.create_session(SessionRecord(id=session_id, created_at=1), entries)
        store.close()  # with a checkpoint

    with duckdb.connect(str(path), read_only=True) as connection:
        query = "select count(distinct row_group_id) from pragma_storage_info('nbd.entries')"
        assert connection.execute(query).fetchall() == [(groups,)]
