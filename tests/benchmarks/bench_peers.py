"""Measure a conversation of 10,000 messages here and in the peers; print a Markdown table.

Exit code 1 when we do not lead in branch or frame, or open more than 20 ms after the fastest. Each
figure is the best of several tries, each on a store opened afresh.

open: from the file to a conversation that can be gone on with, all messages at hand; branch: go
back to the middle and store one message there; frame: from the file to a DataFrame of all messages.
The floor of a branch is what DuckDB alone takes for its two rows, each durable before the next.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
from bench_core import timed
from peers import Ours, Peer, conversation, installed

from nbdurable.stores.duckdb.schema import ALIAS, ROW_GROUP_SIZE

MESSAGES = 10_000
TRIES = 7
OPEN_SLACK_MS = 20.0
VERBS = ("open", "branch", "frame")

Figures = dict[str, float]  # milliseconds by verb; a verb that a peer lacks is missing


def measure(peer_type: type[Peer], folder: Path) -> Figures:
    """Return the best times of one peer."""
    peer = peer_type(folder)
    peer.build(conversation(MESSAGES))
    tries = [_try(peer, turn) for turn in range(MESSAGES // 4, MESSAGES // 4 + TRIES)]
    return {verb: min(found[verb] for found in tries) for verb in tries[0]}


def _try(peer: Peer, turn: int) -> Figures:
    opened: list[object] = []
    actions: dict[str, Callable[[], object]] = {"open": lambda: opened.append(peer.open())}
    if peer.branch is not None:
        actions["branch"] = lambda: peer.branch(opened[0], turn)
    times = {verb: timed(action) * 1_000 for verb, action in actions.items()}
    peer.close(opened[0])
    if peer.frame is not None:
        times["frame"] = timed(peer.frame) * 1_000
    return times


def floor_ms(folder: Path) -> float:
    """Return the best time of two bare inserts like those of a branch, in a file like ours."""
    peer = Ours(folder)
    peer.build(conversation(MESSAGES))
    return min(_two_inserts_s(folder / "talk.duckdb") for _ in range(TRIES)) * 1_000


def _two_inserts_s(path: Path) -> float:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{path}' as {ALIAS} (row_group_size {ROW_GROUP_SIZE})")
        connection.execute(f"use {ALIAS}.nbd")
        row = connection.execute("select * from entries limit 1").fetchone()
        assert row is not None
        rows = {"moves": ("talk", row[1], 1 << 40, row[-3]), "entries": row}
        statements = {
            table: connection.extract_statements(
                f"insert into {table} values ({', '.join('?' * len(values))})"
            )[0]
            for table, values in rows.items()
        }
        return sum(
            timed(lambda table=table: connection.execute(statements[table], list(rows[table])))
            for table in rows
        )


def verdicts(ours: Figures, others: list[Figures]) -> dict[str, bool]:
    """Return for each verb whether the target is met."""
    best = {verb: min(found[verb] for found in others if verb in found) for verb in VERBS}
    return {
        "open": ours["open"] <= best["open"] + OPEN_SLACK_MS,
        "branch": ours["branch"] <= best["branch"],
        "frame": ours["frame"] <= best["frame"],
    }


def main() -> int:
    """Measure all that are installed."""
    warnings.simplefilter("ignore")
    found: dict[str, Figures] = {}
    print(f"{MESSAGES:,} messages | {' | '.join(f'{verb}, ms' for verb in VERBS)}")
    print("--- | --- | --- | ---")
    for peer in installed():
        with tempfile.TemporaryDirectory() as folder:
            found[peer.name] = measure(peer, Path(folder))
        cells = [f"{found[peer.name][v]:.1f}" if v in found[peer.name] else "" for v in VERBS]
        print(f"{peer.name} | {' | '.join(cells)}", flush=True)
    ours = found.pop(Ours.name)
    if not found:
        print("no peer is installed, so there is nothing to compare with", file=sys.stderr)
        return 1
    met = verdicts(ours, list(found.values()))
    with tempfile.TemporaryDirectory() as folder:
        print(f"DuckDB alone, two rows as wide | | {floor_ms(Path(folder)):.1f} |")
    print("; ".join(f"{verb}: {'met' if ok else 'missed'}" for verb, ok in met.items()))
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
