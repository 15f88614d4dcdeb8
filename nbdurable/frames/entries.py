"""Entries and branches as frames: stored columns, and what follows from the tree's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbdurable.frames.chains import Chains
from nbdurable.frames.layout import (
    BRANCHES,
    ENTRIES,
    TEXT,
    TIME,
    framed,
    is_known,
    objects,
    spread,
    taken,
)
from nbdurable.frames.layout import texts as texts_of
from nbdurable.frames.marks import marks_of
from nbdurable.schemas import answer_data, recorded_schema
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb.query import Columns, Question, read
from nbdurable.wire import dumps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

_SAID = frozenset({"preview", "text", "data"})
_WORDS = ("kind", "role", "model", "stop_reason")
_MOST_WORDS = 16  # distinct values up to which a column travels as numbers: a fifth of the time
_SUMMED = (
    "input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens "
    "cost_usd seconds"
).split()
_STORED = (
    "seq n depth meta input_tokens output_tokens cache_read_tokens cache_write_tokens "
    "reasoning_tokens cost_usd seconds ttft_s id run_id source_id created_at"
).split()


def entries_frame(
    store: Store, session_id: str | None = None, leaf_id: str | None = None, *, texts: bool = True
) -> pd.DataFrame:
    """Return one row per stored entry of a session, or of all of them, by ``seq``.

    Parameters
    ----------
    store : Store
        Any store.
    session_id : str, optional
        Only this session, and ``on_path`` tells of the path to `leaf_id`; without one all
        sessions, and ``on_path`` tells of the path to each session's position.
    leaf_id : str, optional
        None is the root: then nothing is on the path.
    texts : bool
        Whether to read what was said: without, the frame lacks ``preview``, ``text``, ``data``.
    """
    said = ("preview", "text") if texts else ()
    got = read(store, lambda question: _Entries(question, session_id, leaf_id, said), session_id)
    layout = ENTRIES if texts else {n: d for n, d in ENTRIES.items() if n not in _SAID}
    return framed(got.columns(), layout)


def branches_frame(
    store: Store, session_id: str | None = None, leaf_id: str | None = None
) -> pd.DataFrame:
    """Return one row per branch, which is an entry without children, with sums over its path."""
    said = ("preview",)
    got = read(store, lambda question: _Entries(question, session_id, leaf_id, said), session_id)
    return framed(got.branches(), BRANCHES)


# -- entries ---------------------------------------------------------------------------------------


class _Entries:
    """What one snapshot tells of entries, and what follows from their tree."""

    def __init__(
        self,
        question: Question,
        session_id: str | None,
        leaf_id: str | None,
        said: tuple[str, ...],
    ) -> None:
        where, params = of_session(session_id)
        self._texts, self._is_one_session = "text" in said, session_id is not None
        words = _words(question, session_id)
        self.got = _entry_columns(question, session_id, said, words)
        self.seq: Rows = np.ma.getdata(self.got["seq"])
        # Narrow joins of numbers: joined to the wide rows they would take three times as long.
        self.above = question.columns(
            "select e.seq, p.seq as parent from nbd.entries e join nbd.entries p "
            f"on p.id = e.parent_id and p.session_id = e.session_id {where}",
            params,
        )
        self.made = question.columns(
            "select e.seq, r.counter from nbd.entries e join nbd.runs r on r.id = e.run_id "
            f"{where}",
            params,
        )
        self.runs = _runs(question, session_id, np.ma.getdata(self.made["counter"]))
        self.errors: Columns = {"seq": [], "error": []}
        if not words["stop_reason"].isdisjoint(("error", "aborted")):
            self.errors = question.columns(
                f"select e.seq, e.error from entries e {where or 'where true'} "
                "and e.stop_reason in ('error', 'aborted')",
                params,
            )
        self.marks = question.rows(
            "select e.seq, a.name, a.author, a.value_json from annotations a "
            "join nbd.entries e on e.id::varchar = a.target_id::varchar "
            f"and e.session_id = a.session_id {where} order by a.counter",
            params,
        )
        self.leaves = self._leaf_rows(question, leaf_id)

    def columns(self) -> Columns:
        """Return what the tree's shape, runs and annotations add, with the stored columns."""
        self._add_shape()
        self._add_runs()
        self._add_beside()
        return self.got

    def _rows_of(self, seqs: Any) -> Rows:
        """Return the rows of some ``seq``, which are all in the frame."""
        return _places(self.seq, np.asarray(seqs, dtype=np.int64))

    def _leaf_rows(self, question: Question, leaf_id: str | None) -> Rows:
        if self._is_one_session:
            return np.flatnonzero(np.asarray(self.got["id"]) == leaf_id)
        query = (
            f"select e.seq from ({question.positions}) p join nbd.entries e on e.id = p.position_id"
        )
        return self._rows_of([seq for (seq,) in question.rows(query)])

    def _linked(self, links: Columns, values: Rows) -> Rows:
        """Return `values` at the rows of links that start at some ``seq``, -1 elsewhere."""
        rows = np.full(len(self.seq), -1)
        rows[self._rows_of(np.ma.getdata(links["seq"]))] = values
        return rows

    def _set_shape(self) -> None:
        """Lay each session's entries side by side; `order` and `place` lead there and back."""
        rows = np.arange(len(self.seq))
        homes = self._homes()
        self.order: Rows = np.lexsort((rows, homes)) if homes.any() else rows
        self.place: Rows = np.empty_like(rows)
        self.place[self.order] = rows
        parents = self._rows_of(np.ma.getdata(self.above["parent"]))
        self.parents = self._linked(self.above, parents)
        placed = np.append(self.place, -1)[self.parents]
        self.chains = Chains(placed[self.order])

    def _homes(self) -> Rows:
        """Return a number for each entry's session."""
        if self._is_one_session:
            return np.zeros(len(self.seq), np.int64)
        homes: Rows = pd.factorize(self.got["session_id"])[0]
        return homes

    def _add_shape(self) -> None:
        self._set_shape()
        got, chains, order, place = self.got, self.chains, self.order, self.place
        n = np.ma.getdata(got["n"])
        got["parent_id"] = taken(got["id"], self.parents)
        got["branch"] = n[order[chains.newest_leaf()]][place]
        on_path = chains.is_above(place[self.leaves])
        got["on_path"] = on_path[place]
        begins, asked = got["begins"], got["answers"]
        turns = chains.sums(begins[order].astype(np.int64))
        steps = chains.sums(asked[order].astype(np.int64))
        opened = chains.last(begins[order])
        steps = steps - np.where(opened < 0, 0, steps[opened])
        got["turn"] = np.ma.masked_equal(turns[place], 0)
        got["step"] = np.ma.masked_equal(steps[place], 0)

    def _add_runs(self) -> None:
        found = self._runs_at()
        for name in ("rerun_of", "experiment_id"):
            self.got[name] = taken(self.runs[name], found)
        self.got["params"] = taken(
            self.runs["params"], np.where(self.got["model"].isna(), -1, found)
        )

    def _runs_at(self) -> Rows:
        """Return for each entry the row of its run, or -1; a fork's runs are its source's."""
        counters, wanted = (np.ma.getdata(got["counter"]) for got in (self.runs, self.made))
        return self._linked(self.made, _places(counters, wanted))

    def _add_beside(self) -> None:
        self.got["error"] = self._spread(self.errors["seq"], self.errors["error"], "error")
        marks = marks_of(self.marks)
        for name in ("label", "rating", "ratings"):
            values = [getattr(mark, name) for mark in marks.values()]
            self.got[name] = self._spread([*marks], values, name)
        if self._texts:
            self.got["data"] = self._data()

    def _spread(self, seqs: Any, values: Any, name: str) -> Any:
        return spread(values, self._rows_of(seqs), len(self.seq), ENTRIES[name])

    def _data(self) -> Any:
        """Return the JSON text of answers that fit the schema their run asked for."""
        schemas = [recorded_schema(params or "") for params in self.runs["params"]]
        if not any(schemas):
            return taken(objects([]), np.full(len(self.seq), -1))
        asks = np.array([schema is not None for schema in schemas] + [False])
        runs, reasons = self._runs_at(), self.got["stop_reason"]
        rows = np.flatnonzero(asks[runs] & ~reasons.isna())  # only these are parsed
        found = [
            _data_text(text, schemas[run], reason)
            for text, run, reason in zip(
                self.got["text"][rows], runs[rows], reasons[rows], strict=True
            )
        ]
        return spread(found, rows, len(self.seq), TEXT)

    def branches(self) -> Columns:
        """Return the leaves with sums over their paths."""
        got = self.columns()
        chains, order, place = self.chains, self.order, self.place
        children = chains.children()
        leaves = np.flatnonzero(children[place] == 0)
        sums = {name: self._path_sum(name)[leaves] for name in _SUMMED}
        above = chains.parents[place[leaves]]
        parted = np.where(above < 0, -1, chains.last(children > 1)[above])
        roots = chains.last(chains.parents < 0)[place[leaves]]
        n = np.append(np.ma.getdata(got["n"]), 0)
        created = np.ma.getdata(got["created_at"])
        picked = {name: got[name][leaves] for name in BRANCHES if name in got}
        return {
            **picked,
            **sums,
            "leaf_id": got["id"][leaves],
            "turns": np.ma.getdata(got["turn"])[leaves],
            "parted_n": np.ma.masked_equal(n[np.where(parted < 0, -1, order[parted])], 0),
            "started_at": created[order[roots]],
        }

    def _path_sum(self, name: str) -> Any:
        """Return sums over paths; missing where nothing on the path has the value."""
        values = self.got[name]
        known = is_known(values)
        filled = np.where(known, np.ma.getdata(values), 0)
        sums = self.chains.sums(filled[self.order])[self.place]
        counts = self.chains.sums(known[self.order].astype(np.int64))[self.place]
        return np.ma.masked_array(sums, counts == 0)


