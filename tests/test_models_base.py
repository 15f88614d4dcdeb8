"""`Assembly`: whatever arrived is a message at every moment."""

from __future__ import annotations

import random

import pytest

from nbdurable.blocks import (
    Blob,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from nbdurable.errors import ModelError
from nbdurable.models.base import (
    Assembly,
    CallDelta,
    Delta,
    Finish,
    ImageDelta,
    Model,
    ModelRequest,
    RetryNotice,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
)


def assembled(*deltas: Delta) -> Assembly:
    assembly = Assembly()
    for delta in deltas:
        assembly.add(delta)
    return assembly


def test_nothing_assembles_to_no_blocks() -> None:
    assembly = Assembly()

    assert (assembly.blocks(), assembly.is_empty, assembly.has_calls) == ((), True, False)
    assert assembly.finish is None


def test_pieces_of_text_join_to_one_block() -> None:
    assert assembled(TextDelta("Hel"), TextDelta("lo")).blocks() == (TextBlock("Hello"),)


@pytest.mark.parametrize("delta", [TextDelta(""), ThinkingDelta(), RetryNotice(1, 0.1, "busy")])
def test_a_delta_that_says_nothing_leaves_no_block(delta: Delta) -> None:
    assembly = assembled(delta)

    assert assembly.blocks() == ()
    assert assembly.is_empty


def test_an_empty_delta_does_not_split_a_text() -> None:
    assembly = assembled(TextDelta("a"), ThinkingDelta(), TextDelta(""), TextDelta("b"))

    assert assembly.blocks() == (TextBlock("ab"),)


def test_white_space_is_kept() -> None:
    assert assembled(TextDelta("  "), TextDelta("\n")).blocks() == (TextBlock("  \n"),)


def test_blocks_stand_in_the_order_in_which_they_began() -> None:
    assembly = assembled(
        ThinkingDelta("hm"),
        TextDelta("a"),
        CallDelta(0, "c0", "add", "{}"),
        TextDelta("b"),
        ThinkingDelta("so"),
        TextDelta("c"),
    )

    kinds = [block.type for block in assembly.blocks()]
    assert kinds == ["thinking", "text", "tool_call", "text", "thinking", "text"]


# B46
def test_a_signature_closes_its_thinking_block() -> None:
    assembly = assembled(
        ThinkingDelta("one "),
        ThinkingDelta("two"),
        ThinkingDelta(signature="sig1"),
        ThinkingDelta("three"),
        ThinkingDelta(signature="sig2"),
    )

    assert assembly.blocks() == (ThinkingBlock("one two", "sig1"), ThinkingBlock("three", "sig2"))


# B46
def test_redacted_thinking_is_a_block_of_its_own() -> None:
    assembly = assembled(
        ThinkingDelta("a", "sig"), ThinkingDelta(data="xyz"), ThinkingDelta(data="uvw")
    )

    assert assembly.blocks() == (
        ThinkingBlock("a", "sig"),
        ThinkingBlock("", None, "xyz"),
        ThinkingBlock("", None, "uvw"),
    )


# B22
def test_unsigned_thinking_of_a_cut_stream_is_kept() -> None:
    assert assembled(ThinkingDelta("half a thou")).blocks() == (ThinkingBlock("half a thou"),)


def test_pieces_of_parallel_calls_go_to_their_own_call() -> None:
    assembly = assembled(
        CallDelta(0, "c0", "add", '{"a"'),
        CallDelta(1, "c1", "say", '{"w"'),
        CallDelta(0, arguments=": 1}"),
        CallDelta(1, arguments=': "x"}'),
        Finish(stop_reason="tool_calls"),
    )

    assert assembly.has_calls
    assert assembly.blocks() == (
        ToolCallBlock("c0", "add", '{"a": 1}'),
        ToolCallBlock("c1", "say", '{"w": "x"}'),
    )


def test_id_and_name_of_a_call_are_the_first_that_came() -> None:
    assembly = assembled(
        CallDelta(0), CallDelta(0, "c0", "add"), CallDelta(0, "other", "other", "{}"), Finish()
    )

    assert assembly.blocks() == (ToolCallBlock("c0", "add", "{}"),)


def test_a_call_without_an_id_gets_one_from_its_key() -> None:
    assembly = assembled(CallDelta(3, name="add", arguments="{}"), Finish())

    assert assembly.blocks() == (ToolCallBlock("call_3", "add", "{}"),)


# B22
def test_a_call_is_complete_only_after_the_finish() -> None:
    assembly = assembled(CallDelta(0, "c0", "add", '{"a": 1}'))
    (before,) = assembly.blocks()
    assembly.add(Finish(stop_reason="tool_calls"))
    (after,) = assembly.blocks()

    assert isinstance(before, ToolCallBlock) and isinstance(after, ToolCallBlock)
    assert (before.complete, before.args_valid) == (False, False)
    assert (after.complete, after.args_valid) == (True, True)


# B22
def test_arguments_cut_by_the_token_limit_are_kept_raw_and_not_valid() -> None:
    (call,) = assembled(CallDelta(0, "c", "add", '{"a": '), Finish(stop_reason="length")).blocks()

    assert isinstance(call, ToolCallBlock)
    assert (call.raw, call.args_valid) == ('{"a": ', False)


# B30
def test_a_provider_run_call_is_marked() -> None:
    assembly = assembled(
        CallDelta(0, "c0", "web_search", provider_run=True), CallDelta(0, arguments="{}"), Finish()
    )

    assert assembly.blocks() == (ToolCallBlock("c0", "web_search", "{}", provider_run=True),)


def test_images_are_blocks_of_their_own() -> None:
    image = ImageBlock(Blob.of(b"png"))

    assembly = assembled(TextDelta("a"), ImageDelta(image), TextDelta("b"))

    assert assembly.blocks() == (TextBlock("a"), image, TextBlock("b"))


def test_the_finish_is_kept_as_it_came() -> None:
    finish = Finish(stop_reason="length", usage=Usage(1, 2), cost_usd=0.5, answered_by="m-1")

    assert assembled(TextDelta("a"), finish).finish is finish


def test_reading_in_the_middle_changes_nothing() -> None:
    deltas = random.Random(7).choices(
        [TextDelta("x"), ThinkingDelta("y"), CallDelta(0, arguments="z"), CallDelta(1)], k=200
    )
    read_once, read_often = Assembly(), Assembly()

    for delta in deltas:
        read_once.add(delta)
        read_often.add(delta)
        read_often.blocks()

    assert read_often.blocks() == read_once.blocks()


def test_blocks_once_read_do_not_change_later() -> None:
    assembly = assembled(TextDelta("a"))
    before = assembly.blocks()

    assembly.add(TextDelta("b"))

    assert before == (TextBlock("a"),)


# B69
def test_a_request_shows_neither_parameters_nor_messages() -> None:
    request = ModelRequest(messages=(), system="private", params={"api_key": "sk-secret"})

    assert repr(request) == "ModelRequest(tools=())"


def test_a_tool_spec_gives_its_fields_as_a_dict() -> None:
    spec = ToolSpec("add", "Add two numbers.", {"type": "object"})

    assert spec.to_dict() == {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {"type": "object"},
    }


def test_a_model_error_carries_its_facts() -> None:
    error = ModelError("busy", reason="rate_limit", status=429, retry_after_s=1.5)

    assert (error.reason, error.status, error.retry_after_s) == ("rate_limit", 429, 1.5)
    assert isinstance(error, RuntimeError)


def test_an_object_without_the_methods_is_no_model() -> None:
    assert not isinstance(object(), Model)
