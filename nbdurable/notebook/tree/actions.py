"""What a person does in a tree widget, done by the session's own verbs.

Owns when an action is done and what it answers. Does not own which call it stands for (`calls`).
The one idea: nothing here waits for a model; what runs is started, and followed like any run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from nbdurable.entries import Entry
from nbdurable.errors import shown
from nbdurable.explore.drive import drives_of
from nbdurable.loaded import Loaded
from nbdurable.notebook.bridge import Refused
from nbdurable.notebook.tree.calls import STARTS, Call, calls_of, checked
from nbdurable.questions import Question
from nbdurable.run import Run
from nbdurable.session import Session
from nbdurable.shells import shell

DOUBLE_S = 0.5  # an action like the last one, so soon after it, is the same click
BEAT_S = 0.02


class Actions:
    """The actions of one widget; done one after another, in the widget's own thread."""

    def __init__(self, session: Session, now: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._now = now
        self._last: tuple[str, float] = ("", 0.0)

    def do(self, act: str, args: Mapping[str, object]) -> Any:
        """Do an action and return what it made, as JSON.

        Raises
        ------
        Refused, NbDurableError
            Nothing was begun; the text says why.
        """
        if act == "cancel":
            return live_run(self._session.image, checked(act, args)["run"]).cancel()
        if act == "stop":
            return _stop(self._session.image, checked(act, args)["experiment"])
        if act == "answer":
            return self._answer(**checked(act, args))
        calls = calls_of(self._session.image, act, args)
        if act not in STARTS:
            return _made([call.on(self._session) for call in calls][-1])
        self._refuse_double(act, args)
        try:
            if act == "compact":
                return self._compact()
            return _made([call.on(self._session) for call in calls][-1])
        finally:
            self._last = (_key(act, args), self._now())

    def _refuse_double(self, act: str, args: Mapping[str, object]) -> None:
        """Refuse the second half of a double click: one click, one run."""
        key, ended = self._last
        if key == _key(act, args) and self._now() - ended < DOUBLE_S:
            raise Refused(f"{act} was asked for twice at once and is done once; ask again for more")

    def _answer(self, id: str, allow: bool) -> None:
        _, question = open_question(self._session.image, id)
        if not question.claim():
            raise Refused("this question has been answered already")
        question.answer(allow)

    def _compact(self) -> Any:
        """Begin a compaction; return when its call is on its way, or nothing came of it."""
        session, ended = self._session, threading.Event()
        before = session.image.foreground
        outcome: list[Entry | BaseException | None] = []

        def go() -> None:
            try:
                outcome.append(session.compact())
            except BaseException as error:  # told below, or by the run that failed
                outcome.append(error)
            finally:
                ended.set()

        threading.Thread(target=go, name="nbdurable-compact", daemon=True).start()
        while not ended.wait(BEAT_S):
            run = session.image.foreground
            if run is not None and run is not before:
                return {"run": run.run_id}
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        if outcome[0] is None:
            raise Refused("there is nothing to summarise at the leaf; nothing was changed")
        return _made(outcome[0])


def _key(act: str, args: Mapping[str, object]) -> str:
    return json.dumps([act, dict(args)], sort_keys=True, default=repr)


def _made(made: object) -> Any:
    """Return what a verb made as the page needs to know it."""
    if isinstance(made, tuple):
        made = made[-1]
    if isinstance(made, Run):
        return {"run": made.run_id}
    if isinstance(made, Entry):
        return {"n": made.n}
    return None


# -- runs and questions ------------------------------------------------------------------------


def live_run(image: Loaded, run_id: str) -> Run:
    """Return a run of this process that goes on, or refuse."""
    run = image.live.get(run_id)
    if run is None or run.is_done:
        raise Refused(f"run {shown(run_id)} is not going on here any more")
    return run


def _stop(image: Loaded, experiment_id: str) -> None:
    """Stop an experiment with all that it has not begun yet, or refuse."""
    drives = drives_of(image, experiment_id)
    if not drives:
        raise Refused(f"experiment {shown(experiment_id)} is not going on here any more")
    for drive in drives:
        drive.cancel()


def open_question(image: Loaded, name: str) -> tuple[Run, Question]:
    """Return the run and the question of a name such as ``RUN:0``, or refuse."""
    run_id, _, at = name.rpartition(":")
    run = live_run(image, run_id)
    if not at.isdecimal() or int(at) >= len(run.questions):
        raise Refused(f"question {shown(name)} is not known; reload the page")
    return run, run.questions[int(at)]


# -- as code -----------------------------------------------------------------------------------


def code_of(session: Session, act: str, args: Mapping[str, object]) -> str:
    """Return the code that does what an action does."""
    name = name_of(session)
    if act == "cancel":
        return f"{_run_code(name, checked(act, args)['run'])}.cancel()"
    if act == "stop":
        wanted = checked(act, args)["experiment"]
        return f"next(one for one in {name}.experiments() if one.id == {wanted!r}).cancel()"
    if act == "answer":
        given = checked(act, args)
        run, question = open_question(session.image, given["id"])
        allow = given["allow"]
        return f"{_run_code(name, run.run_id)}.answer({question.call_id!r}, {allow})"
    if act in ("compare", "copy"):
        return _entries_code(name, act, args)
    calls: tuple[Call, ...] = calls_of(session.image, act, args)
    return "; ".join(call.code(name) for call in calls)


def _entries_code(name: str, act: str, args: Mapping[str, object]) -> str:
    ns = args.get("ns") if act == "compare" else [args.get("n")]
    if not isinstance(ns, list) or not ns or not all(type(n) is int and n > 0 for n in ns):
        raise Refused(f"{act} is of entries by their ordinals; got {shown(dict(args))}")
    entries = [f"{name}[{n}]" for n in ns]
    return f"nb.compare({', '.join(entries)})" if act == "compare" else f"{entries[0]}.id"


def _run_code(name: str, run_id: str) -> str:
    return f"next(run for run in {name}.runs() if run.run_id == {run_id!r})"


def name_of(session: Session) -> str:
    """Return what the notebook calls a session, or ``chat``."""
    names = getattr(shell(), "user_ns", {})
    found = (name for name, value in list(names.items()) if value is session)
    return next((name for name in found if not name.startswith("_")), "chat")
