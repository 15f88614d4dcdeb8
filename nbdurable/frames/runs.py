"""Runs and tool calls as frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbdurable.frames.entries import of_session, selected
from nbdurable.frames.layout import RUNS, TOOLS, framed, framed_rows, objects
from nbdurable.origin import is_alive
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb.query import Question, read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = list[tuple[Any, ...]]


def runs_frame(store: Store, session_id: str | None = None) -> pd.DataFrame:
    """Return one row per run of a session, or of all of them, in the order they started.

    ``status`` is the outcome of a run that ended, else ``running`` or ``interrupted``.
    """
    names = [*selected(RUNS, [name for name in RUNS if name != "status"], "r"), "r.owner"]
    where, params = of_session(session_id, "r")
    query = f"select {', '.join(names)} from runs r {where} order by r.counter"
    got = read(store, lambda question: question.columns(query, params), session_id)
    ended, owners = objects(got["outcome"]), objects(got.pop("owner"))
    got["status"] = objects(
        outcome or ("running" if is_alive(owner) else "interrupted")
        for outcome, owner in zip(ended, owners, strict=True)
    )
    return framed(got, RUNS)


def tools_frame(store: Store, session_id: str | None = None) -> pd.DataFrame:
    """Return one row per tool call with its result, and one per result whose call is not above it.

    A result belongs to the nearest message above it that holds a call of its id (B44).
    """
    return framed_rows(
        read(store, lambda question: _tool_rows(question, session_id), session_id), TOOLS
    )


_CALL = (
    "session_id n seq id run_id call_id name arguments args_valid complete provider_run"
).split()


def _tool_rows(question: Question, session_id: str | None) -> list[list[object]]:
    where, params = of_session(session_id)
    names = ", ".join(selected(TOOLS, [*_CALL, "created_at"], "e"))
    calls = question.rows(f"select {names} from tool_calls e {where} order by e.seq", params)
    results = question.rows(
        "select e.seq, e.session_id, e.n, e.id::varchar, e.run_id, e.call_id, e.name, e.text, "
        f"e.is_error, epoch_us(e.created_at) from tool_results e {where} order by e.seq",
        params,
    )
    answered, orphans = _paired(calls, results, _parents(question, session_id))
    rows = [_call_row(call, answered.get((call[2], call[5]))) for call in calls]
    rows += [_orphan_row(result) for result in orphans]
    return sorted(rows, key=lambda row: row[2])  # type: ignore[arg-type, return-value]


def _call_row(call: tuple[Any, ...], result: tuple[Any, ...] | None) -> list[object]:
    if result is None:
        return [*call[:-1], None, None, False, None, None, call[-1], None]
    _, _, n, id, _, _, _, text, is_error, at = result
    return [*call[:-1], text, is_error, False, n, id, call[-1], at]


def _orphan_row(result: tuple[Any, ...]) -> list[object]:
    seq, session_id, n, id, run_id, call_id, name, text, is_error, at = result
    head = [session_id, n, seq, id, run_id, call_id, name]
    return [*head, None, None, None, None, text, is_error, True, n, id, at, at]


def _parents(question: Question, session_id: str | None) -> Mapping[int, int]:
    """Return the ``seq`` of each entry's parent by its own; 0 for none."""
    where, params = of_session(session_id)
    got = question.columns(
        "select e.seq, coalesce(p.seq, 0) as parent from entries e left join nbd.entries p "
        f"on p.id = e.parent_id and p.session_id = e.session_id {where}",
        params,
    )
    return dict(zip(_listed(got["seq"]), _listed(got["parent"]), strict=True))


def _listed(values: NDArray[Any]) -> list[int]:
    listed: list[int] = np.ma.getdata(values).tolist()
    return listed


def _paired(
    calls: Rows, results: Rows, parents: Mapping[int, int]
) -> tuple[dict[tuple[int, str], tuple[Any, ...]], Rows]:
    """Return the first result of each call, by its message's ``seq`` and call id, and orphans."""
    made: dict[tuple[str, str], set[int]] = {}
    for call in calls:
        made.setdefault((call[0], call[5]), set()).add(call[2])
    oldest = {key: min(known) for key, known in made.items()}
    answered: dict[tuple[int, str], tuple[Any, ...]] = {}
    orphans: Rows = []
    for result in results:
        key = (result[1], result[5])
        above = _nearest(result[0], made[key], oldest[key], parents) if key in made else 0
        if above:
            answered.setdefault((above, result[5]), result)
        else:
            orphans.append(result)
    return answered, orphans


def _nearest(seq: int, wanted: set[int], oldest: int, parents: Mapping[int, int]) -> int:
    """Return the nearest of `wanted` above an entry, or 0; parents are older than children."""
    at = parents.get(seq, 0)
    while at >= oldest:
        if at in wanted:
            return at
        at = parents.get(at, 0)
    return 0
