"""`Library`: all sessions of a store as data.

Owns the hold on the store and nothing else: what it tells is made in `frames`. The one idea: one
object over any store, that only reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from nbdurable.errors import StoreClosed, StoreError, shown
from nbdurable.stores import open_store, release_store
from nbdurable.stores.base import Store

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure
    from pandas import DataFrame

Params = Sequence[object] | Mapping[str, object]


def connect(store: Store | str | os.PathLike[str]) -> Library:
    """Return a library over a store, which must exist.

    Parameters
    ----------
    store : Store or path
        A store, the path of a file, or a ``postgresql://`` address; sessions of this process that
        hold it share it. A file that cannot be written is read all the same.

    Raises
    ------
    StoreError
        There is no such file, or it cannot be opened; nothing was created.
    """
    if isinstance(store, str | os.PathLike):
        where = os.fspath(store)
        if where != ":memory:" and "://" not in where and not os.path.exists(where):
            raise StoreError(
                f"store file {shown(where)} does not exist; give the path of one, "
                "or make it with open()"
            )
    return Library(open_store(store, for_reading=True))


class Library:
    """All sessions of a store; make it with `connect`.

    Every method reads one snapshot of what is stored now, and returns a DataFrame of its own.
    """

    def __init__(self, store: Store) -> None:
        self._store: Store | None = store
        self._name = store.name

    # -- frames --------------------------------------------------------------------------------

    def sessions(self) -> DataFrame:
        """Return one row per session, the most recently used first."""
        from nbdurable.frames import sessions_frame

        return sessions_frame(self._held())

    def df(self, *, texts: bool = True) -> DataFrame:
        """Return one row per entry of all sessions; see `Session.df`.

        ``on_path`` tells of the path to the position where each session resumes.
        """
        from nbdurable.frames import entries_frame

        return entries_frame(self._held(), texts=texts)

    def runs_df(self) -> DataFrame:
        """Return one row per run of all sessions; see `Session.runs_df`."""
        from nbdurable.frames import runs_frame

        return runs_frame(self._held())

    def branches_df(self) -> DataFrame:
        """Return one row per branch of all sessions; see `Session.branches_df`."""
        from nbdurable.frames import branches_frame

        return branches_frame(self._held())

    def tools_df(self) -> DataFrame:
        """Return one row per tool call of all sessions; see `Session.tools_df`."""
        from nbdurable.frames import tools_frame

        return tools_frame(self._held())

    # -- questions -----------------------------------------------------------------------------

    def sql(self, query: str, params: Params = ()) -> DataFrame:
        """Return the answer to one SELECT over the documented views.

        Parameters
        ----------
        query : str
            DuckDB's SQL. It reads the store's views and tables and nothing else.
        params : sequence or mapping
            Values of ``?`` or ``$name`` in it.

        Raises
        ------
        QueryError
            It is no single SELECT, reads something else, or DuckDB refuses it.
        """
        from nbdurable.frames import sql_frame

        return sql_frame(self._held(), query, params)

    def arrow(self, query: str, params: Params = ()) -> pyarrow.Table:
        """Return the answer to a query as `sql` does, as an Arrow table.

        Raises
        ------
        ImportError
            pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError as exc:
            raise ImportError("pyarrow is not installed; run pip install pyarrow") from exc
        return pyarrow.Table.from_pandas(self.sql(query, params), preserve_index=False)

    def search(
        self,
        text: str,
        *,
        role: str | None = None,
        model: str | None = None,
        since: datetime | date | str | None = None,
        limit: int | None = 50,
    ) -> DataFrame:
        """Return the entries whose text holds `text`, the newest first, with a snippet each.

        Parameters
        ----------
        text : str
            Looked for as it is, in any case, in what messages say, tool results, summaries and
            the text fields of custom entries.
        role, model : str, optional
            Only entries of these.
        since : datetime, date or str, optional
            Only entries made then or later; a date means midnight UTC.
        limit : int, optional
            At most so many; None for all.

        Raises
        ------
        QueryError
            The text is empty, or `since` names no instant.
        """
        from nbdurable.frames import search_frame

        return search_frame(self._held(), text, role=role, model=model, since=since, limit=limit)

    def spend(self, by: Literal["day", "model", "session"] = "day") -> DataFrame:
        """Return tokens and cost by day (UTC), model or session.

        What a fork copied counts where it was paid. ``unpriced`` counts answers whose cost is
        not known, which ``cost_usd`` leaves out.
        """
        from nbdurable.frames import spend_frame

        return spend_frame(self._held(), by)

    def plot_spend(self, by: Literal["day", "model", "session"] = "day") -> Figure:
        """Return what `spend` tells as a figure: costs, or tokens where no cost is known.

        Raises
        ------
        RunError
            Matplotlib is not installed.
        """
        from nbdurable.pictures import spend_figure

        return spend_figure(self.spend(by), by)

    def export(
        self,
        path: str | os.PathLike[str],
        redact: Callable[[str], str] | None = None,
        format: str | None = None,
    ) -> Path:
        """Write all sessions to one file, which is replaced as a whole; return its path.

        Parameters
        ----------
        path : path
            The file. One that is there must be empty or of this format; `nb.load` imports it.
        redact : callable, optional
            Takes each text that somebody said and returns what stands in its place.
        format : str, optional
            ``"jsonl"``, a recording without loss; ``"finetune"``, an example for each branch; or
            ``"parquet"``, a row for each entry. By default the suffix says it, else a recording.

        Raises
        ------
        StoreError
            The file is there and is something else, or cannot be written; it is as it was.
        """
        from nbdurable.formats import export_store

        return export_store(self._held(), path, format, redact=redact)

    # -- the hold ------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the store; closing again does nothing."""
        store, self._store = self._store, None
        if store is not None:
            release_store(store)

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _held(self) -> Store:
        if self._store is None:
            raise StoreClosed(f"library on {shown(self._name)} is closed; connect() again")
        return self._store

    def __repr__(self) -> str:
        if self._store is None:
            return f"<Library {self._name}, closed>"
        return f"<Library {self._name}, {len(self._store.list_sessions())} sessions>"

    def _repr_html_(self) -> str:
        from nbdurable.notebook.sessions import library_html

        return library_html(self)

    def _ipython_display_(self) -> None:
        from nbdurable.notebook.sessions import show_library

        show_library(self)

    def _display_(self) -> object:
        """Return what marimo shows for it."""
        from nbdurable.notebook.sessions import SessionsWidget

        return repr(self) if self._store is None else SessionsWidget(self, has_room=False)
