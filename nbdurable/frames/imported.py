"""The frame of an import's report."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from nbdurable.frames.layout import IMPORTED, framed_rows

Row = tuple[str | None, str | None, int | None, int | None, int | None, str | None]


def imported_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows of session, outcome, new entries, leaves, line and oddity as a frame."""
    return framed_rows(list(rows), IMPORTED)
