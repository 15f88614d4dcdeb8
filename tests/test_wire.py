from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.blocks import (
    INLINE_BYTES,
    Blob,
    Block,
    FileBlock,
    ImageBlock,
    Json,
    Message,
    OpaqueBlock,
    Reply,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.errors import BadPayload
from nbdurable.wire import (
    block_from_dict,
    block_to_dict,
    clean,
    dumps,
    is_repaired,
    reply_from_dict,
    reply_to_dict,
)

texts = st.text(max_size=20)
some_text = st.none() | texts
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
blobs = st.binary(max_size=40).map(Blob.of)
plain_blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, texts),
    st.builds(ThinkingBlock, texts, some_text, some_text),
    st.builds(ImageBlock, blobs, texts, some_text),
    st.builds(FileBlock, blobs, texts, some_text),
    st.builds(ToolCallBlock, texts, texts, texts, st.booleans(), st.booleans()),
    st.dictionaries(texts, json_values, max_size=3).map(
        lambda wire: OpaqueBlock(dumps({"type": "of a later version", **wire}))
    ),
)
blocks = st.recursive(
    plain_blocks,
    lambda inner: st.builds(
        ToolResultBlock, texts, st.lists(inner, max_size=3).map(tuple), st.booleans(), some_text
    ),
    max_leaves=5,
)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**60)
replies = st.builds(
    Reply,
    model=some_text,
    answered_by=some_text,
    provider=some_text,
    fingerprint=some_text,
    params_json=st.dictionaries(texts, json_values, max_size=3).map(dumps),
    stop_reason=st.sampled_from(["stop", "length", "tool_calls", "error", "aborted"]),
    error=some_text,
    usage=st.none() | st.builds(Usage, counts, counts, counts, counts, counts),
    cost_usd=numbers,
    ttft_s=numbers,
    seconds=numbers,
)


def through_text(wire: Json) -> dict[str, Json]:
    return dict(json.loads(dumps(wire)))


class TestRoundTrips:
    # B24 B37
    @given(blocks)
    def test_every_block_survives_its_wire_form(self, block: Block) -> None:
        assert block_from_dict(through_text(block_to_dict(block))) == block

    # B45
    @given(replies)
    def test_every_reply_survives_its_wire_form(self, reply: Reply) -> None:
        assert reply_from_dict(through_text(reply_to_dict(reply))) == reply

    # B33
    @given(json_values)
    def test_every_json_value_survives_text(self, value: Json) -> None:
        assert json.loads(dumps(value)) == value

    # B33
    @pytest.mark.parametrize(
        "value", [2**53 + 1, -(10**40), "é😀\u2028\0", {"a": {"b": [None, {"c": None}]}}]
    )
    def test_awkward_values_survive_text(self, value: Json) -> None:
        assert json.loads(dumps({"x": value})) == {"x": value}

    # B64
    @pytest.mark.parametrize("text", ["\0", "a\u2028b\u2029", "x" * 1_500_000], ids=ascii)
    def test_awkward_texts_survive_the_trip(self, text: str) -> None:
        assert block_from_dict(through_text(block_to_dict(TextBlock(text)))) == TextBlock(text)

    # B46
    def test_a_signature_survives_byte_for_byte(self) -> None:
        block = ThinkingBlock(" hm \n", signature="EqQB+/==\n", data="0x00ff")

        assert block_from_dict(through_text(block_to_dict(block))) == block

    # B22 case 23
    def test_half_arguments_survive_as_they_were_streamed(self) -> None:
        block = ToolCallBlock("c", "write", '{"path": "a.tx', complete=False)

        back = block_from_dict(through_text(block_to_dict(block)))

        assert isinstance(back, ToolCallBlock)
        assert (back.raw, back.complete, back.args_valid) == ('{"path": "a.tx', False, False)

    # case 21
    @pytest.mark.parametrize("content", [(), (TextBlock(""),), (TextBlock("a"), TextBlock("b"))])
    def test_empty_content_of_a_result_is_told_from_empty_text(
        self, content: tuple[Block, ...]
    ) -> None:
        block = ToolResultBlock("c", content)

        assert block_from_dict(through_text(block_to_dict(block))) == block


class TestBytes:
    # B61
    def test_large_bytes_travel_as_hash_and_size(self) -> None:
        data = b"x" * (INLINE_BYTES + 1)

        wire = block_to_dict(ImageBlock(Blob.of(data)))

        assert "base64" not in wire
        assert (wire["sha256"], wire["size"]) == (Blob.of(data).sha256, len(data))

    # B61
    def test_large_bytes_are_fetched_only_when_they_are_read(self) -> None:
        data, asked = b"x" * (INLINE_BYTES + 1), []
        wire = block_to_dict(FileBlock(Blob.of(data), name="a.bin"))

        def fetch(sha256: str) -> bytes:
            asked.append(sha256)
            return data

        block = block_from_dict(wire, fetch)
        before = list(asked)

        assert isinstance(block, FileBlock)
        assert (before, block.data, asked) == ([], data, [Blob.of(data).sha256])

    # B61
    def test_small_bytes_travel_inline(self) -> None:
        wire = block_to_dict(ImageBlock(Blob.of(b"x" * INLINE_BYTES)))

        assert "sha256" not in wire

    def test_bytes_without_a_store_are_named(self) -> None:
        blob = Blob("ab" * 32, 40_000)

        with pytest.raises(LookupError, match=r"blob abababababab \(40000 bytes\) has no store"):
            blob.read()

    # B61
    def test_a_blob_shows_no_data(self) -> None:
        assert "secret" not in repr(ImageBlock(Blob.of(b"secret")))


