"""What a session looks like to a tree widget, and each change of it as it happens.

Owns the state of one widget: columns, head, marks, live runs, questions. Does not own acting
(`actions`) or the way to the page (`bridge`). The one idea: one thread compares what the process
knows with what the page was told and sends the difference, so that whoever changes the session,
from a cell, a click, another thread or another kernel, need not know that somebody looks.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from nbdurable.errors import NbDurableError, StoreClosed, told
from nbdurable.events import Event
from nbdurable.models.params import recorded
from nbdurable.notebook.bridge import Bridge
from nbdurable.notebook.tree.columns import ABORTED, ERROR, Columns
from nbdurable.notebook.tree.explored import Explored
from nbdurable.notebook.tree.following import Following, runs_of
from nbdurable.notebook.tree.marks import marks_of
from nbdurable.notebook.tree.poller import look_out
from nbdurable.origin import is_alive
from nbdurable.reprs import one_line
from nbdurable.run import Run
from nbdurable.session import Session
from nbdurable.stored import RunEnd, RunRecord, StoredEntry

log = logging.getLogger("nbdurable")

Op = dict[str, Any]

BREATH_S = 1 / 60  # between two looks: changes that come at once are told at once
LOOK_S = 0.2  # between two looks at what tells nobody when it ends
NEAR = 200  # entries at the leaf, and the newest, whose previews come with the state
SYSTEM_CHARS = 20_000
PREVIEW_CHARS = 120


class Feed:
    """The state of one widget over one handle; it ends with `stop`, or after the handle's end."""

    def __init__(self, session: Session, widget: Bridge) -> None:
        self.session = session
        self.image = session.image
        self.columns = Columns()
        self.explored = Explored(self.image)
        self.marks: dict[str, Op] = {}
        self.notes: dict[str, str] = {}
        self.notice: str | None = None
        self.head: Op = {}
        self.following: dict[str, Following] = {}
        self._widget = widget
        self._told_roles, self._told_models = len(self.columns.roles), 0
        self._seen: int | None = None  # changes of the store, when it was last read
        self._turn = threading.Lock()
        self._woken = threading.Event()
        self._is_stopped = self._is_told = False
        self._runs: dict[str, Run] = {}  # to be followed: held, as they may end at once
        self._done: weakref.WeakSet[Run] = weakref.WeakSet(
            run for run in runs_of(self.image) if run.is_done
        )
        self._stop_watching = self._watch()
        self._collect()
        self._begin()

    # -- its life ------------------------------------------------------------------------------

    def _watch(self) -> Callable[[], None]:
        me = weakref.ref(self)

        def wake() -> None:
            if (feed := me()) is not None:
                feed.wake()

        def collect() -> None:
            if (feed := me()) is not None:
                feed._collect()
                feed.wake()

        self.session.before_close.add(wake)
        stop_image = self.image.watch(collect)

        def stop() -> None:
            stop_image()
            self.session.before_close.discard(wake)

        self._wake = wake
        return stop

    def _begin(self) -> None:
        """Read all there is, then follow it in a thread of its own."""
        with self._turn:
            runs = self.image.store.load_runs(self.image.session_id)
            with self._widget.guard:
                self.explored.take_plans(self.explored.fresh_plans())
                self.explored.take_runs(runs)
        self.catch_up()
        self._is_told = True  # from here on the page learns of each change
        with self._widget.guard:
            self._note_failures(runs)
        self._stop_looking_out = look_out(self, self.image.store, self.image.session_id)
        thread = threading.Thread(target=self._serve, name="nbdurable-feed", daemon=True)
        thread.start()

    def _collect(self) -> None:
        """Hold the runs that go on: one that fails at once is gone before the next look."""
        for run in runs_of(self.image):
            if run not in self._done:
                self._runs.setdefault(run.run_id, run)
                run.is_asked_elsewhere = self._widget.can_be_asked  # before it can ask

    def wake(self) -> None:
        """Look for changes soon; to be called from any thread."""
        self._woken.set()

    def poll(self, *, is_told: bool = False) -> None:
        """Look whether the store has changed, or take it as told: others may write to it."""
        if self._widget.was_left:
            return
        try:
            changes = None if is_told else self.image.store.changes(self.image.session_id)
        except NbDurableError:
            changes = None
        if changes != self._seen:
            self.wake()

    def stop(self) -> None:
        """Follow no more."""
        self._is_stopped = True
        self._stop_watching()
        self._stop_looking_out()
        for following in list(self.following.values()):
            following.run.is_asked_elsewhere = False
        self.wake()

    def _serve(self) -> None:
        while not self._is_stopped:
            self._woken.wait(LOOK_S if self.following or self.explored.is_running else None)
            self._woken.clear()
            is_closed = self.session._is_closed  # if it is closed while this looks, once more
            try:
                self.catch_up()
            except Exception as error:  # the tree must not stand still for one odd value
                log.exception("the tree of session %r could not follow it", self.image.session_id)
                self._widget.error = one_line(told(error), 2_000)
            if is_closed and not self.following:
                self.stop()
            time.sleep(BREATH_S)

    # -- following -----------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Tell the page what has changed; what it knows is never sent again."""
        with self._turn:
            # in this order: an event, or the leaf, is never of an entry that is not taken below
            runs = list(self._runs.values())
            leaf_id, is_closed = self.session.leaf.id, self.session._is_closed
            read = [(one, *one.read()) for one in self.following.values()]
            news = self._read_store(is_closed)
            entries = self._fresh_entries()
            if self.explored.misses(entries):
                news["runs"] = self.image.store.load_runs(self.image.session_id)
            with self._widget.guard:
                for op in self._changes(runs, leaf_id, is_closed, read, news, entries):
                    if self._is_told:
                        self._widget.put(op)
            for one in filter(Following.is_due, self.following.values()):
                fresh = one.format()  # under no guard: a long paragraph takes its time
                with self._widget.guard:
                    self._widget.put(one.formatted(fresh))

    def _read_store(self, is_closed: bool) -> Op:
        """Read what the image does not hold, if the store has changed; under no lock of ours."""
        image = self.image
        try:
            changes = image.store.changes(image.session_id)
            if changes == self._seen:
                return {}
            image.refresh()
            plans = self.explored.fresh_plans()
            news: Op = {"plans": plans, "marks": marks_of(image)}
            if plans:
                news["runs"] = image.store.load_runs(image.session_id)
        except StoreClosed:
            return {} if is_closed else {"notice": "the store was closed; open the session again"}
        except NbDurableError as error:
            return {"notice": one_line(told(error), 2_000)}
        self._seen = changes
        return news

    def _fresh_entries(self) -> list[StoredEntry]:
        image = self.image
        ids = (image.id_of(n) for n in range(len(self.columns) + 1, image.count + 1))
        return [image.stored(entry_id) for entry_id in ids if entry_id is not None]

    def _changes(
        self,
        runs: list[Run],
        leaf_id: str | None,
        is_closed: bool,
        read: list[tuple[Following, list[Event], bool]],
        news: Op,
        entries: list[StoredEntry],
    ) -> Iterator[Op]:
        fresh_plans = news.get("plans", ())
        self.explored.take_plans(fresh_plans)
        if "runs" in news:
            self.explored.take_runs(news["runs"])
        for run in runs:
            self.explored.place_of(run)
        if fresh_plans:
            yield from self.explored.changes(one.row["exp"] for one in self.following.values())
        yield from self._add(entries)
        if fresh_plans or "runs" in news:
            yield from self._sort_in()
        for one, events, is_done in read:
            yield from one.take(events, self.columns.n_of)
            yield from one.ask()
            if is_done:
                yield from self._over(one)
        yield from self._follow(runs)
        yield from self.explored.changes(one.row["exp"] for one in self.following.values())
        yield from self._mark(news.get("marks"))
        if news.get("notice", self.notice) != self.notice:
            self.notice = news["notice"]
            yield {"op": "notice", "text": self.notice}
        yield from self._head(leaf_id, is_closed)

    def _add(self, entries: list[StoredEntry]) -> Iterator[Op]:
        if not entries:
            return
        columns = self.columns
        first = len(columns) + 1
        homed = columns.extend(entries, self.explored.of_entry)
        yield from self._names()
        if not self._is_told:
            return
        for n, entry in enumerate(entries, first):
            yield {"op": "add", "n": n, **columns.row(n), "preview": preview_of(entry)}
            parent = columns.parent[n - 1]
            if str(parent) in self.notes and not columns.flags[parent - 1] & (ERROR | ABORTED):
                yield self._note(parent, "")  # it has been answered
        for n in homed:
            parent, flags = columns.parent[n - 1], columns.flags[n - 1]
            yield {"op": "set", "n": n, "parent": parent, "flags": flags}

    def _names(self) -> Iterator[Op]:
        roles, models = self.columns.roles, self.columns.models
        if len(roles) > self._told_roles or len(models) > self._told_models:
            self._told_roles, self._told_models = len(roles), len(models)
            yield {"op": "names", "roles": list(roles), "models": list(models)}

    def _sort_in(self) -> Iterator[Op]:
        """Put entries that came before their plan into their experiment."""
        columns = self.columns
        for entry_id, place in self.explored.inputs.items():
            n = columns.n_of(entry_id)
            if n and columns.exp[n - 1] != place:
                columns.exp[n - 1] = place
                yield {"op": "set", "n": n, "exp": place}
        for node in self.image.tree.nodes[: len(columns)]:
            n = columns.n_of(node.id)
            if node.run_id is not None and n:
                place = self.explored.of_entry(node)
                if columns.exp[n - 1] != place:
                    columns.exp[n - 1] = place
                    yield {"op": "set", "n": n, "exp": place}

    # -- live runs -----------------------------------------------------------------------------

    def _follow(self, runs: list[Run]) -> Iterator[Op]:
        for run in runs:
            if run.run_id in self.following or run in self._done:
                continue
            place, parent = self.explored.place_of(run), self.columns.n_of(run.leaf_id)
            one = Following(run, place, parent, time.monotonic, self.image.clock() // 1000)
            self.following[run.run_id] = one
            run.watch(self._wake)
            self._woken.set()
            yield one.first()
        for one in self.following.values():
            one.run.is_asked_elsewhere = self._widget.can_be_asked

    def _over(self, one: Following) -> Iterator[Op]:
        self._done.add(one.run)
        self._runs.pop(one.run.run_id, None)
        del self.following[one.run.run_id]
        self.explored.ended(one.run)
        leaf_id, text = one.failure()
        if text:
            yield from self._note_failure(leaf_id, text, one.row["exp"] >= 0)
        yield {"op": "end", "run": one.run.run_id}

    def _note(self, n: int, text: str) -> Op:
        text = one_line(text, 2_000)
        if text:
            self.notes[str(n)] = text
        else:
            self.notes.pop(str(n), None)
        return {"op": "note", "n": n, "text": text}

    def _note_failures(self, runs: list[tuple[RunRecord, RunEnd | None]]) -> None:
        """Put what ended runs of before at the entries they came to, unless they were run again."""
        for record, end in runs:
            asked = record.input_ids[-1] if record.input_ids else record.start_leaf_id
            self._note(self.columns.n_of(asked), "")
            if end is not None and end.error and self.columns.n_of(end.leaf_id):
                list(self._note_failure(end.leaf_id, end.error, record.experiment_id is not None))
            elif end is None and record.id not in self.image.live and not is_alive(record.owner):
                self._note(self.columns.n_of(asked), "interrupted: its process ended")

    def _note_failure(self, leaf_id: str | None, text: str, is_cell: bool) -> Iterator[Op]:
        """Note an error at an entry; a cell that got no answer is counted by its experiment."""
        n = self.columns.n_of(leaf_id)
        if n and not (is_cell and not self.columns.flags[n - 1] & (ERROR | ABORTED)):
            yield self._note(n, text)
        elif not n:
            self.notice = one_line(text, 2_000)
            yield {"op": "notice", "text": self.notice}

    # -- marks and head ------------------------------------------------------------------------

    def _mark(self, fresh: dict[str, Op] | None) -> Iterator[Op]:
        if fresh is None:
            return
        nothing: Op = {"labels": [], "ratings": [], "preferred": False}
        for n in sorted({*fresh, *self.marks}, key=int):
            now = fresh.get(n, nothing)
            if self.marks.get(n, nothing) != now:
                yield {"op": "marks", "n": int(n), **now}
        self.marks = fresh

    def _head(self, leaf_id: str | None, is_closed: bool) -> Iterator[Op]:
        session, settings = self.session, self.session.settings
        system = settings.system
        now: Op = {
            "session": session.id,
            "store": session.store,
            "model": settings.model.name,
            "params": recorded(settings.params),
            "system": None if system is None else system[:SYSTEM_CHARS],
            "leaf": self.columns.n_of(leaf_id),
            "models": list(dict.fromkeys([settings.model.name, *self.columns.models])),
            "entries": len(self.columns),
            "branches": self.columns.branches,
            "cost_usd": self.columns.cost_usd,
            "tools": [tool.name for tool in settings.tools],
            "is_closed": is_closed,
            "replay": session.replay is not None and session.replay.is_only,
        }
        fresh = {name: value for name, value in now.items() if self.head.get(name, ...) != value}
        if fresh:
            self.head = now
            yield {"op": "head", **fresh}

    # -- the whole -----------------------------------------------------------------------------

    def state(self) -> Op:
        """Return all that the page needs to know; called under the widget's guard."""
        live = list(self.following.values())
        return {
            "head": dict(self.head),
            "roles": list(self.columns.roles),
            "models": list(self.columns.models),
            "columns": self.columns.state(),
            "experiments": [dict(row) for row in self.explored.rows],
            "marks": {n: dict(marks) for n, marks in self.marks.items()},
            "notes": dict(self.notes),
            "previews": self.previews(self._near()),
            "live": [dict(one.row) for one in live],
            "questions": [dict(asked) for one in live for asked in one.questions.values()],
            "notice": self.notice,
        }

    def previews(self, ns: list[int]) -> dict[str, str]:
        """Return the first words of entries, by ordinal; unknown ones are passed over."""
        ids = ((n, self.image.id_of(n)) for n in ns)
        return {str(n): preview_of(self.image.stored(id)) for n, id in ids if id is not None}

    def _near(self) -> list[int]:
        """Return the entries at the end of the active path, and the newest."""
        parent, count = self.columns.parent, len(self.columns)
        near = set(range(max(1, count - NEAR + 1), count + 1))
        n = self.head.get("leaf", 0)
        for _ in range(NEAR):
            if not n:
                break
            near.add(n)
            n = parent[n - 1]
        return sorted(near)


def preview_of(entry: StoredEntry) -> str:
    """Return an entry's first words on one line."""
    return one_line(entry.preview, PREVIEW_CHARS)
