"""The frame of a comparison: one row per column of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from nbdurable.frames.layout import COMPARISON, framed_rows


def comparison_frame(
    rows: Sequence[Mapping[str, object]], axes: Sequence[str] = ()
) -> pd.DataFrame:
    """Return rows as a frame; the axes of an experiment's cells follow, typed by their values."""
    frame = framed_rows([[row.get(name) for name in COMPARISON] for row in rows], COMPARISON)
    for axis in axes:
        values = pd.Series([row.get(f"axis {axis}") for row in rows], dtype="object")
        name = axis if axis not in frame else f"axis.{axis}"
        frame[name] = values.convert_dtypes()
    return frame