class TestOfLaterVersions:
    # B37
    @pytest.mark.parametrize(
        "wire",
        [
            {"type": "hologram", "x": [1, None]},
            {"type": "text", "text": "a", "citations": []},
            {"type": "text", "text": 5},
            {"type": "text"},
            {"type": "tool_call", "id": 1, "name": "n", "arguments": "{}"},
            {"type": "tool_result", "call_id": "c", "content": "text"},
            {"type": "image", "media_type": "image/png"},
            {"type": "image", "media_type": "image/png", "base64": "%%%x"},
            {"type": None},
            {},
            "only text",
            None,
            [1],
        ],
        ids=repr,
    )
    def test_a_block_of_an_unknown_shape_is_kept_as_it_is(self, wire: dict[str, Json]) -> None:
        block = block_from_dict(wire)

        assert isinstance(block, OpaqueBlock)
        assert block_to_dict(block) == wire

    # B37
    def test_an_unknown_block_inside_a_result_leaves_the_result_readable(self) -> None:
        wire = {"type": "tool_result", "call_id": "c", "content": [{"type": "hologram"}]}

        block = block_from_dict(wire)

        assert block == ToolResultBlock("c", (OpaqueBlock('{"type":"hologram"}'),))

    # B37
    def test_unknown_keys_of_a_reply_are_passed_over(self) -> None:
        wire = {**reply_to_dict(Reply(model="m", usage=Usage(1, 2))), "mood": "good"}
        wire["usage"] = {**Usage(1, 2).to_dict(), "audio_tokens": 3}

        assert reply_from_dict(wire) == Reply(model="m", usage=Usage(1, 2))


class TestNumbers:
    # B64 case 33
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_number_that_json_lacks_is_refused_with_its_key_path(self, bad: float) -> None:
        with pytest.raises(
            BadPayload, match=r"value at 'fields\.scores\[2\]' of the payload is"
        ) as e:
            dumps({"fields": {"ok": 1.5, "scores": [1, 2, bad]}})

        assert e.value.path == "fields.scores[2]"

    # B64
    def test_a_value_of_no_json_type_is_refused_with_its_type(self) -> None:
        with pytest.raises(BadPayload, match="value at 'a' of the payload is of type set"):
            dumps({"a": {1}})

    # B64
    def test_a_key_that_is_no_text_is_named(self) -> None:
        with pytest.raises(BadPayload, match="under a key of type tuple"):
            dumps({"a": {(1, 2): 3}})

    # B64
    def test_a_ring_of_values_is_refused(self) -> None:
        ring: dict[str, object] = {"a": [1]}
        ring["b"] = [ring]

        with pytest.raises(BadPayload, match="nested too deep or in a ring"):
            dumps(ring)

    # B64
    def test_values_nested_too_deep_are_refused(self) -> None:
        with pytest.raises(BadPayload, match="nested too deep or in a ring"):
            dumps(_deep(100_000))

    # B64 case 33
    @pytest.mark.parametrize("name", ["cost_usd", "ttft_s", "seconds"])
    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_providers_number_that_json_lacks_becomes_null(self, name: str, bad: float) -> None:
        reply = replace(Reply(cost_usd=1.0, ttft_s=1.0, seconds=1.0), **{name: bad})

        back = reply_from_dict(through_text(reply_to_dict(reply)))

        assert asdict(back) == {**asdict(reply), name: None}


def _deep(levels: int) -> list[object]:
    deep: list[object] = []
    for _ in range(levels):
        deep = [deep]
    return deep


class TestSurrogates:
    # B64
    @pytest.mark.parametrize(
        ("text", "stored"),
        [
            ("cut \ud83d", "cut \ufffd"),
            ("\udc00\ud800", "\ufffd\ufffd"),
            ("\U0001f600", "\U0001f600"),
        ],
        ids=ascii,
    )
    def test_a_lone_surrogate_is_stored_as_the_replacement_character(
        self, text: str, stored: str
    ) -> None:
        assert json.loads(dumps({text: text})) == {stored: stored}
        assert clean(text) == stored
        assert is_repaired(text) == (text != stored)

    # B64
    @given(st.text(st.characters(exclude_categories=[]), max_size=10))
    def test_every_text_is_stored_as_utf_8(self, text: str) -> None:
        dumps({"text": text}).encode("utf-8")

    def test_no_text_stays_no_text(self) -> None:
        assert (clean(None), clean("")) == (None, "")


# B22
@pytest.mark.parametrize(
    ("raw", "arguments"),
    [("", {}), ("{}", {}), ('{"a":1}', {"a": 1}), ("[1]", None), ("{", None), ("[" * 10**5, None)],
    ids=["empty", "none", "one", "list", "half", "deep"],
)
def test_arguments_that_are_no_object_are_none(raw: str, arguments: object) -> None:
    assert ToolCallBlock("c", "n", raw).arguments == arguments


def test_a_message_gives_its_parts_by_kind() -> None:
    call, answer = ToolCallBlock("c", "n"), ToolResultBlock("c", (TextBlock("r"),))
    message = Message("assistant", (TextBlock("a"), call, answer), Reply(stop_reason="length"))

    assert (message.tool_calls, message.tool_results) == ((call,), (answer,))
    assert (message.text, message.stop_reason) == ("a\nr", "length")


def test_usage_adds_kind_by_kind() -> None:
    total = Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50)

    assert total == Usage(11, 22, 33, 44, 55)
    assert total.total_tokens == 165
