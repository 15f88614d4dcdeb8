"""How values are put in words for people: text made safe to show, tokens, money, time.

Owns the wording that the cell, the terminal and the command line share. The one idea: a text from
a model is data, so whatever a screen could take for a command is shown as a picture of itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

SEPARATOR = " · "

# C0 controls, DEL, C1 controls, what overrides the direction of a line, lone surrogates
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n?")
_BLANK = re.compile(r"\s+")


def visible(text: str) -> str:
    """Return `text` with control characters as pictures of themselves, line ends made plain.

    Tabs and line ends stay. Nothing else that a terminal or a page could obey is left.
    """
    return _CONTROL.sub(_picture, _LINE_ENDS.sub("\n", text))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def whole_text(text: str) -> str:
    """Return `text` as UTF-8 can carry it: half a character becomes U+FFFD."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def one_line(text: str, limit: int = 120) -> str:
    """Return the start of `text` on one line, at most `limit` code points, with ``…`` when cut."""
    # blanks in a row shrink, so a few times the limit is enough to look at
    head = _BLANK.sub(" ", visible(text[: limit * 8])).strip()
    if len(head) > limit or len(text) > limit * 8:
        return head[: limit - 1].rstrip() + "…"
    return head


def count(number: int, noun: str, plural: str = "") -> str:
    """Return such as ``1 entry`` or ``1,234 entries``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def money(usd: float) -> str:
    """Return an amount such as ``$0``, ``$0.0004`` or ``$12.30``."""
    if usd == 0:
        return "$0"
    if abs(usd) < 0.00005:
        return "<$0.0001"
    return f"${usd:.4f}" if abs(usd) < 1 else f"${usd:,.2f}"


def duration(seconds: float) -> str:
    """Return a time such as ``0.04 s``, ``1.2 s`` or ``3 min 05 s``."""
    if seconds < 0.1:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02d} s"


def model_name(name: str) -> str:
    """Return a model's name without its provider, on one line."""
    return one_line(name.rsplit("/", 1)[-1], 40)


def model_names(names: Iterable[str]) -> dict[str, str]:
    """Return each model's name without its provider, or with it where others would share it."""
    short = {name: model_name(name) for name in names}
    shared = Counter(short.values())
    return {name: text if shared[text] == 1 else one_line(name) for name, text in short.items()}


def joined(parts: Iterable[str | None]) -> str:
    """Return the parts that say something, joined by `SEPARATOR`."""
    return SEPARATOR.join(part for part in parts if part)


def footer(
    *,
    model: str | None = None,
    tokens: int | None = None,
    cost_usd: float | None = None,
    seconds: float | None = None,
    n: int | None = None,
    note: str | None = None,
) -> str:
    """Return ``model · tokens · cost · seconds · #n``; what is unknown is left out."""
    return joined(
        (
            model and model_name(model),
            None if tokens is None else count(tokens, "token"),
            None if cost_usd is None else money(cost_usd),
            None if seconds is None else duration(seconds),
            None if n is None else f"#{n}",
            note,
        )
    )
