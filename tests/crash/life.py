"""What a child does until it is killed: whole sessions, each receipt acknowledged once told of.

Lines are JSON: ``["ids", ...]`` stored entries, ``["position", id]`` where the session resumes,
``["toward", id]`` where it may resume from now on, ``["spooled", id]`` an answer in flight,
``["word", [run, time, text]]`` what was streamed, ``["refused", ...]`` and ``["unknown", ...]``
appends that failed, ``["end", operations]`` a life that was not cut short, ``["failed", text]``
one that an exception ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

import nbdurable as nb
from nbdurable import modelcall
from nbdurable.events import Event
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.run import Run
from nbdurable.stored import SpoolDraft
from nbdurable.stores.conformance import chain
from nbdurable.stores.duckdb import DuckDBStore

STREAMS = 6

Say = Callable[[str, object], None]


class Note(nb.CustomEntry):
    kind = "crash_note"
    text: str = ""


def add(a: int, b: int) -> int:
    "Add."
    return a + b


@nb.tool(parallel=True)
def look(n: int) -> str:
    "Look."
    return f"seen {n}"


def _model() -> ScriptedModel:
    return ScriptedModel(
        calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})),
        calls(("look", {"n": 1}), ("look", {"n": 2})),
        ("This answer ", 0.015, "comes slowly, ", 0.015, "in pieces."),
        "This is an answer in words.",
    )


def live(path: str, say: Say, seed: int) -> None:
    """Open sessions in the store at `path`, use them in every way, and close them."""
    modelcall.SPOOL_EVERY_S = 0.01
    _acknowledge(say)
    with nb.open("s", store=path, model=_model(), tools=[add, look]) as chat:
        chat.run(nb.meta("Be brief."), f"Work on it, {seed}.", show=None)
        _placed(say, chat)
        checkpoint = chat.leaf_id
        _told(say, chat.append(Note(text="three"), nb.user("three"), nb.assistant("three")))
        chat.run("See this.", nb.file(os.urandom(40_000), name="f.bin"), show=None)
        _placed(say, chat)
        say("toward", checkpoint)
        chat.branch(checkpoint)
        _placed(say, chat)
        beside = chat.run("Beside.", show=None, move=False, wait=False)
        chat.run("Another way.", show=None)
        beside.wait()
        _placed(say, chat)
        chat.label(chat.leaf_id, f"life {seed}")
        fork = chat.fork(f"fork {seed}")
        _told(say, fork.entries())
        fork.run("Elsewhere.", show=None)
        fork.close()
        compaction = chat.compact(keep_turns=1)
        _told(say, [compaction] if compaction else [])
        _placed(say, chat)


def _told(say: Say, entries: object) -> None:
    say("ids", [entry.id for entry in entries])  # type: ignore[attr-defined]


def _placed(say: Say, chat: nb.Session) -> None:
    say("position", chat.leaf_id)


def _acknowledge(say: Say) -> None:
    """Say what is stored from the very thread that stored it, before any reader is woken."""
    emit, spool = Run._emit, DuckDBStore.spool

    def told(run: Run, event: Event) -> None:
        emit(run, event)
        if event.entries:
            say("ids", [entry.id for entry in event.entries])

    def spooled(store: DuckDBStore, draft: SpoolDraft) -> None:
        spool(store, draft)
        say("spooled", draft.entry.id)

    Run._emit = told  # type: ignore[method-assign]
    DuckDBStore.spool = spooled  # type: ignore[method-assign]


def stream(path: str, say: Say) -> None:
    """Let many answers come at once, word by word, and say each word and each spooling."""
    _acknowledge(say)
    emit = Run._emit

    def told(run: Run, event: Event) -> None:
        emit(run, event)
        if event.type == "message_update":
            say("word", [run.run_id, time.monotonic(), event.text])

    Run._emit = told  # type: ignore[method-assign]
    words = tuple(part for n in range(200) for part in (f"word {n} ", 0.02))
    chats = [nb.open(f"s{n}", store=path, model=ScriptedModel(words)) for n in range(STREAMS)]
    for run in [chat.run("Tell me.", wait=False) for chat in chats]:
        run.wait()


def append(path: str, say: Say) -> None:
    """Append to a store that is there, and say what became of each append."""
    with contextlib.closing(DuckDBStore(path)) as store:
        for _ in range(6):
            pair = chain(2)
            ids = [entry.id for entry in pair]
            try:
                store.append("s", pair)
                say("ids", ids)
            except nb.errors.StoreError as exc:
                is_known = "is not known" not in str(exc)
                say("refused" if is_known else "unknown", [ids, str(exc)])


def forget(path: str, say: Say) -> None:
    """Forget session "secret", and say what became of it."""
    from nbdurable.stores.forgetting import forget

    try:
        say("forgotten", forget(path, "secret").removed["entries"])
    except nb.errors.StoreError as exc:
        say("refused", str(exc))


def begin(shim: str, pipe: int, wanted: dict[str, Any]) -> None:
    """Do what is wanted of a child until it is killed, or to the end; never returns.

    At the operation `at` of those on the store's files it dies, or is told of the error `fails`.
    """

    def say(kind: str, what: object) -> None:
        os.write(pipe, json.dumps([kind, what]).encode() + b"\n")

    code, path = 1, wanted["path"]
    deeds: dict[str, Callable[[], None]] = {
        "live": lambda: live(path, say, wanted["seed"]),
        "append": lambda: append(path, say),
        "forget": lambda: forget(path, say),
        "stream": lambda: stream(path, say),
    }
    folder = os.path.dirname(path).encode()
    try:
        library = ctypes.CDLL(shim)
        for arm in (library.crash_arm, library.crash_fail):
            arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long]
        if wanted["fails"] is not None:
            library.crash_fail(folder, wanted["at"], wanted["fails"])
        else:
            library.crash_arm(folder, wanted["at"], wanted["cut"])
        deeds[wanted["does"]]()
        say("end", library.crash_count())
        code = 0
    except BaseException:
        say("failed", traceback.format_exc())
    finally:
        os._exit(code)
