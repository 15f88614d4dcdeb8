"""The columns that a store assigns to entries and moves, and what of them is refused (B60).

Pure: it is told what the session holds. The one idea: everything is checked before a number is
drawn, so that a refused call leaves no hole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nbdurable.errors import EntryError, shown
from nbdurable.stored import Move, StoredEntry, digest_of
from nbdurable.stores.beside import in_order, no_target


@dataclass(slots=True)
class Standing:
    """What a session holds, as far as an append is checked against it."""

    id: str
    last_n: int = 0
    last_seq: int = 0  # of entries and moves
    position: str | None = None
    depths: dict[str, int] = field(default_factory=dict)  # of the entries that the call names
    homes: dict[str, str] = field(default_factory=dict)  # sessions of entries that the call names


def checked(
    standing: Standing, entries: Sequence[StoredEntry], moves: Sequence[Move]
) -> list[StoredEntry | Move]:
    """Return entries and moves in their order, complete but for ``seq`` and digest.

    `standing` learns the depths of the entries.

    Raises
    ------
    EntryError
        An entry of another session, a duplicate id, or a parent not in this session.
    EntryNotFound
        A move to an entry that is not there when its turn comes.
    """
    position, n = standing.position, standing.last_n
    rows: list[StoredEntry | Move] = []
    for row in in_order(entries, moves):
        if isinstance(row, Move):
            position = row.entry_id
            if position is not None and position not in standing.depths:
                raise no_target(f"entry {shown(position)} of a move", standing.id)
            rows.append(row)
            continue
        _check(row, standing)
        above = standing.depths[row.parent_id] if row.parent_id is not None else 0
        moves_leaf = row.parent_id == position if row.moves_leaf is None else row.moves_leaf
        n += 1
        standing.depths[row.id] = above + 1
        standing.homes[row.id] = standing.id
        if moves_leaf:
            position = row.id
        rows.append(
            row._replace(
                n=n,
                depth=above + 1,
                moves_leaf=moves_leaf,
                cost_usd=_real(row.cost_usd),
                seconds=_real(row.seconds),
                ttft_s=_real(row.ttft_s),
            )
        )
    return rows


def numbered(
    rows: Sequence[StoredEntry | Move], numbers: Sequence[int]
) -> tuple[tuple[StoredEntry, ...], tuple[Move, ...]]:
    """Return the entries and the moves of `checked`, with ``seq`` and digest."""
    entries: list[StoredEntry] = []
    moves: list[Move] = []
    for row, seq in zip(rows, numbers, strict=True):
        if isinstance(row, Move):
            moves.append(replace(row, seq=seq))
        else:
            placed = row._replace(seq=seq)
            entries.append(placed._replace(digest=digest_of(placed)))
    return tuple(entries), tuple(moves)


def _real(number: float | None) -> float | None:
    # A whole number comes back from a column of reals as one, which a digest tells apart.
    return None if number is None else float(number)


def _check(entry: StoredEntry, standing: Standing) -> None:
    if entry.session_id != standing.id:
        raise EntryError(
            f"entry {shown(entry.id)} is of session {shown(entry.session_id)}, not of "
            f"{shown(standing.id)}; append it to its own session"
        )
    home: Mapping[str, str] = standing.homes
    if entry.id in home:
        raise EntryError(
            f"entry {shown(entry.id)} is already in session {shown(home[entry.id])}; "
            "give it a new id"
        )
    if entry.parent_id is not None and entry.parent_id not in standing.depths:
        raise EntryError(
            f"parent {shown(entry.parent_id)} of entry {shown(entry.id)} is not in session "
            f"{shown(standing.id)} ({standing.last_n} entries); append the parent first"
        )
