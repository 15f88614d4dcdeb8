"""What became of a text in another one, word by word, in bounded time.

Owns words and how much work is spent on them; `difflib` finds what two texts have in common. It is
quadratic or worse where words repeat, so its searches are made here one by one, the widest first,
and end with a budget of steps rather than of time: equal texts give equal differences on any
machine. What is not looked at any more counts as changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, takewhile
from typing import Literal

Kind = Literal["same", "add", "del"]
Piece = tuple[Kind, str]

STEPS = 4_000_000  # pairs of equal words looked at, some tenths of a second
_GAP_SHARE = 16  # of them: what is looked at word by word
_STRETCH = 6  # words
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"  # written without blanks
_SIGNS = "!-/:-@\\[-^`{-~\u2010-\u2018\u201a-\u205e\u3000-\u303f"
_WORD = re.compile(rf"\s*(?:[{_CJK}{_SIGNS}]|[^\s{_CJK}{_SIGNS}]+)|\s+$")


def words(text: str) -> list[str]:
    """Return the words and signs of a text, each with the blanks before it; joined they are it."""
    return _WORD.findall(text)


def differences(base: str, other: str, *, steps: int = STEPS) -> list[Piece]:
    """Return what of `base` was kept, left out and added in `other`.

    Parameters
    ----------
    base, other : str
        Two texts of any length.
    steps : int
        The most work to spend; what is left then counts as changed.

    Returns
    -------
    list of (kind, text)
        The ``same`` and ``add`` pieces joined are `other`, the ``same`` and ``del`` ones `base`.
    """
    a, b = words(base), words(other)
    first = _common(a, b)
    last = _common(a[first:][::-1], b[first:][::-1])
    middle_a, middle_b = a[first : len(a) - last], b[first : len(b) - last]
    pieces: list[Piece] = [("same", "".join(a[:first]))]
    at_a = at_b = 0
    for i, j, size in [*_blocks(middle_a, middle_b, steps), (len(middle_a), len(middle_b), 0)]:
        pieces.append(("del", "".join(middle_a[at_a:i])))
        pieces.append(("add", "".join(middle_b[at_b:j])))
        pieces.append(("same", "".join(middle_a[i : i + size])))
        at_a, at_b = i + size, j + size
    pieces.append(("same", "".join(a[len(a) - last :])))
    return _joined(pieces)


def change_counts(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return how many words were added and how many left out."""
    counts: Counter[str] = Counter()
    for kind, text in pieces:
        counts[kind] += sum(not word.isspace() for word in words(text))
    return counts["add"], counts["del"]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many words two texts begin with alike."""
    shorter = min(len(a), len(b))
    return next((at for at in range(shorter) if a[at] != b[at]), shorter)


def _blocks(a: list[str], b: list[str], steps: int) -> list[tuple[int, int, int]]:
    """Return what both have in common, as places and sizes in order.

    Where words repeat so often that all pairs are too many to look at, stretches of words that
    each text has once are laid beside each other first, and single words only between them.
    """
    found: list[tuple[int, int, int]] = []
    whole = (0, len(a), 0, len(b))
    if _pairs(a, b) > STEPS // _GAP_SHARE:
        found = _apart(_anchors(_stretches(a), _stretches(b)))
    for alo, ahi, blo, bhi in list(_between(found, *whole)):
        left, right = a[alo:ahi], b[blo:bhi]
        if _pairs(left, right) <= STEPS // _GAP_SHARE:
            more, steps = _search(left, right, steps)
            found += ((alo + i, blo + j, size) for i, j, size in more)
    return sorted(found)


def _anchors(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    """Return the stretches that stand once in each text, as many as come in the same order."""
    once_a = {item for item, times in Counter(a).items() if times == 1}
    places = {item: at for at, item in enumerate(b)}
    counts_b = Counter(b)
    pairs = [
        (i, places[item]) for i, item in enumerate(a) if item in once_a and counts_b[item] == 1
    ]
    # the longest rising run of places: each pair knows the one before it
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        rank = bisect_left(ends, j)
        ends[rank : rank + 1] = [j]
        last[rank : rank + 1] = [at]
        before.append(last[rank - 1] if rank else -1)
    chain: list[tuple[int, int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append((*pairs[at], _STRETCH))
        at = before[at]
    return chain[::-1]


def _pairs(a: Sequence[str], b: Sequence[str]) -> int:
    counts_a, counts_b = Counter(a), Counter(b)
    return sum(counts_a[word] * counts_b[word] for word in counts_a.keys() & counts_b)


def _stretches(line: list[str]) -> list[str]:
    """Return each stretch of some words, as one."""
    return [*map("".join, zip(*(line[at:] for at in range(_STRETCH)), strict=False))]


def _search(a: list[str], b: list[str], steps: int) -> tuple[list[tuple[int, int, int]], int]:
    """Return the longest common runs, the same between them, and the steps left."""
    counts_b = Counter(b)
    upto = [0, *accumulate(1 + counts_b[item] for item in a)]
    found: list[tuple[int, int, int]] = []
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    ranges = deque([(0, len(a), 0, len(b))])
    while ranges:
        alo, ahi, blo, bhi = ranges.popleft()
        if alo >= ahi or blo >= bhi:
            continue
        steps -= upto[ahi] - upto[alo]
        if steps < 0:
            break
        i, j, size = matcher.find_longest_match(alo, ahi, blo, bhi)
        if size:
            found.append((i, j, size))
            ranges += ((alo, i, blo, j), (i + size, ahi, j + size, bhi))
    return sorted(found), steps


def _apart(blocks: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return blocks in order without what they share: wide stretches overlap at their ends."""
    out: list[tuple[int, int, int]] = []
    end_a = end_b = 0
    for i, j, size in blocks:
        over = max(end_a - i, end_b - j, 0)
        if size > over:
            out.append((i + over, j + over, size - over))
            end_a, end_b = i + size, j + size
    return out


