"""Sessions that have some of everything, by hand and at random, and recordings of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

import nbdurable as nb
from nbdurable.formats.jsonl import export_store
from nbdurable.models.scripted import ScriptedModel, calls, thinking
from nbdurable.stored import (
    Annotation,
    Beside,
    Context,
    ExperimentRecord,
    Move,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
)
from nbdurable.stores import Store
from nbdurable.stores.jsonl import Section, section_of

AT = 1_750_000_000_000_000
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200


class Recorded(nb.CustomEntry):
    kind = "recorded-note"
    text: str = ""
    score: float = 0.5


def look(place: str) -> str:
    """Look at a place."""
    return f"nothing at {place}"


def busy(store: Store, session_id: str = "s") -> nb.Session:
    """Return a session with runs of every outcome, tools, bytes, branches and annotations."""
    model = ScriptedModel(
        calls(("look", {"place": "home", "count": 2**60})),
        "It is empty.",
        (thinking("hm", signature="signed"), "A picture."),
        ("half an ans", nb.errors.ModelError("the line broke")),
        "Aside.",
        "All of it, short.",
        "After.",
    )
    chat = nb.open(session_id, store=store, model=model, system="Be brief.", tools=[look])
    first = chat.run("Where is it?", nb.meta("a skill"), Recorded(text="n"), show=None)
    chat.run("See", nb.image(PICTURE), nb.ephemeral("never stored"), show=None)
    try:
        chat.run("Break", show=None)
    except nb.errors.ModelError:
        pass
    chat.run("Aside?", at=first, move=False, show=None)
    chat.branch(first)
    chat.compact()
    chat.run("After?", show=None)
    store.annotate(
        [
            Annotation(
                id=f"note {at}",
                session_id=session_id,
                target_id=first.leaf_id or "",
                name=name,
                value_json=value,
                created_at=AT,
                by=by,
                note=note,
            )
            for at, (name, value, by, note) in enumerate(
                [
                    ("label", '"best"', None, None),
                    ("rating", "0.5", "ann", "fine"),
                    ("label", "null", None, ""),
                ]
            )
        ]
    )
    for plan in ('{"axes":["model"]}', '{"axes":["model","n"]}'):
        store.save_experiment(
            ExperimentRecord(
                id="plan", session_id=session_id, name="grid", plan_json=plan, created_at=AT
            )
        )
    chat.branch(first)
    return chat


def recording(store: Store, path: Path) -> bytes:
    """Export a whole store and return the file's bytes."""
    export_store(store, path)
    return path.read_bytes()