def _data_text(text: str, schema: str | None, stop_reason: str) -> str | None:
    if schema is None:
        return None
    value, error = answer_data(text, schema, stop_reason)
    return None if error is not None else dumps(value)


def _places(known: Rows, wanted: Rows) -> Rows:
    """Return where each of `wanted` stands in `known`, which rises and holds them all."""
    if len(known) and known[-1] - known[0] == len(known) - 1:
        rows: Rows = wanted - known[0]  # no gap, as in a session that was alone in its store
        return rows
    found: Rows = np.searchsorted(known, wanted)
    return found


_RUNS = "select r.counter, r.params_json as params, r.rerun_of, r.experiment_id from nbd.runs r"


def _runs(question: Question, session_id: str | None, wanted: Rows) -> Columns:
    """Return the runs of these counters: a session's own, or with those of what it copied."""
    where, params = of_session(session_id, "r")
    own = question.columns(f"{_RUNS} {where} order by r.counter", params)
    if np.isin(wanted, np.ma.getdata(own["counter"])).all():
        return own
    where, params = of_session(session_id)
    made = f"where r.id in (select e.run_id from nbd.entries e {where})"
    return question.columns(f"{_RUNS} {made} order by r.counter", params)


def of_session(session_id: str | None, alias: str = "e") -> tuple[str, dict[str, object]]:
    """Return the condition that keeps one session, if one is asked about, and its parameter."""
    if session_id is None:
        return "", {}
    return f"where {alias}.session_id = $session", {"session": session_id}


