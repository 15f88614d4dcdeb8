"""LiteLLM over a real server on loopback: what our stream makes of every way a call can go."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from nbdurable.blocks import Blob, ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock
from nbdurable.errors import ModelError
from nbdurable.models.base import (
    Assembly,
    CallDelta,
    Delta,
    Finish,
    Model,
    ModelRequest,
    RetryNotice,
    ToolSpec,
)
from nbdurable.models.litellm import LiteLLMModel, load, preload
from nbdurable.models.litellm_errors import TEXT_LIMIT, failure_of
from nbdurable.testing import FakeOpenAI, Step, steps
from tests.failure_table import FAILURES, Failure

KEY = "sk-proj-SECRETsecret1234"
HI = Message("user", (TextBlock("hi"),))


class Outcome:
    """All that one call gave."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.assembly = Assembly()
        self.error: ModelError | None = None

    def add(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self.assembly.add(delta)

    def of(self, kind: type) -> list[Any]:
        return [delta for delta in self.deltas if isinstance(delta, kind)]

    @property
    def blocks(self) -> tuple:
        return self.assembly.blocks()

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if block.type == "text")

    @property
    def calls(self) -> list:
        return [block for block in self.blocks if block.type == "tool_call"]

    @property
    def finish(self) -> Finish:
        assert self.assembly.finish is not None
        return self.assembly.finish


