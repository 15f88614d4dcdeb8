"""What the writer knows of the file, so that a check costs no query.

Owns counters, the sessions' ids and the ordinals, depths and position of each session touched.
Does not own rows. The one idea: everything here is a cache of the file, filled at first need;
`reset` forgets it whenever the file may say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from nbdurable.errors import EntryError, SessionNotFound, shown
from nbdurable.stores.duckdb.schema import ALIAS
from nbdurable.stores.duckdb.tail import Tail

Lookup = Callable[[str, Sequence[object]], list[tuple[object, ...]]]

_MOST_HOMES = 50_000
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_NEWEST_SEQ = f"""
    select greatest(
        coalesce((select max(seq) from {ALIAS}.nbd.entries), 0),
        coalesce((select max(seq) from {ALIAS}.nbd.moves), 0))
"""
_NEWEST_COUNTER = f"select coalesce(max(counter), 0) from {ALIAS}.nbd.{{table}}"
# The newest that is known comes too: it is gone where a damaged log was cut.
_NEWER = f"""
    select seq, session_id, id::varchar, n, depth, moves_leaf from {ALIAS}.nbd.entries
    where seq >= $1
    union all select seq, session_id, entry_id::varchar, null, null, true from {ALIAS}.nbd.moves
    where seq >= $1 order by seq
"""
_NEWEST_ID = f"select max(id)::varchar from {ALIAS}.nbd.entries"
_HOMES = f"""
    select id::varchar, session_id from {ALIAS}.nbd.entries
    where id in (select unnest(?::uuid[])) order by seq
"""
_NUMBERS = f"""
    select id::varchar, seq, n, depth, moves_leaf, digest from {ALIAS}.nbd.entries
    where id in (select unnest(?::uuid[])) order by seq
"""
_SESSIONS = f"select id from {ALIAS}.nbd.sessions where id in (select unnest(?::varchar[]))"
_SESSION = f"select counter from {ALIAS}.nbd.sessions where id = ?"
# One query where it might be six: each costs a millisecond, most of it for its plan. Rows are
# (what, seq, id, n, depth).
_LOAD = f"""
    select 'session', null, null, null, null from {ALIAS}.nbd.sessions where id = $1
    union all select 'moved by', max(seq) filter (moves_leaf),
        arg_max(id, seq) filter (moves_leaf)::varchar,
        max(n), arg_max(depth, seq) filter (moves_leaf)
    from {ALIAS}.nbd.entries where session_id = $1
    union all select 'moved to', max(seq), arg_max(coalesce(entry_id::varchar, ''), seq), null, null
    from {ALIAS}.nbd.moves where session_id = $1
"""
_LOAD_FIRST = f"""{_LOAD}
    union all select 'newest', max(seq), max(id)::varchar, null, null from {ALIAS}.nbd.entries
    union all select 'newest', max(seq), null, null, null from {ALIAS}.nbd.moves
"""
_DEPTH = f"select depth from {ALIAS}.nbd.entries where id = ?::uuid and session_id = ?"
_RUNS = f"""
    select id, session_id from {ALIAS}.nbd.runs where id in (select unnest(?::varchar[]))
