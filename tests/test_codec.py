from __future__ import annotations

import json
import math
from dataclasses import fields
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.blocks import (
    INLINE_BYTES,
    Blob,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    Reply,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.codec import PREVIEW_CHARS, blobs_in, decode, encode, one_line, preview_of
from nbdurable.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    OpaqueEntry,
    custom_class,
    kind_of,
)
from nbdurable.errors import BadPayload, EntryError
from nbdurable.stored import StoredEntry, digest_of

texts = st.text(max_size=20)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
usages = st.none() | st.builds(Usage, st.integers(0, 2**53), st.integers(0, 9), st.integers(0, 9))
messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    st.lists(
        st.one_of(
            st.builds(TextBlock, texts),
            st.builds(ToolCallBlock, texts, texts, texts, st.booleans(), st.booleans()),
            st.builds(ToolResultBlock, texts, st.lists(st.builds(TextBlock, texts)).map(tuple)),
            st.just(OpaqueBlock('{"type":"hologram"}')),
        ),
        max_size=3,
    ).map(tuple),
    st.none() | st.builds(Reply, model=texts, usage=usages, cost_usd=numbers, seconds=numbers),
    st.booleans(),
)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(MessageEntry, message=messages, meta=st.booleans(), author=st.just("human")),
    st.builds(
        CompactionEntry,
        summary=texts,
        first_kept_id=st.none() | texts,
        tokens_before=st.none() | st.integers(0, 10**6),
        model=st.none() | texts,
        usage=usages,
        cost_usd=numbers,
    ),
    st.builds(
        CustomEntry,
        stored_kind=st.just("nobody registered this"),
        fields_json=st.dictionaries(texts, st.integers() | texts).map(json.dumps),
    ),
)  # fmt: skip


def stored(entry: Entry, **header: object) -> StoredEntry:
    given = {"id": "e1", "session_id": "s", "parent_id": None, "created_at": 0, **header}
    return encode(entry, **given)  # type: ignore[arg-type]


def content(entry: Entry) -> dict[str, object]:
    """All of an entry but what the store fills in."""
    header = {f.name for f in fields(Entry)}
    held = {f.name: getattr(entry, f.name) for f in fields(entry) if f.name not in header}
    if isinstance(entry, CustomEntry):
        held["fields_json"] = entry.fields
    return held


class TestRoundTrips:
    # B24 B37
    @given(entries)
    def test_every_entry_survives_its_stored_form(self, entry: Entry) -> None:
        back = decode(stored(entry))

        assert type(back) is type(entry)
        assert content(back) == content(entry)

    # B24
    @given(entries)
    def test_storing_again_gives_the_same_payload(self, entry: Entry) -> None:
        first = stored(entry)

        assert stored(decode(first)) == first

    # B20
    def test_the_header_is_the_callers_and_not_the_entrys(self) -> None:
        entry = MessageEntry(
            id="mine",
            parent_id="my parent",
            seq=99,
            created_at=datetime(1999, 1, 1, tzinfo=UTC),
            message=Message("user"),
        )

        row = stored(entry, id="e1", parent_id="p", created_at=5)

        assert (row.id, row.parent_id, row.seq, row.created_at) == ("e1", "p", 0, 5)

    # B20
    def test_one_object_stored_twice_gives_two_entries(self) -> None:
        entry = MessageEntry(message=Message("user", (TextBlock("q"),)))

        first, second = stored(entry, id="e1"), stored(entry, id="e2", parent_id="e1")

        assert (first.id, second.id) == ("e1", "e2")
        assert first.payload == second.payload
        assert entry.id == ""

    # B2
    def test_the_header_comes_back_as_stored(self) -> None:
        drafted = stored(MessageEntry(message=Message("user")), created_at=1_500_000, run_id="r")
        row = drafted._replace(seq=7, n=3, source_id="x")

        back = decode(row)

        assert (back.id, back.seq, back.n, back.run_id, back.source_id) == ("e1", 7, 3, "r", "x")
        assert back.created_at == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)

    # case 21
    def test_content_none_empty_text_and_empty_list_are_told_apart(self) -> None:
        contents = [
            Message("assistant", (), null_content=True),
            Message("assistant", (TextBlock(""),)),
            Message("assistant", ()),
            Message("assistant", (TextBlock("a"), TextBlock("b"))),
        ]

        back = [decode(stored(MessageEntry(message=message))) for message in contents]

        assert [entry.message for entry in back] == contents  # type: ignore[attr-defined]

    # B61
    def test_large_bytes_are_named_beside_the_payload(self) -> None:
        large, small = Blob.of(b"x" * (INLINE_BYTES + 1)), Blob.of(b"x")
        inner = ToolResultBlock("c", (ImageBlock(large), ImageBlock(small)))
        entry = MessageEntry(message=Message("tool", (inner,)))

        assert blobs_in(entry) == (large,)
        assert len(stored(entry).payload) < 1_000