class Loop:
    """One event loop on one thread for all tests, as the package itself has."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def close(self) -> None:
        self.run(_settle())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _settle() -> None:
    import litellm

    await litellm.close_litellm_async_clients()
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    load()
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


def model_of(server: FakeOpenAI, name: str = "openai/fake", **defaults: object) -> LiteLLMModel:
    base = server.url if name.startswith("anthropic/") else server.base_url
    given = {"api_base": base, "api_key": KEY, "timeout": 20.0, **defaults}
    return LiteLLMModel(name, given, retry_base_s=0.01)


async def collect(model: Model, request: ModelRequest) -> Outcome:
    outcome = Outcome()
    try:
        async with aclosing(model.stream(request)) as deltas:
            async for delta in deltas:
                outcome.add(delta)
    except ModelError as exc:
        outcome.error = exc
    return outcome


def call(loop: Loop, server: FakeOpenAI, *script: Step, **params: object) -> Outcome:
    server.script(*script)
    name = str(params.pop("model", "openai/fake"))
    request = ModelRequest(messages=(HI,), params=params)
    return loop.run(collect(model_of(server, name), request))


def failed(outcome: Outcome) -> ModelError:
    assert outcome.error is not None
    return outcome.error


# -- the 33 kinds ------------------------------------------------------------------------------


# B16 B22 B25
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.name)
def test_each_kind_of_failure_keeps_what_came_and_says_why(
    case: Failure, loop: Loop, server: FakeOpenAI
) -> None:
    outcome = call(loop, server, *case.steps, **case.params)

    reason = outcome.error.reason if outcome.error else None
    status = outcome.error.status if outcome.error else None
    assert (reason, status, len(server.requests)) == (
        case.expected_reason,
        case.status,
        case.requests,
    )
    assert case.text_kept in (None, outcome.text)
    assert [(c.name, c.raw) for c in outcome.calls] == list(case.calls)
    thinking = [block.text for block in outcome.blocks if block.type == "thinking"]
    assert "".join(thinking) == case.thinking
    assert (outcome.assembly.finish is None) == (reason is not None)
    assert len(outcome.of(RetryNotice)) == case.requests - 1


def test_there_are_33_kinds() -> None:
    assert len(FAILURES) == len({case.name for case in FAILURES}) == 33


# B22 case 23
def test_a_call_cut_in_its_arguments_is_kept_raw_and_incomplete(
    loop: Loop, server: FakeOpenAI
) -> None:
    step = [*steps.tools(("read", '{"path": "a.txt"}'), size=6)[:4], steps.eof()]

    outcome = call(loop, server, step, max_retries=0)

    assert [(c.raw, c.complete) for c in outcome.calls] == [('{"path": "a.', False)]
    assert failed(outcome).reason == "interrupted"


# B22
def test_a_provider_that_litellm_would_finish_by_itself_is_seen_as_cut(loop: Loop) -> None:
    import litellm
    from litellm.types.utils import Delta as LiteDelta
    from litellm.types.utils import ModelResponseStream, StreamingChoices

    class Cut(litellm.CustomLLM):
        async def astreaming(self, *args: Any, **kwargs: Any) -> Any:
            yield ModelResponseStream(choices=[StreamingChoices(delta=LiteDelta(content="half"))])

    litellm.custom_provider_map = [{"provider": "cut-provider", "custom_handler": Cut()}]
    try:
        model = LiteLLMModel("cut-provider/x", {"max_retries": 0})
        outcome = loop.run(collect(model, ModelRequest(messages=(HI,))))
    finally:
        litellm.custom_provider_map = []

    assert outcome.text == "half"
    assert failed(outcome).reason == "interrupted"


# -- retries and time --------------------------------------------------------------------------


# B25
def test_nothing_is_tried_again_after_output(loop: Loop, server: FakeOpenAI) -> None:
    outcome = call(loop, server, [*steps.text("Hello")[:2], steps.drop()], max_retries=5)

    assert (len(server.requests), outcome.text) == (1, "Hell")
    assert failed(outcome).reason == "interrupted"


# B25
@pytest.mark.parametrize("ending", [steps.eof(), steps.drop(), steps.raw(b"data: {x}\n\n")])
def test_a_stream_cut_before_output_is_tried_again(
    ending: steps.Action, loop: Loop, server: FakeOpenAI
) -> None:
    first = [steps.delta(role="assistant", content=""), ending, steps.eof()]

    outcome = call(loop, server, first, steps.text("ok"))

    assert (len(server.requests), outcome.text, outcome.error) == (2, "ok", None)


# B25
def test_an_error_event_before_output_is_tried_again(loop: Loop, server: FakeOpenAI) -> None:
    event = b'data: {"error":{"message":"slow down","type":"rate_limit_error","code":429}}\n\n'

    outcome = call(loop, server, [steps.raw(event), steps.eof()], steps.text("ok"))

    assert [n.error for n in outcome.of(RetryNotice)] == ["slow down"]
    assert outcome.text == "ok"


# B25
def test_a_retry_is_announced_with_its_wait_and_cause(loop: Loop, server: FakeOpenAI) -> None:
    busy = steps.status(429, "busy", retry_after_s=0.2)

    outcome = call(loop, server, busy, steps.status(503, "down"), steps.text("ok"))

    first, second = outcome.of(RetryNotice)
    assert (first.attempt, first.delay_s, first.error) == (1, 0.2, "busy")
    assert (second.attempt, second.error) == (2, "down")
    assert 0.015 <= second.delay_s <= 0.025


# B25
def test_a_retry_after_beyond_a_minute_is_told_not_waited_for(
    loop: Loop, server: FakeOpenAI
) -> None:
    outcome = call(loop, server, steps.status(429, retry_after_s=3600), timeout=9999)

    error = failed(outcome)
    assert (len(server.requests), error.reason, error.retry_after_s) == (1, "rate_limit", 3600.0)


# B25
def test_a_retry_that_would_pass_the_deadline_is_not_waited_for(
    loop: Loop, server: FakeOpenAI
) -> None:
    outcome = call(loop, server, steps.status(503, retry_after_s=30), timeout=10)

    assert (len(server.requests), failed(outcome).retry_after_s) == (1, 30.0)


# B25
@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
def test_a_refused_request_is_sent_once(code: int, loop: Loop, server: FakeOpenAI) -> None:
    call(loop, server, steps.status(code), max_retries=3)

    assert len(server.requests) == 1


def test_an_empty_account_is_not_asked_again(loop: Loop, server: FakeOpenAI) -> None:
    outcome = call(loop, server, steps.status(429, "You exceeded your current quota"))

    assert (len(server.requests), failed(outcome).reason) == (1, "rate_limit")


def test_num_retries_counts_as_max_retries(loop: Loop, server: FakeOpenAI) -> None:
    call(loop, server, steps.status(500), num_retries=1)

    assert len(server.requests) == 2


def test_the_deadline_covers_a_stream_that_never_falls_silent(
    loop: Loop, server: FakeOpenAI
) -> None:
    def endless(body: dict) -> Iterator[steps.Action]:
        while True:
            yield steps.delta(content="x")
            yield steps.sleep(0.05)

    outcome = call(loop, server, endless, timeout=0.5)

    error = failed(outcome)
    assert (error.reason, error.status, len(server.requests)) == ("timeout", None, 1)
    assert str(error) == (
        "model 'openai/fake' failed: no whole answer came in 0.5 s; raise timeout= (seconds)"
    )
    server.wait_for_disconnects(1)


# -- cancel ------------------------------------------------------------------------------------


# B22 B23
@pytest.mark.parametrize("before_hang", [[], [steps.delta(content="a")]], ids=["headers", "text"])
def test_cancelling_the_task_closes_the_connection(
    before_hang: list, loop: Loop, server: FakeOpenAI
) -> None:
    server.script([*before_hang, steps.hang()])

    async def cancelled() -> bool:
        task = asyncio.create_task(collect(model_of(server), ModelRequest(messages=(HI,))))
        await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert loop.run(cancelled())
    server.wait_for_disconnects(1)


# B22
def test_closing_the_stream_closes_the_connection(loop: Loop, server: FakeOpenAI) -> None:
    server.script([steps.delta(content="a"), steps.hang()])

    async def first_only() -> Delta:
        async with aclosing(model_of(server).stream(ModelRequest(messages=(HI,)))) as deltas:
            return await anext(deltas)

    assert loop.run(first_only()).text == "a"
    server.wait_for_disconnects(1)


# B22
def test_cancelling_the_wait_before_a_retry_ends_it(loop: Loop, server: FakeOpenAI) -> None:
    server.script(steps.status(429, retry_after_s=50))

    async def cancelled() -> tuple[bool, list]:
        noticed, seen = asyncio.Event(), []

        async def read() -> None:
            model = model_of(server, timeout=600)
            async with aclosing(model.stream(ModelRequest(messages=(HI,)))) as deltas:
                async for delta in deltas:
                    seen.append(delta)
                    noticed.set()

        task = asyncio.create_task(read())
        await noticed.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled(), seen

    was_cancelled, seen = loop.run(cancelled())
    assert was_cancelled
    assert [type(delta) for delta in seen] == [RetryNotice]


# -- what an answer carries --------------------------------------------------------------------


def test_usage_is_disjoint(loop: Loop, server: FakeOpenAI) -> None:
    counts = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 30},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }

    usage = call(loop, server, steps.text("42", counts=counts)).finish.usage

    assert usage is not None
    assert usage.to_dict() == {
        "input_tokens": 70,
        "output_tokens": 30,
        "cache_read_tokens": 30,
        "cache_write_tokens": 0,
        "reasoning_tokens": 20,
    }


@pytest.mark.parametrize("stream", [True, False])
def test_cost_is_known_for_a_model_with_a_price(
    stream: bool, loop: Loop, server: FakeOpenAI
) -> None:
    finish = call(loop, server, steps.text("42"), model="openai/gpt-4o-mini", stream=stream).finish

    assert finish.cost_usd == pytest.approx(11 * 0.15e-6 + 7 * 0.6e-6)


@pytest.mark.parametrize("stream", [True, False])
def test_cost_is_none_for_a_model_without_a_price(
    stream: bool, loop: Loop, server: FakeOpenAI
) -> None:
    finish = call(loop, server, steps.text("42"), stream=stream).finish

    assert (finish.cost_usd, finish.usage is None) == (None, False)


# B64
def test_a_provider_s_nan_is_none(loop: Loop, server: FakeOpenAI) -> None:
    counts = {**steps.USAGE, "cost": float("nan")}

    finish = call(loop, server, steps.text("42", counts=counts)).finish

    assert finish.cost_usd is None


def test_usage_that_the_provider_did_not_report_is_unknown(loop: Loop, server: FakeOpenAI) -> None:
    finish = call(loop, server, steps.text("42", counts=None), model="openai/gpt-4o-mini").finish

    assert (finish.usage, finish.cost_usd) == (None, None)


def test_the_answering_model_and_provider_are_those_reported(
    loop: Loop, server: FakeOpenAI
) -> None:
    chunk = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "real-7",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}],
    }
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"

    finish = call(loop, server, [steps.raw(data), steps.done()]).finish

    assert (finish.answered_by, finish.provider, finish.fingerprint) == ("real-7", "openai", "fp_1")


@pytest.mark.parametrize(
    ("word", "stop_reason"), [("stop", "stop"), ("length", "length"), ("banana", "stop")]
)
def test_finish_reasons_become_ours(
    word: str, stop_reason: str, loop: Loop, server: FakeOpenAI
) -> None:
    finish = call(loop, server, steps.text("ab", reason=word)).finish

    assert (finish.stop_reason, finish.error) == (stop_reason, None)


def test_calls_under_a_finish_of_stop_are_tool_calls(loop: Loop, server: FakeOpenAI) -> None:
    step = [a for a in steps.tools(("f", {})) if a.kind != "finish"]

    finish = call(loop, server, [*step[:-2], steps.finish("stop"), *step[-2:]]).finish

    assert finish.stop_reason == "tool_calls"


def test_a_content_filter_is_an_error_that_keeps_the_text(loop: Loop, server: FakeOpenAI) -> None:
    outcome = call(loop, server, steps.text("ab", reason="content_filter"))

    assert (outcome.text, outcome.finish.stop_reason) == ("ab", "error")
    assert outcome.finish.error == (
        "the provider withheld the answer (content_filter); change the input"
    )


def test_a_refusal_is_an_error_that_keeps_the_text(loop: Loop, server: FakeOpenAI) -> None:
    step = [steps.delta(role="assistant", refusal="I cannot"), steps.finish(), steps.done()]

    outcome = call(loop, server, step)

    assert (outcome.text, outcome.finish.stop_reason) == ("I cannot", "error")


@pytest.mark.parametrize("stream", [True, False])
def test_an_image_in_the_answer_is_an_image_block(
    stream: bool, loop: Loop, server: FakeOpenAI
) -> None:
    url = {"url": "data:image/png;base64,iVBORw0KGgo="}
    part = {"type": "image_url", "image_url": url, "index": 0}
    step = [steps.delta(role="assistant", content="pic", images=[part]), *steps.text("")[1:]]

    outcome = call(loop, server, step, stream=stream)

    picture = ImageBlock(Blob.of(b"\x89PNG\r\n\x1a\n"), "image/png")
    assert outcome.blocks == (TextBlock("pic"), picture)


# B16
def test_an_answer_in_one_piece_gives_the_same_blocks(loop: Loop, server: FakeOpenAI) -> None:
    step = steps.tools(("add", {"a": 1}), ("mul", {"b": 2}), content="So:")

    streamed = call(loop, server, step)
    whole = call(loop, server, step, stream=False)

    assert whole.blocks == streamed.blocks
    assert whole.finish.stop_reason == streamed.finish.stop_reason == "tool_calls"
    assert whole.finish.usage == streamed.finish.usage
    assert server.requests[-1].body.get("stream") in (None, False)


# -- Anthropic ---------------------------------------------------------------------------------


def anthropic(*blocks: tuple[dict, list[dict]], stop_reason: str = "end_turn") -> Step:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 50,
        "output_tokens": 1,
    }
    start = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
    events: list[dict] = [{"type": "message_start", "message": {**start, "model": "claude-real-1"}}]
    for index, (block, deltas) in enumerate(blocks):
        place = {"index": index}
        events.append({"type": "content_block_start", **place, "content_block": block})
        events += [{"type": "content_block_delta", **place, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", **place})
    stop = {"stop_reason": stop_reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 40}})
    events.append({"type": "message_stop"})
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return [steps.raw("".join(lines).encode()), steps.eof()]


THOUGHT = (
    {"type": "thinking", "thinking": "", "signature": ""},
    [
        {"type": "thinking_delta", "thinking": "hm "},
        {"type": "thinking_delta", "thinking": "so"},
        {"type": "signature_delta", "signature": "SIG=="},
    ],
)
REDACTED = ({"type": "redacted_thinking", "data": "OPAQUE"}, [])
SAID = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Hello"}])
SEARCH = (
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    [{"type": "input_json_delta", "partial_json": '{"query": "x"}'}],
)
CLAUDE = "anthropic/claude-sonnet-4-5"


# B46
def test_signed_thinking_is_kept_and_sent_back_byte_for_byte(
    loop: Loop, server: FakeOpenAI
) -> None:
    outcome = call(loop, server, anthropic(THOUGHT, REDACTED, SAID), model=CLAUDE)
    answer = Message("assistant", outcome.blocks)
    request = ModelRequest(messages=(HI, answer, HI), params={"max_tokens": 50})
    loop.run(collect(model_of(server, CLAUDE), request))

    assert outcome.blocks == (
        ThinkingBlock("hm so", "SIG=="),
        ThinkingBlock("", None, "OPAQUE"),
        TextBlock("Hello"),
    )
    sent = server.requests[-1].body["messages"][1]["content"]
    assert sent[:2] == [
        {"type": "thinking", "thinking": "hm so", "signature": "SIG=="},
        {"type": "redacted_thinking", "data": "OPAQUE"},
    ]


# B30
def test_a_call_that_the_provider_ran_is_marked_and_asks_for_no_tool(
    loop: Loop, server: FakeOpenAI
) -> None:
    outcome = call(loop, server, anthropic(SEARCH, SAID), model=CLAUDE)

    (found,) = outcome.calls
    assert (found.id, found.name, found.provider_run) == ("srvtoolu_1", "web_search", True)
    assert found.arguments == {"query": "x"}
    assert outcome.finish.stop_reason == "stop"


def test_anthropic_usage_is_disjoint_too(loop: Loop, server: FakeOpenAI) -> None:
    finish = call(loop, server, anthropic(SAID), model=CLAUDE).finish

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
def test_claude_reads_images_inside_tool_results(loop: Loop, server: FakeOpenAI) -> None:
    image = ImageBlock(Blob.of(b"\x89PNG"))
    asked = call(
        loop,
        server,
        anthropic(({"type": "tool_use", "id": "t1", "name": "plot", "input": {}}, [])),
        model=CLAUDE,
    )
    result = Message("tool", (ToolResultBlock("t1", (TextBlock("done"), image)),))
    history = (HI, Message("assistant", asked.blocks), result)
    tools = (ToolSpec("plot", "Plot it.", {"type": "object", "properties": {}}),)
    request = ModelRequest(messages=history, tools=tools, params={"max_tokens": 50})

    loop.run(collect(model_of(server, CLAUDE), request))

    sent = server.requests[-1].body["messages"][-1]["content"]
    assert [part["type"] for part in sent] == ["tool_result"]
    assert [part["type"] for part in sent[0]["content"]] == ["text", "image"]


def test_an_overloaded_event_before_output_is_tried_again(loop: Loop, server: FakeOpenAI) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    event = f"event: error\ndata: {json.dumps(error)}\n\n".encode()

    outcome = call(loop, server, [steps.raw(event), steps.eof()], anthropic(SAID), model=CLAUDE)

    assert ([n.error for n in outcome.of(RetryNotice)], outcome.text) == (["Overloaded"], "Hello")


# -- the request -------------------------------------------------------------------------------


def test_the_request_carries_system_tools_and_parameters(loop: Loop, server: FakeOpenAI) -> None:
    tool = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
    request = ModelRequest(
        messages=(HI,), system="Be brief.", tools=(tool,), params={"temperature": 0.2}
    )

    loop.run(collect(model_of(server, temperature=0.9, seed=7), request))

    body = server.requests[-1].body
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["tools"] == [{"type": "function", "function": tool.to_dict()}]
    assert (body["temperature"], body["seed"]) == (0.2, 7)
    assert body["stream_options"] == {"include_usage": True}


# B47
def test_describe_shows_the_request_and_no_secret(server: FakeOpenAI) -> None:
    model = LiteLLMModel(
        "openai/fake",
        {
            "api_key": KEY,
            "api_base": "https://me:hunter22@host.example:8443/v1?token=abcd",
            "extra_headers": {"X-Auth": "letmein"},
            "extra_body": {"password": "swordfish"},
            "aws_secret_access_key": "AWSSECRET",
            "temperature": 0.5,
        },
    )

    shown = model.describe(ModelRequest(messages=(HI,), system="S"))

    text = json.dumps(shown)
    for secret in (KEY, "hunter22", "letmein", "swordfish", "AWSSECRET", "abcd"):
        assert secret not in text
    assert shown["api_key"] == shown["aws_secret_access_key"] == "***"
    assert shown["api_base"] == "https://host.example:8443/v1"
    assert shown["extra_headers"] == {"X-Auth": "***"}
    assert (shown["model"], shown["temperature"]) == ("openai/fake", 0.5)
    assert shown["messages"][1] == {"role": "user", "content": "hi"}


# B47
def test_describe_gives_the_messages_that_stream_sends(loop: Loop, server: FakeOpenAI) -> None:
    model, request = model_of(server), ModelRequest(messages=(HI,), system="S")

    shown = model.describe(request)
    loop.run(collect(model, request))

    assert server.requests[-1].body["messages"] == shown["messages"]


# -- secrets -----------------------------------------------------------------------------------


# B69
@pytest.mark.parametrize("code", [400, 401, 429, 500])
def test_no_error_holds_a_secret_of_the_request(
    code: int, loop: Loop, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "token-of-the-environment")
    echo = f"bad key {KEY} header letmein99 body swordfish env token-of-the-environment"
    params = {
        "extra_headers": {"X-Auth": "letmein99"},
        "extra_body": {"deep": [{"password": "swordfish"}]},
        "max_retries": 1,
    }

    outcome = call(loop, server, steps.status(code, echo, retry_after_s=0), **params)

    error = failed(outcome)
    told = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    told += repr(outcome.deltas)
    for secret in (KEY, "letmein99", "swordfish", "token-of-the-environment"):
        assert secret not in told
    assert error.__cause__ is None and error.__context__ is None
    assert "bad key ***" in str(error)


# B69
def test_reprs_hold_no_parameters() -> None:
    model = LiteLLMModel("openai/fake", {"api_key": KEY})
    request = ModelRequest(messages=(HI,), params={"api_key": KEY})

    assert repr(model) == "LiteLLMModel('openai/fake')"
    assert KEY not in repr(request)


# B69
@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-abcd****wxyz99",
        "sent Authorization: Bearer eyJhbGciOi.J9",
        "cannot reach https://me:hunter22@host/v1",
        "key AIzaSyD-1234567890abcdef is bad",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    failure = failure_of(RuntimeError(text), frozenset(), None)

    assert "***" in failure.text
    for secret in ("wxyz99", "eyJhbGciOi", "hunter22", "AIzaSyD"):
        assert secret not in failure.text


def test_a_provider_s_long_text_is_one_short_line(loop: Loop, server: FakeOpenAI) -> None:
    outcome = call(loop, server, steps.status(400, "line one\nline two " + "x" * 5000))

    text = str(failed(outcome))
    assert "\n" not in text
    assert "line one line two xxx" in text
    assert len(text) < TEXT_LIMIT + 150


def test_an_error_names_model_status_cause_and_what_to_do(loop: Loop, server: FakeOpenAI) -> None:
    outcome = call(loop, server, steps.status(401, "no such key"))

    assert str(failed(outcome)) == (
        "model 'openai/fake' failed with status 401: no such key; check the provider's API key"
    )


# -- check -------------------------------------------------------------------------------------


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


# B7
def test_check_says_that_no_provider_can_be_named() -> None:
    with pytest.raises(
        ModelError, match=r"no provider can be named for model 'nosuch'; give one in front"
    ) as caught:
        LiteLLMModel("nosuch").check()

    assert caught.value.reason == "unavailable"


# B7
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    ],
)
def test_check_names_the_missing_key(name: str, key: str, no_keys: None) -> None:
    with pytest.raises(
        ModelError, match=rf"model '{name}' needs a key: {key} is not set"
    ) as caught:
        LiteLLMModel(name).check()

    assert caught.value.reason == "unavailable"


# B7
@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("openai/gpt-4o", {"api_key": "k"}),
        ("openai/gpt-4o", {"api_base": "http://127.0.0.1:1/v1"}),
        ("ollama/llama3", {}),
        ("bedrock/anthropic.claude-v2", {}),
        ("hosted_vllm/x", {}),
    ],
)
def test_check_passes_what_needs_no_key_of_ours(name: str, defaults: dict, no_keys: None) -> None:
    LiteLLMModel(name, defaults).check()


# B7
def test_check_takes_a_key_that_the_request_brings(no_keys: None) -> None:
    LiteLLMModel("openai/gpt-4o").check({"api_key": "k"})


# B7
def test_check_takes_a_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    LiteLLMModel("openai/gpt-4o").check()


# -- counts and prices -------------------------------------------------------------------------


def test_tokens_are_counted_with_system_and_tools() -> None:
    model = LiteLLMModel("openai/gpt-4o-mini")
    tool = ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {}})

    plain = model.count_tokens(ModelRequest(messages=(HI,)))
    with_system = model.count_tokens(ModelRequest(messages=(HI,), system="Be brief."))
    with_tools = model.count_tokens(ModelRequest(messages=(HI,), tools=(tool,)))

    assert 1 < plain < with_system
    assert plain < with_tools


def test_limits_are_known_for_known_models_only() -> None:
    assert LiteLLMModel("openai/gpt-4o-mini").context_limit() == 128_000
    assert LiteLLMModel("openai/no-such-model").context_limit() is None


# B26
def test_the_most_a_call_can_cost_counts_the_output_limit() -> None:
    model = LiteLLMModel("openai/gpt-4o-mini")
    small = ModelRequest(messages=(HI,), params={"max_tokens": 1000})
    double = ModelRequest(messages=(HI,), params={"max_tokens": 1000, "n": 2})

    one, two = model.max_cost_usd(small), model.max_cost_usd(double)

    assert one is not None and two is not None
    assert two - one == pytest.approx(1000 * 0.6e-6)
    assert one == pytest.approx(1000 * 0.6e-6 + model.count_tokens(small) * 0.15e-6)


# B26
def test_the_most_a_call_can_cost_counts_the_priority_price_only_when_asked() -> None:
    model = LiteLLMModel("openai/gpt-4o-mini", {"max_tokens": 1000})

    usual = model.max_cost_usd(ModelRequest(messages=(HI,)))
    fast = model.max_cost_usd(ModelRequest(messages=(HI,), params={"service_tier": "priority"}))

    assert usual is not None and fast is not None
    assert usual < fast


# B26
def test_the_most_a_call_can_cost_is_unknown_without_price_or_limit() -> None:
    prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
    request = ModelRequest(messages=(HI,))

    assert LiteLLMModel("openai/no-such-model").max_cost_usd(request) is None
    assert LiteLLMModel("openai/no-such-model", prices).max_cost_usd(request) is None
    limited = LiteLLMModel("openai/no-such-model", {**prices, "max_tokens": 10})
    assert limited.max_cost_usd(request) == pytest.approx(
        limited.count_tokens(request) * 1e-6 + 10 * 2e-6
    )


# -- the library -------------------------------------------------------------------------------


def test_the_model_keeps_to_the_protocol() -> None:
    assert isinstance(LiteLLMModel("openai/x"), Model)


def test_importing_the_module_does_not_import_litellm() -> None:
    code = "import sys, nbdurable.models.litellm; print('litellm' in sys.modules)"

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "False"


def test_loading_leaves_stderr_stdout_and_dotenv_alone(tmp_path: Any) -> None:
    (tmp_path / ".env").write_text("NBD_FROM_DOTENV=1\n")
    code = (
        "import os, logging, threading\n"
        "from nbdurable.models.litellm import preload, load\n"
        "thread = preload(); assert thread.daemon; thread.join()\n"
        "load()\n"
        "logging.getLogger('LiteLLM').warning('noise')\n"
        "assert 'NBD_FROM_DOTENV' not in os.environ\n"
    )

    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": "/usr/bin:/bin"},
    )

    assert (out.returncode, out.stdout, out.stderr) == (0, "", "")


def test_preload_leaves_no_handler_of_litellm_s_own() -> None:
    preload().join()

    handlers = logging.getLogger("LiteLLM").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]


def test_a_mock_of_litellm_s_own_is_a_whole_answer(loop: Loop) -> None:
    model = LiteLLMModel("openai/fake", {"mock_response": "hello there", "api_key": KEY})

    outcome = loop.run(collect(model, ModelRequest(messages=(HI,))))

    assert (outcome.text, outcome.error) == ("hello there", None)


def test_a_call_delta_without_an_id_belongs_to_the_last_call_of_its_index(
    loop: Loop, server: FakeOpenAI
) -> None:
    step = steps.tools(("f", '{"a":1}'), ("g", '{"b":2}'), size=3, same_index=True)

    outcome = call(loop, server, step)

    assert {d.key for d in outcome.of(CallDelta)} == {0, 1}
    assert [(c.id, c.raw) for c in outcome.calls] == [
        ("call_0", '{"a":1}'),
        ("call_1", '{"b":2}'),
    ]