def _words(question: Question, session_id: str | None) -> dict[str, set[str]]:
    """Return what stands in the columns that may hold few words."""
    where, params = of_session(session_id)
    found = question.rows(f"select distinct {', '.join(_WORDS)} from nbd.entries e {where}", params)
    return {name: {row[at] for row in found} - {None} for at, name in enumerate(_WORDS)}


def _entry_columns(
    question: Question,
    session_id: str | None,
    said: tuple[str, ...],
    distinct: dict[str, set[str]],
) -> Columns:
    """Return the stored columns, those of few words decoded from numbers."""
    where, params = of_session(session_id)
    words = {name: sorted(held) for name, held in distinct.items() if len(held) <= _MOST_WORDS}
    plain = [name for name in _WORDS if name not in words] + [*said]
    if session_id is None:
        plain.append("session_id")
    named = selected(ENTRIES, [*_STORED, *plain], "e")
    named.append("coalesce(e.role = 'user' and not e.meta, false) as begins")
    named.append("coalesce(e.role = 'assistant', false) as answers")
    named += [
        f"coalesce(array_position(${name}, e.{name}), 0)::smallint as {name}" for name in words
    ]
    query = f"select {', '.join(named)} from entries e {where}"
    got = _by_seq(question.columns(query, {**params, **words}))
    for name, known in words.items():
        got[name] = taken(objects(known), got[name].astype(np.int64) - 1)
    for name in ("id", *plain):
        got[name] = texts_of(got[name])
    if session_id is not None:
        got["session_id"] = taken(objects([session_id]), np.zeros(len(got["seq"]), np.int64))
    return got


def _by_seq(got: Columns) -> Columns:
    """Return columns by ``seq``, as they come from a scan already; DuckDB's sort takes a third."""
    seq = np.ma.getdata(got["seq"])
    if (seq[1:] > seq[:-1]).all():
        return got
    order = np.argsort(seq)
    return {name: values[order] for name, values in got.items()}


def selected(layout: dict[str, Any], names: Sequence[str], alias: str) -> list[str]:
    """Return select expressions: ids as text, times as microseconds, all under their names."""
    forms = {TEXT: "{}::varchar", TIME: "epoch_us({})"}
    return [
        f"{forms.get(layout[name], '{}').format(f'{alias}.{name}')} as {name}" for name in names
    ]
