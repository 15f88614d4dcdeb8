"""The tools of one step: run, answered and stored in call order.

Owns who may run, in which order, and what a cancelled or refused call is answered. The one idea:
every call that was asked for gets exactly one stored result, whatever happens (B23, B27-B29).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from nbdurable.blocks import Message, TextBlock, ToolCallBlock, ToolResultBlock
from nbdurable.entries import MessageEntry
from nbdurable.modelcall import cancelled_error
from nbdurable.questions import Question
from nbdurable.secrets import scrub, secrets_of
from nbdurable.stored import Annotation, Outcome
from nbdurable.threads import RunCancelled, in_worker, unless_set
from nbdurable.tools import Tool, call_tool, error_result
from nbdurable.wire import dumps

if TYPE_CHECKING:
    from nbdurable.loaded import Loaded
    from nbdurable.loop import Loop

CANCEL_GRACE_S = 2.0  # how long a cancelled tool may take to clean up
UNKNOWN = "cancelled while it ran: the outcome is unknown, check before repeating"


def own_calls(message: Message) -> tuple[ToolCallBlock, ...]:
    """Return the calls of a message that are ours to run; a doubled id once (case 19)."""
    if message.stop_reason != "tool_calls":
        return ()
    calls: dict[str, ToolCallBlock] = {}
    for call in message.tool_calls:
        if call.complete and not call.provider_run:
            calls.setdefault(call.id, call)
    return tuple(calls.values())


class ToolStep:
    """The calls of one assistant message on their way to stored results."""

    def __init__(self, loop: Loop, entry: MessageEntry, is_last: bool) -> None:
        self.loop = loop
        self.job = loop.job
        self.entry = entry
        self.calls = own_calls(entry.message)
        self.is_last = is_last
        self.tools = {tool.name: tool for tool in loop.job.tools}
        self.results: list[ToolResultBlock] = []

    async def run(self) -> tuple[ToolResultBlock, ...]:
        """Run and answer every call; return the results as stored, in call order.

        Raises
        ------
        StoreError
            A result could not be stored; no further tool was started.
        """
        found = [self.tools.get(call.name) for call in self.calls]
        if len(found) > 1 and all(tool is not None and tool.parallel for tool in found):
            await self._together()
        else:
            for index in range(len(self.calls)):
                await self._store(index, await self._result(index))
        return tuple(self.results)

    async def _together(self) -> None:
        tasks = [asyncio.create_task(self._result(index)) for index in range(len(self.calls))]
        try:
            for index, task in enumerate(tasks):
                await self._store(index, await task)
        finally:
            for task in tasks:
                task.cancel()

    # -- one call ------------------------------------------------------------------------------

    async def _result(self, index: int) -> ToolResultBlock:
        call = self.calls[index]
        try:
            self._check_cancelled()
            self.loop.emit("tool_start", call_id=call.id, name=call.name, arguments=call.raw)
            allowed = await unless_set(self.job.cancelled, self.job.hooks.before_tool(call))
            if isinstance(allowed, ToolResultBlock):
                return allowed
            tool = self.tools.get(allowed.name)
            refusal = await self._refuse(tool, allowed)
            self._check_cancelled()
        except RunCancelled:
            return error_result(call, "not started: the run was cancelled")
        if refusal is not None:
            return error_result(allowed, refusal)
        result = await self._call(tool, allowed, index)
        return await self._reviewed(allowed, result)

    def _check_cancelled(self) -> None:
        if self.job.cancelled.is_set():
            raise RunCancelled

    async def _reviewed(self, call: ToolCallBlock, result: ToolResultBlock) -> ToolResultBlock:
        """Return a result as `after_tool` left it; unseen by the hooks, none is stored."""
        if not self.job.hooks.wants("after_tool"):
            return result
        try:
            return await unless_set(self.job.cancelled, self.job.hooks.after_tool(call, result))
        except RunCancelled:
            return error_result(call, UNKNOWN)

    async def _refuse(self, tool: Tool | None, call: ToolCallBlock) -> str | None:
        if tool is None:
            return None
        if tool.effects and self.job.refuse_repeats:
            asked = next(made for made in self.calls if made.id == call.id)  # as it is stored
            earlier = await in_worker(partial(has_result, self.job.image, asked))
            if earlier is not None:
                return (
                    f"not executed: {call.name} with these arguments already has a result in this "
                    f"session (#{earlier}) and has effects; effects='run' would repeat it"
                )
        if tool.confirm and not await self._is_confirmed(call):
            return "not executed: the user did not allow it"
        return None

    async def _call(self, tool: Tool | None, call: ToolCallBlock, index: int) -> ToolResultBlock:
        work = asyncio.create_task(
            call_tool(
                tool,
                call,
                known=tuple(self.tools),
                idempotency_key=idempotency_key(self.job.image.session_id, self.entry.id, index),
                report=self._reporter(call),
            )
        )
        stop = asyncio.create_task(self.job.cancelled.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            work.cancel()
            await asyncio.wait({work}, timeout=CANCEL_GRACE_S)
            return error_result(call, UNKNOWN)
        finally:
            work.cancel()
            stop.cancel()

    def _reporter(self, call: ToolCallBlock) -> Callable[[str], None]:
        loop = asyncio.get_running_loop()

        def emit(text: str) -> None:
            self.loop.emit("tool_update", call_id=call.id, name=call.name, text=text)

        def report(text: str) -> None:
            loop.call_soon_threadsafe(emit, str(text))

        return report

    async def _is_confirmed(self, call: ToolCallBlock) -> bool:
        """Ask whoever follows the run, and store the answer beside the message (B29)."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()

        def settle(allow: bool) -> None:
            if not answer.done():
                answer.set_result(allow)

        def reply(allow: bool) -> None:
            loop.call_soon_threadsafe(settle, allow)

        question = Question(call.id, f"run {call.name}({call.raw})?", reply)
        self.job.run._put_question(question)
        try:
            allow = await unless_set(self.job.cancelled, _settled(answer))
        finally:
            question.claim()
        await in_worker(partial(self._keep_answer, call, allow))
        return allow

    def _keep_answer(self, call: ToolCallBlock, allow: bool) -> None:
        image = self.job.image
        image.store.annotate(
            [
                Annotation(
                    id=image.new_id(),
                    session_id=image.session_id,
                    target_id=self.entry.id,
                    name="confirm",
                    value_json=dumps({"call_id": call.id, "allow": allow}),
                    created_at=image.clock(),
                )
            ]
        )

    # -- storing -------------------------------------------------------------------------------

    async def _store(self, index: int, result: ToolResultBlock) -> None:
        outcome: Outcome | None = None
        failure: BaseException | None = None
        if index == len(self.calls) - 1:
            if self.job.cancelled.is_set():
                outcome, failure = "aborted", cancelled_error()
            elif self.is_last:
                outcome = "max_steps"
        call, result = self.calls[index], self._without_secrets(result)
        draft = MessageEntry(message=Message("tool", (result,)))
        entry = await self.loop.store(draft, outcome, failure)
        self.results.append(result)
        self.loop.emit("tool_end", call_id=call.id, name=call.name, result=result)
        self.loop.emit("message_end", entries=(entry,), leaf_id=entry.id, message=entry.message)

    def _without_secrets(self, result: ToolResultBlock) -> ToolResultBlock:
        """Return a result whose error repeats no key that the tool or a hook was given (B69)."""
        if not result.is_error:
            return result  # what a tool returns is data, and the user's
        secrets = secrets_of(self.job.settings.params)
        content = tuple(
            replace(block, text=scrub(block.text, secrets))
            if isinstance(block, TextBlock)
            else block
            for block in result.content
        )
        return replace(result, content=content)


