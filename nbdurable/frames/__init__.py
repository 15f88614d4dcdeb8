"""DataFrames of sessions: fixed columns, fixed dtypes, one scalar per cell.

Owns which columns a frame has and of which type; the only package that imports pandas. Does not
own what the columns mean (`stores.duckdb.views` does). The one idea: a frame reads the documented
views of one snapshot and adds only what follows from the tree's shape, so that SQL and frames
agree to the row, for every store. Missing values are ``pd.NA``, times are aware UTC, and zero rows
have the same dtypes.
"""

from __future__ import annotations

from nbdurable.frames.comparison import comparison_frame
from nbdurable.frames.entries import branches_frame, entries_frame
from nbdurable.frames.imported import imported_frame
from nbdurable.frames.library import search_frame, sessions_frame, spend_frame, sql_frame
from nbdurable.frames.runs import runs_frame, tools_frame

__all__ = [
    "branches_frame",
    "comparison_frame",
    "entries_frame",
    "imported_frame",
    "runs_frame",
    "search_frame",
    "sessions_frame",
    "spend_frame",
    "sql_frame",
    "tools_frame",
]
