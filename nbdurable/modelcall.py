"""One model call of a run: its stream, its clock, its spool.

Owns how a stream is followed, cancelled and judged. The one idea: however the stream ends, what
arrived is a message with the reason beside it (B22), and at most half a second of it is only in
memory (B24).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nbdurable.blocks import Message, Reply, StopReason
from nbdurable.codec import encode
from nbdurable.entries import MessageEntry
from nbdurable.errors import ModelError, NbDurableError, told
from nbdurable.media import told_of_other
from nbdurable.models.base import (
    Assembly,
    Delta,
    ModelRequest,
    RetryNotice,
    TextDelta,
    ThinkingDelta,
)
from nbdurable.models.sound import sound
from nbdurable.secrets import TEXT_LIMIT, scrub, secrets_of, without_secrets
from nbdurable.stored import Outcome, SpoolDraft
from nbdurable.threads import in_worker, is_being_cancelled

if TYPE_CHECKING:
    from nbdurable.loop import Loop

SPOOL_EVERY_S = 0.5  # at most this much of a streamed answer is lost to a kill (B24)
CANCEL_GRACE_S = 5.0  # how long a cancelled stream may take to let go

log = logging.getLogger("nbdurable")


class ModelCall:
    """One model call: its deltas, its clock and its spool.

    One that is no answer, such as a summary, is neither spooled nor told to the run's readers.
    """

    def __init__(self, loop: Loop, request: ModelRequest, *, is_answer: bool = True) -> None:
        self.loop = loop
        self._is_answer = is_answer
        self.request = request
        self.assembly = Assembly()
        self.entry_id = loop.job.image.new_id()
        self.was_aborted = False
        self._began = time.monotonic()
        self._first: float | None = None
        self._is_unspooled = False  # more has arrived than the spool holds

    async def run(self) -> BaseException | None:
        """Take the stream to its end; return what ended it early, if anything."""
        cancelled = self.loop.job.cancelled
        stream = asyncio.create_task(self._consume())
        spooler = asyncio.create_task(self._spool_regularly())
        stop = asyncio.create_task(cancelled.wait())
        try:
            await asyncio.wait({stream, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not stream.done():
                self.was_aborted = True
                stream.cancel()
                await asyncio.wait({stream}, timeout=CANCEL_GRACE_S)
                return cancelled_error()
            return self._judge(stream.result())
        finally:
            stop.cancel()
            spooler.cancel()
            with suppress(asyncio.CancelledError):
                await spooler

    def _judge(self, failure: BaseException | None) -> BaseException | None:
        if isinstance(failure, KeyboardInterrupt):
            self.was_aborted = True
            return failure
        name, finish = self.loop.job.model.name, self.assembly.finish
        if failure is not None:
            failed = self._failed(failure)
            if finish is None:
                return failed
            log.warning("model %r failed after its answer was whole", name, exc_info=failed)
        if finish is None:
            return ModelError(
                f"the stream of model {name!r} ended before the model finished; run() asks again",
                reason="interrupted",
            )
        if finish.stop_reason == "error":
            said = scrub(finish.error or "", secrets_of(self.request.params), TEXT_LIMIT)
            return ModelError(said or f"model {name!r} gave up", reason="refused")
        return None

    def _failed(self, failure: BaseException) -> NbDurableError:
        """Return what a model raised as an error of ours that tells no secret (B69)."""
        error, name = failure, self.loop.job.model.name
        if not isinstance(error, NbDurableError):
            error = ModelError(f"model {name!r} failed: {told_of_other(failure)}")
            error.__cause__ = failure
        return without_secrets(error, secrets_of(self.request.params))

    async def _consume(self) -> BaseException | None:
        """Follow the stream; return whatever it raises: let through, it ends the loop or the run.

        Only a cancel of this call passes: a client may raise `CancelledError` of its own.
        """
        try:
            async with _closing(self.loop.job.model.stream(self.request)) as deltas:
                async for delta in deltas:
                    self._take(sound(delta))
        except BaseException as exc:
            if isinstance(exc, asyncio.CancelledError) and is_being_cancelled():
                raise
            return exc
        return None

    def _take(self, delta: Delta) -> None:
        if not self._is_answer:
            self.assembly.add(delta)
            return
        if isinstance(delta, RetryNotice):
            said = scrub(delta.error, secrets_of(self.request.params), TEXT_LIMIT)
            self.loop.emit("retry", attempt=delta.attempt, delay_s=delta.delay_s, error=said)
            return
        self.assembly.add(delta)
        self._is_unspooled = True
        if self._first is None and not self.assembly.is_empty:
            self._first = time.monotonic()
        if isinstance(delta, TextDelta) and delta.text:
            self.loop.emit("message_update", text=delta.text)
        elif isinstance(delta, ThinkingDelta) and delta.text:
            self.loop.emit("message_update", thinking=delta.text)

    async def _spool_regularly(self) -> None:
        job = self.loop.job
        while True:
            await asyncio.sleep(SPOOL_EVERY_S)
            if self.assembly.is_empty or not self._is_unspooled:
                continue
            self._is_unspooled = False
            lost = ModelError("its process ended in mid-answer", reason="interrupted")
            entry = encode(
                MessageEntry(message=self.message("aborted", lost)),
                id=self.entry_id,
                session_id=job.image.session_id,
                parent_id=job.leaf.id,
                created_at=job.image.clock(),
                run_id=job.record.id,
                moves_leaf=None if job.record.moves else False,
            )
            end = self.loop.end("aborted", self.entry_id, lost)
            try:
                await in_worker(partial(job.image.store.spool, SpoolDraft(entry=entry, end=end)))
            except Exception:  # a store of another's may raise anything; the answer goes on
                log.warning("an answer in flight could not be spooled", exc_info=True)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the model stopped, when it did."""
        return self.assembly.finish.stop_reason if self.assembly.finish else None

    def cost_usd(self, failure: BaseException | None) -> float | None:
        """Return what the call cost; nothing when the provider refused it before any output.

        A cancelled call has perhaps been read, and paid for: that is unknown (B26).
        """
        if failure is not None and self.assembly.is_empty and not self.was_aborted:
            return 0.0
        return self.assembly.finish.cost_usd if self.assembly.finish else None

    @property
    def outcome(self) -> Outcome:
        """How a failed call ends its run."""
        return "aborted" if self.was_aborted else "error"

    def message(
        self, outcome: Outcome | None = None, failure: BaseException | None = None
    ) -> Message:
        """Return the answer as it stands, with its record; an outcome marks a partial one."""
        job, finish = self.loop.job, self.assembly.finish
        now = time.monotonic()
        reply = Reply(
            model=job.model.name,
            params_json=job.record.params_json,
            ttft_s=None if self._first is None else self._first - self._began,
            seconds=now - self._began,
        )
        if finish is not None:
            reply = replace(
                reply,
                answered_by=finish.answered_by,
                provider=finish.provider,
                fingerprint=finish.fingerprint,
                stop_reason=finish.stop_reason,
                usage=finish.usage,
                cost_usd=finish.cost_usd,
            )
        if failure is not None:
            reason: StopReason = "aborted" if outcome == "aborted" else "error"
            reply = replace(reply, stop_reason=reason, error=told(failure))
        return Message("assistant", self.assembly.blocks(), reply)


def _closing(stream: AsyncIterator[Delta]) -> AbstractAsyncContextManager[AsyncIterator[Delta]]:
    """Close a generator at the end; an iterator that is none has nothing to close."""
    return aclosing(stream) if isinstance(stream, AsyncGenerator) else nullcontext(stream)


def cancelled_error() -> ModelError:
    """Return the error that stands beside what a cancelled run left."""
    return ModelError("the run was cancelled", reason="interrupted")
