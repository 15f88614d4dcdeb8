"""Messages as OpenAI chat dicts, and back: the form that LiteLLM takes for every provider.

Owns the mapping only. The view has already paired calls with results and chosen whose thinking
may be sent. The one idea: what a provider would refuse (half calls, blank text, images in odd
places) is left out or moved here, never stored differently.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence

from nbdurable.blocks import (
    Blob,
    Block,
    FileBlock,
    ImageBlock,
    Json,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.errors import shown
from nbdurable.wire import clean, dumps

Chat = dict[str, Json]
"""One message in OpenAI's form."""

_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml"})
_NO_OUTPUT = "(no output)"  # several providers refuse a blank result


# -- to chat -----------------------------------------------------------------------------------


def to_chat(
    messages: Iterable[Message], system: str | None = None, *, images_in_results: bool = False
) -> list[Chat]:
    """Return messages in OpenAI's form, the system text first.

    Parameters
    ----------
    messages : iterable of Message
        A model view.
    system : str or None
        The system text; blank text is left out.
    images_in_results : bool
        Whether the provider reads images inside tool results. Otherwise they follow in a user
        message after the last result of the step (B31).

    Returns
    -------
    list of dict
        Blank text, incomplete or provider-run calls, unsigned thinking, opaque blocks and messages
        that become empty are left out (B22, B37, B45).
    """
    chat: list[Chat] = []
    waiting: list[Json] = []  # images that may only follow the results of their step
    if system and system.strip():
        chat.append({"role": "system", "content": clean(system)})
    for message in messages:
        if message.role != "tool" and waiting:
            chat.append({"role": "user", "content": waiting})
            waiting = []
        match message.role:
            case "user":
                chat.extend(_user(message))
            case "assistant":
                chat.extend(_assistant(message))
                waiting.extend(_images("An image of the answer above:", message.blocks))
            case "tool":
                for result in message.tool_results:
                    chat.append(_result(result, images_in_results))
                    if not images_in_results:
                        label = f"An image in the result of call {result.call_id}:"
                        waiting.extend(_images(label, result.content))
    if waiting:
        chat.append({"role": "user", "content": waiting})
    return chat


def arguments_of(call: ToolCallBlock) -> str:
    """Return a call's arguments as the text of a JSON object, whatever the model wrote."""
    if call.arguments is None:
        return dumps({"invalid_arguments": call.raw})
    return clean(call.raw) or "{}"


def _user(message: Message) -> list[Chat]:
    blocks = [block for block in message.blocks if not _is_blank(block)]
    if all(isinstance(block, TextBlock) for block in blocks):
        text = _text(blocks)
        return [{"role": "user", "content": text}] if text else []
    return [{"role": "user", "content": _parts(blocks)}]


def _assistant(message: Message) -> list[Chat]:
    text = _text(message.blocks)
    calls = [_call(c) for c in message.tool_calls if c.complete and not c.provider_run]
    if not text and not calls:
        return []
    chat: Chat = {"role": "assistant", "content": text or None}
    thinking = [_thinking(block) for block in message.blocks if _is_signed(block)]
    if thinking:
        chat["thinking_blocks"] = thinking
    if calls:
        chat["tool_calls"] = calls
    return [chat]


def _call(call: ToolCallBlock) -> Chat:
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def _thinking(block: Block) -> Chat:
    if not isinstance(block, ThinkingBlock):
        raise TypeError(f"thinking block expected, got {shown(block)}")
    if block.data is not None:
        return {"type": "redacted_thinking", "data": block.data}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature}


def _result(result: ToolResultBlock, with_images: bool) -> Chat:
    blocks = [block for block in result.content if not _is_blank(block)]
    if not with_images:
        blocks = [block for block in blocks if not isinstance(block, ImageBlock)]
    content: Json = _text(blocks) or _NO_OUTPUT
    if any(isinstance(block, ImageBlock | FileBlock) for block in blocks):
        content = _parts(blocks)
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _images(label: str, blocks: Sequence[Block]) -> list[Json]:
    images = [block for block in blocks if isinstance(block, ImageBlock)]
    return [{"type": "text", "text": label}, *_parts(images)] if images else []


