"""The frame of an import's report."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from nbdurable.frames.layout import IMPORTED, framed_rows

Row = tuple[str | int | None, ...]


def imported_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows of a session's outcome and counts, or of where an oddity is, as a frame."""
    return framed_rows(list(rows), IMPORTED)
