"""`ScriptedModel`: a model whose answers are written beforehand, for tests.

Owns scripts and the record of what was asked. Does not own transport: nothing leaves the process.
The one idea: a step of the script answers one call, and says when each delta comes, so that a test
can hold an answer in its middle, cut it, fail it or let it go.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nbdurable.blocks import Json, Message, ToolCallBlock, Usage
from nbdurable.errors import ModelError, shown
from nbdurable.models.base import (
    CallDelta,
    Delta,
    Finish,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
)
from nbdurable.models.params import recorded
from nbdurable.wire import block_to_dict

Action = Delta | float | threading.Event | asyncio.Event | BaseException
"""A delta to yield, seconds to sleep, an event to wait for, or an exception to raise."""

Part = str | Action | Sequence["Part"]
"""An action, text to stream as several deltas, or a sequence of parts."""

_DEFAULT_USAGE = Usage(11, 7)
_POLL_S = 0.002
_SOME_TEXT = re.compile(r"\s*\S{1,4}|\s+")


@dataclass(frozen=True, slots=True)
class Cut:
    """A step whose stream ends without a finish; made by `cut`."""

    parts: tuple[Part, ...]


Step = Part | Cut | Callable[[ModelRequest], "Part | Cut"]
"""What answers one call; a function gets the request and returns the step to play."""


@dataclass(frozen=True, slots=True)
class _Script:
    actions: tuple[Action, ...]
    is_cut: bool = False


def calls(*wanted: tuple[str, Mapping[str, Json] | str], text: str = "") -> tuple[Part, ...]:
    """Return a step that says `text` and then calls tools.

    Parameters
    ----------
    *wanted : tuple of (str, mapping or str)
        The name of a tool and its arguments; text is sent as it is, also when it is no JSON. The
        model numbers the call ids: ``call_2_0`` is the first call of its second answer.
    text : str
        What is said before the calls.
    """
    pieces: list[Part] = [text] if text else []
    for key, (name, arguments) in enumerate(wanted):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        half = len(raw) // 2
        pieces += [CallDelta(key, name=name, arguments=raw[:half])]
        pieces += [CallDelta(key, arguments=raw[half:])]
    return tuple(pieces)


def cut(*parts: Part) -> Cut:
    """Return a step that streams `parts` and then breaks off, as a lost connection does."""
    return Cut(parts)


def thinking(text: str, signature: str | None = None) -> ThinkingDelta:
    """Return thinking, signed when a signature is given."""
    return ThinkingDelta(text, signature)


class ScriptedModel:
    """A model that answers each call with the next step of a script.

    Parameters
    ----------
    *steps : Step
        Text (streamed as several deltas), an exception, a sequence of text, deltas, seconds to
        sleep, events to wait for and exceptions to raise, a `cut`, or a function of the request
        that returns one of those. A step without a `Finish` gets a fitting one.
    name : str
        The model's name, as recorded.
    repeat : bool
        Whether the last step answers all later calls; otherwise such a call fails.
    usage, cost_usd : Usage or None, float or None
        What each answer reports.
    price_usd : float or None
        The most that a call can cost, for budgets.
    context_limit : int or None
        How many tokens the model reads at most.

    Examples
    --------
    >>> model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "It is 3.")
    """

    def __init__(
        self,
        *steps: Step,
        name: str = "scripted",
        repeat: bool = True,
        usage: Usage | None = _DEFAULT_USAGE,
        cost_usd: float | None = None,
        price_usd: float | None = None,
        context_limit: int | None = None,
    ) -> None:
        self.name = name
        self.usage = usage
        self.cost_usd = cost_usd
        self.price_usd = price_usd
        self.started = threading.Event()
        self._steps = [step if callable(step) else _script(step) for step in steps]
        self._repeat = repeat
        self._context_limit = context_limit
        self._requests: list[ModelRequest] = []
        self._cancelled = 0
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, {len(self._steps)} steps, {self.call_count} calls)"

    # -- what a test looks at ------------------------------------------------------------------

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """The requests so far, in order."""
        with self._changed:
            return tuple(self._requests)

    @property
    def call_count(self) -> int:
        """How many calls were made."""
        return len(self.requests)

    @property
    def cancelled(self) -> int:
        """How many answers were cancelled or closed before their end."""
        with self._changed:
            return self._cancelled

    def wait_for_request(self, n: int = 1, timeout_s: float = 10.0) -> ModelRequest:
        """Block until `n` calls were made; return the request of the n-th.

        Raises
        ------
        TimeoutError
            Fewer calls were made in `timeout_s` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._requests) >= n, timeout_s):
                raise TimeoutError(
                    f"model {self.name!r} got {len(self._requests)} of {n} calls "
                    f"in {timeout_s:g} s; start the run before waiting for it"
                )
            return self._requests[n - 1]

    def wait_for_cancel(self, n: int = 1, timeout_s: float = 10.0) -> None:
        """Block until `n` answers were cancelled.

        Raises
        ------
        TimeoutError
            Fewer were cancelled in `timeout_s` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._cancelled >= n, timeout_s):
                raise TimeoutError(
                    f"model {self.name!r} had {self._cancelled} of {n} answers cancelled "
                    f"in {timeout_s:g} s; cancel the run before waiting for it"
                )

    # -- the model protocol --------------------------------------------------------------------

    def check(self, params: Mapping[str, object] | None = None) -> None:
        """Do nothing: a script is always ready."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Record the request and return the next step's deltas."""
        with self._changed:
            number = len(self._requests) + 1
            self._requests.append(request)
            self._changed.notify_all()
        self.started.set()
        return self._play(number, request)

    async def _play(self, number: int, request: ModelRequest) -> AsyncIterator[Delta]:
        try:
            script = self._step(number, request)
            for action in script.actions:
                if isinstance(action, Delta):
                    await asyncio.sleep(0)  # a cancel gets in between any two deltas
                    yield self._numbered(action, number)
                else:
                    await _act(action)
            if script.is_cut:
                raise ModelError(
                    f"the answer of model {self.name!r} broke off before its end; run again",
                    reason="interrupted",
                )
            if not any(isinstance(action, Finish) for action in script.actions):
                yield self._finish(script)
        except (asyncio.CancelledError, GeneratorExit):
            with self._changed:
                self._cancelled += 1
                self._changed.notify_all()
            raise

    def _step(self, number: int, request: ModelRequest) -> _Script:
        known = len(self._steps)
        if not known or (number > known and not self._repeat):
            raise ModelError(
                f"model {self.name!r} has no step for call {number}, its script has {known}; "
                "add a step or check what called it"
            )
        step = self._steps[min(number, known) - 1]
        return step if isinstance(step, _Script) else _script(step(request))

    def _numbered(self, delta: Delta, number: int) -> Delta:
        if isinstance(delta, CallDelta) and not delta.id:
            return replace(delta, id=f"call_{number}_{delta.key}")
        return delta

    def _finish(self, script: _Script) -> Finish:
        has_calls = any(
            isinstance(action, CallDelta) and not action.provider_run for action in script.actions
        )
        return Finish(
            stop_reason="tool_calls" if has_calls else "stop",
            usage=self.usage,
            cost_usd=self.cost_usd,
            answered_by=self.name,
            provider="scripted",
        )

    def describe(self, request: ModelRequest) -> dict[str, Json]:
        """Return the request as JSON, each parameter that is not recorded as ``***``."""
        hidden: dict[str, Json] = {name: "***" for name in request.params}
        return {
            "model": self.name,
            "system": request.system,
            "messages": [
                {
                    "role": message.role,
                    "content": [block_to_dict(block) for block in message.blocks],
                }
                for message in request.messages
            ],
            "tools": [tool.to_dict() for tool in request.tools],
            **hidden,
            **recorded(request.params),
        }

    def count_tokens(self, request: ModelRequest) -> int:
        """Return a fourth of the request's characters, rounded up."""
        texts = [request.system or "", *(_read_text(message) for message in request.messages)]
        texts += [json.dumps(tool.to_dict()) for tool in request.tools]
        return -(-sum(map(len, texts)) // 4)

    def context_limit(self) -> int | None:
        """Return the limit given at the start."""
        return self._context_limit

    def max_cost_usd(self, request: ModelRequest) -> float | None:
        """Return the price given at the start."""
        return self.price_usd


def _read_text(message: Message) -> str:
    called = (
        block.name + block.raw for block in message.blocks if isinstance(block, ToolCallBlock)
    )
    return message.text + "".join(called)


def _script(step: Part | Cut) -> _Script:
    if isinstance(step, Cut):
        return _Script(tuple(_actions(step.parts)), is_cut=True)
    return _Script(tuple(_actions(step)))


def _actions(part: Part) -> Iterator[Action]:
    if isinstance(part, str):
        yield from (TextDelta(some) for some in _SOME_TEXT.findall(part))
    elif isinstance(part, Delta | threading.Event | asyncio.Event | BaseException):
        yield part
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield float(part)
    elif isinstance(part, Iterable):
        for inner in part:
            yield from _actions(inner)
    else:
        raise TypeError(
            f"part {shown(part)} of a script is a {type(part).__name__}; "
            "use text, deltas, seconds, events, exceptions or sequences of them"
        )


async def _act(action: Action) -> None:
    if isinstance(action, BaseException):
        raise action
    if isinstance(action, threading.Event | asyncio.Event):
        # Polled, since either kind may be set from another thread than this loop's.
        while not action.is_set():
            await asyncio.sleep(_POLL_S)
    elif isinstance(action, float):
        await asyncio.sleep(action)
