"""The JSON values of a file, one by one, whatever is wrong with some of them.

Owns text, lines and what is damaged in them. Does not own what a value means. The one idea: a file
is a row of records, so that no more than one is in memory, and what cannot be read of one does not
touch the next. A parser of events would lose all that follows a damaged byte, and half a character.
So a record is parsed as a whole, by a quick parser where it can tell that nothing is odd.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, Literal

CHUNK_BYTES = 1 << 20
LARGEST_CHARS = 1 << 28  # of one record; what is longer was never closed
_SNIFFED_LINES = 20

_BLANK = re.compile(r"[\s,\x00]*")
_OBJECT = re.compile(r'\{\s*"')

IsRecord = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """A value of a file; ``at`` is its line, or in a file of one value its ordinal, from 1."""

    value: Any
    at: int
    in_line: bool


@dataclass(frozen=True, slots=True)
class Damage:
    """What could not be read of a file, in words, and where."""

    text: str
    line: int | None = None


def read_values(file: IO[bytes], is_record: IsRecord) -> Iterator[Found | Damage]:
    """Yield the values of a file's lines, or of its list, or the one it holds.

    Parameters
    ----------
    file : binary file
        UTF-8, or another with its mark in front. It is read once, from where it stands.
    is_record : callable
        Whether a value is what the file is a list of; after damage, reading goes on at the next.
    """
    text = _Text(file)
    return _lines(text) if _has_lines(text) else _Listed(text, is_record).values()


class _Text:
    """The text of a file, decoded as it is read; ``held`` is what was read and not dropped."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode: codecs.IncrementalDecoder | None = None
        self._is_done = False
        self.held = ""

    def more(self) -> bool:
        """Read on, twice as much as there is; False at the end of the file."""
        if self._is_done:
            return False
        parts = [self.held]
        for _ in range(max(1, len(self.held) // CHUNK_BYTES)):
            data = self._file.read(CHUNK_BYTES)
            if self._decode is None:
                self._decode = _decoder(data)
            parts.append(self._decode.decode(data, final=not data))
            if not data:
                self._is_done = True
                break
        before = len(self.held)
        self.held = "".join(parts)
        return len(self.held) > before or not self._is_done

    def drop(self, until: int) -> None:
        """Forget what stands before a place."""
        self.held = self.held[until:]


def _decoder(first: bytes) -> codecs.IncrementalDecoder:
    wide = first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    # an illegal byte becomes half a character, which is told of where it is stored (B64)
    make = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")
    return make("replace" if wide else "surrogateescape")


def _has_lines(text: _Text) -> bool:
    """Whether each line is a value of its own; looks at the first ones."""
    while not text.held.strip() and text.more():
        pass
    if text.held.lstrip().startswith("["):
        return False
    while "\n" not in text.held.lstrip() and text.more():
        pass
    lines = text.held.split("\n")[:_SNIFFED_LINES]
    return any(line.startswith("{") and _is_object(line) for line in lines)


def _is_object(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value)


# -- lines -------------------------------------------------------------------------------------


def _lines(text: _Text) -> Iterator[Found | Damage]:
    number, start = 0, 0
    while True:
        end = text.held.find("\n", start)
        if end < 0:
            text.drop(start)
            start = 0
            if "\n" not in text.held and text.more():
                continue
            if not text.held.strip():
                return
            end = len(text.held)
        number += 1
        line = text.held[start:end].strip()
        if line:
            yield _line(line, number)
        start = end + 1


def _line(line: str, number: int) -> Found | Damage:
    value = _quick(line)
    if value is not _ODD:
        return Found(value, number, in_line=True)
    value, _, wrong, _ = _decoded(line, 0)
    if wrong is None:
        return Found(value, number, in_line=True)
    return Damage(f"the line cannot be read: {wrong}", number)


def _null(name: str) -> None:
    """Take NaN and infinities for null (B64)."""


def _real(digits: str) -> float | None:
    number = float(digits)
    return number if number - number == 0 else None


_scan = json.JSONDecoder(parse_constant=_null, parse_float=_real).raw_decode

Verdict = Literal["whole", "cut", "broken"]


@cache
def _quick_parser() -> Callable[..., Any]:
    from pydantic_core import from_json  # takes a while to import

    return from_json


def _quick(text: str) -> Any:
    """Return the value that a text is, or `_ODD` where the other parser decides what it is."""
    try:
        value = _quick_parser()(text, allow_inf_nan=False)
    except (ValueError, TypeError):  # the latter of half a character
        return _ODD
    return value if _is_finite(value) else _ODD


def _is_finite(value: Any) -> bool:
    """Whether no number is infinite, as the quick parser makes of one like 1e999."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, float) and one - one != 0:
            return False
    return True


_ODD = object()


def _decoded(text: str, at: int) -> tuple[Any, int, str | None, Verdict]:
    """Return the value at a place, its end, what is wrong and whether more text may help."""
    try:
        value, end = _scan(text, at)
        return value, end, None, "whole"
    except json.JSONDecodeError as exc:
        is_cut = exc.msg.startswith("Unterminated string") or exc.pos >= len(text) - 16
        return None, exc.pos, exc.msg.lower(), "cut" if is_cut else "broken"
    except RecursionError:
        return None, at + 1, "nested too deep", "broken"
    except ValueError:
        return None, at + 1, "a number of too many digits", "broken"


# -- a list ------------------------------------------------------------------------------------


class _Listed:
    """The values of a list, or the one value of a file."""

    def __init__(self, text: _Text, is_record: IsRecord) -> None:
        self._text = text
        self._is_record = is_record
        self._at = 0
        self._count = 0
        self._look: _Look | None = None

    def values(self) -> Iterator[Found | Damage]:
        """Yield values; what lies between a damaged one and the next record is left out."""
        is_list = self._next_char() == "["
        self._at += is_list
        while (char := self._next_char()) and not (is_list and char == "]"):
            value, end, wrong = self._decoded()
            self._count += 1
            if wrong is None:
                self._at = end
                yield Found(value, self._count, in_line=False)
                continue
            yield Damage(f"record {self._count} cannot be read: {wrong}")
            self._at = end
            record = self._next_record()
            if record is not None:
                self._count += 1
                yield record
        if is_list and not char:
            yield Damage(f"the file ends after record {self._count} of a list that goes on")

    def _next_char(self) -> str:
        """Move to what is no blank or comma and return it; nothing at the end."""
        while True:
            self._at = _BLANK.match(self._text.held, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text.held):
                return self._text.held[self._at]
            self._text.drop(self._at)
            self._at = 0
            if not self._text.more():
                return ""

    def _decoded(self) -> tuple[Any, int, str | None]:
        while True:
            held, at = self._text.held, self._at
            end = self._look.next_after(held, at) if self._look is not None else None
            if end is not None and (value := _quick(held[at:end])) is not _ODD:
                return value, end, None
            is_short = self._look is not None and len(held) - at < 2 * self._look.longest
            if end is not None or not is_short:
                value, end, wrong, verdict = _decoded(held, at)
                is_open = verdict == "cut" or (verdict == "whole" and end == len(held))
                if not is_open or len(held) - at > LARGEST_CHARS:
                    self._learn(value, end)
                    return value, end, wrong
            self._text.drop(at)
            self._at = 0
            if not self._text.more():
                value, end, wrong, _ = _decoded(self._text.held, 0)
                return value, end, wrong

    def _learn(self, value: Any, end: int) -> None:
        """Learn from a record that was read slowly where those like it end."""
        if isinstance(value, dict) and value:
            self._look = _Look.of(self._text.held[self._at : end], value)

    def _next_record(self) -> Found | None:
        """Move behind the next record and return it; None where there is none."""
        while True:
            found = _OBJECT.search(self._text.held, self._at)
            if found is None:
                self._text.drop(max(self._at, len(self._text.held) - 1))
                self._at = 0
                if not self._text.more():
                    self._at = len(self._text.held)
                    return None
                continue
            self._at = found.start()
            value, end, wrong = self._decoded()
            self._at = max(end, self._at + 1)  # what lies inside is of the damaged one
            if wrong is None and self._is_record(value):
                return Found(value, self._count + 1, in_line=False)


class _Look:
    """How records begin, by which the end of one before is guessed.

    A guess that is wrong is seen: what is no whole value is none to the parser.
    """

    def __init__(self, start: str, more: re.Pattern[str], longest: int) -> None:
        self._start = start
        self._more = more
        self.longest = longest

    @classmethod
    def of(cls, text: str, value: dict[str, Any]) -> _Look:
        """Return the look of a record: its first two keys, as they are written."""
        start = text[: text.index(":")]
        keys = list(value)
        more = ""
        if len(keys) > 1 and not isinstance(value[keys[0]], dict | list):
            more = rf"\s*:\s*{_PLAIN_VALUE}\s*,\s*{re.escape(json.dumps(keys[1]))}\s*:"
        return cls(start, re.compile(re.escape(start) + more), len(text))

    def next_after(self, text: str, at: int) -> int | None:
        """Return where the record at a place seems to end; None where none begins after it."""
        place = at
        while (place := text.find(self._start, place + 1)) >= 0:
            if self._more.match(text, place):
                end = place
                while text[end - 1] in _BETWEEN:
                    end -= 1
                self.longest = max(self.longest, end - at)
                return end
        return None


_PLAIN_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[^\s"\[{,]+)'
_BETWEEN = ", \t\r\n"
