"""Which columns a frame has, of which dtype, and how arrays and rows become one.

The one idea: a frame is made by its layout alone, so that it has the same columns and dtypes
whatever it holds, zero rows included, and no type is ever guessed (cases 38, 51).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

Layout = dict[str, Any]  # dtypes by column

TEXT = pd.StringDtype("python")  # the same with and without pyarrow
TIME = "datetime64[us, UTC]"


def _layout(**kinds: str) -> dict[str, Any]:
    """Return dtypes by column, given as one string of names per kind, in the order of `order`."""
    by_kind = {"text": TEXT, "time": TIME, "whole": "Int64", "real": "Float64", "flag": "boolean"}
    order = kinds.pop("order").split()
    found = {name: by_kind[kind] for kind, names in kinds.items() for name in names.split()}
    return {name: found[name] for name in order}


ENTRIES = _layout(
    order="session_id n seq id parent_id depth on_path branch turn step kind role meta preview "
    "text model params input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "reasoning_tokens cost_usd seconds ttft_s stop_reason error label rating ratings data "
    "run_id rerun_of experiment_id source_id created_at",
    text="session_id id parent_id kind role preview text model params stop_reason error label "
    "ratings data run_id rerun_of experiment_id source_id",
    whole="n seq depth branch turn step input_tokens output_tokens cache_read_tokens "
    "cache_write_tokens reasoning_tokens",
    real="cost_usd seconds ttft_s rating",
    flag="on_path meta",
    time="created_at",
)
RUNS = _layout(
    order="session_id id kind status outcome input answer leaf_n model params system tools steps "
    "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens cost_usd "
    "seconds error moves rerun_of experiment_id cell origin start_leaf_id leaf_id started_at "
    "ended_at",
    text="session_id id kind status outcome input answer model params system tools error rerun_of "
    "experiment_id cell origin start_leaf_id leaf_id",
    whole="leaf_n steps input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "reasoning_tokens",
    real="cost_usd seconds",
    flag="moves",
    time="started_at ended_at",
)

BRANCHES = _layout(
    order="session_id n seq leaf_id depth on_path parted_n turns role model stop_reason preview "
    "label rating input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "reasoning_tokens cost_usd seconds started_at created_at",
    text="session_id leaf_id role model stop_reason preview label",
    whole="n seq depth parted_n turns input_tokens output_tokens cache_read_tokens "
    "cache_write_tokens reasoning_tokens",
    real="cost_usd seconds rating",
    flag="on_path",
    time="started_at created_at",
)

TOOLS = _layout(
    order="session_id n seq id run_id call_id name arguments args_valid complete provider_run "
    "result is_error is_orphan result_n result_id created_at result_at",
    text="session_id id run_id call_id name arguments result result_id",
    whole="n seq result_n",
    flag="args_valid complete provider_run is_error is_orphan",
    time="created_at result_at",
)

SESSIONS = _layout(
    order="id title entries branches models cost_usd parent_session_id parent_entry_id created_at "
    "last_at",
    text="id title models parent_session_id parent_entry_id",
    whole="entries branches",
    real="cost_usd",
    time="created_at last_at",
)

COMPARISON = _layout(
    order="key name session_id n entry_id model system params text words_added words_removed "
    "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens cost_usd "
    "seconds ttft_s stop_reason label is_base on_path preferred",
    text="name session_id entry_id model system params text stop_reason label",
    whole="key n words_added words_removed input_tokens output_tokens cache_read_tokens "
    "cache_write_tokens reasoning_tokens",
    real="cost_usd seconds ttft_s",
    flag="is_base on_path preferred",
)

HITS = _layout(
    order="session_id n seq id kind role model snippet created_at",
    text="session_id id kind role model snippet",
    whole="n seq",
    time="created_at",
)

IMPORTED = _layout(
    order="session_id outcome entries leaves hidden repaired file line source_id oddity",
    text="session_id outcome file source_id oddity",
    whole="entries leaves hidden repaired line",
)


def spend_layout(by: str) -> Layout:
    """Return the layout of what was spent by day, model or session."""
    key, dtype = {"day": ("day", TIME), "model": ("model", TEXT), "session": ("session_id", TEXT)}[
        by
    ]
    return {key: dtype, **_SPENT}


_SPENT = _layout(
    order="messages input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "reasoning_tokens total_tokens unpriced cost_usd",
    whole="messages input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "reasoning_tokens total_tokens unpriced",
    real="cost_usd",
)


# -- making them -----------------------------------------------------------------------------------


def framed(columns: Mapping[str, Any], layout: Layout) -> pd.DataFrame:
    """Return the frame of a layout; a column that is not given is missing throughout."""
    rows = max((len(values) for values in columns.values()), default=0)
    made = {
        name: _array(columns[name] if name in columns else nothing(rows), dtype)
        for name, dtype in layout.items()
    }
    return pd.DataFrame(made, copy=False)


def framed_rows(rows: Sequence[Sequence[object]], layout: Layout) -> pd.DataFrame:
    """Return the frame of rows whose values stand in the order of a layout."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(layout)
    return framed(
        {name: objects(column) for name, column in zip(layout, columns, strict=True)}, layout
    )


