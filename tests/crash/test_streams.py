"""A kill in the middle of an answer leaves all but the last half second of it (B24)."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from crash.kills import Life, Lives
from crash.life import STREAMS

from nbdurable.codec import decode
from nbdurable.stores.duckdb import DuckDBStore

pytestmark = pytest.mark.compiler


@dataclass(frozen=True, slots=True)
class Stream:
    """What a child streamed of one answer, word by word, and what is stored of it."""

    words: list[tuple[float, str]]
    stored: str
    died_at: float

    @property
    def missing_s(self) -> float:
        """How long before the kill the first word came that is not stored."""
        length = 0
        for at, word in self.words:
            length += len(word)
            if length > len(self.stored):
                return self.died_at - at
        return 0.0


def killed(lives: Lives, path: Path, after_s: float) -> list[Stream]:
    """Kill a child while it streams; return its answers, each recovered once."""
    (life,) = lives.lived([Life(path=path, seed=0, after_s=after_s, does="stream")])
    assert life.code == -9
    words: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run_id, at, text in life.said("word"):
        words[run_id].append((at, text))
    with contextlib.closing(DuckDBStore(path)) as store:
        recovered = store.recover()
        assert store.recover() == ()
    assert set(life.said("spooled")) == {entry.id for entry in recovered}
    assert {entry.stop_reason for entry in recovered} == {"aborted"}
    texts = {entry.run_id: decode(entry, store.get_blob).text for entry in recovered}
    streams = [Stream(said, texts.get(run_id, ""), life.died_at) for run_id, said in words.items()]
    for stream in streams:
        assert "".join(word for _, word in stream.words).startswith(stream.stored)
    return streams


# B24
def test_a_kill_keeps_what_was_spooled_of_each_answer(lives: Lives, folder_in_memory: Path) -> None:
    streams = killed(lives, folder_in_memory / "chats.duckdb", after_s=1.4)

    assert len(streams) == STREAMS
    assert all(stream.stored for stream in streams)
    print(f"{max(stream.missing_s for stream in streams):.2f} s missing at most")


# B24
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_costs_no_more_than_six_tenths_of_a_second(
    lives: Lives, folder_in_memory: Path
) -> None:
    chance = random.Random(24)

    missing = [
        stream.missing_s
        for number in range(20)
        for stream in killed(
            lives, folder_in_memory / f"{number}.duckdb", after_s=chance.uniform(0.7, 2.5)
        )
    ]

    print(f"{len(missing)} answers cut: {max(missing):.2f} s missing at most")
    assert max(missing) <= 0.6
