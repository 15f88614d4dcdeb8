"""A session's entries as columns: what a tree needs to be drawn, and nothing that is long.

Owns the columns, their dictionaries and what hangs where. Does not own runs, marks or sending. The
one idea: the ordinal is the only name an entry has on the page, and what a row needs stands in the
columns of the store already, so that a hundred thousand rows are made without parsing a payload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from nbdurable.stored import StoredEntry

META, ERROR, ABORTED, CALLS, ORPHAN, HUMAN, RESULT_ERROR = (1 << bit for bit in range(7))

NAMES = ("parent", "role", "flags", "model", "tokens", "cost", "seconds", "at", "exp")

_ROLES = ("user", "assistant", "tool", "compaction")
_OF_REASON = {"error": ERROR, "aborted": ABORTED, "tool_calls": CALLS}
# as this package writes them; inside a text the quotes would be escaped
_IS_ERROR, _IS_HUMAN = '"is_error":true', '"author":"human"'

Op = dict[str, Any]


class Columns:
    """The entries of one session in the order of their ordinals; position i is entry n = i + 1."""

    def __init__(self) -> None:
        self.roles = list(_ROLES)
        self.models: list[str] = []
        self.parent: list[int] = []
        self.role: list[int] = []
        self.flags: list[int] = []
        self.model: list[int] = []
        self.tokens: list[int | None] = []
        self.cost: list[float | None] = []
        self.seconds: list[float | None] = []
        self.at: list[int] = []
        self.exp: list[int] = []
        self.branches = 0
        self.cost_usd: float | None = None
        self._n: dict[str, int] = {}
        self._has_child: set[int] = set()
        self._waiting: dict[str, list[int]] = {}  # children by a parent that is not there (yet)
        self._places: dict[str, int] = {role: at for at, role in enumerate(_ROLES)}
        self._model_places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.parent)

    def n_of(self, entry_id: str | None) -> int:
        """Return the ordinal of an entry; 0 for the root and for what is not known."""
        return 0 if entry_id is None else self._n.get(entry_id, 0)

    def has_child(self, n: int) -> bool:
        """Whether something was appended to an entry."""
        return n in self._has_child

    def extend(
        self, entries: Sequence[StoredEntry], exp_of: Callable[[StoredEntry], int] | None = None
    ) -> list[int]:
        """Add the next entries; return the ordinals of earlier ones that found their parent."""
        first = len(self) + 1
        self.role += [self._role(entry.role or entry.kind) for entry in entries]
        self.flags += map(_flags, entries)
        self.model += [-1 if e.model is None else self._model(e.model) for e in entries]
        self.tokens += map(_tokens, entries)
        self.cost += [entry.cost_usd for entry in entries]
        self.seconds += [e.seconds if e.seconds is None else round(e.seconds, 3) for e in entries]
        self.at += [entry.created_at // 1000 for entry in entries]
        self.exp += map(exp_of, entries) if exp_of else repeat(-1, len(entries))
        costs = [entry.cost_usd for entry in entries if entry.cost_usd is not None]
        if costs:
            self.cost_usd = sum(costs, self.cost_usd or 0.0)
        return self._hang(first, entries)

    def _hang(self, first: int, entries: Sequence[StoredEntry]) -> list[int]:
        known, has_child, found = self._n, self._has_child, []
        for n, entry in enumerate(entries, first):
            parent_id = entry.parent_id
            parent = known.get(parent_id, 0) if parent_id is not None else 0
            self.parent.append(parent)
            known[entry.id] = n
            self.branches += 1
            if parent:
                self._grow(parent, has_child)
            elif parent_id is not None:
                self.flags[n - 1] |= ORPHAN
                self._waiting.setdefault(parent_id, []).append(n)
            if self._waiting and entry.id in self._waiting:
                found += self._take_home(n, self._waiting.pop(entry.id))
        return [n for n in found if n < first]

    def _grow(self, parent: int, has_child: set[int]) -> None:
        if parent in has_child:
            return
        has_child.add(parent)
        self.branches -= 1

    def _take_home(self, parent: int, children: list[int]) -> list[int]:
        """Hang children under a parent that came after them, but close no ring."""
        above, at = {parent}, self.parent[parent - 1]
        while at and at not in above:
            above.add(at)
            at = self.parent[at - 1]
        home = [n for n in children if n not in above]
        for n in home:
            self.parent[n - 1] = parent
            self.flags[n - 1] &= ~ORPHAN
            self._grow(parent, self._has_child)
        return home

    def _role(self, role: str) -> int:
        place = self._places.get(role)
        if place is None:
            place = self._places[role] = len(self.roles)
            self.roles.append(role)
        return place

    def _model(self, model: str) -> int:
        place = self._model_places.get(model)
        if place is None:
            place = self._model_places[model] = len(self.models)
            self.models.append(model)
        return place

    # -- as they are sent ----------------------------------------------------------------------

    def state(self) -> dict[str, list[Any]]:
        """Return a copy of all columns by name."""
        return {name: list(getattr(self, name)) for name in NAMES}

    def row(self, n: int) -> Op:
        """Return one entry's fields by name."""
        return {name: getattr(self, name)[n - 1] for name in NAMES}


def _flags(entry: StoredEntry) -> int:
    flags = META if entry.meta else 0
    if entry.stop_reason is not None:
        return flags | _OF_REASON.get(entry.stop_reason, 0)
    if entry.role == "tool" and _IS_ERROR in entry.payload:
        flags |= RESULT_ERROR
    elif entry.role == "assistant" and _IS_HUMAN in entry.payload:
        flags |= HUMAN
    return flags


def _tokens(entry: StoredEntry) -> int | None:
    if entry.input_tokens is None and entry.output_tokens is None:
        return None
    return (
        (entry.input_tokens or 0)
        + (entry.output_tokens or 0)
        + (entry.cache_read_tokens or 0)
        + (entry.cache_write_tokens or 0)
        + (entry.reasoning_tokens or 0)
    )
