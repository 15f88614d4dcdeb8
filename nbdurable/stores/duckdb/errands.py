"""Appends that whoever has the file does for those who wait for it: one commit, not one hold each.

Owns the files by which processes ask and answer. Does not own what is checked and written. The one
idea: an answer only saves the asker a look. Who asked and finds its request taken but not answered,
since the one who took it was killed or refused it, looks in the file for the ids of its entries
(B67): so nothing is told that is not stored, and nothing is written twice.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nbdurable.stored import NOTHING, Beside, RunEnd, RunRecord, StoredEntry
from nbdurable.stores.duckdb.batch import Batch
from nbdurable.stores.duckdb.plans import Plans, numbered
from nbdurable.stores.duckdb.spool import ANSWERED, ASKED, UNFINISHED
from nbdurable.stores.duckdb.state import is_entry_id

Stored = tuple[StoredEntry, ...]

_MOST_BYTES = 1_000_000  # of a request; a longer one takes its own turn
_FRESH_S = 1.0  # for which a request is done without a look whether its process is alive


class DoneElsewhere(Exception):
    """The turn came, and another process has done meanwhile what it was for."""


@dataclass(frozen=True, slots=True)
class Append:
    """An append as a plan, which can be written down unless more goes with it than a run."""

    session_id: str
    entries: Stored
    beside: Beside = NOTHING

    def __call__(self, plans: Plans, batch: Batch) -> Stored:
        """Check and stage it."""
        return plans.append(batch, self.session_id, self.entries, self.beside)

    @property
    def is_plain(self) -> bool:
        """Whether it may be done elsewhere; its entries tell whether it was."""
        has_ids = bool(self.entries) and all(is_entry_id(entry.id) for entry in self.entries)
        return has_ids and replace(self.beside, runs=(), ends=()) == NOTHING

    def found_in(self, rows: Mapping[str, Sequence[Any]]) -> Stored | None:
        """Return it as stored where rows by id hold all of it, equal in content; else None."""
        found = []
        for entry in self.entries:
            *numbers, digest = rows.get(entry.id, (0, 0, 0, False, ""))
            found.append(numbered(entry, *numbers))
            if found[-1].digest != digest:
                return None
        return tuple(found)

    def to_wire(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "session_id": self.session_id,
            "entries": [entry._asdict() for entry in self.entries],
            "runs": [asdict(run) for run in self.beside.runs],
            "ends": [asdict(end) for end in self.beside.ends],
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Append:
        """Return what `to_wire` was called on."""
        runs = [{**run, "input_ids": tuple(run["input_ids"])} for run in wire["runs"]]
        beside = Beside(
            runs=tuple(RunRecord(**run) for run in runs),
            ends=tuple(RunEnd(**end) for end in wire["ends"]),
        )
        entries = tuple(StoredEntry(**entry) for entry in wire["entries"])
        return cls(wire["session_id"], entries, beside)


class Errand:
    """What a process asks for while it waits for its turn."""

    def __init__(self, stem: Path, token: str, appends: Sequence[Append]) -> None:
        names = (ASKED, ANSWERED, UNFINISHED)
        self._asked, self._answered, self._unfinished = map(stem.with_suffix, names)
        self._token = token
        self._appends = appends
        self._is_posted = False
        self.results: list[Stored | None] = []  # of each append; None for one that was refused

    def post(self) -> None:
        """Let whoever has the file see it, once."""
        if self._is_posted:
            return
        wire = {"token": self._token, "appends": [one.to_wire() for one in self._appends]}
        text = json.dumps(wire)
        if len(text) > _MOST_BYTES:
            return
        try:
            self._unfinished.write_text(text, "ascii")
            os.replace(self._unfinished, self._asked)
            self._is_posted = True
        except OSError:  # a full disk: it goes in its own turn
            _remove(self._unfinished)

    def is_done(self) -> bool:
        """Whether it was answered; then `results` are there."""
        if self.results or not self._is_posted:
            return bool(self.results)
        try:
            answer = json.loads(self._answered.read_bytes())
            if answer["token"] != self._token:
                return False
            self.results = [
                None if rows is None else tuple(map(_numbered, append.entries, rows))
                for append, rows in zip(self._appends, answer["results"], strict=True)
            ]
        except (OSError, ValueError, LookupError, TypeError):
            return False  # it was taken up, and what came of it is in the file alone
        return True

    def take_back(self) -> bool:
        """Take it back, so that nobody takes it up any more; whether somebody had."""
        if self._is_posted:
            try:
                self._asked.unlink()
            except OSError:
                _remove(self._answered)  # its text, where there is no answer
                return True
            self._is_posted = False
        return False


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _numbered(entry: StoredEntry, row: Sequence[Any]) -> StoredEntry:
    return numbered(entry, *row)


@dataclass(slots=True)
class Request:
    """What another process asks for, taken up."""

    path: Path
    token: str
    appends: list[Append]

    def answer(self, results: Sequence[Stored | None]) -> None:
        """Tell what came of each append; once all of it is stored."""
        numbers = [
            None if rows is None else [(row.seq, row.n, row.depth, row.moves_leaf) for row in rows]
            for rows in results
        ]
        text = json.dumps({"token": self.token, "results": numbers})
        with contextlib.suppress(OSError):  # who asked looks for itself
            descriptor = os.open(self.path, os.O_WRONLY | os.O_TRUNC)  # gone when its asker is
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(text)


class Errands:
    """The errands of the processes that share one file.

    Parameters
    ----------
    folder : Path
        Where processes leave what they have to say to each other.
    owner : str
        The name of this process there.
    is_alive : callable
        Whether the process of a name is.
    """

    def __init__(self, folder: Path, owner: str, is_alive: Callable[[str], bool]) -> None:
        self._folder = folder
        self._owner = owner
        self._is_alive = is_alive
        self._numbers = itertools.count()

    def of(self, plans: Sequence[object]) -> Errand | None:
        """Return an errand for all of these plans, or None where one of them has to stay here."""
        appends = [plan for plan in plans if isinstance(plan, Append) and plan.is_plain]
        if len(appends) < len(plans):
            return None
        token = f"{self._owner} {next(self._numbers)}"
        return Errand(self._folder / self._owner, token, appends)

    def take_up(self) -> list[Request]:
        """Return what others ask for; to be answered, or looked for by who asked."""
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(ASKED))
        except OSError:
            return []
        requests = []
        for name in names:
            owner = name.removesuffix(ASKED)
            if owner != self._owner:
                with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                    requests += self._taken(self._folder / name, owner)
        return requests

    def _taken(self, asked: Path, owner: str) -> list[Request]:
        is_fresh = abs(time.time() - asked.stat().st_mtime) < _FRESH_S
        if not (is_fresh or self._is_alive(owner)):
            return []  # what it was about is long past, and its spool tells of it
        taken = asked.with_suffix(ANSWERED)
        os.replace(asked, taken)
        wire = json.loads(taken.read_bytes())
        appends = [Append.from_wire(one) for one in wire["appends"]]
        return [Request(taken, wire["token"], appends)]
