"""What goes into a session together: its order, and what of it is refused.

Owns the checks that every store makes of runs, ends, annotations and plans, and the merging of
entries and moves. Does not own the checks of entries, nor any counter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from operator import attrgetter

from nbdurable.errors import EntryError, EntryNotFound, shown
from nbdurable.stored import Beside, Context, Move, RunEnd, RunRecord, StoredEntry

_seq_of = attrgetter("seq")


def with_run(
    beside: Beside,
    start: RunRecord | None = None,
    end: RunEnd | None = None,
    context: Context | None = None,
) -> Beside:
    """Return `beside` with the start and the end of one run more."""
    if start is None and end is None and context is None:
        return beside
    return replace(
        beside,
        runs=beside.runs if start is None else (start, *beside.runs),
        ends=beside.ends if end is None else (end, *beside.ends),
        contexts=beside.contexts if context is None else (context, *beside.contexts),
    )


def in_order(entries: Sequence[StoredEntry], moves: Sequence[Move]) -> Iterable[StoredEntry | Move]:
    """Return entries and moves merged by the ``seq`` they came with, each in its own order."""
    return merge(entries, moves, key=_seq_of) if moves else entries


def runs_named(beside: Beside) -> set[str]:
    """Return the ids of the runs that start or end."""
    return {run.id for run in beside.runs} | {end.run_id for end in beside.ends}


def check_beside(
    beside: Beside,
    session_id: str,
    is_entry: Callable[[str], bool],
    run_homes: Mapping[str, str],
) -> None:
    """Raise unless all of `beside` can be stored in a session; the targets of moves apart.

    Parameters
    ----------
    beside : Beside
        As given to a store.
    session_id : str
        The session it is stored in.
    is_entry : callable
        Whether an id is that of an entry of the session, those of the same call included.
    run_homes : mapping
        The session of each of the runs named that the store holds.

    Raises
    ------
    EntryError
        A record of another session, a run started twice or ended unstarted.
    EntryNotFound
        An annotation of an entry that is not there.
    """
    for move in beside.moves:
        _check_session("a move", move.session_id, session_id)
    for plan in beside.experiments:
        _check_session(f"experiment {shown(plan.id)}", plan.session_id, session_id)
    started: set[str] = set()
    for run in beside.runs:
        _check_session(f"run {shown(run.id)}", run.session_id, session_id)
        home = session_id if run.id in started else run_homes.get(run.id)
        if home is not None:
            raise EntryError(
                f"run {shown(run.id)} is already in session {shown(home)}; give it a new id"
            )
        started.add(run.id)
    for end in beside.ends:
        _check_session(f"run {shown(end.run_id)}", end.session_id, session_id)
        if end.run_id not in started and run_homes.get(end.run_id) != session_id:
            raise EntryError(
                f"run {shown(end.run_id)} was not started in session {shown(session_id)}; "
                "store its start first"
            )
    for annotation in beside.annotations:
        what = f"annotation {shown(annotation.id)}"
        _check_session(what, annotation.session_id, session_id)
        if not is_entry(annotation.target_id):
            raise no_target(f"target {shown(annotation.target_id)} of {what}", session_id)


def no_target(what: str, session_id: str) -> EntryNotFound:
    """Return the error for a move to, or an annotation of, what is not in the session."""
    return EntryNotFound(f"{what} is not in session {shown(session_id)}; append the entry first")


def _check_session(what: str, given: str, session_id: str) -> None:
    if given != session_id:
        raise EntryError(
            f"{what} is of session {shown(given)}, not of {shown(session_id)}; "
            "store it in its own session"
        )
