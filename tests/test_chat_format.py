"""Messages become chat dicts that a provider takes, and come back where a way back exists."""

from __future__ import annotations

import json

import pytest

from nbdurable.blocks import (
    Blob,
    Block,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.models.chat_format import (
    arguments_of,
    image_from_url,
    message_from_openai,
    to_chat,
)

PNG = ImageBlock(Blob.of(b"\x89PNG"), "image/png")
PNG_URL = "data:image/png;base64,iVBORw=="


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def results(*blocks: Block) -> Message:
    return Message("tool", blocks)


# -- user and system ---------------------------------------------------------------------------


def test_the_system_text_comes_first() -> None:
    chat = to_chat([user(TextBlock("hi"))], "Be brief.")

    assert chat == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]


@pytest.mark.parametrize("system", [None, "", " \n"])
def test_a_blank_system_text_is_left_out(system: str | None) -> None:
    assert to_chat([user(TextBlock("hi"))], system) == [{"role": "user", "content": "hi"}]


def test_text_alone_is_a_plain_string() -> None:
    assert to_chat([user(TextBlock("a"), TextBlock("b"))]) == [{"role": "user", "content": "a\nb"}]


def test_an_image_is_a_part_with_a_data_uri() -> None:
    (chat,) = to_chat([user(TextBlock("see"), PNG)])

    assert chat["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]


def test_a_file_is_a_part_with_its_name() -> None:
    (chat,) = to_chat([user(FileBlock(Blob.of(b"%PDF"), "application/pdf", "a.pdf"))])

    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}
    assert chat["content"] == [{"type": "file", "file": file}]


def test_a_file_of_text_goes_as_text() -> None:
    (chat,) = to_chat([user(FileBlock(Blob.of(b"x,y\n1,2"), "text/csv", "t.csv"))])

    assert chat["content"] == [{"type": "text", "text": "File t.csv:\n\nx,y\n1,2"}]


# B45 case 20
@pytest.mark.parametrize("blank", ["", "\n\n", " \t"])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_blank_text_and_messages_that_become_empty_are_left_out(blank: str, role: str) -> None:
    empty = Message(role, (TextBlock(blank),))
    half = Message(role, (TextBlock(blank), TextBlock("said")))

    assert to_chat([empty]) == []
    assert to_chat([half]) == [{"role": role, "content": "said"}]


# B37
def test_opaque_blocks_are_not_sent() -> None:
    assert to_chat([user(OpaqueBlock("{}"), TextBlock("hi"))]) == [
        {"role": "user", "content": "hi"}
    ]


# B64
def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    chat = to_chat([user(TextBlock("a\ud83d"))], "s\ud83d")

    assert json.dumps(chat, ensure_ascii=False).encode()
    assert chat[1]["content"] == "a\ufffd"


# -- assistant ---------------------------------------------------------------------------------


# case 21
def test_content_is_none_beside_calls_alone() -> None:
    (chat,) = to_chat([assistant(ToolCallBlock("c1", "add", '{"a":1}'))])

    function = {"name": "add", "arguments": '{"a":1}'}
    assert chat == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ('{"a": 1,  "b": 2}', '{"a": 1,  "b": 2}'),
        ('{"n": 12345678901234567890123}', '{"n": 12345678901234567890123}'),
        ("", "{}"),
        ("[1]", '{"invalid_arguments":"[1]"}'),
        ('{"a": ', '{"invalid_arguments":"{\\"a\\": "}'),
        ("null", '{"invalid_arguments":"null"}'),
    ],
)
def test_arguments_are_sent_raw_or_wrapped(raw: str, sent: str) -> None:
    arguments = arguments_of(ToolCallBlock("c", "f", raw))

    assert arguments == sent
    assert isinstance(json.loads(arguments), dict)


# B22
def test_an_incomplete_call_is_never_sent() -> None:
    half = ToolCallBlock("c1", "add", '{"a"', complete=False)

    assert to_chat([assistant(half)]) == []
    assert to_chat([assistant(TextBlock("so"), half)]) == [{"role": "assistant", "content": "so"}]


# B30
def test_a_call_that_the_provider_ran_is_not_sent() -> None:
    ran = ToolCallBlock("s1", "web_search", "{}", provider_run=True)

    assert to_chat([assistant(ran, TextBlock("found"))]) == [
        {"role": "assistant", "content": "found"}
    ]


# B46
def test_signed_thinking_goes_back_verbatim_and_unsigned_is_left_out() -> None:
    blocks = (
        ThinkingBlock("plain"),
        ThinkingBlock(" hm \n", "SIG=="),
        ThinkingBlock("", None, "OPAQUE"),
        TextBlock("so"),
    )

    (chat,) = to_chat([assistant(*blocks)])

    assert chat["thinking_blocks"] == [
        {"type": "thinking", "thinking": " hm \n", "signature": "SIG=="},
        {"type": "redacted_thinking", "data": "OPAQUE"},
    ]


def test_thinking_alone_is_no_message() -> None:
    assert to_chat([assistant(ThinkingBlock("hm", "SIG=="))]) == []


