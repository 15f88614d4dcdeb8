"""What is made quickly of an import is what is made slowly of it, to the byte."""

from __future__ import annotations

import pytest

from nbdurable.formats.planting import quick_dumps
from nbdurable.wire import dumps

CHARACTERS = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)


# B33 B64
@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "text", "text": CHARACTERS}],
        [{"type": "text", "text": ""}, {"type": "text", "text": '"blocks":null'}],
        [{"type": "text", "text": "half \ud83d"}],
        [{"type": "text", "text": "two halves \ud83d\ude00"}],
        [{"type": "text", "text": "more", "seen": 1e-5}],
        [{"text": "of no type", "seen": 1}],
        ["no block"],
        [{"type": "image", "base64": ""}],
        [],
    ],
)
def test_a_payload_is_the_same_whichever_writer_makes_it(blocks: list[object]) -> None:
    """The ids of entries that their source does not name are made of it."""
    wire = {"v": 1, "role": "user", "blocks": blocks, "author": '"blocks":null', "cost": 1e-5}

    assert quick_dumps(wire) == dumps(wire)
