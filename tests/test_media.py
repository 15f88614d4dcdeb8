from __future__ import annotations

import enum
import io
import json
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from pydantic import BaseModel

from nbdurable.blocks import FileBlock, ImageBlock, TextBlock
from nbdurable.errors import EntryError
from nbdurable.media import MAX_ROWS, blocks_of

JPEG = b"\xff\xd8\xff\xe0rest"
WEBP = b"RIFF\x00\x00\x00\x00WEBPrest"


def text_of(value: object) -> str:
    (block,) = blocks_of(value)
    assert isinstance(block, TextBlock)
    return block.text


def png(mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (2, 3)).save(buffer, format="PNG")
    return buffer.getvalue()


def a_figure() -> Figure:
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    return figure


def test_text_stays_as_it_is() -> None:
    assert blocks_of("a\0\u2028\ud83d\ude00") == (TextBlock("a\0\u2028\ud83d\ude00"),)


def test_a_block_stays_as_it_is() -> None:
    block = blocks_of(png())[0]

    assert blocks_of(block) == (block,)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(), "image/png"),
        (JPEG, "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (WEBP, "image/webp"),
    ],
)
# B31
def test_bytes_of_an_image_become_an_image(data: bytes, media_type: str) -> None:
    (block,) = blocks_of(data)

    assert isinstance(block, ImageBlock)
    assert (block.media_type, block.data) == (media_type, data)


# B31
def test_other_bytes_become_a_file() -> None:
    (block,) = blocks_of(bytearray(b"\0\1\2"))

    assert isinstance(block, FileBlock)
    assert (block.media_type, block.data) == ("application/octet-stream", b"\0\1\2")


def test_a_path_becomes_its_content(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# hi", encoding="utf-8")

    (block,) = blocks_of(tmp_path / "notes.md")

    assert isinstance(block, FileBlock)
    assert (block.media_type, block.name, block.data) == ("text/markdown", "notes.md", b"# hi")


def test_the_bytes_of_an_image_file_tell_more_than_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(JPEG)

    (block,) = blocks_of(tmp_path / "photo.png")

    assert isinstance(block, ImageBlock)
    assert (block.media_type, block.name) == ("image/jpeg", "photo.png")


@pytest.mark.parametrize("name", ["missing.png", ""])
def test_a_missing_file_or_a_folder_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(EntryError, match=r"file '.*' cannot be read: (no such|is a) .*; give the"):
        blocks_of(tmp_path / name)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "1", "P", "CMYK", "F", "YCbCr"])
# B31
def test_a_pil_image_of_any_mode_becomes_a_png(mode: str) -> None:
    (block,) = blocks_of(Image.new(mode, (4, 5)))

    assert isinstance(block, ImageBlock)
    assert Image.open(io.BytesIO(block.data)).size == (4, 5)


# B31
def test_a_figure_and_its_axes_become_a_png() -> None:
    figure = a_figure()

    (of_figure,), (of_axes,) = blocks_of(figure), blocks_of(figure.axes[0])

    assert isinstance(of_figure, ImageBlock)
    assert of_figure.data.startswith(b"\x89PNG")
    assert of_figure == of_axes


# B31
def test_a_frame_becomes_csv() -> None:
    frame = pd.DataFrame({"city": ["Köln", None], "n": [2**60, 1]})

    assert text_of(frame) == f"city,n\nKöln,{2**60}\n,1"


def test_an_index_that_counts_nothing_is_kept() -> None:
    assert text_of(pd.Series({"a": 1, "b": 2}, name="n")) == ",n\na,1\nb,2"


def test_a_long_frame_says_how_many_rows_are_left_out() -> None:
    lines = text_of(pd.DataFrame({"x": range(MAX_ROWS + 7)})).splitlines()

    assert len(lines) == 1 + MAX_ROWS + 1
    assert lines[-1] == f"(7 of {MAX_ROWS + 7} rows left out)"


def test_an_empty_frame_says_so() -> None:
    assert text_of(pd.DataFrame({"x": []})) == "x\n(no rows)"


class Colour(enum.Enum):
    RED = "red"


class Level(enum.StrEnum):
    HIGH = "high"


@dataclass
class Point:
    x: int
    tags: set[str]


class Order(BaseModel):
    id: int
    point: Point


Pair = namedtuple("Pair", "left right")


class Mute:
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (2**70, str(2**70)),
        (float("nan"), "null"),
        ([1, float("inf"), "é"], '[1,null,"é"]'),
        ({1: "a", None: "b", (1, 2): "d"}, '{"1":"a","null":"b","(1, 2)":"d"}'),
        (Colour.RED, "red"),
        ({Level.HIGH: Colour.RED}, '{"high":"red"}'),
        (Point(1, {"b", "a"}), '{"x":1,"tags":["a","b"]}'),
        (Order(id=7, point=Point(2, set())), '{"id":7,"point":{"x":2,"tags":[]}}'),
        (Pair(1, None), '{"left":1,"right":null}'),
        (MappingProxyType({"a": (1, 2)}), '{"a":[1,2]}'),
        ({"a": 1}.values(), "[1]"),
        (Decimal("1.50"), "1.50"),
        (datetime(2025, 1, 2, tzinfo=UTC), "2025-01-02T00:00:00+00:00"),
        (np.int64(3), "3"),
        (np.array([[1.5, np.nan]]), "[[1.5,null]]"),
        ({"when": pd.Timestamp("2025-01-02"), "gone": pd.NaT, "na": pd.NA}, None),
        ([], "[]"),
        ((), "[]"),
        (["a", "b"], '["a","b"]'),
        (Mute(), "<Mute: its text failed with ZeroDivisionError>"),
    ],
)
# B31 B33
def test_other_values_become_json_text(value: object, expected: str | None) -> None:
    if expected is None:
        expected = '{"when":"2025-01-02T00:00:00","gone":null,"na":null}'

    assert text_of(value) == expected


def test_an_integer_too_long_for_decimals_becomes_text() -> None:
    assert text_of([10**5000]) == json.dumps([hex(10**5000)])


def test_a_ring_and_a_deep_nest_end_in_text() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    assert text_of(ring) == '[1,"[1, [...]]"]'
    assert json.loads(text_of(deep))


# B31
def test_media_in_a_tuple_stand_in_order() -> None:
    blocks = blocks_of(("before", png(), {"n": 1}, [pd.DataFrame({"x": [1]}), a_figure()]))

    assert [block.type for block in blocks] == ["text", "image", "text", "text", "image"]


# B31
def test_media_inside_a_record_stand_behind_its_text() -> None:
    text, image, second, other = blocks_of(
        {"chart": a_figure(), "more": [png(), b"\0"], "frame": pd.DataFrame({"x": [1]})}
    )

    assert isinstance(text, TextBlock)
    assert json.loads(text.text) == {
        "chart": "[image 1]",
        "more": ["[image 2]", "[file 1]"],
        "frame": "x\n1",
    }
    assert [image.type, second.type, other.type] == ["image", "image", "file"]


def test_a_list_of_paths_is_data_and_a_tuple_with_a_path_has_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png())

    assert text_of([path, tmp_path]) == json.dumps([str(path), str(tmp_path)]).replace(", ", ",")
    assert [block.type for block in blocks_of(("see", path))] == ["text", "image"]


def test_the_four_modules_import_no_heavy_library() -> None:
    code = (
        "import sys; import nbdurable.media, nbdurable.inputs, nbdurable.tools, nbdurable.hooks;"
        "print([m for m in ('pydantic', 'pandas', 'numpy', 'PIL', 'matplotlib')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