def _parts(blocks: Sequence[Block]) -> list[Json]:
    parts: list[Json] = []
    for block in blocks:
        match block:
            case TextBlock():
                parts.append({"type": "text", "text": clean(block.text)})
            case ImageBlock():
                url = _data_uri(block.media_type, block.data)
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case FileBlock():
                parts.append(_file(block))
    return parts


def _file(block: FileBlock) -> Chat:
    """Return a file as a part; text goes as text, which every model reads."""
    name = block.name or "file"
    if block.media_type.startswith("text/") or block.media_type in _TEXT_TYPES:
        body = block.data.decode("utf-8", "replace")
        return {"type": "text", "text": f"File {name}:\n\n{body}"}
    uri = _data_uri(block.media_type, block.data)
    return {"type": "file", "file": {"filename": name, "file_data": uri}}


def _data_uri(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def _text(blocks: Iterable[Block]) -> str:
    texts = [b.text for b in blocks if isinstance(b, TextBlock) and b.text.strip()]
    return clean("\n".join(texts)) or ""


def _is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return not isinstance(block, ImageBlock | FileBlock)


def _is_signed(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and (
        block.signature is not None or block.data is not None
    )


# -- from chat ---------------------------------------------------------------------------------


def message_from_openai(chat: Mapping[str, Json]) -> Message:
    """Return the message of an OpenAI chat dict; the system text is not one.

    A part of an unknown kind, or an image behind a URL, becomes opaque (B37).

    Raises
    ------
    ValueError
        The role is none of ``user``, ``assistant``, ``tool``.
    """
    role, content = chat.get("role"), chat.get("content")
    blocks = _content_blocks(content)
    if role == "user":
        return Message("user", blocks, null_content=content is None)
    if role == "assistant":
        calls = tuple(call_from_openai(call) for call in _mappings(chat.get("tool_calls")))
        blocks = (*_thinking_of(chat), *blocks, *calls)
        return Message("assistant", blocks, null_content=content is None)
    if role == "tool":
        name = chat.get("name")
        result = ToolResultBlock(
            str(chat.get("tool_call_id", "")), blocks, name=str(name) if name else None
        )
        return Message("tool", (result,))
    raise ValueError(
        f"role {shown(role)} of a chat message is not known; use 'user', 'assistant' or 'tool'"
    )


def call_from_openai(call: Mapping[str, Json]) -> ToolCallBlock:
    """Return the tool call of an OpenAI dict."""
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    raw = function.get("arguments")
    text = raw if isinstance(raw, str) else dumps(raw if raw is not None else {})
    return ToolCallBlock(str(call.get("id") or ""), str(function.get("name") or ""), text)


def image_from_url(url: str) -> ImageBlock | None:
    """Return the image inside a base64 data URI, or None for any other address."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    try:
        data = base64.b64decode(body, validate=True)
    except binascii.Error:
        return None
    return ImageBlock(Blob.of(data), head[5:-7].partition(";")[0] or "image/png")


def _content_blocks(content: Json) -> tuple[Block, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextBlock(content),)
    return tuple(_part_block(part) for part in _mappings(content))


def _part_block(part: Mapping[str, Json]) -> Block:
    kind, body = part.get("type"), part.get(str(part.get("type")))
    if kind == "text" and isinstance(body, str):
        return TextBlock(body)
    if kind == "image_url" and isinstance(body, Mapping):
        image = image_from_url(str(body.get("url")))
        if image is not None:
            return image
    if kind == "file" and isinstance(body, Mapping):
        held = image_from_url(str(body.get("file_data")))
        if held is not None:
            return FileBlock(held.blob, held.media_type, str(body.get("filename") or "file"))
    return OpaqueBlock(dumps(dict(part)))


def _thinking_of(chat: Mapping[str, Json]) -> list[ThinkingBlock]:
    found = []
    for block in _mappings(chat.get("thinking_blocks")):
        text, signature, data = (block.get(name) for name in ("thinking", "signature", "data"))
        found.append(
            ThinkingBlock(
                str(text or ""),
                str(signature) if signature else None,
                str(data) if data else None,
            )
        )
    plain = chat.get("reasoning_content")
    return found or ([ThinkingBlock(plain)] if isinstance(plain, str) and plain else [])


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [item for item in value if isinstance(item, Mapping)]
