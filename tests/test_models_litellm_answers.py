"""LiteLLM over a real server: what an answer carries, by provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from nbdurable.blocks import Blob, ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock
from nbdurable.models.base import (
    ModelRequest,
    RetryNotice,
    ToolSpec,
)
from nbdurable.testing import FakeOpenAI, steps
from tests.litellm_calls import (
    CLAUDE,
    HI,
    REDACTED,
    SAID,
    SEARCH,
    THOUGHT,
    Loop,
    anthropic,
    call,
    collect,
    failed,
    model_of,
    running_loop,
)


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


# -- what an answer carries --------------------------------------------------------------------


def test_usage_is_disjoint(loop: Loop, fake: FakeOpenAI) -> None:
    counts = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 30},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }

    usage = call(loop, fake, steps.text("42", counts=counts)).finish.usage

    assert usage is not None
    assert usage.to_dict() == {
        "input_tokens": 70,
        "output_tokens": 30,
        "cache_read_tokens": 30,
        "cache_write_tokens": 0,
        "reasoning_tokens": 20,
    }


@pytest.mark.parametrize("stream", [True, False])
def test_cost_is_known_for_a_model_with_a_price(stream: bool, loop: Loop, fake: FakeOpenAI) -> None:
    finish = call(loop, fake, steps.text("42"), model="openai/gpt-4o-mini", stream=stream).finish

    assert finish.cost_usd == pytest.approx(11 * 0.15e-6 + 7 * 0.6e-6)


@pytest.mark.parametrize("stream", [True, False])
def test_cost_is_none_for_a_model_without_a_price(
    stream: bool, loop: Loop, fake: FakeOpenAI
) -> None:
    finish = call(loop, fake, steps.text("42"), stream=stream).finish

    assert (finish.cost_usd, finish.usage is None) == (None, False)


# B64
def test_a_provider_s_nan_is_none(loop: Loop, fake: FakeOpenAI) -> None:
    counts = {**steps.USAGE, "cost": float("nan")}

    finish = call(loop, fake, steps.text("42", counts=counts)).finish

    assert finish.cost_usd is None


def test_usage_that_the_provider_did_not_report_is_unknown(loop: Loop, fake: FakeOpenAI) -> None:
    finish = call(loop, fake, steps.text("42", counts=None), model="openai/gpt-4o-mini").finish

    assert (finish.usage, finish.cost_usd) == (None, None)


def test_the_answering_model_and_provider_are_those_reported(loop: Loop, fake: FakeOpenAI) -> None:
    chunk = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "real-7",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}],
    }
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"

    finish = call(loop, fake, [steps.raw(data), steps.done()]).finish

    assert (finish.answered_by, finish.provider, finish.fingerprint) == ("real-7", "openai", "fp_1")


@pytest.mark.parametrize(
    ("word", "stop_reason"), [("stop", "stop"), ("length", "length"), ("banana", "stop")]
)
def test_finish_reasons_become_ours(
    word: str, stop_reason: str, loop: Loop, fake: FakeOpenAI
) -> None:
    finish = call(loop, fake, steps.text("ab", reason=word)).finish

    assert (finish.stop_reason, finish.error) == (stop_reason, None)


def test_calls_under_a_finish_of_stop_are_tool_calls(loop: Loop, fake: FakeOpenAI) -> None:
    step = [a for a in steps.tools(("f", {})) if a.kind != "finish"]

    finish = call(loop, fake, [*step[:-2], steps.finish("stop"), *step[-2:]]).finish

    assert finish.stop_reason == "tool_calls"


def test_a_content_filter_is_an_error_that_keeps_the_text(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, steps.text("ab", reason="content_filter"))

    assert (outcome.text, outcome.finish.stop_reason) == ("ab", "error")
    assert outcome.finish.error == (
        "the provider withheld the answer (content_filter); change the input"
    )


def test_a_refusal_is_an_error_that_keeps_the_text(loop: Loop, fake: FakeOpenAI) -> None:
    step = [steps.delta(role="assistant", refusal="I cannot"), steps.finish(), steps.done()]

    outcome = call(loop, fake, step)

    assert (outcome.text, outcome.finish.stop_reason) == ("I cannot", "error")


@pytest.mark.parametrize("stream", [True, False])
def test_an_image_in_the_answer_is_an_image_block(
    stream: bool, loop: Loop, fake: FakeOpenAI
) -> None:
    url = {"url": "data:image/png;base64,iVBORw0KGgo="}
    part = {"type": "image_url", "image_url": url, "index": 0}
    step = [steps.delta(role="assistant", content="pic", images=[part]), *steps.text("")[1:]]

    outcome = call(loop, fake, step, stream=stream)

    picture = ImageBlock(Blob.of(b"\x89PNG\r\n\x1a\n"), "image/png")
    assert outcome.blocks == (TextBlock("pic"), picture)


# B16
def test_an_answer_in_one_piece_gives_the_same_blocks(loop: Loop, fake: FakeOpenAI) -> None:
    step = steps.tools(("add", {"a": 1}), ("mul", {"b": 2}), content="So:")

    streamed = call(loop, fake, step)
    whole = call(loop, fake, step, stream=False)

    assert whole.blocks == streamed.blocks
    assert whole.finish.stop_reason == streamed.finish.stop_reason == "tool_calls"
    assert whole.finish.usage == streamed.finish.usage
    assert fake.requests[-1].body.get("stream") in (None, False)


# -- Anthropic ----------------------------------------------------------------------------------


# B46
def test_signed_thinking_is_kept_and_sent_back_byte_for_byte(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, anthropic(THOUGHT, REDACTED, SAID), model=CLAUDE)
    answer = Message("assistant", outcome.blocks)
    request = ModelRequest(messages=(HI, answer, HI), params={"max_tokens": 50})
    loop.run(collect(model_of(fake, CLAUDE), request))

    assert outcome.blocks == (
        ThinkingBlock("hm so", "SIG=="),
        ThinkingBlock("", None, "OPAQUE"),
        TextBlock("Hello"),
    )
    sent = fake.requests[-1].body["messages"][1]["content"]
    assert sent[:2] == [
        {"type": "thinking", "thinking": "hm so", "signature": "SIG=="},
        {"type": "redacted_thinking", "data": "OPAQUE"},
    ]


# B30
def test_a_call_that_the_provider_ran_is_marked_and_asks_for_no_tool(
    loop: Loop, fake: FakeOpenAI
) -> None:
    outcome = call(loop, fake, anthropic(SEARCH, SAID), model=CLAUDE)

    (found,) = outcome.calls
    assert (found.id, found.name, found.provider_run) == ("srvtoolu_1", "web_search", True)
    assert found.arguments == {"query": "x"}
    assert outcome.finish.stop_reason == "stop"


def test_anthropic_usage_is_disjoint_too(loop: Loop, fake: FakeOpenAI) -> None:
    finish = call(loop, fake, anthropic(SAID), model=CLAUDE).finish

    assert finish.usage is not None
    assert finish.usage.to_dict() == {
        "input_tokens": 10,
        "output_tokens": 40,
        "cache_read_tokens": 50,
        "cache_write_tokens": 100,
        "reasoning_tokens": 0,
    }
    assert (finish.answered_by, finish.provider) == ("claude-real-1", "anthropic")
    assert finish.cost_usd == pytest.approx(10 * 3e-6 + 50 * 0.3e-6 + 100 * 3.75e-6 + 40 * 15e-6)


# B31
def test_claude_reads_images_inside_tool_results(loop: Loop, fake: FakeOpenAI) -> None:
    image = ImageBlock(Blob.of(b"\x89PNG"))
    asked = call(
        loop,
        fake,
        anthropic(({"type": "tool_use", "id": "t1", "name": "plot", "input": {}}, [])),
        model=CLAUDE,
    )
    result = Message("tool", (ToolResultBlock("t1", (TextBlock("done"), image)),))
    history = (HI, Message("assistant", asked.blocks), result)
    tools = (ToolSpec("plot", "Plot it.", {"type": "object", "properties": {}}),)
    request = ModelRequest(messages=history, tools=tools, params={"max_tokens": 50})

    loop.run(collect(model_of(fake, CLAUDE), request))

    sent = fake.requests[-1].body["messages"][-1]["content"]
    assert [part["type"] for part in sent] == ["tool_result"]
    assert [part["type"] for part in sent[0]["content"]] == ["text", "image"]


def test_an_overloaded_event_before_output_is_tried_again(loop: Loop, fake: FakeOpenAI) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    event = f"event: error\ndata: {json.dumps(error)}\n\n".encode()

    outcome = call(loop, fake, [steps.raw(event), steps.eof()], anthropic(SAID), model=CLAUDE)

    assert ([n.error for n in outcome.of(RetryNotice)], outcome.text) == (["Overloaded"], "Hello")


# -- other providers ---------------------------------------------------------------------------


def lines(*values: dict, before: str = "", end: str = "\n") -> list[steps.Action]:
    text = "".join(f"{before}{json.dumps(value)}{end}" for value in values)
    return [steps.raw(text.encode()), steps.eof()]


def gemini(*, whole: bool) -> list[steps.Action]:
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}
    said = {"content": {"role": "model", "parts": [{"text": "Hello"}]}, "index": 0}
    end = {"finishReason": "STOP"} if whole else {}
    chunk = {"candidates": [{**said, **end}], "usageMetadata": counts, "modelVersion": "g"}
    return lines(chunk, before="data: ", end="\n\n")


def ollama(*, whole: bool) -> list[steps.Action]:
    said = {"model": "m", "message": {"role": "assistant", "content": "Hello"}, "done": False}
    ended = {
        "model": "m",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 3,
    }
    return lines(said, *([ended] if whole else []))


def openai_like(*, whole: bool) -> list[steps.Action]:
    return steps.text("Hello", size=9) if whole else [*steps.text("Hello", size=9)[:2], steps.eof()]


def claude(*, whole: bool) -> list[steps.Action]:
    step = anthropic(SAID)
    if whole:
        return step
    events = step[0].value.split(b"event: message_delta")[0]
    return [steps.raw(events), steps.eof()]


PROVIDERS = [
    ("gemini/gemini-2.5-flash", gemini),
    ("ollama_chat/llama3", ollama),
    (CLAUDE, claude),
    *((name, openai_like) for name in ("mistral/x", "deepseek/x", "groq/x", "openrouter/x")),
    *((name, openai_like) for name in ("hosted_vllm/x", "xai/x", "together_ai/x")),
]


# B22
@pytest.mark.parametrize(("name", "script"), PROVIDERS, ids=[name for name, _ in PROVIDERS])
def test_a_whole_answer_is_told_from_a_cut_one_for_every_provider(
    name: str, script: Any, loop: Loop, fake: FakeOpenAI
) -> None:
    base = fake.base_url if script is openai_like else fake.url

    whole = call(loop, fake, script(whole=True), model=name, max_retries=0, api_base=base)
    cut = call(loop, fake, script(whole=False), model=name, max_retries=0, api_base=base)

    assert (whole.text, whole.error, whole.finish.stop_reason) == ("Hello", None, "stop")
    assert (cut.text, failed(cut).reason, cut.assembly.finish) == ("Hello", "interrupted", None)
    assert "Traceback" not in str(cut.error)


@pytest.mark.parametrize(
    ("chunk", "stop_reason"),
    [
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "length"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "error"),
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "error"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "error"),
    ],
)
def test_gemini_s_own_finish_reasons_are_read(
    chunk: dict, stop_reason: str, loop: Loop, fake: FakeOpenAI
) -> None:
    script = lines(chunk, before="data: ", end="\n\n")

    outcome = call(loop, fake, script, model="gemini/gemini-2.5-flash", api_base=fake.url)

    assert outcome.finish.stop_reason == stop_reason
