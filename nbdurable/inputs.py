"""What `run` and `append` accept, as draft entries.

Owns the small words `text image file meta ephemeral user assistant` and the rule that plain parts
side by side form one user message (B20). A draft is an entry whose header no store has filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from nbdurable.blocks import (
    Blob,
    Block,
    FileBlock,
    ImageBlock,
    Json,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import CustomEntry, Entry, MessageEntry, kind_of
from nbdurable.errors import EntryError, shown
from nbdurable.media import (
    BYTES_TYPE,
    media_blocks,
    media_type_of,
    picture_bytes,
    read_path,
    sniff,
)
from nbdurable.wire import block_to_dict

ACCEPTED = (
    "text, text(), image(), file(), a Path, bytes, a PIL image, a figure, a DataFrame, "
    "meta(), ephemeral(), user(), assistant() or a CustomEntry"
)
_USER_BLOCKS = (TextBlock, ImageBlock, FileBlock, OpaqueBlock)
_BLOCKS_OF_ROLE: dict[Role, tuple[type, ...]] = {
    "user": _USER_BLOCKS,
    "assistant": (*_USER_BLOCKS, ThinkingBlock, ToolCallBlock),
}
E = TypeVar("E", bound=Entry)


# -- parts -------------------------------------------------------------------------------------


def text(content: str) -> TextBlock:
    """Return a text part.

    Raises
    ------
    EntryError
        `content` is not text.
    """
    if not isinstance(content, str):
        raise EntryError(f"text() takes a str, got {type(content).__name__}; use str(value)")
    return TextBlock(content)


def image(source: object, media_type: str | None = None) -> ImageBlock:
    """Return an image part.

    Parameters
    ----------
    source : str, Path, bytes, PIL image, matplotlib figure or ImageBlock
        A path (also as text), the bytes of an image, or something drawn as PNG.
    media_type : str, optional
        Such as ``image/png``; by default what the bytes or the file's suffix tell.

    Raises
    ------
    EntryError
        The path cannot be read, or no image type is known for the bytes.
    """
    if isinstance(source, ImageBlock):
        return replace(source, media_type=media_type or source.media_type)
    drawn = picture_bytes(source)
    if drawn is not None:
        return ImageBlock(Blob.of(drawn), media_type or "image/png")
    data, name, guessed = _read(source, "image")
    kind = media_type or guessed
    if not kind.startswith("image/"):
        raise EntryError(
            f"image {shown(name or data[:12])} is of type {kind!r}, not an image that is known "
            "by its bytes or suffix; give media_type, or use file()"
        )
    return ImageBlock(Blob.of(data), kind, name)


def file(source: object, media_type: str | None = None, name: str | None = None) -> FileBlock:
    """Return a file part.

    Parameters
    ----------
    source : str, Path or bytes
        A path (also as text) or the content.
    media_type : str, optional
        By default what the bytes or the file's suffix tell.
    name : str, optional
        The name that the model is told; by default that of the path.

    Raises
    ------
    EntryError
        The path cannot be read, or `source` is of another type.
    """
    data, own_name, guessed = _read(source, "file")
    return FileBlock(Blob.of(data), media_type or guessed, name or own_name)


def _read(source: object, word: str) -> tuple[bytes, str | None, str]:
    """Return content, name and media type of a path or bytes."""
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return data, None, sniff(data) or BYTES_TYPE
    if not isinstance(source, str | Path):
        raise EntryError(f"{word}() cannot take a {type(source).__name__}; give a path or bytes")
    if isinstance(source, str) and source.startswith(("http://", "https://", "data:")):
        raise EntryError(
            f"{word} {shown(source)} is an address, not a file; download it and give its bytes"
        )
    path = Path(source)
    data = read_path(path)
    return data, path.name, media_type_of(path, data)


# -- drafts ------------------------------------------------------------------------------------


def user(*parts: object) -> MessageEntry:
    """Return a user message that stands alone; a list of parts, ``""`` and None are kept apart."""
    return MessageEntry(message=_message("user", parts))


def assistant(*parts: object) -> MessageEntry:
    """Return an assistant message, such as an example answer for few-shot prompts."""
    return MessageEntry(message=_message("assistant", parts))


def meta(*parts: object) -> MessageEntry:
    """Return a message that every later prompt has and the transcript never shows (B34)."""
    draft = _draft("meta", parts)
    return draft if draft.ephemeral else replace(draft, meta=True)


def ephemeral(*parts: object) -> MessageEntry:
    """Return a message for this run's model calls only; it is never stored (B35)."""
    return replace(_draft("ephemeral", parts), meta=False, ephemeral=True)


