"""Tools: typed functions that a model may call.

Owns what a tool is and how one call of it is answered. Does not own which calls run, in which
order and what is stored: that is the loop's. The one idea: whatever a tool does, its call gets
exactly one result; nothing it raises ends a run (B27).
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import overload

from nbdurable.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from nbdurable.errors import ToolError, shown
from nbdurable.media import as_text, blocks_of
from nbdurable.models.base import ToolSpec
from nbdurable.threads import call_soon, in_thread, is_being_cancelled
from nbdurable.toolspec import INJECTED, Arguments, UnfitArguments, parameters_of, summary_of

MAX_ERROR_CHARS = 2_000

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what every provider takes


@dataclass(frozen=True)
class Tool:
    """A function that a model may call; calling the tool calls the function.

    Parameters
    ----------
    fn : callable
        A typed function, sync or async. Parameters named ``idempotency_key`` (stable over a
        repeated call, B29) and ``report`` (sends a line of progress) are given by the run and not
        told to the model.
    name, description : str
        By default the function's name and the first paragraph of its docstring.
    parallel : bool
        May run beside other parallel tools of one step (B28).
    effects : bool
        Changes the world, so it is never repeated unasked (B29).
    confirm : bool
        Asks the user before each call.
    timeout_s : float, optional
        Seconds after which the call is answered by an error.

    Raises
    ------
    ToolError
        The name is not legal for every provider, or the function cannot be called by names.
    """

    fn: Callable[..., object]
    name: str = ""
    description: str | None = None
    parallel: bool = False
    effects: bool = False
    confirm: bool = False
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.fn) or inspect.isclass(self.fn):
            raise ToolError(f"a tool of {_kind(self.fn)} cannot be made; give a typed function")
        name = self.name or getattr(self.fn, "__name__", "")
        if not _LEGAL_NAME.fullmatch(name):
            raise ToolError(_bad_name(name, self.fn))
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ToolError(f"timeout_s of tool {name!r} is {self.timeout_s!r}; give seconds > 0")
        if inspect.isgeneratorfunction(self.fn) or inspect.isasyncgenfunction(self.fn):
            raise ToolError(f"tool {name!r} is a generator; return a list, and report() progress")
        parameters_of(self.fn, name)
        object.__setattr__(self, "name", name)
        if self.description is None:
            object.__setattr__(self, "description", summary_of(self.fn.__doc__))

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function."""
        return self.fn(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        call = getattr(self.fn, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.fn) or inspect.iscoroutinefunction(call)

    @cached_property
    def arguments(self) -> Arguments:
        """The function's arguments; made once.

        Raises
        ------
        ToolError
            An annotation cannot be resolved or has no JSON schema.
        """
        return Arguments(self.fn, self.name)

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it; made once."""
        return ToolSpec(self.name, self.description or "", self.arguments.schema)

    def _bind(self, call: ToolCallBlock, injected: dict[str, object]) -> Callable[[], object]:
        """Return the function with a call's arguments, checked."""
        asked = {n: injected[n] for n in parameters_of(self.fn, self.name) if n in INJECTED}
        return partial(self.fn, **self.arguments.read(call.raw), **asked)


def _bad_name(name: str, fn: Callable[..., object]) -> str:
    if name == "<lambda>":
        return "a lambda cannot be a tool, since it has no name or types; use def"
    if not name:
        return f"a tool of {_kind(fn)} has no name; give one by tool(fn, name=...)"
    return f"tool name {shown(name)} is not legal; use 1 to 64 of a-z, A-Z, 0-9, _ and -"


def _kind(value: object) -> str:
    return f"type {type(value).__name__}"


@overload
def tool(
    fn: Callable[..., object],
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    effects: bool = False,
    confirm: bool = False,
    timeout_s: float | None = None,
) -> Tool: ...


@overload
def tool(
    fn: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    effects: bool = False,
    confirm: bool = False,
    timeout_s: float | None = None,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    fn: Callable[..., object] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    effects: bool = False,
    confirm: bool = False,
    timeout_s: float | None = None,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a tool of a typed function; a decorator, bare or with arguments.

    ::

        @nb.tool(parallel=True, timeout_s=10)
        def weather(city: str, unit: Literal["C", "F"] = "C") -> dict[str, float]:
            \"\"\"Look up the weather in a city.\"\"\"

    The parameters are those of `Tool`.

    Raises
    ------
    ToolError
        The function cannot be a tool; the text names it and says why.
    """

    def make(function: Callable[..., object]) -> Tool:
        return Tool(function, name or "", description, parallel, effects, confirm, timeout_s)

    return make if fn is None else make(fn)


def as_tools(values: Iterable[Tool | Callable[..., object]]) -> tuple[Tool, ...]:
    """Return tools of tools and plain typed functions, in order.

    Raises
    ------
    ToolError
        A value cannot be a tool, or two have one name.
    """
    if callable(values) or isinstance(values, str) or not isinstance(values, Iterable):
        raise ToolError(f"tools of {_kind(values)} cannot be used; give a list, such as [lookup]")
    tools = tuple(value if isinstance(value, Tool) else Tool(value) for value in values)
    names = [each.name for each in tools]
    for name in names:
        if names.count(name) > 1:
            raise ToolError(
                f"tool name {name!r} is used {names.count(name)} times; give tool(fn, name=...)"
            )
    return tools


# -- one call ----------------------------------------------------------------------------------


async def call_tool(
    tool: Tool | None,
    call: ToolCallBlock,
    *,
    known: Sequence[str],
    idempotency_key: str,
    report: Callable[[str], None],
) -> ToolResultBlock:
    """Run one tool call and return its result; what goes wrong is an error result (B27).

    Parameters
    ----------
    tool : Tool or None
        None when no tool has the call's name.
    call : ToolCallBlock
        A complete call.
    known : sequence of str
        The names a model may call, for the answer to an unknown one.
    idempotency_key : str
        For a body that asks for it.
    report : callable
        Takes lines of progress, always on the running loop; nothing comes after the result.

    Raises
    ------
    asyncio.CancelledError
        This task was cancelled. A sync function goes on in its thread, and what it still
        returns is dropped (B23).
    """
    if tool is None:
        return error_result(call, _unknown(call.name, known))
    if not call.complete:
        return error_result(call, f"the call of {call.name!r} was cut before its end; not run")
    progress = _Progress(report)
    injected: dict[str, object] = {"idempotency_key": idempotency_key, "report": progress}
    try:
        async with asyncio.timeout(tool.timeout_s):
            if tool.is_async:
                return await _run_async(tool, call, injected)
            work = partial(_run_sync, tool, call, injected)
            return await in_thread(work, f"nbdurable-tool-{tool.name}")
    except TimeoutError:
        return error_result(call, _late(tool))
    finally:
        progress.close()


def error_result(call: ToolCallBlock, text: str) -> ToolResultBlock:
    """Return `text` as the error result of a call, cut at 2,000 characters."""
    cut = text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - 1] + "…"
    return ToolResultBlock(call.id, (TextBlock(cut),), is_error=True, name=call.name)


def _run_sync(tool: Tool, call: ToolCallBlock, injected: dict[str, object]) -> ToolResultBlock:
    try:
        return _answer(call, tool._bind(call, injected)())
    except BaseException as exc:  # also an exit: no tool ends the run or the kernel
        return _failure(call, exc)


async def _run_async(
    tool: Tool, call: ToolCallBlock, injected: dict[str, object]
) -> ToolResultBlock:
    try:
        bound = tool._bind(call, injected)
        value = await bound()  # type: ignore[misc]
        return await in_thread(partial(_answer, call, value))  # drawing a figure takes a while
    except asyncio.CancelledError as exc:
        if is_being_cancelled():
            raise
        return _failure(call, exc)
    except BaseException as exc:  # also an exit: no tool ends the run or the kernel
        return _failure(call, exc)


def _answer(call: ToolCallBlock, value: object) -> ToolResultBlock:
    if isinstance(value, ToolResultBlock):
        return replace(value, call_id=call.id, name=call.name)
    if inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()
        return error_result(
            call,
            f"tool {call.name!r} returned a {type(value).__name__}, which has no content; "
            "return its items as a list, or make the function async and await it",
        )
    return ToolResultBlock(call.id, blocks_of(value), name=call.name)


def _failure(call: ToolCallBlock, error: BaseException) -> ToolResultBlock:
    if isinstance(error, UnfitArguments):
        return error_result(call, str(error))
    kind, text = type(error).__name__, as_text(error)
    return error_result(call, f"{kind}: {text}" if text else kind)


def _unknown(name: str, known: Sequence[str]) -> str:
    if not known:
        return f"tool {shown(name)} is not known; no tools can be called here"
    near = difflib.get_close_matches(name, known, n=3) or list(known)[:10]
    return f"tool {shown(name)} is not known; call one of {', '.join(map(repr, near))}"


def _late(tool: Tool) -> str:
    text = f"tool {tool.name!r} did not finish within {tool.timeout_s:g} s"
    if tool.is_async:
        return f"{text} and was stopped"
    return f"{text}; it may still be running and its outcome is unknown, check before repeating"


class _Progress:
    """What a tool calls as ``report(text)``, from any thread, until its call is answered."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report: Callable[[str], None] | None = report
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()

    def __call__(self, text: object) -> None:
        if threading.get_ident() == self._thread_id:
            self._tell(as_text(text))
        else:
            call_soon(self._loop, self._tell, as_text(text))

    def _tell(self, text: str) -> None:
        if self._report is not None:
            self._report(text)

    def close(self) -> None:
        self._report = None