class TestColumns:
    # B22 case 23
    def test_columns_of_a_reply_need_no_payload(self) -> None:
        reply = Reply(
            model="asked", answered_by="m-2", stop_reason="length", usage=Usage(1, 2, 3, 4, 5),
            cost_usd=0.5, ttft_s=0.1, seconds=2.0,
        )  # fmt: skip

        row = stored(MessageEntry(message=Message("assistant", (), reply), meta=True))

        assert (row.kind, row.role, row.meta, row.model) == ("message", "assistant", True, "asked")
        assert (row.stop_reason, row.cost_usd, row.ttft_s, row.seconds) == ("length", 0.5, 0.1, 2.0)
        assert (row.input_tokens, row.output_tokens, row.reasoning_tokens) == (1, 2, 5)

    def test_unknown_usage_is_null_and_not_zero(self) -> None:
        row = stored(MessageEntry(message=Message("assistant", (), Reply())))

        assert (row.input_tokens, row.cost_usd) == (None, None)

    # B64 case 33
    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_cost_that_json_lacks_is_null_in_payload_and_column(self, bad: float) -> None:
        answer = MessageEntry(message=Message("assistant", (), Reply(cost_usd=bad, seconds=bad)))
        summary = CompactionEntry(summary="s", cost_usd=bad)

        rows = [stored(answer), stored(summary)]

        assert [row.cost_usd for row in rows] == [None, None]
        assert "cost_usd" not in json.loads(rows[0].payload)["reply"]

    # B66
    @pytest.mark.parametrize("column", StoredEntry._fields[:-1])
    def test_the_digest_covers_every_column(self, column: str) -> None:
        row = stored(MessageEntry(message=Message("user", (TextBlock("q"),))))

        assert digest_of(row._replace(**{column: "changed"})) != digest_of(row)


class TestRefusals:
    # B64 case 33
    @pytest.mark.parametrize(("name", "bad"), [("score", math.nan), ("best", math.inf)])
    def test_a_custom_number_that_json_lacks_is_refused_with_its_key_path(
        self, name: str, bad: float
    ) -> None:
        class Score(CustomEntry):
            kind = "test codec score"
            score: float = 0.0
            best: float = 0.0

        with pytest.raises(BadPayload, match=f"value at 'fields.{name}' of the payload is"):
            stored(Score(**{name: bad}))

    # B35
    def test_an_ephemeral_entry_is_never_stored(self) -> None:
        with pytest.raises(EntryError, match="entry of type MessageEntry cannot be stored"):
            stored(MessageEntry(message=Message("user"), ephemeral=True))

    # B36
    def test_a_custom_entry_without_a_kind_is_refused(self) -> None:
        with pytest.raises(EntryError, match="or a CustomEntry subclass with a kind"):
            stored(CustomEntry())

    # B36
    @pytest.mark.parametrize("kind", ["", "message", "compaction", "opaque", "a\0b", 5])
    def test_a_kind_that_cannot_be_used_is_refused(self, kind: object) -> None:
        with pytest.raises(EntryError, match="of Odd cannot be used; choose other text"):
            type("Odd", (CustomEntry,), {"kind": kind, "__annotations__": {}})


class TestCustom:
    # B36
    def test_a_registered_class_comes_back_with_its_fields(self) -> None:
        class Note(CustomEntry):
            kind = "test codec note"
            text: str = ""

        back = decode(stored(Note(text="é")))

        assert isinstance(back, Note)
        assert (back.text, back.fields) == ("é", {"text": "é"})

    # B36
    def test_a_class_registered_again_replaces_the_former(self) -> None:
        class First(CustomEntry):
            kind = "test codec again"

        class Second(CustomEntry):
            kind = "test codec again"

        assert custom_class("test codec again") is Second
        assert First is not Second

    # B38
    def test_an_entry_of_a_subclass_comes_back_as_one_of_its_class_too(self) -> None:
        class Mark(CustomEntry):
            kind = "test codec mark"
            text: str = ""

        class Star(Mark):
            kind = "test codec star"

        back = [decode(stored(entry)) for entry in (Star(text="a"), Mark(text="b"))]

        assert [isinstance(entry, Mark) for entry in back] == [True, True]
        assert [isinstance(entry, Star) for entry in back] == [True, False]

    # B37
    def test_fields_that_a_class_does_not_know_are_kept(self) -> None:
        class Small(CustomEntry):
            kind = "test codec small"
            text: str = ""

        row = stored(Small())._replace(payload='{"v":1,"fields":{"text":"a","extra":[1]}}')

        assert json.loads(stored(decode(row)).payload)["fields"] == {"text": "a", "extra": [1]}

    # B37
    def test_fields_that_no_longer_fit_their_class_are_kept(self) -> None:
        class Strict(CustomEntry):
            kind = "test codec strict"
            size: int

        row = stored(Strict(size=1))._replace(payload='{"v":1,"fields":{"old":2}}')

        back = decode(row)

        assert (type(back), kind_of(back)) == (CustomEntry, "test codec strict")
        assert stored(back).payload == row.payload

    # B33
    def test_duplicate_keys_are_written_once(self) -> None:
        odd = CustomEntry(stored_kind="test codec odd", fields_json='{"a":1,"a":2}')

        assert stored(odd).payload == '{"v":1,"fields":{"a":2}}'


