"""What stands side by side in a comparison: paths, found by references to their last entries.

Owns which entry a reference means where no session is named, and what is known of each path. Does
not own how paths are laid beside each other (`comparing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from nbdurable.annotations import Rating
from nbdurable.blocks import Json
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import EntryNotFound, RunError, shown
from nbdurable.handle import open_handles
from nbdurable.reruns import find_runs
from nbdurable.run import Run
from nbdurable.session import Session
from nbdurable.stored import StoredEntry
from nbdurable.wire import dumps

MAX_COLUMNS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One path of a comparison, from its session's root to ``entry_id`` (None is the root).

    ``axes`` tell of the cell of an experiment that it is.
    """

    session: Session
    entry_id: str | None
    n: int | None
    path: tuple[Entry, ...]
    system: str | None = None
    axes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def on_path(self) -> bool:
        """Whether the session's leaf is here or below."""
        leaf_id, tree = self.session.leaf.id, self.session.image.tree
        return self.entry_id in {node.id for node in tree.path(leaf_id)} and leaf_id is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its last entry."""
        marks = self.session.image.annotations().marks().get(self.entry_id or "")
        return marks.labels if marks else ()

    @property
    def ratings(self) -> tuple[Rating, ...]:
        """The ratings of its last entry."""
        marks = self.session.image.annotations().marks().get(self.entry_id or "")
        return marks.ratings if marks else ()


def columns_of(refs: Sequence[object], session: Session | None = None) -> tuple[Column, ...]:
    """Return a column for each reference: runs, entries, sessions, cells, whole experiments.

    Texts and ordinals are of `session`, by default of the only one that is open.

    Raises
    ------
    EntryNotFound
        A reference means no entry of an open session.
    RunError
        They are fewer than two, too many, or one comes twice.
    """
    refs = list(_spread(refs))
    columns = [_column(ref, session) for ref in refs]
    if not 2 <= len(columns) <= MAX_COLUMNS:
        what = (
            "compare() shows two columns or more"
            if len(columns) < 2
            else (f"compare() shows {MAX_COLUMNS} columns at most")
        )
        raise RunError(
            f"{what}, and was given {len(columns)}; give runs, entries or sessions, or see a "
            "whole experiment by its compare()"
        )
    seen: set[tuple[str, str | None]] = set()
    for column in columns:
        mark = (column.session.id, column.entry_id)
        if mark in seen:
            raise _twice(column, refs)
        seen.add(mark)
    return tuple(columns)


def _twice(column: Column, refs: Sequence[object]) -> RunError:
    """Return the error about an entry at which two columns end."""
    where = "the root" if column.n is None else f"entry #{column.n}"
    of = f"{where} of session {shown(column.session.id)}"
    runs = [ref if isinstance(ref, Run) else getattr(ref, "run", None) for ref in refs]
    for run in runs:
        if isinstance(run, Run) and not run.is_done and run.leaf_id == column.entry_id:
            return RunError(
                f"run {shown(run.run_id)} has stored nothing yet and still stands at {of}, "
                "where another column ends; wait() for it, then compare"
            )
    return RunError(f"{of} was given twice; give each column once")


def varying_axes(columns: Sequence[Column]) -> list[str]:
    """Return the axes on which some columns differ."""
    names = dict.fromkeys(axis for column in columns for axis in column.axes)
    return [axis for axis in names if len({dumps(column.axes.get(axis)) for column in columns}) > 1]


def _spread(refs: Iterable[object]) -> Iterable[object]:
    """Yield references, the finished cells of an experiment one by one."""
    for ref in refs:
        if isinstance(ref, str | Run | Session) or not hasattr(ref, "cells"):
            yield ref
        else:
            yield from (cell for cell in ref if cell.entry is not None)  # type: ignore[attr-defined]


def _column(ref: object, session: Session | None) -> Column:
    axes: Mapping[str, Json] = {}
    run = getattr(ref, "run", None)
    if hasattr(ref, "axes") and hasattr(ref, "key"):  # a cell of an experiment
        axes = ref.axes
        if not isinstance(run, Run):
            raise RunError(f"cell {shown(ref)} has no answer to compare; give one that ran")
        ref = run
    if isinstance(ref, Session):
        ref.fresh()
        return column_at(ref, ref.leaf.id)
    if isinstance(ref, Run):
        return column_at(_session_of(ref.leaf_id, ref, session), ref.leaf_id, axes)
    if isinstance(ref, Entry | StoredEntry):
        return column_at(_session_of(ref.id, ref, session), ref.id)
    if session is None and isinstance(ref, str) and (found := _holder(ref)):
        return column_at(found, ref)
    home = _only_session(ref) if session is None else session
    return column_at(home, None if ref is None else home[ref].id)  # type: ignore[index]


def column_at(
    session: Session, entry_id: str | None, axes: Mapping[str, Json] | None = None
) -> Column:
    """Return the column of the path to an entry."""
    image = session.image
    path = tuple(image.path(entry_id))
    return Column(
        session=session,
        entry_id=entry_id,
        n=None if entry_id is None else image.stored(entry_id).n,
        path=path,
        system=_system(session, path),
        axes=axes or {},
    )


def _system(session: Session, path: Sequence[Entry]) -> str | None:
    """Return the system text of the run that made the last answer."""
    image = session.image
    answers = (e for e in reversed(path) if isinstance(e, MessageEntry) and e.role == "assistant")
    last = next((entry for entry in answers if entry.run_id), None)
    for record, _ in find_runs(image, last.run_id if last else None):
        if record.context_digest:
            return image.store.load_context(record.context_digest).system
    return None


def _session_of(entry_id: str | None, ref: object, session: Session | None) -> Session:
    if session is not None and (entry_id is None or entry_id in session.image.tree):
        session.fresh()
        return session
    found = None if entry_id is None else _holder(entry_id)
    if found is None:
        raise EntryNotFound(
            f"{shown(ref)} is of no session that is open here; open its session first, "
            "or give session=",
            entry_id=str(entry_id),
        )
    return found


def _holder(entry_id: str) -> Session | None:
    """Return the newest open handle of the session that has an entry."""
    for handle in open_handles():
        if entry_id not in handle.image.tree:
            handle.image.refresh()
        if entry_id in handle.image.tree:
            return cast(Session, handle)
    return None


def _only_session(ref: object) -> Session:
    handles = open_handles()
    if len({id(handle.image) for handle in handles}) == 1:
        handles[0].fresh()
        return cast(Session, handles[0])
    names = ", ".join(sorted({shown(handle.image.session_id) for handle in handles})) or "none"
    raise EntryNotFound(
        f"{shown(ref)} may mean an entry of any session that is open here ({names}); "
        "give session=, or the entry itself",
        entry_id=str(ref),
    )
