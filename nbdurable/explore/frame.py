"""The frame of an experiment: rows with fixed types, also without rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbdurable.explore.rows import MEANS, TOKENS, Row

if TYPE_CHECKING:
    import pandas as pd


_TEXTS = ("model", "text", "state", "stop_reason", "error", "entry_id", "run_id", "data_error")
_NUMBERS = ("cost_usd", *MEANS)
_COUNTS = (*TOKENS, "n", "count", "sample", "turn")


def experiment_df(rows: Sequence[Row], axes: Sequence[str]) -> pd.DataFrame:
    """Return rows as a frame; axes and scores get the type that holds their values."""
    import pandas as pd

    from nbdurable.frames.layout import TEXT

    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pd.DataFrame(rows, columns=names or [*axes, *_TEXTS[:-1]], dtype="object")
    for name in frame.columns:
        if name in _TEXTS and name not in axes:
            frame[name] = frame[name].astype(TEXT)
        elif name in _NUMBERS:
            frame[name] = frame[name].astype("Float64")
        elif name in _COUNTS:
            frame[name] = frame[name].astype("Int64")
        else:
            frame[name] = frame[name].convert_dtypes()
    return frame
