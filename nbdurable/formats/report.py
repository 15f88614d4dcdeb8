"""What an import did: a value that says it in a line, a table and a frame."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nbdurable.errors import shown
from nbdurable.notebook.page import page, plain
from nbdurable.reprs import count, one_line

if TYPE_CHECKING:
    import pandas as pd

Outcome = Literal["added", "grown", "unchanged", "refused"]

_SHOWN = 20  # sessions, and oddities, of one report on a screen
_LINE_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """What became of one session of a file.

    ``entries`` counts those that are new in the store, ``leaves`` the branches in the file.
    ``hidden`` counts what the source does not show, ``repaired`` what stands or reads otherwise
    than in the file; each has its oddity.
    """

    id: str
    outcome: Outcome
    entries: int
    leaves: int
    hidden: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """What was not as expected, in words, and where in the file."""

    text: str
    line: int | None = None
    session_id: str | None = None
    source_id: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        places = (
            None if self.file is None else f"{self.file}: ",
            None if self.line is None else f"line {self.line}: ",
            None if self.session_id is None else f"session {shown(self.session_id)}: ",
            None if self.source_id is None else f"entry {shown(self.source_id)}: ",
        )
        return "".join(filter(None, places)) + self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import added to a store and what it did not; see ``sessions`` and ``oddities``.

    ``times`` says by which rule the format's times were read, ``skipped`` has the sessions of which
    nothing was added, ``unread`` what of the file is in no session.
    """

    path: str
    format: str
    store: str
    sessions: tuple[ImportedSession, ...] = ()
    oddities: tuple[Oddity, ...] = ()
    times: str = ""

    @property
    def entries(self) -> int:
        """How many entries are new in the store."""
        return sum(session.entries for session in self.sessions)

    @property
    def leaves(self) -> int:
        """How many branches the sessions of the file have."""
        return sum(session.leaves for session in self.sessions)

    @property
    def hidden(self) -> int:
        """How many entries the source does not show; they are meta here, or were left out."""
        return sum(session.hidden for session in self.sessions)

    @property
    def repaired(self) -> int:
        """How many entries stand or read otherwise than in the file."""
        return sum(session.repaired for session in self.sessions)

    @property
    def unread(self) -> tuple[Oddity, ...]:
        """What was passed over: lines, records and files that are in no session."""
        return tuple(oddity for oddity in self.oddities if oddity.session_id is None)

    @property
    def skipped(self) -> tuple[ImportedSession, ...]:
        """The sessions of which nothing was added: known already, or refused."""
        return tuple(s for s in self.sessions if s.outcome in ("unchanged", "refused"))

    def df(self) -> pd.DataFrame:
        """Return one row per session, and one per oddity that is not the first of a session.

        Returns
        -------
        DataFrame
            ``session_id outcome file source_id oddity`` text,
            ``entries leaves hidden repaired line`` Int64.
        """
        from nbdurable.frames import imported_frame

        first: dict[str | None, Oddity] = {}
        for oddity in self.oddities:
            first.setdefault(oddity.session_id, oddity)
        first.pop(None, None)
        told = {id(odd) for odd in first.values()}
        of_sessions = [
            (*_counted(session), *_told(first.pop(session.id, None))) for session in self.sessions
        ]
        others = [
            (odd.session_id, None, None, None, None, None, *_told(odd))
            for odd in self.oddities
            if id(odd) not in told
        ]
        return imported_frame([*of_sessions, *others])

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heading = f"<div><b>{_cut(self._heading())}</b></div>"
        sessions = "".join(f"<li>{_cut(line)}</li>" for line in self._session_lines())
        odd = "".join(f"<div>{_cut(line)}</div>" for line in self._oddity_lines())
        parts = (
            heading,
            sessions and f"<ul>{sessions}</ul>",
            odd and f'<div class="nbd-note">{odd}</div>',
            self.times and f'<div class="nbd-dim">times: {_cut(self.times)}</div>',
        )
        return page("".join(filter(None, parts)))

    def _lines(self) -> list[str]:
        odd = (f"! {line}" for line in self._oddity_lines())
        times = [f"times: {self.times}"] if self.times else []
        told = (self._heading(), *self._session_lines(), *odd, *times)
        return [one_line(line, _LINE_CHARS) for line in told]

    def _heading(self) -> str:
        outcomes = Counter(session.outcome for session in self.sessions)
        told = [
            f"{count(outcomes[outcome], 'session')} {outcome}"
            for outcome in ("added", "grown", "unchanged", "refused")
            if outcomes[outcome]
        ]
        new = count(self.entries, "new entry", "new entries")
        found = ", ".join(told) or "no sessions in it"
        others = {"hidden": self.hidden, "repaired": self.repaired, "not read": len(self.unread)}
        more = "".join(f", {number:,} {what}" for what, number in others.items() if number)
        return f"{self.path} into {self.store}: {found}; {new}{more}"

    def _session_lines(self) -> list[str]:
        # What changed nothing is counted in the heading; who is refused is looked for first.
        told = [session for session in self.sessions if session.outcome != "unchanged"]
        told.sort(key=lambda session: session.outcome != "refused")
        lines = [_line(session) for session in told[:_SHOWN]]
        if len(told) > _SHOWN:
            lines.append(f"and {count(len(told) - _SHOWN, 'more session')}")
        return lines

    def _oddity_lines(self) -> list[str]:
        lines = [str(oddity) for oddity in self.oddities[:_SHOWN]]
        if len(self.oddities) > _SHOWN:
            lines.append(f"and {len(self.oddities) - _SHOWN:,} more")
        return lines


def _cut(line: str) -> str:
    return plain(one_line(line, _LINE_CHARS))


def _line(session: ImportedSession) -> str:
    on = f" on {session.leaves:,} branches" if session.leaves > 1 else ""
    new = count(session.entries, "new entry", "new entries")
    return f"{shown(session.id)} {session.outcome}, {new}{on}"


def _counted(session: ImportedSession) -> tuple[str | int, ...]:
    counts = (session.entries, session.leaves, session.hidden, session.repaired)
    return session.id, session.outcome, *counts


def _told(oddity: Oddity | None) -> tuple[str | None, int | None, str | None, str | None]:
    if oddity is None:
        return None, None, None, None
    return oddity.file, oddity.line, oddity.source_id, oddity.text
