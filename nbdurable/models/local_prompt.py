"""What the local model is sent: a request as plain chat messages.

Owns the translation from our messages to a template that knows system, user and assistant, in
turn, and nothing else. The one idea: whatever a small text model cannot take (calls, results,
images, files) becomes words that it can.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from nbdurable.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    Json,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.models.base import ModelRequest, ToolSpec
from nbdurable.models.params import is_transport
from nbdurable.schemas import as_response_format
from nbdurable.wire import clean

DEFAULT_MAX_TOKENS = 512  # a small model may never stop by itself

LEFT_OUT = frozenset(
    {
        "extra_body",
        "logprobs",
        "modalities",
        "prediction",
        "reasoning_effort",
        "service_tier",
        "thinking",
        "top_logprobs",
        "verbosity",
        "web_search_options",
    }
)
"""Parameters that shape an answer elsewhere and cannot here; the caller is warned of each."""

_OURS = frozenset(
    {
        "messages",
        "model",
        "n",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)


def request_body(request: ModelRequest) -> dict[str, Json]:
    """Return the body of the chat completion that answers `request`."""
    tools = forced_tools(request)
    system = _call_instructions(tools) if tools else request.system
    body: dict[str, Json] = {"messages": chat_messages(request.messages, system)}
    body |= {
        name: value
        for name, value in request.params.items()
        if value is not None and not (name in _OURS | LEFT_OUT or is_transport(name))
    }
    limit = body.pop("max_completion_tokens", None)
    body["max_tokens"] = body.get("max_tokens", limit or DEFAULT_MAX_TOKENS)
    if tools:
        body.pop("response_format", None)
        body["json_schema"] = _call_schema(tools)
    elif "response_format" in body:
        body["response_format"] = as_response_format(body["response_format"])
    return body


def left_out(params: Mapping[str, object]) -> list[str]:
    """Return the names in `params` that change nothing here, though they would elsewhere."""
    names = [name for name, value in params.items() if name in LEFT_OUT and value is not None]
    return [*names, "n"] if params.get("n") not in (None, 1) else names


# -- messages ----------------------------------------------------------------------------------


def chat_messages(messages: tuple[Message, ...], system: str | None) -> list[dict[str, str]]:
    """Return `messages` as system, user and assistant texts in turn; blank ones are left out."""
    said: list[tuple[str, str]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        text = "\n\n".join(part for part in _words(message.blocks) if part.strip())
        if not text:
            continue
        if said and said[-1][0] == role:
            text = said.pop()[1] + "\n\n" + text
        said.append((role, text))
    first = [("system", system)] if system else []
    return [{"role": role, "content": clean(text) or ""} for role, text in first + said]


def _words(blocks: tuple[Block, ...]) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextBlock():
                yield block.text
            case ToolCallBlock():
                yield f"I use the tool {block.name} with {block.raw or '{}'}."
            case ToolResultBlock():
                what = "failed" if block.is_error else "answers"
                name = f"tool {block.name}" if block.name else "tool"
                yield f"The {name} {what}: " + "\n".join(_words(block.content))
            case ImageBlock():
                yield f"[image {block.name or block.media_type}, which you cannot see]"
            case FileBlock():
                yield f"[file {block.name or block.media_type}, which you cannot read]"


# -- forced calls and schemas ------------------------------------------------------------------


def forced_tools(request: ModelRequest) -> tuple[ToolSpec, ...]:
    """Return the tools of which the answer must call one; none when it is free to talk.

    A choice of ``"required"`` or of a named tool forces a call. Right after a tool's result it
    does not: the model would call for ever, as it cannot choose to stop.
    """
    if request.messages and request.messages[-1].role == "tool":
        return ()
    choice = request.params.get("tool_choice")
    if choice in ("required", "any"):
        return request.tools
    name = _chosen_name(choice)
    return tuple(tool for tool in request.tools if tool.name == name)


def _chosen_name(choice: object) -> object:
    if not isinstance(choice, Mapping):
        return choice
    function = choice.get("function")
    return function.get("name") if isinstance(function, Mapping) else choice.get("name")


def _call_instructions(tools: tuple[ToolSpec, ...]) -> str:
    lines = ["You call functions. Functions:"]
    for tool in tools:
        properties = tool.parameters.get("properties")
        names = ", ".join(properties) if isinstance(properties, Mapping) else ""
        lines.append(f"- {tool.name}({names}): {tool.description}")
    lines.append('Reply with one JSON object {"name": ..., "arguments": {...}}.')
    return "\n".join(lines)


def _call_schema(tools: tuple[ToolSpec, ...]) -> dict[str, Json]:
    """Return the schema of a call: llama.cpp's tool grammar waits for a mark it never writes."""
    each: list[dict[str, Json]] = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": dict(tool.parameters) or {"type": "object"},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return each[0] if len(each) == 1 else {"anyOf": each}


def parse_call(text: str) -> tuple[str, str] | None:
    """Return name and arguments (JSON text) of a forced call, or None when it was cut."""
    try:
        call = json.loads(text)
        return str(call["name"]), json.dumps(call["arguments"], ensure_ascii=False)
    except (ValueError, KeyError, TypeError):
        return None
