"""Steps for `FakeOpenAI`: what the server does with one POST, as a list of small actions.

``text``, ``tools``, ``status`` and ``reply`` are whole steps; the others are single actions, put
together in a list. A step is plain data, so that a cut answer is a slice of a whole one::

    [*text("Hello world")[:3], drop()]
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "delta",
    "finish",
    "usage",
    "done",
    "raw",
    "sleep",
    "wait",
    "hang",
    "drop",
    "reset",
    "eof",
    "reply",
]

USAGE: Mapping[str, Any] = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
"""The usage that `text` and `tools` report."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that the server does; made by the functions of this module."""

    kind: Kind
    value: Any = None


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole HTTP answer of JSON."""

    status: int
    body: object
    headers: Mapping[str, str]


# -- single actions ----------------------------------------------------------------------------


def delta(**fields: object) -> Action:
    """Send one chunk with this delta, such as ``delta(content="Hi")``."""
    return Action("delta", fields)


def finish(reason: str = "stop") -> Action:
    """Send the chunk that carries the finish reason."""
    return Action("finish", reason)


def usage(counts: Mapping[str, Any] = USAGE) -> Action:
    """Send the usage chunk, to a client that asked for it."""
    return Action("usage", counts)


def done() -> Action:
    """Send ``[DONE]`` and end the HTTP body properly."""
    return Action("done")


def raw(data: bytes) -> Action:
    """Send these bytes as they are, inside the body of the stream."""
    return Action("raw", data)


def sleep(seconds: float) -> Action:
    """Wait for so long; a client that leaves meanwhile is noticed."""
    return Action("sleep", seconds)


def wait(event: threading.Event) -> Action:
    """Wait until a test sets the event; a client that leaves meanwhile is noticed."""
    return Action("wait", event)


def hang() -> Action:
    """Send nothing more until the client leaves or the server stops."""
    return Action("hang")


def drop() -> Action:
    """Close the connection (FIN) inside the body."""
    return Action("drop")


def reset() -> Action:
    """Reset the connection (RST)."""
    return Action("reset")


def eof() -> Action:
    """End the HTTP body properly, with neither finish reason nor ``[DONE]``."""
    return Action("eof")


# -- whole steps -------------------------------------------------------------------------------


def text(
    content: str,
    *,
    size: int = 4,
    delay_s: float = 0.0,
    reason: str = "stop",
    thinking: str = "",
    counts: Mapping[str, Any] | None = USAGE,
) -> list[Action]:
    """Answer with text, in chunks of `size` characters.

    Parameters
    ----------
    content : str
        The whole text.
    size : int
        Characters a chunk.
    delay_s : float
        Wait before each chunk, in seconds.
    reason : str
        The finish reason.
    thinking : str
        Sent first, as ``reasoning_content``.
    counts : mapping or None
        Usage; None sends none.
    """
    step = [delta(role="assistant", content="")]
    if thinking:
        step.append(delta(reasoning_content=thinking))
    for start in range(0, len(content), size):
        if delay_s:
            step.append(sleep(delay_s))
        step.append(delta(content=content[start : start + size]))
    return [*step, *_ending(reason, counts)]


def tools(
    *calls: tuple[str, Mapping[str, Any] | str],
    size: int = 5,
    content: str | None = None,
    same_index: bool = False,
    counts: Mapping[str, Any] | None = USAGE,
) -> list[Action]:
    """Answer with tool calls, their arguments in fragments of `size` characters.

    Parameters
    ----------
    *calls : (name, arguments)
        Arguments as a mapping, or as text to be sent as it is.
    size : int
        Characters a fragment.
    content : str or None
        Text before the calls.
    same_index : bool
        Give every call index 0, as several local servers do.
    counts : mapping or None
        Usage; None sends none.
    """
    step = [delta(role="assistant", content=content)]
    for number, (name, arguments) in enumerate(calls):
        body = arguments if isinstance(arguments, str) else json.dumps(arguments)
        index = 0 if same_index else number
        step.append(_call(index, {"name": name, "arguments": ""}, f"call_{number}"))
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        step.extend(_call(index, {"arguments": part}) for part in parts)
    return [*step, *_ending("tool_calls", counts)]


def reply(
    body: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> list[Action]:
    """Answer with this JSON, whatever was asked."""
    return [Action("reply", HttpReply(status, body, headers or {}))]


def status(
    code: int,
    message: str = "scripted failure",
    *,
    retry_after_s: float | None = None,
    kind: str = "error",
    error_code: str | None = None,
) -> list[Action]:
    """Answer with an HTTP error in OpenAI's form.

    Parameters
    ----------
    code : int
        The HTTP status.
    message : str
        The error's text.
    retry_after_s : float or None
        Sent as ``Retry-After``.
    kind, error_code : str
        The error's ``type`` and ``code``.
    """
    error = {"message": message, "type": kind, "code": error_code}
    headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
    return reply({"error": error}, status=code, headers=headers)


def _ending(reason: str, counts: Mapping[str, Any] | None) -> Sequence[Action]:
    return [finish(reason), *([usage(counts)] if counts else []), done()]


def _call(index: int, function: Mapping[str, str], call_id: str | None = None) -> Action:
    head = {"id": call_id, "type": "function"} if call_id else {}
    return delta(tool_calls=[{"index": index, **head, "function": function}])
