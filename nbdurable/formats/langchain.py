"""LangChain's messages, in the many forms that traces hold, as OpenAI chat dicts.

Owns these forms. The one idea: a message that two runs hold must come out equal from both, so that
their histories can be laid over one another; so only what was said is taken.
"""

from __future__ import annotations

from typing import Any

from nbdurable.formats.picking import as_id, as_list, as_map, as_text
from nbdurable.wire import dumps

Chat = dict[str, Any]

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "aimessagechunk": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_INPUT_KEYS = ("messages", "input", "question", "prompt", "prompts", "query", "text")
_OUTPUT_KEYS = tuple("generations choices message messages output answer text content".split())


def inputs_of(inputs: Any) -> list[Chat]:
    """Return what a run was asked, as chat messages."""
    for key in _INPUT_KEYS:
        found = _chats(as_map(inputs).get(key), "user")
        if found:
            return found
    return []


def answers_of(outputs: Any) -> list[Chat]:
    """Return what a run answered, as chat messages, the answers to the same input."""
    for key in _OUTPUT_KEYS:
        value = as_map(outputs).get(key)
        if key == "messages":
            found = _chats(value, "assistant")[-1:]  # those before are its input
        elif key in ("generations", "choices"):
            found = [chat for part in _flat(value) if (chat := _generated(part)) is not None]
        else:
            found = _chats(value, "assistant")
        found = [chat for chat in found if chat["role"] == "assistant"]
        if found:
            return found
    own = _chat(outputs, "assistant") if "role" in as_map(outputs) else None
    return [own] if own is not None else []


def _flat(value: Any) -> list[Any]:
    """Return the items of a list, or of the one list inside it."""
    listed = as_list(value)
    return as_list(listed[0]) if listed and isinstance(listed[0], list) else listed


def _generated(part: Any) -> Chat | None:
    message = as_map(part).get("message")
    if isinstance(message, dict):
        return _chat(message, "assistant")
    text = as_map(part).get("text")
    return {"role": "assistant", "content": text} if isinstance(text, str) else None


def _chats(value: Any, role: str) -> list[Chat]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, dict):
        one = _chat(value, role)
        return [one] if one is not None else []
    listed = as_list(value)
    if listed and isinstance(listed[0], list) and not _is_pair(listed[0]):
        listed = as_list(listed[0])  # of a batch of one
    return [chat for item in listed if (chat := _chat(item, role)) is not None]


def _is_pair(value: Any) -> bool:
    is_two = isinstance(value, list) and len(value) == 2
    return is_two and isinstance(value[0], str) and value[0].lower() in _ROLES


def _chat(value: Any, role: str) -> Chat | None:
    if isinstance(value, str):
        return {"role": role, "content": value}
    if _is_pair(value):
        return {"role": _ROLES[value[0].lower()], "content": _plain(value[1])}
    if not isinstance(value, dict):
        return None
    word = value.get("role") or value.get("type")
    said = value
    if value.get("lc") is not None:
        word = as_text((as_list(value.get("id")) or [""])[-1]).removesuffix("Chunk")
        word = word.removesuffix("Message")
        said = as_map(value.get("kwargs"))
    elif isinstance(value.get("data"), dict):
        said = value["data"]
    known = _ROLES.get(as_text(word).lower())
    if known is None:
        return None
    chat: Chat = {"role": known, "content": _plain(said.get("content"))}
    calls = [_call(call) for call in _calls_of(said)]
    if calls and known == "assistant":
        chat["tool_calls"] = calls
    if known == "tool":
        chat["tool_call_id"] = as_id(said.get("tool_call_id")) or ""
        name = as_text(said.get("name"))
        chat |= {"name": name} if name else {}
    return chat


def _plain(content: Any) -> Any:
    """Return content as chat messages have it: one part of text is that text."""
    if isinstance(content, list):
        parts = [part for part in content if as_map(part).get("type") != "tool_use"]
        told = [part if isinstance(part, str) else as_map(part).get("text") for part in parts]
        texts = [text for text in told if isinstance(text, str)]
        return "".join(texts) if len(texts) == len(parts) else parts
    if content is None or isinstance(content, str):
        return content
    return dumps(content)


def _calls_of(said: dict[str, Any]) -> list[Any]:
    own = as_list(said.get("tool_calls"))
    return own or as_list(as_map(said.get("additional_kwargs")).get("tool_calls"))


def _call(call: Any) -> Chat:
    call = as_map(call)
    function = as_map(call.get("function"))
    name = as_text(function.get("name")) or as_text(call.get("name"))
    arguments = function.get("arguments", call.get("args"))
    raw = arguments if isinstance(arguments, str) else dumps(arguments or {})
    called = {"name": name, "arguments": raw}
    return {"id": as_id(call.get("id")) or f"call-{name}", "type": "function", "function": called}
