"""One session's rows in memory, and what is counted along with them.

Owns the checks of an append and the columns a store assigns. Does not own the counters of the
whole store, nor any lock. The one idea: what a listing or a check needs is kept as each row comes,
so that neither walks the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nbdurable.errors import EntryError, shown
from nbdurable.stored import (
    Annotation,
    ExperimentRecord,
    Move,
    RunRecord,
    SessionRecord,
    SessionSummary,
    StoredEntry,
    digest_of,
)
from nbdurable.stores.beside import in_order, no_target


@dataclass(slots=True)
class SessionRows:
    """The rows of one session; `completed` checks, `keep` stores."""

    record: SessionRecord
    created_after: int  # the store's seq at creation
    ordinal: int
    entries: list[StoredEntry] = field(default_factory=list)
    depths: dict[str, int] = field(default_factory=dict)  # entry id -> entries on its path
    parents: set[str] = field(default_factory=set)
    moves: list[Move] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    experiments: list[ExperimentRecord] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)  # an ordered set
    position: str | None = None
    title: str | None = None
    cost_usd: float = 0.0

    @property
    def changes(self) -> int:
        """How many rows an image of the session reads."""
        beside = len(self.moves) + len(self.annotations) + len(self.experiments)
        return len(self.entries) + beside

    def completed(
        self,
        entries: Sequence[StoredEntry],
        last_seq: int,
        homes: Mapping[str, str],
        moves: Sequence[Move] = (),
    ) -> tuple[tuple[StoredEntry, ...], tuple[Move, ...]]:
        """Return entries and moves with the columns a store assigns; change nothing.

        Parameters
        ----------
        entries : sequence of StoredEntry
            As given to an append.
        last_seq : int
            The store's newest ``seq``.
        homes : mapping
            The session id of every entry id in the store.
        moves : sequence of Move
            Stored with the entries, where their ``seq`` says.

        Raises
        ------
        EntryError
            An entry of another session, a duplicate id, or a parent not in this session (B60).
        EntryNotFound
            A move to an entry that is not there when its turn comes.
        """
        position = self.position
        earlier: dict[str, int] = {}
        rows: list[StoredEntry] = []
        moved: list[Move] = []
        for seq, entry in enumerate(in_order(entries, moves), last_seq + 1):
            if isinstance(entry, Move):
                position = entry.entry_id
                if not (position is None or position in earlier or position in self.depths):
                    raise no_target(f"entry {shown(position)} of a move", self.record.id)
                moved.append(replace(entry, seq=seq))
                continue
            self._check(entry, earlier, homes)
            parent_id, moves_leaf = entry.parent_id, entry.moves_leaf
            depth = 1
            if parent_id is not None:
                depth += earlier.get(parent_id) or self.depths[parent_id]
            earlier[entry.id] = depth
            if moves_leaf is None:
                moves_leaf = parent_id == position
            if moves_leaf:
                position = entry.id
            n = len(self.entries) + len(rows) + 1
            row = entry._replace(seq=seq, n=n, depth=depth, moves_leaf=moves_leaf)
            rows.append(row._replace(digest=digest_of(row)))
        return tuple(rows), tuple(moved)

    def _check(
        self, entry: StoredEntry, earlier: Mapping[str, int], homes: Mapping[str, str]
    ) -> None:
        session_id = self.record.id
        if entry.session_id != session_id:
            raise EntryError(
                f"entry {shown(entry.id)} is of session {shown(entry.session_id)}, not of "
                f"{shown(session_id)}; append it to its own session"
            )
        if entry.id in homes or entry.id in earlier:
            home = homes.get(entry.id, session_id)
            raise EntryError(
                f"entry {shown(entry.id)} is already in session {shown(home)}; give it a new id"
            )
        parent_id = entry.parent_id
        if parent_id is not None and parent_id not in self.depths and parent_id not in earlier:
            raise EntryError(
                f"parent {shown(parent_id)} of entry {shown(entry.id)} is not in session "
                f"{shown(session_id)} ({len(self.entries)} entries); append the parent first"
            )

    def keep(self, row: StoredEntry) -> None:
        """Store a completed row."""
        self.entries.append(row)
        self.depths[row.id] = row.depth
        if row.parent_id is not None:
            self.parents.add(row.parent_id)
        if row.moves_leaf:
            self.position = row.id
        if self.title is None and row.role == "user" and not row.meta:
            self.title = row.preview
        if row.model is not None:
            self.models.setdefault(row.model)
        self.cost_usd += row.cost_usd or 0.0

    def keep_move(self, move: Move) -> None:
        """Store a move."""
        self.moves.append(move)
        self.position = move.entry_id

    def recency(self) -> tuple[int, int]:
        """Return a key that grows with each use of a session: by ``seq``, never by time (B4)."""
        entry_seq = self.entries[-1].seq if self.entries else 0
        move_seq = self.moves[-1].seq if self.moves else 0
        return max(entry_seq, move_seq, self.created_after), self.ordinal

    def summary(self) -> SessionSummary:
        """Return the session's line of a listing."""
        return SessionSummary(
            session=self.record,
            title=self.title or "",
            entries=len(self.entries),
            leaves=len(self.entries) - len(self.parents),
            last_at=self.entries[-1].created_at if self.entries else self.record.created_at,
            models=tuple(self.models),
            cost_usd=self.cost_usd,
        )


def check_session_id(session_id: str) -> None:
    """Raise `EntryError` unless `session_id` is non-empty text without NUL (B9)."""
    if not session_id or "\0" in session_id:
        raise EntryError(
            f"session id {shown(session_id)} is not legal; give any non-empty text without NUL"
        )