def _between(
    blocks: Sequence[tuple[int, int, int]], alo: int, ahi: int, blo: int, bhi: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges that no block covers and both texts have a part in."""
    for i, j, size in [*blocks, (ahi, bhi, 0)]:
        if alo < i and blo < j:
            yield alo, i, blo, j
        alo, blo = i + size, j + size


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces of a kind; what is alike only in blanks or signs amid changes is no likeness."""
    filled = [piece for piece in pieces if piece[1]]
    out: list[Piece] = []
    gone = new = ""
    for at, (kind, text) in enumerate(filled):
        is_amid = (gone or new) and at + 1 < len(filled)
        if kind == "same" and not (is_amid and not any(map(str.isalnum, text))):
            for piece in (*_changed(gone, new), ("same", text)):
                _put(out, *piece)
            gone = new = ""
        else:
            gone += text if kind != "add" else ""
            new += text if kind != "del" else ""
    for piece in _changed(gone, new):
        _put(out, *piece)
    return out


def _put(out: list[Piece], kind: Kind, text: str) -> None:
    if out and out[-1][0] == kind:
        text = out.pop()[1] + text
    if text:
        out.append((kind, text))


def _changed(gone: str, new: str) -> Iterator[Piece]:
    """Yield what is gone and what is new; blanks that both begin or end with are no change."""
    head = _blanks(gone, new)
    yield "same", gone[:head]
    gone, new = gone[head:], new[head:]
    tail = _blanks(gone[::-1], new[::-1])
    yield "del", gone[: len(gone) - tail]
    yield "add", new[: len(new) - tail]
    yield "same", gone[len(gone) - tail :]


def _blanks(a: str, b: str) -> int:
    """Return how many blanks two texts begin with alike."""
    pairs = takewhile(
        lambda pair: pair[0] == pair[1] and pair[0].isspace(), zip(a, b, strict=False)
    )
    return sum(1 for _ in pairs)