"""
_NEWEST_RUN = f"select coalesce(max(id), '') from {ALIAS}.nbd.runs"
_KNOWN = f"select {{value}} from {ALIAS}.nbd.{{table}} where {{column}} = ? limit 1"


@dataclass(slots=True)
class SessionState:
    """What an append to one session is checked against."""

    id: str
    depths: dict[str, int] = field(default_factory=dict)  # of the entries met so far, on its path
    position: str | None = None
    last_n: int = 0


class State:
    """A cache of the file for the writer's thread alone."""

    def __init__(self, lookup: Lookup, tail: Tail) -> None:
        self._lookup = lookup
        self._tail = tail
        self.reset()

    def reset(self) -> None:
        """Forget everything; what is needed is read again."""
        self._sessions: dict[str, SessionState] = {}
        self._counters: dict[str, int] = {}
        self._known: dict[tuple[str, str], object] = {}
        self._homes: dict[str, str] = {}  # of the entries appended since the last reset
        self._newest_id: str | None = None
        self._no_sessions: frozenset[str] = frozenset()  # ids that `expect` did not find
        self._no_entries: frozenset[str] = frozenset()
        self._forget_runs()

    def _forget_runs(self) -> None:
        """Forget what others may have changed of runs."""
        self._newest_run_id: str | None = None  # when it was last looked up
        self._open_runs: set[str] = set()  # started since; nobody else can have ended them

    @property
    def is_large(self) -> bool:
        """Whether it is time to forget, as an import of many entries would fill the memory."""
        return len(self._homes) > _MOST_HOMES

    def expect(self, session_ids: Sequence[str], entry_ids: Sequence[str]) -> None:
        """Look up many ids in two queries, so that none of them costs one of its own."""
        found = self._lookup(_SESSIONS, (list(session_ids),))
        self._no_sessions = frozenset(session_ids) - {str(id) for (id,) in found}
        homes = self.homes_of(entry_ids)
        self._homes.update(homes)
        self._no_entries = frozenset(entry_ids) - homes.keys()

    def catch_up(self) -> None:
        """Learn what others wrote, which is newer than all that is known here."""
        seq = self._counters.get("seq")
        self._no_sessions = self._no_entries = frozenset()
        self._forget_runs()
        if seq is None:
            self._tail.learn([])  # what it held may lack what others wrote meanwhile
            self.reset()
            return
        rows = self._tail.after(seq)
        if rows is None:
            rows = self._lookup(_NEWER, (seq,))
            self._tail.learn(rows)
        if seq and (not rows or rows[0][0] != seq):
            self.reset()
            return
        for _, session_id, entry_id, n, depth, moves_leaf in rows:
            session = self._sessions.get(str(session_id))
            if n is not None:
                self._homes[str(entry_id)] = str(session_id)
            if session is None:
                continue
            if n is not None:
                session.last_n = int(str(n))
                session.depths[str(entry_id)] = int(str(depth))
            if moves_leaf:
                session.position = None if entry_id is None else str(entry_id)
        self._counters = {"seq": int(str(rows[-1][0])) if rows else seq}

    # -- counters ------------------------------------------------------------------------------

    def last(self, table: str) -> int:
        """Return the newest counter of a table, or ``seq`` of entries and moves together."""
        if table not in self._counters:
            query = _NEWEST_SEQ if table == "seq" else _NEWEST_COUNTER.format(table=table)
            self._counters[table] = int(str(self._lookup(query, ())[0][0]))
        return self._counters[table]

    def advance(self, table: str, count: int = 1) -> int:
        """Count rows of a table as stored; return the newest counter."""
        self._counters[table] = self.last(table) + count
        return self._counters[table]

    # -- keys ----------------------------------------------------------------------------------

    def value_of(self, table: str, column: str, key: str, value: str = "1") -> object:
        """Return a column of the row with a key, or None where there is no such row."""
        if (table, key) not in self._known:
            query = _KNOWN.format(value=value, table=table, column=column)
            rows = self._lookup(query, (key,))
            if not rows:
                return None
            self._known[table, key] = rows[0][0]
        return self._known[table, key]

    def run_homes(self, ids: Collection[str]) -> dict[str, str]:
        """Return the session of each of `ids` that is a run of the store; as for `homes_of`."""
        homes = {id: str(self._known["runs", id]) for id in ids if ("runs", id) in self._known}
        others = [id for id in ids if id not in homes]
        if others and self._newest_run_id is None:
            self._newest_run_id = str(self._lookup(_NEWEST_RUN, ())[0][0])
        old = [id for id in others if id <= (self._newest_run_id or "")]
        if old:
            homes.update((str(id), str(home)) for id, home in self._lookup(_RUNS, (old,)))
        return homes

    def start_run(self, run_id: str, session_id: str) -> None:
        """Count a run as started."""
        self.learn("runs", run_id, session_id)
        self._open_runs.add(run_id)

    def end_run(self, run_id: str) -> bool:
        """Count a run as ended; return whether it had no end so far."""
        if run_id in self._open_runs:
            self._open_runs.remove(run_id)
        elif self.value_of("run_ends", "run_id", run_id) is not None:
            return False
        self.learn("run_ends", run_id)
        return True

    def learn(self, table: str, key: str, value: object = 1) -> None:
        """Count a row with a key as stored."""
        self._known[table, key] = value

    # -- sessions ------------------------------------------------------------------------------

    def has_session(self, session_id: str) -> bool:
        """Whether the session exists."""
        if session_id in self._sessions:
            return True
        return session_id not in self._no_sessions and bool(self._lookup(_SESSION, (session_id,)))

    def session(self, session_id: str, name: str) -> SessionState:
        """Return what is known of a session, read at first touch.

        Raises
        ------
        SessionNotFound
            The store, called `name`, has none of this id (B8).
        """
        state = self._sessions.get(session_id) or self._load(session_id)
        if state is None:
            raise no_session(session_id, name)
        self._sessions[session_id] = state
        return state

    def add_session(self, session_id: str, state: SessionState) -> None:
        """Count a session as created."""
        self._sessions[session_id] = state

    def _load(self, session_id: str) -> SessionState | None:
        is_first = "seq" not in self._counters
        rows = self._lookup(_LOAD_FIRST if is_first else _LOAD, (session_id,))
        found = {str(what): values for what, *values in rows if what != "newest"}
        if is_first:
            newest = [values for what, *values in rows if what == "newest"]
            self._counters["seq"] = max(_number(seq) for seq, *_ in newest)
            self._newest_id = max(str(entry_id or "") for _, entry_id, *_ in newest)
        if "session" not in found:
            return None
        moved_at, moved_by, last_n, depth = found["moved by"]
        state = SessionState(session_id, last_n=_number(last_n))
        if moved_by is not None:
            state.position = str(moved_by)
            state.depths[state.position] = _number(depth)
        seq, target, *_ = found["moved to"]
        if _number(seq) > _number(moved_at):
            state.position = str(target) or None
        return state

    def depth_of(self, session: SessionState, entry_id: str) -> int | None:
        """Return how many entries are on the path to one of the session, or None for others."""
        depth = session.depths.get(entry_id)
        if depth is None and _UUID.fullmatch(entry_id):
            for (found,) in self._lookup(_DEPTH, (entry_id, session.id)):
                depth = session.depths[entry_id] = int(str(found))
        return depth

    # -- entry ids -----------------------------------------------------------------------------

    def homes_of(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the session of each of `ids` that the store holds.

        Ids grow with time, so that one above the newest of the file needs no query.
        """
        ids = list(ids)
        if ids and self._newest_id is None:
            found = self._lookup(_NEWEST_ID, ())[0][0]
            self._newest_id = "" if found is None else str(found)
        homes = {id: self._homes[id] for id in ids if id in self._homes}
        newest = self._newest_id or ""
        old = [id for id in ids if id <= newest and id not in homes and id not in self._no_entries]
        if old:
            homes.update((str(id), str(home)) for id, home in self._lookup(_HOMES, (old,)))
        return homes

    def rows_of(self, ids: Sequence[str]) -> dict[str, tuple[object, ...]]:
        """Return (seq, n, depth, moves, digest) of each of `ids` that the file holds now."""
        return {str(id): tuple(row) for id, *row in self._lookup(_NUMBERS, (list(ids),))}

    def add_home(self, entry_id: str, session_id: str) -> None:
        """Count an entry as stored in a session."""
        self._homes[entry_id] = session_id


def _number(value: object) -> int:
    return 0 if value is None else int(str(value))


def no_session(session_id: str, name: str) -> SessionNotFound:
    """Return the error for an unknown session."""
    return SessionNotFound(
        f"session {shown(session_id)} is not in store {name!r}; see list_sessions()"
    )


def is_entry_id(text: str) -> bool:
    """Whether a text is a UUID in its plain form."""
    return _UUID.fullmatch(text) is not None


def check_entry_id(entry_id: str) -> None:
    """Raise `EntryError` unless an entry's id is a UUID in its plain form."""
    if not is_entry_id(entry_id):
        raise EntryError(
            f"entry id {shown(entry_id)} is not a UUID in lower case; make one with IdMaker"
        )
