from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from nbdurable.blocks import (
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.entries import CompactionEntry, CustomEntry, MessageEntry, OpaqueEntry
from nbdurable.errors import EntryError
from nbdurable.inputs import (
    as_entries,
    assistant,
    ephemeral,
    file,
    image,
    input_digest,
    meta,
    text,
    user,
)

GIF = b"GIF89a-rest"


class InputNote(CustomEntry):
    kind = "input-note"
    text: str = ""


# B20
def test_plain_parts_side_by_side_are_one_user_message(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("content", encoding="utf-8")
    picture, frame = Image.new("RGB", (1, 1)), pd.DataFrame({"x": [1]})

    (entry,) = as_entries("a", text("b"), image(GIF), path, picture, frame, b"\0")

    assert isinstance(entry, MessageEntry)
    types = [block.type for block in entry.blocks]
    assert types == ["text", "text", "image", "file", "image", "text", "file"]
    assert (entry.role, entry.meta, entry.ephemeral) == ("user", False, False)


# B20
def test_drafts_and_custom_entries_stand_alone_in_the_order_written() -> None:
    entries = as_entries("a", meta("m"), "b", "c", InputNote(text="n"), ephemeral("e"), user("u"))

    shown = [e.text if isinstance(e, MessageEntry | InputNote) else "" for e in entries]
    assert shown == ["a", "m", "b\nc", "n", "e", "u"]


# B20
def test_headers_of_entries_are_dropped() -> None:
    stored = replace(
        user("q"),
        id="e1",
        parent_id="e0",
        seq=4,
        n=2,
        created_at=datetime(2025, 1, 1, tzinfo=UTC),
        run_id="r",
        source_id="s",
    )

    assert as_entries(stored) == (user("q"),)


# B20
def test_one_object_passed_twice_gives_two_entries() -> None:
    note = InputNote(text="n")

    first, second = as_entries(note, note)

    assert first == second == note
    assert first is not second


def test_no_input_gives_no_entries() -> None:
    assert as_entries() == ()


def test_blank_input_is_kept_as_it_is() -> None:
    assert as_entries("") == (MessageEntry(message=Message("user", (TextBlock(""),))),)


# B35
def test_ephemeral_meta_is_ephemeral_either_way_round() -> None:
    assert meta(ephemeral("x")) == ephemeral(meta("x")) == ephemeral("x")


# B34
def test_meta_keeps_the_role_of_a_whole_message() -> None:
    entry = meta(assistant("A"))

    assert (entry.role, entry.meta) == ("assistant", True)


def test_a_whole_message_among_parts_is_refused() -> None:
    with pytest.raises(EntryError, match=r"meta\(\) got a whole message among 2 parts; give"):
        meta("a", user("b"))


# case 21
def test_content_of_none_empty_text_no_parts_and_parts_are_told_apart() -> None:
    messages = [m.message for m in map(assistant, [None, "", [], ["a", image(GIF)]])]

    assert [m.null_content for m in messages] == [True, False, False, False]
    assert [len(m.blocks) for m in messages] == [0, 1, 0, 2]
    assert [m.text for m in messages] == ["", "", "", "a"]


def test_an_example_answer_may_hold_thinking_and_tool_calls() -> None:
    call = ToolCallBlock("c1", "add", '{"a":1}')

    assert assistant(ThinkingBlock("hm"), call).message.tool_calls == (call,)


@pytest.mark.parametrize(
    "block",
    [ToolCallBlock("c", "f"), ToolResultBlock("c"), ThinkingBlock("t")],
    ids=lambda b: b.type,
)
def test_blocks_that_no_user_says_are_refused(block: object) -> None:
    with pytest.raises(EntryError, match=r"input 2 is a \w+ block, which cannot be in a message"):
        as_entries("a", block)


def test_a_list_is_refused_with_how_to_spread_it() -> None:
    with pytest.raises(EntryError, match=r"input 1 of type list cannot be sent; spread it with \*"):
        as_entries(["a", "b"])


@pytest.mark.parametrize("value", [1, {"role": "user"}, object(), None])
def test_unknown_types_are_refused_with_what_is_accepted(value: object) -> None:
    with pytest.raises(EntryError, match=r"input 2 of type \w+ cannot be sent; give text, text\("):
        as_entries("a", value)


@pytest.mark.parametrize(
    "entry", [CompactionEntry(summary="s"), OpaqueEntry(raw="{}"), CustomEntry()]
)
def test_entries_that_only_a_session_makes_are_refused(entry: object) -> None:
    with pytest.raises(EntryError, match=r"input 1 of type \w+ cannot be appended; give a message"):
        as_entries(entry)


def test_text_takes_only_text() -> None:
    with pytest.raises(EntryError, match=r"text\(\) takes a str, got int; use str\(value\)"):
        text(3)  # type: ignore[arg-type]


def test_an_image_comes_from_a_path_as_text(tmp_path: Path) -> None:
    (tmp_path / "p.jpeg").write_bytes(GIF)

    block = image(str(tmp_path / "p.jpeg"))

    assert (block.media_type, block.name, block.data) == ("image/gif", "p.jpeg", GIF)


def test_an_image_of_an_unknown_type_needs_its_media_type() -> None:
    assert image(b"??", "image/avif").media_type == "image/avif"
    with pytest.raises(EntryError, match=r"image b'\?\?' is of type .*; give media_type"):
        image(b"??")


def test_a_file_takes_name_and_media_type(tmp_path: Path) -> None:
    (tmp_path / "d.bin").write_bytes(b"x")

    block = file(tmp_path / "d.bin", "text/csv", name="data.csv")

    assert block == FileBlock(block.blob, "text/csv", "data.csv")


def test_a_missing_image_and_an_address_are_refused() -> None:
    with pytest.raises(EntryError, match=r"file 'no-such\.png' cannot be read: no such file"):
        image("no-such.png")
    with pytest.raises(EntryError, match=r"image 'https://e\.org/a\.png' is an address"):
        image("https://e.org/a.png")
    with pytest.raises(EntryError, match=r"file\(\) cannot take a int; give a path or bytes"):
        file(3)


# B56
def test_the_digest_form_holds_content_and_no_header() -> None:
    stored = replace(meta("m", GIF), id="e1", seq=3)
    big = file(b"x" * 100_000, name="x.bin")

    content = input_digest([stored, *as_entries(big, InputNote(text="n"))])

    assert content == input_digest([*as_entries(meta("m", GIF), big, InputNote(text="n"))])
    assert len(json.dumps(content)) < 1_000


# B56
def test_the_digest_form_tells_inputs_apart() -> None:
    drafts = [
        user("a"),
        user("b"),
        meta("a"),
        ephemeral("a"),
        assistant("a"),
        user(None),
        user(""),
        user([]),
        user(GIF),
        user(GIF + b"2"),
        InputNote(text="a"),
        InputNote(text="b"),
    ]

    forms = [json.dumps(input_digest([draft])) for draft in drafts]

    assert len(set(forms)) == len(forms)


# B56
def test_the_name_of_an_image_does_not_count() -> None:
    first, second = image(GIF), replace(image(GIF), name="tmp123.gif")

    assert isinstance(second, ImageBlock)
    assert input_digest([user(first)]) == input_digest([user(second)])