def lines(path: Path, kind: str | None = None) -> list[dict[str, object]]:
    """Return the lines of a recording, or those of one type, strictly parsed."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    found = [
        json.loads(line, parse_constant=refuse) for line in path.read_bytes().split(b"\n") if line
    ]
    return [line for line in found if kind in (None, line["type"])]


def everything(store: Store) -> dict[str, Section]:
    """Return all of a store as sections, without what only the store could know."""
    return {
        summary.session.id: bare(section_of(store, summary.session.id))
        for summary in store.list_sessions()
    }


def bare(section: Section) -> Section:
    """Return a section without numbers that its store made; what follows what is in its order."""
    rows = section.timeline()
    place = {id(row): seq for seq, row in enumerate(rows, 1)}
    beside = section.beside
    return replace(
        section,
        line=0,
        entries=tuple(entry._replace(seq=place[id(entry)], digest="") for entry in section.entries),
        beside=replace(
            beside,
            moves=tuple(replace(move, seq=place[id(move)]) for move in beside.moves),
            runs=tuple(replace(run, owner=None) for run in beside.runs),
            annotations=tuple(replace(note, counter=0) for note in beside.annotations),
            experiments=tuple(replace(plan, counter=0) for plan in beside.experiments),
        ),
    )


# -- at random -----------------------------------------------------------------------------------

PAYLOADS = [
    '{"v":1,"role":"user","blocks":[{"type":"text","text":"line \u2028 end \x85"}]}',
    '{"v":1,"fields":{"big":9007199254740993000000,"deep":[[[{}]]]}}',
    '{"v":1,"summary":"short","first_kept_id":null,"tokens_before":5}',
    '{"v":9,"new":"kind"}',
    '{"a":1,"a":2}',
    '{ "spaced" : 1.50 }',
    '{"half":"\\ud83d"}',
    '{"escaped":"\\u00e9"}',
    '{"huge":1e999}',
    "no JSON at all, with \0 in it",
    "null",
    "",
    "[" * 150 + "]" * 150,
    "[" * 5_000 + "]" * 5_000,
]
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["\0", "\u2028", "\x85 \u2029", "\r\n", "<b>", '"type":"end"', "é\u0301"]
)
times = st.integers(0, 2**53)
counts = st.none() | st.integers(0, 2**62)
reals = st.none() | st.floats(allow_nan=False, allow_infinity=False)


def _maybe(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    return st.none() | strategy


@st.composite
def any_section(draw: st.DrawFn) -> Section:
    """Draw a session with rows of every kind."""
    session_id = draw(st.sampled_from(["s", "a/b", "\u2028", "x" * 300]))
    made = draw(st.lists(st.uuids().map(str), max_size=8, unique=True))
    runs = [draw(_any_run(session_id, f"run {at}", made)) for at in range(draw(st.integers(0, 3)))]
    run_ids = [run.id for run in runs]
    entries = [
        draw(_any_entry(session_id, entry_id, made[:at], run_ids))
        for at, entry_id in enumerate(made)
    ]
    entries = [entry._replace(seq=2 * n, n=n) for n, entry in enumerate(entries, 1)]
    seqs = sorted(draw(st.lists(st.integers(0, 20), max_size=3)))
    moves = [
        draw(
            st.builds(
                Move,
                session_id=st.just(session_id),
                entry_id=_maybe(st.sampled_from([None, *[e.id for e in entries if e.seq <= seq]])),
                seq=st.just(seq),
                created_at=times,
            )
        )
        for seq in seqs
    ]
    ended = draw(st.lists(st.sampled_from(run_ids), unique=True)) if run_ids else []
    beside = Beside(
        moves=tuple(moves),
        runs=tuple(runs),
        ends=tuple(draw(_any_end(session_id, run_id, made)) for run_id in sorted(ended)),
        contexts=tuple(_contexts(runs)),
        annotations=tuple(draw(st.lists(_any_annotation(session_id, made), max_size=3)))
        if made
        else (),
        experiments=tuple(draw(st.lists(_any_plan(session_id), max_size=2))),
    )
    record = SessionRecord(
        id=session_id,
        created_at=draw(times),
        parent_session_id=draw(_maybe(words)),
        parent_entry_id=draw(_maybe(words)),
    )
    return Section(session=record, entries=tuple(entries), beside=beside)


def _any_entry(
    session_id: str, entry_id: str, earlier: Sequence[str], run_ids: Sequence[str]
) -> st.SearchStrategy[StoredEntry]:
    return st.builds(
        StoredEntry,
        id=st.just(entry_id),
        session_id=st.just(session_id),
        parent_id=st.sampled_from([None, *earlier]),
        kind=st.sampled_from(["message", "compaction", "note", "from the future"]),
        payload=st.sampled_from(PAYLOADS),
        created_at=times,
        run_id=st.sampled_from([None, "unknown", *run_ids]),
        role=st.sampled_from([None, "user", "assistant", "tool"]),
        meta=st.booleans(),
        model=_maybe(words),
        stop_reason=_maybe(words),
        input_tokens=counts,
        reasoning_tokens=counts,
        cost_usd=reals,
        seconds=reals,
        ttft_s=reals,
        output_tokens=counts,
        cache_read_tokens=counts,
        cache_write_tokens=counts,
        seq=st.just(0),
        n=st.just(0),
        depth=st.just(0),
        digest=st.just(""),
        preview=words,
        moves_leaf=st.booleans(),
        source_id=_maybe(words),
    )


def _any_run(session_id: str, run_id: str, ids: Sequence[str]) -> st.SearchStrategy[RunRecord]:
    return st.builds(
        RunRecord,
        id=st.just(run_id),
        session_id=st.just(session_id),
        kind=st.sampled_from(["run", "rerun", "compact"]),
        created_at=times,
        start_leaf_id=st.sampled_from([None, *ids]),
        input_ids=st.lists(st.sampled_from([*ids, "gone"]), max_size=2).map(tuple),
        request_digest=words,
        context_digest=st.sampled_from([None, "one", "two"]),
        params_json=st.sampled_from(["{}", '{"stop":["\u2028"]}', "{ }"]),
        moves=st.booleans(),
        cell=_maybe(words),
        owner=_maybe(words),
    )


def _contexts(runs: Sequence[RunRecord]) -> list[Context]:
    digests = dict.fromkeys(run.context_digest for run in runs)
    return [Context(digest=d, system=f"\0{d}", tools_json="[ ]") for d in digests if d]


def _any_end(session_id: str, run_id: str, ids: Sequence[str]) -> st.SearchStrategy[RunEnd]:
    return st.builds(
        RunEnd,
        run_id=st.just(run_id),
        session_id=st.just(session_id),
        outcome=st.sampled_from(["done", "max_steps", "error", "aborted"]),
        created_at=times,
        leaf_id=st.sampled_from([None, *ids]),
        error=_maybe(words),
        steps=st.integers(0, 9),
        seconds=reals,
        cost_usd=reals,
    )


def _any_annotation(session_id: str, ids: Sequence[str]) -> st.SearchStrategy[Annotation]:
    return st.builds(
        Annotation,
        id=words,
        session_id=st.just(session_id),
        target_id=st.sampled_from(ids),
        name=words,
        value_json=st.sampled_from(['"best"', "null", "0.50", '{"over":["\u2028"]}']),
        created_at=times,
        by=_maybe(words),
        note=_maybe(words),
    )


def _any_plan(session_id: str) -> st.SearchStrategy[ExperimentRecord]:
    return st.builds(
        ExperimentRecord,
        id=words,
        session_id=st.just(session_id),
        name=words,
        plan_json=st.sampled_from(['{"cells":[]}', "{ }"]),
        created_at=times,
    )
