"""What annotations say of entries, as the columns of a frame.

The one idea: the latest of all authors is the one value a plain column can hold; what each author
said stands beside it as JSON text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from nbdurable.wire import dumps

RATING = "rating"  # the name under which a rating is stored when no other is given
_NO_RATINGS = frozenset({"label", "prefer", "confirm"})


@dataclass(slots=True)
class Marks:
    """The marks of one entry."""

    label: str | None = None
    rating: float | None = None
    rated: list[dict[str, object]] = field(default_factory=list)

    @property
    def ratings(self) -> str | None:
        """All ratings as JSON text: a list of name, by, value, in the order they were given."""
        return dumps(self.rated) if self.rated else None


def marks_of(rows: Iterable[tuple[int, str, str | None, str]]) -> dict[int, Marks]:
    """Return the marks by ``seq``; rows of (seq, name, author, JSON value) come in their order.

    A value that is no JSON, or of another kind than its name asks for, is passed over.
    """
    found: dict[int, Marks] = {}
    for seq, name, author, text in rows:
        marks = found.setdefault(seq, Marks())
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if name == "label":
            marks.label = value if isinstance(value, str) else marks.label
        elif name not in _NO_RATINGS and _is_number(value):
            marks.rated.append({"name": name, "by": author, "value": value})
            marks.rating = float(value) if name == RATING else marks.rating
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