def _array(values: Any, dtype: Any) -> Any:
    if isinstance(values, pd.api.extensions.ExtensionArray):
        return values
    if dtype == TEXT:
        return texts(values)
    missing = ~is_known(values)
    data = np.ma.getdata(values)
    if dtype == TIME:
        return _times(data, missing)
    if dtype == "Int64":
        return pd.arrays.IntegerArray(_filled(data, missing, np.int64), missing)
    if dtype == "Float64":
        return pd.arrays.FloatingArray(_filled(data, missing, np.float64), missing)
    return pd.arrays.BooleanArray(_filled(data, missing, np.bool_), missing)


def _filled(data: NDArray[Any], missing: NDArray[np.bool_], kind: Any) -> NDArray[Any]:
    if data.dtype != object:
        return data.astype(kind)
    filled = data.copy()
    filled[missing] = 0
    return filled.astype(kind)


def _times(data: NDArray[Any], missing: NDArray[np.bool_]) -> Any:
    """Return instants of microseconds since 1970, UTC (case 30)."""
    times = _filled(data, missing, np.int64).view("datetime64[us]")
    times[missing] = np.datetime64("NaT")
    return pd.DatetimeIndex(times).tz_localize("UTC").array


# -- arrays ----------------------------------------------------------------------------------------


def texts(values: Any) -> Any:
    """Return text as pandas keeps it, from an array whose missing values are masked or None."""
    missing = np.ma.getmaskarray(values)
    if missing.all():
        return pd.array([None], dtype=TEXT).take(np.zeros(len(missing), np.int64))
    words = np.ma.getdata(values).astype(object, copy=bool(missing.any()))
    words[missing] = pd.NA
    # Not StringArray(words): it takes on the dtype of pyarrow where that is installed.
    return pd.array(words, dtype=TEXT)


def taken(values: Any, rows: NDArray[np.int64]) -> Any:
    """Return `values` at `rows`; row -1 gives a missing one.

    Text taken from few is not looked at again, which is most of the time of making it.
    """
    held = values if isinstance(values, pd.api.extensions.ExtensionArray) else texts(values)
    return held.take(rows, allow_fill=True)


def spread(values: Sequence[object], rows: NDArray[np.int64], count: int, dtype: Any) -> Any:
    """Return `count` values, those at `rows` given and the others missing."""
    at = np.full(count, -1)
    at[rows] = np.arange(len(rows))
    return _array(objects(values), dtype).take(at, allow_fill=True)


def objects(values: Iterable[object]) -> NDArray[np.object_]:
    """Return an array of any values, missing ones None."""
    if isinstance(values, np.ndarray):
        plain = np.ma.getdata(values).astype(object)
        plain[np.ma.getmaskarray(values)] = None
        return plain
    listed = list(values)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def nothing(rows: int) -> NDArray[np.object_]:
    """Return as many missing values."""
    return np.full(rows, None, dtype=object)


def is_known(values: Any) -> NDArray[np.bool_]:
    """Return where an array of numbers has a value."""
    known = ~np.ma.getmaskarray(values)
    if np.ma.getdata(values).dtype == object:
        known &= ~pd.isna(np.ma.getdata(values))
    return known
