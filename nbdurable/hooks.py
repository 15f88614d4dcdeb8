"""Hooks: the application's say at the joints of a run.

Owns which objects are hooks and what their answers mean. Does not own when they are asked: that is
the loop's. The one idea: None always means "go on as you are", and a hook that fails before a tool
denies it (B32).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from nbdurable.blocks import Message, ToolCallBlock, ToolResultBlock
from nbdurable.entries import Entry
from nbdurable.errors import BadPayload, EntryError, RunError, shown
from nbdurable.inputs import as_entries
from nbdurable.media import as_text, told_of_other
from nbdurable.models.base import ModelRequest
from nbdurable.threads import in_thread, is_being_cancelled
from nbdurable.tools import error_result
from nbdurable.wire import dumps

T = TypeVar("T")

HOOK_NAMES = ("before_model", "before_tool", "after_tool", "after_step", "before_stop")


class Hooks:
    """A base for hooks; override what you need, sync or async.

    Any object with some of these methods will do. A sync method is called in a thread of its own.
    Of several hooks each sees what the one before it left.
    """

    def before_model(self, request: ModelRequest) -> ModelRequest | Awaitable[object] | None:
        """Return what the model sees instead, for this call only; None changes nothing."""
        return None

    def before_tool(
        self, call: ToolCallBlock
    ) -> str | dict[str, object] | Awaitable[object] | None:
        """Return None to allow a call, text to deny it, a dict to give it other arguments.

        An exception denies the call with its text.
        """
        return None

    def after_tool(
        self, call: ToolCallBlock, result: ToolResultBlock
    ) -> ToolResultBlock | Awaitable[object] | None:
        """Return what is stored and sent as the call's result; None changes nothing."""
        return None

    def after_step(
        self, message: Message, results: tuple[ToolResultBlock, ...]
    ) -> Awaitable[None] | None:
        """Take note of a step: the model's message and its tools' results."""
        return None

    def before_stop(self, message: Message) -> object:
        """Return follow-up input, as `run` takes it, or a list of it; None lets the run end.

        Not asked when the run ends at ``max_steps``.
        """
        return None


class HookChain:
    """The hooks of a handle, asked in order; make one with `of`."""

    def __init__(self, hooks: tuple[object, ...] = ()) -> None:
        self._hooks = hooks

    @classmethod
    def of(cls, hooks: object) -> HookChain:
        """Return the chain of one hook object, a sequence of them, or None.

        Raises
        ------
        RunError
            An object has no hook method.
        """
        if isinstance(hooks, HookChain):
            return hooks
        if hooks is None:
            return cls()
        chain = tuple(hooks) if isinstance(hooks, list | tuple) else (hooks,)
        for hook in chain:
            if not any(callable(getattr(hook, name, None)) for name in HOOK_NAMES):
                raise RunError(
                    f"hook of type {type(hook).__name__} has no hook method; "
                    f"give an object with one of {', '.join(HOOK_NAMES)}"
                )
        return cls(chain)

    def wants(self, name: str) -> bool:
        """Whether any hook has a method `name` of its own."""
        return bool(self._methods(name))

    async def before_model(self, request: ModelRequest) -> ModelRequest:
        """Return the request as the hooks left it.

        Raises
        ------
        RunError
            A hook failed or returned something else; the text names it.
        """
        for method in self._methods("before_model"):
            answer = await _ask(method, request)
            request = request if answer is None else _checked(method, answer, ModelRequest)
        return request

    async def before_tool(self, call: ToolCallBlock) -> ToolCallBlock | ToolResultBlock:
        """Return the call to run, its arguments perhaps changed, or the result that denies it."""
        for method in self._methods("before_tool"):
            try:
                answer = await _ask(method, call)
                if isinstance(answer, dict):
                    call = replace(call, raw=dumps(answer))
                    continue
            except RunError as exc:
                cause = exc.__cause__
                return _denied(call, as_text(cause) or type(cause).__name__)
            except BadPayload as exc:
                return _denied(call, f"hook {_name(method)} changed the arguments, but {exc}")
            if isinstance(answer, str):
                return _denied(call, answer or "no reason given")
            if answer is not None:
                return _denied(call, _unexpected(method, answer, "None, text or a dict"))
        return call

    async def after_tool(self, call: ToolCallBlock, result: ToolResultBlock) -> ToolResultBlock:
        """Return the result as the hooks left it; it stays the result of that call.

        Raises
        ------
        RunError
            A hook failed or returned something else; the text names it.
        """
        for method in self._methods("after_tool"):
            answer = await _ask(method, call, result)
            if answer is not None:
                changed = _checked(method, answer, ToolResultBlock)
                result = replace(changed, call_id=call.id, name=changed.name or call.name)
        return result

    async def after_step(self, message: Message, results: tuple[ToolResultBlock, ...]) -> None:
        """Tell the hooks of a step.

        Raises
        ------
        RunError
            A hook failed; the text names it.
        """
        for method in self._methods("after_step"):
            await _ask(method, message, results)

    async def before_stop(self, message: Message) -> tuple[Entry, ...]:
        """Return the follow-up input of all hooks as drafts; none lets the run end.

        Raises
        ------
        RunError
            A hook failed or returned what is no input; the text names it.
        """
        drafts: list[Entry] = []
        for method in self._methods("before_stop"):
            answer = await _ask(method, message)
            if answer is None or (isinstance(answer, str) and not answer.strip()):
                continue
            parts = answer if isinstance(answer, list | tuple) else (answer,)
            try:
                drafts += as_entries(*parts)
            except EntryError as exc:
                raise RunError(f"hook {_name(method)} returned no input: {exc}") from exc
        return tuple(drafts)

    def _methods(self, name: str) -> list[Callable[..., object]]:
        """Return the hooks' methods of a name; those inherited from `Hooks` do nothing."""
        methods = [getattr(hook, name, None) for hook in self._hooks]
        idle = getattr(Hooks, name)
        return [m for m in methods if callable(m) and getattr(m, "__func__", m) is not idle]


async def _ask(method: Callable[..., object], *args: object) -> object:
    try:
        if inspect.iscoroutinefunction(method):
            return await method(*args)
        answer = await in_thread(partial(method, *args), "nbdurable-hook")
        return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError as exc:
        if is_being_cancelled():
            raise
        raise _failed(method, exc) from exc
    except BaseException as exc:  # let through, it ends the loop, or this run without a word
        raise _failed(method, exc) from exc


def _failed(method: Callable[..., object], error: BaseException) -> RunError:
    return RunError(f"hook {_name(method)} failed: {told_of_other(error)}; repair the hook")


def _checked(method: Callable[..., object], answer: object, kind: type[T]) -> T:
    if isinstance(answer, kind):
        return answer
    raise RunError(_unexpected(method, answer, f"None or a {kind.__name__}"))


def _unexpected(method: Callable[..., object], answer: object, wanted: str) -> str:
    return f"hook {_name(method)} returned {shown(answer)}; return {wanted}"


def _name(method: Callable[..., object]) -> str:
    name = str(getattr(method, "__qualname__", None) or type(method).__name__)
    return name.rpartition("<locals>.")[2]


def _denied(call: ToolCallBlock, reason: str) -> ToolResultBlock:
    return error_result(call, f"not run: {reason}")