class TestOpaque:
    # B37
    @pytest.mark.parametrize(
        ("kind", "payload"),
        [
            ("message", '{"v": 2, "role": "user"}'),
            ("message", '{"v":1,"role":"referee","blocks":[]}'),
            ("message", '{"v":1,"role":"user","blocks":{}}'),
            ("message", '{"v":1}'),
            ("message", "not json"),
            ("message", "[" * 100_000),
            ("message", '{"v":1,"role":"user","blocks":[' + "9" * 5_000 + "]}"),
            ("compaction", '{"v":1}'),
            ("of tomorrow", '{"v":9,  "x":[1.50]}'),
            ("of tomorrow", '{"v":1,"fields":[]}'),
            ("of tomorrow", "null"),
        ],
        ids=lambda text: text[:24],
    )
    def test_what_cannot_be_read_is_kept_byte_for_byte(self, kind: str, payload: str) -> None:
        row = stored(MessageEntry(message=Message("user")))._replace(kind=kind, payload=payload)

        back = decode(row)

        assert isinstance(back, OpaqueEntry)
        assert (stored(back).kind, stored(back).payload) == (kind, payload)

    # B37
    def test_a_block_of_no_known_shape_leaves_its_message_readable(self) -> None:
        payload = '{"v":1,"role":"user","blocks":["bare",{"type":"text","text":"a"}]}'
        row = stored(MessageEntry(message=Message("user")))._replace(payload=payload)

        back = decode(row)

        assert isinstance(back, MessageEntry)
        assert back.text == "a"
        assert stored(back).payload == payload


class TestSurrogates:
    # B64
    def test_an_answer_cut_in_a_character_is_stored_and_flagged(self) -> None:
        entry = MessageEntry(message=Message("assistant", (TextBlock("cut \ud83d"),), Reply()))

        back = decode(stored(entry))

        assert isinstance(back, MessageEntry)
        assert (back.text, back.is_repaired) == ("cut \ufffd", True)
        assert stored(back).payload == stored(entry).payload

    # B64
    def test_a_replacement_character_of_the_models_own_is_not_flagged(self) -> None:
        back = decode(stored(MessageEntry(message=Message("user", (TextBlock("\ufffd"),)))))

        assert isinstance(back, MessageEntry)
        assert not back.is_repaired


class TestPreviews:
    # case 31
    @given(entries)
    def test_a_preview_is_one_short_line(self, entry: Entry) -> None:
        preview = preview_of(entry)

        assert len(preview) <= PREVIEW_CHARS
        assert len(preview.splitlines()) <= 1
        preview.encode("utf-8")

    # case 31
    @pytest.mark.parametrize("text", ["x" * 1_500_000, "a\0\u2028b" * 99], ids=len)
    def test_long_awkward_texts_are_cut(self, text: str) -> None:
        assert len(one_line(text)) == PREVIEW_CHARS
        assert one_line(text).endswith("…")

    # case 31 B64
    def test_what_cannot_be_shown_is_dropped_from_a_preview(self) -> None:
        assert one_line("a\0\ud83d\u2028 \x1b[31mb") == "a [31mb"

    # case 21 case 23
    @pytest.mark.parametrize(
        ("blocks", "preview"),
        [
            ((), ""),
            ((TextBlock(" a\n b "), TextBlock("c")), "a b c"),
            ((ToolCallBlock("c", "look", '{"at":"x"}'),), "look(at='x')"),
            ((ToolCallBlock("c", "write", '{"path": "a.tx', False),), 'write({"path": "a.tx'),
            ((ToolResultBlock("c", (TextBlock("42"),)),), "42"),
            ((ImageBlock(Blob.of(b"123"), name="me"),), "[me image/png, 3 bytes]"),
        ],
    )
    def test_a_preview_tells_what_is_in_a_message(
        self, blocks: tuple[Block, ...], preview: str
    ) -> None:
        assert preview_of(MessageEntry(message=Message("user", blocks))) == preview