def _draft(word: str, parts: tuple[object, ...]) -> MessageEntry:
    drafts = [part for part in parts if isinstance(part, MessageEntry)]
    if not drafts:
        return user(*parts)
    if len(parts) > 1:
        raise EntryError(
            f"{word}() got a whole message among {len(parts)} parts; "
            "give parts, or that message alone"
        )
    return _fresh(drafts[0])


def _message(role: Role, parts: tuple[object, ...]) -> Message:
    if parts == (None,):
        return Message(role, null_content=True)
    if len(parts) == 1 and isinstance(parts[0], list | tuple):
        parts = tuple(parts[0])
    numbered = enumerate(parts, 1)
    return Message(
        role,
        tuple(b for n, part in numbered for b in _part_blocks(part, role, f"part {n} of {role}()")),
    )


def _part_blocks(part: object, role: Role, place: str) -> tuple[Block, ...]:
    blocks = media_blocks(part)
    if blocks is None:
        raise EntryError(_refusal(part, place))
    for block in blocks:
        if not isinstance(block, _BLOCKS_OF_ROLE[role]):
            raise EntryError(
                f"{place} is a {block.type} block, which cannot be in a message of role {role!r}; "
                "leave it out"
            )
    return blocks


def _refusal(value: object, place: str) -> str:
    found = f"{place} of type {type(value).__name__} cannot be sent"
    if isinstance(value, list | tuple):
        return f"{found}; spread it with *, so that each item is a part of its own"
    return f"{found}; give {ACCEPTED}"


# -- input of a run ----------------------------------------------------------------------------


def as_entries(*input: object) -> tuple[Entry, ...]:
    """Return input as drafts: plain parts side by side are one user message (B20).

    Parameters
    ----------
    *input : object
        Plain parts; messages of `meta`, `ephemeral`, `user` and `assistant`; custom entries.
        Headers of entries are dropped, so one object passed twice gives two entries.

    Raises
    ------
    EntryError
        A value is of a type that cannot be sent, or a path cannot be read.
    """
    entries: list[Entry] = []
    blocks: list[Block] = []

    def close_message() -> None:
        if blocks:
            entries.append(MessageEntry(message=Message("user", tuple(blocks))))
            blocks.clear()

    for number, value in enumerate(input, 1):
        if isinstance(value, Entry):
            close_message()
            entries.append(_standing(value, number))
        else:
            blocks.extend(_part_blocks(value, "user", f"input {number}"))
    close_message()
    return tuple(entries)


def _standing(entry: Entry, number: int) -> Entry:
    is_custom = isinstance(entry, CustomEntry) and kind_of(entry) != ""
    if not isinstance(entry, MessageEntry) and not is_custom:
        raise EntryError(
            f"input {number} of type {type(entry).__name__} cannot be appended; "
            "give a message, or a CustomEntry subclass with a kind"
        )
    return _fresh(entry)


def _fresh(entry: E) -> E:
    return replace(
        entry,
        id="",
        parent_id=None,
        seq=None,
        n=None,
        created_at=None,
        run_id=None,
        source_id=None,
    )


def input_digest(entries: Sequence[Entry]) -> list[Json]:
    """Return the content of drafts as JSON values, bytes by their hash, for digests (B56).

    Headers do not count, nor do names of images, which no model is told.
    """
    return [_content(entry) for entry in entries]


def _content(entry: Entry) -> Json:
    if not isinstance(entry, MessageEntry):
        fields = entry.fields if isinstance(entry, CustomEntry) else {}
        return {"kind": kind_of(entry), "fields": fields}
    message = entry.message
    content: dict[str, Json] = {"role": message.role}
    content["blocks"] = [_block_content(block) for block in message.blocks]
    flags = {
        "null_content": message.null_content,
        "meta": entry.meta,
        "ephemeral": entry.ephemeral,
    }
    return content | {name: True for name, is_set in flags.items() if is_set}


def _block_content(block: Block) -> Json:
    if isinstance(block, ImageBlock):
        return {"type": "image", "media_type": block.media_type, "sha256": block.blob.sha256}
    if isinstance(block, FileBlock):
        told = {"media_type": block.media_type, "name": block.name}
        return {"type": "file", **told, "sha256": block.blob.sha256}
    if isinstance(block, ToolResultBlock):
        parts = [_block_content(part) for part in block.content]
        return {**block_to_dict(replace(block, content=())), "content": parts}
    return block_to_dict(block)
