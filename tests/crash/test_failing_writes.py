"""A write that fails at any place leaves no append in doubt, and none is written twice (B67)."""

from __future__ import annotations

import contextlib
import errno
import shutil
from pathlib import Path

import pytest
from crash.kills import Life, Lives

from nbdurable.stored import SessionRecord
from nbdurable.stores.conformance import chain
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check

pytestmark = pytest.mark.compiler


def prove(life: Life) -> None:
    """Check what is stored against what the child was told of each append."""
    with contextlib.closing(DuckDBStore(life.path)) as store:
        stored = [entry.id for entry in store.load_entries("s")][1:]
    acknowledged = [entry_id for ids in life.said("ids") for entry_id in ids]
    unknown = [entry_id for ids, _ in life.said("unknown") for entry_id in ids]
    assert [entry_id for entry_id in stored if entry_id not in unknown] == acknowledged, life.lines
    assert len(stored) == len(set(stored)), (life, "stored twice")
    assert check(life.path).is_sound, (life, check(life.path).findings)


# B67 B63
@pytest.mark.parametrize("fails", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_an_append_is_answered_with_what_became_of_it(
    lives: Lives, folder_in_memory: Path, fails: int
) -> None:
    template = folder_in_memory / "template.duckdb"
    with contextlib.closing(DuckDBStore(template)) as store:
        store.create_session(SessionRecord(id="s", created_at=1), chain(1))

    def home(at: int) -> Life:
        place = folder_in_memory / str(at)
        place.mkdir()
        shutil.copy(template, place / "chats.duckdb")
        return Life(path=place / "chats.duckdb", seed=0, at=at, fails=fails, does="append")

    (whole,) = lives.lived([home(0)])
    (operations,) = whole.said("end")
    outcomes = dict.fromkeys(("ids", "refused", "unknown"), 0)
    for life in lives.lived([home(at) for at in range(1, operations + 1)]):
        prove(life)
        for kind in outcomes:
            outcomes[kind] += len(life.said(kind))

    print(operations, outcomes)
    assert outcomes["refused"] >= 6
    assert outcomes["ids"] > outcomes["refused"]