async def _settled(answer: asyncio.Future[bool]) -> bool:
    return await answer


def idempotency_key(session_id: str, entry_id: str, index: int) -> str:
    """Return the key of a call: the same whenever that call is executed again."""
    text = f"{session_id}\0{entry_id}\0{index}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def has_result(image: Loaded, call: ToolCallBlock) -> int | None:
    """Return the ordinal of a stored result to an equal call in the session, or None (B29)."""
    wanted = (call.name, _canonical(call))
    calls: dict[str, str] = {}
    for entry in image.all_entries():
        if not isinstance(entry, MessageEntry) or entry.ephemeral:
            continue
        for made in entry.message.tool_calls:
            if (made.name, _canonical(made)) == wanted:
                calls[entry.id] = made.id
        for result in entry.message.tool_results:
            if not _was_refused(result) and _answers(image, entry, calls, result.call_id):
                return entry.n
    return None


def _answers(image: Loaded, entry: MessageEntry, calls: dict[str, str], call_id: str) -> bool:
    """Whether the nearest message above `entry` that made call `call_id` is one of `calls`."""
    if call_id not in calls.values():
        return False
    for above in reversed(image.path(entry.id)[:-1]):
        if calls.get(above.id) == call_id:
            return True
        if isinstance(above, MessageEntry) and any(
            made.id == call_id for made in above.message.tool_calls
        ):
            return False
    return False


def _was_refused(result: ToolResultBlock) -> bool:
    return result.is_error and result.text.startswith("not ")


def _canonical(call: ToolCallBlock) -> str:
    arguments = call.arguments
    return call.raw if arguments is None else json.dumps(arguments, sort_keys=True)
