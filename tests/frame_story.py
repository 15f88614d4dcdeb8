"""A session in which everything happens that a frame can show."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import nbdurable as nb
from nbdurable.ids import IdMaker, now_us
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stored import Annotation, RunRecord, StoredEntry
from nbdurable.stores.base import Store

PRICE = 0.25
new_id = IdMaker()


class Remark(nb.CustomEntry):
    """A custom entry with text and a number."""

    kind = "remark"
    text: str = ""
    points: int = 0


def lookup(order: int) -> str:
    """Look an order up."""
    return f"order {order} is lost"


def model() -> ScriptedModel:
    return ScriptedModel(
        calls(("lookup", {"order": 12}), text="I look."),
        "It is lost.",
        "Sorry.",
        cut("Half an ans"),
        "Shorter.",
        "A summary.",
        cost_usd=PRICE,
        repeat=True,
    )


def story(store: Store) -> nb.Session:
    """Play the session "s" in a store, its fork "f" and an empty session "e"."""
    nb.open("e", store=store, model=ScriptedModel("x")).close()
    chat = nb.open(
        "s", store=store, model=model(), system="Be kind.", tools=[lookup], temperature=0.5
    )
    chat.append(Remark(text="Begin %_", points=3))  # 1
    chat.run(nb.meta("House rules."), "Where is it?", show=None)  # 2 3 | 4 5 6
    answered = chat.leaf_id
    chat.run("Write to them.", show=None)  # 7 8
    chat.branch(answered)
    try:
        chat.run("Call them.", show=None)  # 9 10, cut
    except nb.errors.ModelError:
        pass
    chat.rerun(8, show=None)  # 11
    chat.branch(11)
    chat.compact()  # 12
    for n, kind, payload in (
        (1, "message", '{"v":99,"role":"user","blocks":[{"type":"text","text":"caf\\u00e9"}]}'),
        (2, "message", "no json"),
        (3, "hologram", '{"v":1,"fields":{"text":"beam"}}'),
    ):
        _put(store, chat, n, kind, payload)  # 13 14 15
    _cut_run(store, chat)
    chat.resume()
    mark(store, chat, 6, "label", "best")
    mark(store, chat, 6, "rating", 3, by="ann")
    mark(store, chat, 6, "rating", 5, by="bob")
    mark(store, chat, 6, "tone", 0.5)
    mark(store, chat, 8, "label", "gone")
    mark(store, chat, 8, "label", None)
    mark(store, chat, 4, "confirm", True)
    mark(store, chat, 8, "prefer", [chat[11].id])
    chat.fork("f", at=8).close()
    return chat


def mark(store: Store, chat: nb.Session, n: int, name: str, value: object, by: str = "") -> None:
    """Annotate an entry as any writer may, with a value that need be no JSON: NaN is none."""
    annotation = Annotation(
        id=new_id(),
        session_id=chat.id,
        target_id=chat[n].id,
        name=name,
        value_json=json.dumps(value),
        created_at=now_us(),
        by=by or None,
    )
    store.annotate([annotation])


def _put(store: Store, chat: nb.Session, n: int, kind: str, payload: str) -> None:
    """Store what a newer version, or none of ours, would."""
    entry = StoredEntry(
        id=new_id(),
        session_id=chat.id,
        parent_id=chat.leaf_id,
        kind=kind,
        payload=payload,
        created_at=now_us(),
        role="user" if "role" in payload else None,
        moves_leaf=False,
    )
    store.append(chat.id, [entry])


def _cut_run(store: Store, chat: nb.Session) -> None:
    """Store a run whose process is gone."""
    store.start_run(
        RunRecord(id=new_id(), session_id=chat.id, kind="run", created_at=now_us(), model="m")
    )


def copy(source: Store, target: Store, session_ids: Iterable[str]) -> None:
    """Store the records of sessions again, equal to the number."""
    for session_id in session_ids:
        target.create_session(source.load_session(session_id))
    both = [(e.seq, e) for s in session_ids for e in source.load_entries(s)]
    both += [(m.seq, m) for s in session_ids for m in source.load_moves(s)]  # type: ignore[misc]
    for _, record in sorted(both, key=lambda pair: pair[0]):
        if isinstance(record, StoredEntry):
            target.append(record.session_id, [record])
        else:
            target.move(record.session_id, record.entry_id, record.created_at)  # type: ignore[unreachable]
    for session_id in session_ids:
        for run, end in source.load_runs(session_id):
            digest = run.context_digest
            target.start_run(run, source.load_context(digest) if digest else None)
            if end is not None:
                target.end_run(end)
        target.annotate([replace(a, counter=0) for a in source.load_annotations(session_id)])