def test_an_image_that_the_model_made_follows_as_the_user_s() -> None:
    chat = to_chat([assistant(TextBlock("here"), PNG), user(TextBlock("bigger"))])

    assert [message["role"] for message in chat] == ["assistant", "user", "user"]
    assert chat[0]["content"] == "here"
    assert chat[1]["content"][1] == {"type": "image_url", "image_url": {"url": PNG_URL}}


# -- tool results ------------------------------------------------------------------------------


def test_each_result_is_a_tool_message_of_its_call() -> None:
    message = results(
        ToolResultBlock("c1", (TextBlock("1"),)),
        ToolResultBlock("c2", (TextBlock("bad"),), is_error=True),
    )

    assert to_chat([message]) == [
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "bad"},
    ]


def test_a_blank_result_says_so() -> None:
    (chat,) = to_chat([results(ToolResultBlock("c1", (TextBlock("\n"),)))])

    assert chat["content"] == "(no output)"


# B31
def test_images_follow_after_all_results_of_their_step() -> None:
    calls = assistant(ToolCallBlock("c1", "plot"), ToolCallBlock("c2", "add"))
    first = results(ToolResultBlock("c1", (TextBlock("drawn"), PNG)))
    second = results(ToolResultBlock("c2", (TextBlock("3"),)))

    chat = to_chat([calls, first, second, user(TextBlock("thanks"))])

    assert [message["role"] for message in chat] == ["assistant", "tool", "tool", "user", "user"]
    assert chat[1]["content"] == "drawn"
    assert chat[3]["content"] == [
        {"type": "text", "text": "An image in the result of call c1:"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]


# B31
def test_images_at_the_end_of_the_view_are_sent_too() -> None:
    chat = to_chat([results(ToolResultBlock("c1", (PNG,)))])

    assert [message["role"] for message in chat] == ["tool", "user"]
    assert chat[0]["content"] == "(no output)"


# B31
def test_images_stay_in_the_result_where_the_provider_reads_them() -> None:
    (chat,) = to_chat(
        [results(ToolResultBlock("c1", (TextBlock("drawn"), PNG)))], images_in_results=True
    )

    assert chat["content"] == [
        {"type": "text", "text": "drawn"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]


# -- and back ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        user(TextBlock("hi")),
        user(TextBlock("see"), PNG, FileBlock(Blob.of(b"%PDF"), "application/pdf", "a.pdf")),
        assistant(TextBlock("so")),
        Message("assistant", (ToolCallBlock("c1", "add", '{"a":1}'),), null_content=True),
        assistant(ThinkingBlock("hm", "SIG=="), ThinkingBlock("", None, "O"), TextBlock("so")),
        assistant(TextBlock("so"), ToolCallBlock("c1", "f", "{}"), ToolCallBlock("c2", "g", "{}")),
        results(ToolResultBlock("c1", (TextBlock("3"),))),
    ],
)
def test_what_is_sent_whole_comes_back_equal(message: Message) -> None:
    (chat,) = to_chat([message])

    assert message_from_openai(json.loads(json.dumps(chat))) == message


# case 21
@pytest.mark.parametrize(
    ("content", "blocks", "is_null"),
    [
        (None, (), True),
        ("", (TextBlock(""),), False),
        ([], (), False),
        ([{"type": "text", "text": "a"}], (TextBlock("a"),), False),
    ],
)
def test_none_blank_and_empty_content_are_told_apart(
    content: object, blocks: tuple, is_null: bool
) -> None:
    message = message_from_openai({"role": "assistant", "content": content})

    assert (message.blocks, message.null_content) == (blocks, is_null)


def test_reasoning_text_comes_back_as_unsigned_thinking() -> None:
    wire = {"role": "assistant", "content": "42", "reasoning_content": "hm"}

    assert message_from_openai(wire).blocks == (ThinkingBlock("hm"), TextBlock("42"))


def test_arguments_given_as_an_object_come_back_as_text() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}

    message = message_from_openai({"role": "assistant", "content": None, "tool_calls": [call]})

    assert message.tool_calls == (ToolCallBlock("c1", "f", '{"a":1}'),)


# B37
@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://host.example/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}},
        {"type": "hologram", "hologram": 1},
        {"type": "text"},
        {},
    ],
)
def test_a_part_that_is_not_understood_is_kept_opaque(part: dict) -> None:
    (block,) = message_from_openai({"role": "user", "content": [part]}).blocks

    assert isinstance(block, OpaqueBlock)
    assert json.loads(block.raw) == part


@pytest.mark.parametrize("role", ["system", None, "robot"])
def test_a_role_without_messages_is_refused(role: object) -> None:
    with pytest.raises(ValueError, match=r"role .* of a chat message is not known; use 'user'"):
        message_from_openai({"role": role, "content": "x"})


def test_a_data_uri_may_carry_parameters() -> None:
    image = image_from_url("data:image/jpeg;charset=x;base64,/9j/")

    assert image == ImageBlock(Blob.of(b"\xff\xd8\xff"), "image/jpeg")
