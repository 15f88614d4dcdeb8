"""Any Python value as blocks: images, files, frames and figures as media, the rest as JSON text.

Owns what a value looks like to a model. The one idea: nothing a tool returns or a user passes is
lost on the way (B31), and no library is imported to find out what a value is.
"""

from __future__ import annotations

import io
import math
import mimetypes
import sys
from collections.abc import Mapping, Sequence, Set, ValuesView
from dataclasses import fields, is_dataclass
from datetime import date, time
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

from nbdurable.blocks import (
    Blob,
    Block,
    FileBlock,
    ImageBlock,
    Json,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.codec import one_line
from nbdurable.errors import EntryError, shown
from nbdurable.wire import block_to_dict, dumps

MAX_ROWS = 200  # rows of a frame that a model is shown
MOST_OF_OTHERS = 1000  # characters of an error text that is not ours
MAX_DEPTH = 100  # levels of nesting that become JSON; deeper ones become text
MAX_INT_BITS = 10_000  # Python refuses to print longer integers in decimals
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what providers read
BYTES_TYPE = "application/octet-stream"
_SUFFIXES = {".md": "text/markdown", ".webp": "image/webp"}  # not in every Python's table

_BLOCKS = (
    TextBlock,
    ThinkingBlock,
    ImageBlock,
    FileBlock,
    ToolCallBlock,
    ToolResultBlock,
    OpaqueBlock,
)
_PNG_MODES = frozenset({"1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"})


def blocks_of(value: object) -> tuple[Block, ...]:
    """Return any value as blocks that a model can read.

    Parameters
    ----------
    value : object
        Text stays as it is. Blocks, bytes, a `Path` (its content), PIL images, matplotlib
        figures, DataFrames and Series become media. A tuple or list that holds media gives the
        blocks of its items in order; in a list, paths alone are data, not media. Anything else
        becomes JSON text, with media inside it behind the text.

    Returns
    -------
    tuple of Block
        At least one block. NaN and infinity are ``null``; what JSON lacks is its ``str``.

    Raises
    ------
    EntryError
        A path cannot be read.
    """
    media = media_blocks(value)
    if media is not None:
        return media
    if isinstance(value, tuple | list) and _holds_media(value):
        return tuple(block for item in value for block in blocks_of(item))
    plain = _Plain()
    result = plain.of(value)
    text = result if isinstance(result, str) else dumps(result)
    return (TextBlock(text), *plain.media)


def media_blocks(value: object) -> tuple[Block, ...] | None:
    """Return text or media as blocks, None for any other value.

    Raises
    ------
    EntryError
        A path cannot be read.
    """
    if isinstance(value, Enum):
        return None
    if isinstance(value, str):
        return (TextBlock(str(value)),)
    if isinstance(value, _BLOCKS):
        return (value,)
    if isinstance(value, bytes | bytearray | memoryview):
        return (_bytes_block(bytes(value)),)
    if isinstance(value, Path):
        return (_path_block(value),)
    picture = picture_bytes(value)
    if picture is not None:
        return (ImageBlock(Blob.of(picture)),)
    if _is(value, "pandas", "DataFrame") or _is(value, "pandas", "Series"):
        return (TextBlock(_frame_text(value)),)
    return None


def _holds_media(items: tuple[object, ...] | list[object]) -> bool:
    if hasattr(items, "_fields"):  # a named tuple is a record
        return False
    data = str | PurePath if isinstance(items, list) else str
    return any(not isinstance(item, data) and _is_media(item) for item in items)


def _is_media(value: object) -> bool:
    kinds = (*_BLOCKS, bytes, bytearray, memoryview, Path)
    return isinstance(value, kinds) or any(_is(value, *place) for place in _FOREIGN)


# -- bytes and paths ---------------------------------------------------------------------------


def sniff(data: bytes) -> str | None:
    """Return the media type that the first bytes tell, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if data.startswith(b"%PDF-") else None


def media_type_of(path: Path, data: bytes) -> str:
    """Return the media type of a file: what its bytes tell, else its suffix."""
    # the built-in table only: a digest must not depend on the machine's own list
    guessed, _ = mimetypes.MimeTypes().guess_type(path.name)
    return sniff(data) or _SUFFIXES.get(path.suffix.lower()) or guessed or BYTES_TYPE


def read_path(path: Path) -> bytes:
    """Return a file's bytes.

    Raises
    ------
    EntryError
        The file is missing, a folder or unreadable.
    """
    try:
        return path.expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise EntryError(
            f"file {shown(str(path), 200)} cannot be read: {reason.lower()}; "
            f"give the path of a file that exists (this folder is {str(Path.cwd())!r})"
        ) from None  # its text repeats the path, which may be an address with its password


def _bytes_block(data: bytes) -> Block:
    kind = sniff(data)
    if kind in IMAGE_TYPES:
        return ImageBlock(Blob.of(data), kind)
    return FileBlock(Blob.of(data), kind or BYTES_TYPE)


def _path_block(path: Path) -> Block:
    data = read_path(path)
    kind = media_type_of(path, data)
    block = ImageBlock if kind in IMAGE_TYPES else FileBlock
    return block(Blob.of(data), kind, path.name)


# -- values of other libraries -----------------------------------------------------------------

_FOREIGN = (
    ("PIL.Image", "Image"),
    ("matplotlib.figure", "Figure"),
    ("matplotlib.axes", "Axes"),
    ("pandas", "DataFrame"),
    ("pandas", "Series"),
)


def _is(value: object, module: str, name: str) -> bool:
    """Whether `value` is of a class of a library; without the library it cannot be."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name, ()))


def picture_bytes(value: Any) -> bytes | None:
    """Return a PIL image, matplotlib figure or axes as PNG bytes, None for any other value."""
    buffer = io.BytesIO()
    if _is(value, "PIL.Image", "Image"):
        image = value if value.mode in _PNG_MODES else value.convert("RGB")
        image.save(buffer, format="PNG")
    elif _is(value, "matplotlib.figure", "Figure"):
        value.savefig(buffer, format="png", bbox_inches="tight")
    elif _is(value, "matplotlib.axes", "Axes"):
        return picture_bytes(value.figure.canvas.figure)  # also from within a subfigure
    else:
        return None
    return buffer.getvalue()


def _frame_text(frame: Any) -> str:
    """Return a DataFrame or Series as CSV, its first rows and how many were left out."""
    frame = frame.to_frame() if _is(frame, "pandas", "Series") else frame
    index, rows = frame.index, len(frame)
    is_counter = _is(index, "pandas", "RangeIndex") and index.start == 0 and index.step == 1
    text = str(frame.iloc[:MAX_ROWS].to_csv(index=not is_counter, lineterminator="\n"))
    if rows > MAX_ROWS:
        return f"{text}({rows - MAX_ROWS} of {rows} rows left out)"
    return text.rstrip("\n") if rows else f"{text}(no rows)"


# -- JSON --------------------------------------------------------------------------------------


def as_text(value: object) -> str:
    """Return ``str(value)``, or the type's name where that fails."""
    try:
        return str(value)
    except Exception as exc:
        return f"<{type(value).__name__}: its text failed with {type(exc).__name__}>"


def told_of_other(error: BaseException) -> str:
    """Return the type and text of an error that is not ours, on one line that can be sent."""
    return f"{type(error).__name__}: {one_line(as_text(error), MOST_OF_OTHERS)}"


class _Plain:
    """Turns values into JSON values; images and files found inside are collected in `media`."""

    def __init__(self) -> None:
        self.media: list[Block] = []
        self._above: set[int] = set()

    def of(self, value: Any) -> Json:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self.of(value.value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value) if value.bit_length() < MAX_INT_BITS else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if isinstance(value, PurePath):
            return str(value)
        media = media_blocks(value)
        if media is not None:
            return self._keep(media[0])
        if id(value) in self._above or len(self._above) >= MAX_DEPTH:
            return as_text(value)
        self._above.add(id(value))
        try:
            return self._inside(value)
        finally:
            self._above.discard(id(value))

    def _keep(self, block: Block) -> Json:
        if isinstance(block, TextBlock):
            return block.text
        if not isinstance(block, ImageBlock | FileBlock):
            return block_to_dict(block)
        self.media.append(block)
        count = sum(kept.type == block.type for kept in self.media)
        return f"[{block.type} {count}]"

    def _inside(self, value: Any) -> Json:
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item) for key, item in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return self.of(value._asdict())
        if is_dataclass(value) and not isinstance(value, type):
            return {f.name: self.of(getattr(value, f.name, None)) for f in fields(value)}
        if _is(value, "pydantic", "BaseModel"):
            return self.of(_dumped(value))
        if isinstance(value, Set):
            return sorted((self.of(item) for item in value), key=repr)
        if isinstance(value, Sequence | ValuesView):
            return [self.of(item) for item in value]
        return self._scalar(value)

    def _scalar(self, value: Any) -> Json:
        library = type(value).__module__.partition(".")[0]
        if library == "pandas" and type(value).__name__ in ("NAType", "NaTType"):
            return None
        if library in ("numpy", "pandas") and hasattr(value, "tolist"):
            return self.of(value.tolist())
        return value.isoformat() if isinstance(value, date | time) else as_text(value)

    def _key(self, key: object) -> str:
        if key is None or isinstance(key, bool | int | float | Enum):
            plain = self.of(key)
            return plain if isinstance(plain, str) else dumps(plain)
        return as_text(key)


def _dumped(model: Any) -> Json:
    """Return the fields of a pydantic model, raw where its own serialisers fail."""
    try:
        return dict(model.model_dump(warnings=False))
    except Exception:
        return dict(model)
