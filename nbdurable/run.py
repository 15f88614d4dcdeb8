"""The handle of a run: a log of events that any number of readers follow at their own pace.

Owns the log and the ways to read it. Does not own what the run does (`loop`). The one idea: the
log is written before any reader is woken, a reader never holds up the run, and the run never waits
for a reader (B17).
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import Any, Literal

from nbdurable.background import waiting_for
from nbdurable.blocks import Message, Usage
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import NbDurableError, RunError
from nbdurable.events import Event
from nbdurable.origin import execution_count
from nbdurable.questions import Question, confirm
from nbdurable.schemas import Schema
from nbdurable.textstream import TextStream
from nbdurable.threads import call_soon
from nbdurable.watching import Watched

RunOutcome = Literal["done", "max_steps", "error", "aborted", "interrupted"]
BEAT_S = 0.2  # a sleeping reader looks up this often, so that an interrupt gets through
LAST_WORDS_S = 5.0  # how long an interrupted reader waits for the partial answer to be stored


class Run(Watched):
    """One call of the loop, from input to the last reply.

    Iterate it for events (`for`, `async for`), call `stream()` for text, `wait()` or ``await`` it
    to its end. Reading again starts from the first event; leaving an iteration does not stop the
    run, `cancel()` does. A failed run raises from each of these, with the run as ``.run``.
    """

    def __init__(
        self,
        run_id: str,
        *,
        model: str | None = None,
        moves: bool = True,
        leaf_id: str | None,
        schema: Schema | None = None,
    ) -> None:
        self.run_id = run_id
        self.model = model
        self.is_detached = not moves
        self.schema = schema
        self.outcome: RunOutcome | None = None
        self.shown_in: int | None = None
        self.experiment_id: str | None = None
        self.cell: str | None = None
        self.is_asked_elsewhere = False  # its questions have buttons that work meanwhile
        self._failure: BaseException | None = None
        self.start_leaf_id = self._leaf_id = leaf_id
        self._log: list[Event] = []
        self._entries: list[Entry] = []
        self._input_ids: tuple[str, ...] = ()
        self._changed = threading.Condition(lock := threading.RLock())
        self._settled = threading.Condition(lock)  # ended or asking: all that wait() wakes for
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._is_done = False
        self._cancel: Callable[[], None] | None = None
        self._then: Callable[..., Run] | None = None
        self._present: Callable[[Run], Mapping[str, str]] | None = None
        self._questions: list[Question] = []
        self.seconds: float | None = None

    # -- what it gave --------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self._is_done

    @property
    def events(self) -> tuple[Event, ...]:
        """The events so far."""
        with self._changed:
            return tuple(self._log)

    def events_since(self, at: int) -> list[Event]:
        """Return the events so far without the first `at`."""
        with self._changed:
            return self._log[at:]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries stored so far, input first."""
        with self._changed:
            return tuple(self._entries)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of `entries`."""
        return tuple(entry.message for entry in self.entries if isinstance(entry, MessageEntry))

    @property
    def text(self) -> str:
        """The text of the last answer; empty when there is none."""
        last = self._last_answer()
        return last.text if last else ""

    @property
    def data(self) -> Any:
        """What the last answer holds, of a finished run with a schema; None where it is unfit.

        An instance of the class that was asked for; plain JSON values after a JSON schema, or
        where the class is no longer known.
        """
        return self._data()[0]

    @property
    def data_error(self) -> str | None:
        """Where and why the last answer does not fit the schema, in one line, or None."""
        return self._data()[1]

    def _data(self) -> tuple[Any, str | None]:
        if self.schema is None or not self._is_done:
            return None, None
        return self.schema.answer(self._last_answer())

    @property
    def usage(self) -> Usage:
        """Tokens summed over the run's answers, as far as they are known."""
        known = (message.reply.usage for message in self._answers() if message.reply)
        return sum((usage for usage in known if usage), Usage())

    @property
    def cost(self) -> float | None:
        """USD summed over the run's answers, or None when one of them is unknown."""
        costs = [message.reply.cost_usd for message in self._answers() if message.reply]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def _answers(self) -> Iterator[Message]:
        return (message for message in self.messages if message.role == "assistant")

    def _last_answer(self) -> Message | None:
        return next((m for m in reversed(self.messages) if m.role == "assistant"), None)

    @property
    def leaf_id(self) -> str | None:
        """The last stored entry of the run, or where it started."""
        return self._leaf_id

    @property
    def input_ids(self) -> tuple[str, ...]:
        """The ids of the stored input entries."""
        return self._input_ids

    @property
    def error(self) -> str | None:
        """The text of what ended the run, or None."""
        return None if self._failure is None else str(self._failure) or repr(self._failure)

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        return {"text/plain": repr(self)} if self._present is None else self._present(self)

    def _ipython_display_(self) -> None:
        """Show the run in a cell, unless that cell has streamed it (B15)."""
        if self.shown_in is None or self.shown_in != execution_count():
            from IPython.display import display

            display(self._repr_mimebundle_(), raw=True)

    def __repr__(self) -> str:
        state = self.outcome or "running"
        return f"<Run {self.run_id} {state}, model {self.model}, {len(self.entries)} entries>"

    # -- reading -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Event]:
        at = 0
        try:
            while True:
                batch, done = self._next(at)
                yield from batch
                at += len(batch)
                if done and not batch:
                    self._raise()
                    return
        except KeyboardInterrupt:
            self.stop_for_reader()
            raise

    def _next(self, at: int, beats: int | None = None) -> tuple[list[Event], bool]:
        """Return what came after `at`, waiting for it at most `beats` beats."""
        with waiting_for(self.run_id, is_done=self._is_done), self._changed:
            while at >= len(self._log) and not self._is_done and not self._has_question():
                if beats == 0:
                    break
                self._changed.wait(BEAT_S)
                beats = None if beats is None else beats - 1
            batch, done = self._log[at:], self._is_done
        self._ask()
        return batch, done

    def read(self, on_event: Callable[[Event], None], on_quiet: Callable[[], None]) -> None:
        """Call `on_event` for each event and `on_quiet` when none comes, until the run ends."""
        at = 0
        try:
            while True:
                batch, done = self._next(at, beats=1)
                for event in batch:
                    on_event(event)
                at += len(batch)
                if done and not batch:
                    return self._raise()
                if not batch:
                    on_quiet()
        except KeyboardInterrupt:
            self.stop_for_reader()
            raise

    async def __aiter__(self) -> AsyncIterator[Event]:
        at, woken = 0, asyncio.Event()
        waiter = (asyncio.get_running_loop(), woken)
        with self._changed:
            self._waiters.append(waiter)
        try:
            while True:
                with self._changed:
                    batch, done = self._log[at:], self._is_done
                    woken.clear()
                self._ask()
                for event in batch:
                    yield event
                at += len(batch)
                if not batch:
                    if done:
                        self._raise()
                        return
                    await _beat(woken)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self.cancel()  # how ipykernel interrupts a cell that awaits
            await self._last_words(woken)
            raise
        finally:
            with self._changed:
                self._waiters.remove(waiter)

    async def _last_words(self, woken: asyncio.Event) -> None:
        """Wait until what came of a cancelled run is stored, so that the next one can begin."""
        until = time.monotonic() + LAST_WORDS_S
        while not self._is_done and time.monotonic() < until:
            woken.clear()
            await _beat(woken)

    def stream(self) -> TextStream:
        """Return the answer's text in pieces, for ``for`` or ``async for``."""
        return TextStream(self)

    def __await__(self) -> Generator[Any, None, Run]:
        return self._finished().__await__()

    async def _finished(self) -> Run:
        async for _ in self:
            pass
        return self

    def wait(self, timeout_s: float | None = None) -> Run:
        """Block until the run has ended, and return it.

        Raises
        ------
        ModelError, StoreError
            What ended the run, with the run as ``.run``.
        TimeoutError
            The run still goes on after `timeout_s` seconds; it is left alone.
        """
        try:
            with waiting_for(self.run_id, is_done=self._is_done):
                self._wait_done(timeout_s)
        except KeyboardInterrupt:
            self.stop_for_reader()
            raise
        if not self._is_done:
            raise TimeoutError(f"run {self.run_id} still goes on after {timeout_s} s")
        self._raise()
        return self

    def _wait_done(self, timeout_s: float | None) -> None:
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not self._is_done and (left := until - time.monotonic()) > 0:
            with self._settled:
                if not (self._is_done or self._has_question()):
                    self._settled.wait(min(BEAT_S, left))
            self._ask()

    def stop_for_reader(self) -> None:
        """Cancel for an interrupted reader, and wait until what came is stored."""
        self.cancel()
        with self._changed:
            self._changed.wait_for(lambda: self._is_done, LAST_WORDS_S)

    def _raise(self) -> None:
        failure, aborted = self._failure, self.outcome == "aborted"
        if failure is not None and (not aborted or isinstance(failure, KeyboardInterrupt)):
            raise failure

    def cancel(self) -> None:
        """Stop the run and return at once; what came is kept as an aborted answer."""
        if self._cancel is not None and not self._is_done:
            self._cancel()

    def then(self, *input: object, **options: Any) -> Run:
        """Run `input` at this run's end, wherever the session's leaf is; options as for ``run``.

        Raises
        ------
        RunError
            This run has not ended, or no session stands behind it.
        """
        if not self._is_done:
            raise RunError(f"run {self.run_id} still goes on; wait() for it before then()")
        if self._then is None:
            raise RunError(f"run {self.run_id} has no open session; use session.run(..., at=run)")
        return self._then(self, *input, **options)

    # -- questions -----------------------------------------------------------------------------

    @property
    def questions(self) -> tuple[Question, ...]:
        """What was asked so far, in order, also what is answered."""
        with self._changed:
            return tuple(self._questions)

    def _has_question(self) -> bool:
        return not self.is_asked_elsewhere and any(one.is_open for one in self._questions)

    def _ask(self) -> None:
        """Put an open question to the person at this reader, unless buttons do (B29)."""
        for question in [] if self.is_asked_elsewhere else list(self._questions):
            if question.claim():
                question.answer(confirm(question.text))

    def answer(self, call_id: str, allow: bool) -> None:
        """Answer the open question about a tool call, as a button does."""
        for question in list(self._questions):
            if question.call_id == call_id and question.claim():
                question.answer(allow)

    # -- written by the loop -------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        with self._changed:
            self._log.append(event)
            if event.entries:
                self._entries.extend(event.entries)
                self._leaf_id = event.leaf_id
            self._wake()
        self.tell_watchers()

    def _put_question(self, question: Question) -> None:
        with self._changed:
            self._questions.append(question)
            self._settled.notify_all()
            self._wake()
        self.tell_watchers()

    def _finish(
        self, outcome: RunOutcome, failure: BaseException | None, seconds: float | None
    ) -> None:
        if isinstance(failure, NbDurableError):
            failure.run = self  # type: ignore[attr-defined]
        with self._changed:
            self.outcome, self._failure, self.seconds = outcome, failure, seconds
            self._is_done = True
            self._settled.notify_all()
            self._wake()
        self.tell_watchers()

    def _wake(self) -> None:
        self._changed.notify_all()
        for loop, woken in self._waiters:
            if not woken.is_set():
                call_soon(loop, woken.set)


async def _beat(woken: asyncio.Event) -> None:
    """Wait for the event, but look up regularly (ipython/ipykernel#881)."""
    try:
        async with asyncio.timeout(BEAT_S):  # wait_for can lose a cancel (python/cpython#86296)
            await woken.wait()
    except TimeoutError:
        return


def failed_at_call(run: Run, error: RunError) -> RunError:
    """Return `error` carrying a run that ended before it began (B26)."""
    run._finish("error", error, 0.0)
    return error
