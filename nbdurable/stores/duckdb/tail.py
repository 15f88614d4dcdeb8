"""The last rows of the file, in a record beside it: what others wrote is learned without a query.

Owns that record. The one idea: whoever writes takes the record away before the commit and puts it
back after it, so that one which is there tells of every row from its first on; and it names the
state of the files it goes with, so that what any other tool wrote makes it void.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbdurable.stores.duckdb.place import state_of

NewRow = tuple[object, ...]  # seq, session, entry, n, depth, whether it moves the position

_MOST_ROWS = 32  # who missed more asks the file


class Tail:
    """The record beside one file; used while the file is attached, by one thread at a time."""

    def __init__(self, store_path: str) -> None:
        self._store_path = store_path
        self._path = Path(f"{store_path}.spool", "tail.json")
        self._rows: list[NewRow] = []  # the last of the file, none left out
        self._is_due = False

    def after(self, seq: int) -> list[NewRow] | None:
        """Return the rows from `seq` on, with that one, or None where only the file can tell."""
        self._rows = []
        try:
            state, rows = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        if state != self._state() or not rows or rows[0][0] > seq:
            return None
        self._rows = rows
        return [row for row in rows if row[0] >= seq]

    def learn(self, rows: Sequence[NewRow]) -> None:
        """Remember what the file itself told, to its end."""
        self._rows = list(rows[-_MOST_ROWS:])

    @contextlib.contextmanager
    def renewed(self, rows: Sequence[NewRow]) -> Iterator[None]:
        """Go without the record during a commit of `rows`."""
        kept, self._rows = self._rows, []
        self.remove()
        yield
        self._rows, self._is_due = [*kept, *rows][-_MOST_ROWS:], True

    def put(self, is_shared: bool) -> None:
        """Put the record back after commits, right before the file is let go to others, if any."""
        if self._is_due and is_shared:
            record = json.dumps([self._state(), self._rows])
            with contextlib.suppress(OSError):  # one that was cut is as good as none
                self._path.write_text(record, "ascii")
        self._is_due = False

    def remove(self) -> None:
        """Take the record away."""
        with contextlib.suppress(OSError):  # where it stays it is void: it names another state
            os.unlink(self._path)

    def _state(self) -> list[list[int]]:
        return [list(one) for one in state_of(self._store_path)]  # as JSON has it
