"""LiteLLM over a real server: what our stream makes of every way a call can go."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from nbdurable.models.base import (
    CallDelta,
    Delta,
    Model,
    ModelRequest,
    RetryNotice,
)
from nbdurable.models.litellm import LiteLLMModel, preload
from nbdurable.testing import FakeOpenAI, steps
from tests.failure_table import FAILURES, Failure
from tests.litellm_calls import (
    HI,
    KEY,
    Loop,
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


# -- the 33 kinds ------------------------------------------------------------------------------


# B16 B22 B25
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.name)
def test_each_kind_of_failure_keeps_what_came_and_says_why(
    case: Failure, loop: Loop, fake: FakeOpenAI
) -> None:
    outcome = call(loop, fake, *case.steps, **case.params)

    reason = outcome.error.reason if outcome.error else None
    status = outcome.error.status if outcome.error else None
    assert (reason, status, len(fake.requests)) == (
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
    loop: Loop, fake: FakeOpenAI
) -> None:
    step = [*steps.tools(("read", '{"path": "a.txt"}'), size=6)[:4], steps.eof()]

    outcome = call(loop, fake, step, max_retries=0)

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
def test_nothing_is_tried_again_after_output(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, [*steps.text("Hello")[:2], steps.drop()], max_retries=5)

    assert (len(fake.requests), outcome.text) == (1, "Hell")
    assert failed(outcome).reason == "interrupted"


# B25
@pytest.mark.parametrize("ending", [steps.eof(), steps.drop(), steps.raw(b"data: {x}\n\n")])
def test_a_stream_cut_before_output_is_tried_again(
    ending: steps.Action, loop: Loop, fake: FakeOpenAI
) -> None:
    first = [steps.delta(role="assistant", content=""), ending, steps.eof()]

    outcome = call(loop, fake, first, steps.text("ok"))

    assert (len(fake.requests), outcome.text, outcome.error) == (2, "ok", None)


# B25
def test_an_error_event_before_output_is_tried_again(loop: Loop, fake: FakeOpenAI) -> None:
    event = b'data: {"error":{"message":"slow down","type":"rate_limit_error","code":429}}\n\n'

    outcome = call(loop, fake, [steps.raw(event), steps.eof()], steps.text("ok"))

    assert [n.error for n in outcome.of(RetryNotice)] == ["slow down"]
    assert outcome.text == "ok"


# B25
def test_a_retry_is_announced_with_its_wait_and_cause(loop: Loop, fake: FakeOpenAI) -> None:
    busy = steps.status(429, "busy", retry_after_s=0.2)

    outcome = call(loop, fake, busy, steps.status(503, "down"), steps.text("ok"))

    first, second = outcome.of(RetryNotice)
    assert (first.attempt, first.delay_s, first.error) == (1, 0.2, "busy")
    assert (second.attempt, second.error) == (2, "down")
    assert 0.015 <= second.delay_s <= 0.025


# B25
def test_a_retry_after_beyond_a_minute_is_told_not_waited_for(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, steps.status(429, retry_after_s=3600), timeout=9999)

    error = failed(outcome)
    assert (len(fake.requests), error.reason, error.retry_after_s) == (1, "rate_limit", 3600.0)


# B25
def test_a_retry_that_would_pass_the_deadline_is_not_waited_for(
    loop: Loop, fake: FakeOpenAI
) -> None:
    outcome = call(loop, fake, steps.status(503, retry_after_s=30), timeout=10)

    assert (len(fake.requests), failed(outcome).retry_after_s) == (1, 30.0)


# B25
@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
def test_a_refused_request_is_sent_once(code: int, loop: Loop, fake: FakeOpenAI) -> None:
    call(loop, fake, steps.status(code), max_retries=3)

    assert len(fake.requests) == 1


def test_an_empty_account_is_not_asked_again(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, steps.status(429, "You exceeded your current quota"))

    assert (len(fake.requests), failed(outcome).reason) == (1, "rate_limit")


def test_num_retries_counts_as_max_retries(loop: Loop, fake: FakeOpenAI) -> None:
    call(loop, fake, steps.status(500), num_retries=1)

    assert len(fake.requests) == 2


def test_the_deadline_covers_a_stream_that_never_falls_silent(loop: Loop, fake: FakeOpenAI) -> None:
    def endless(body: dict) -> Iterator[steps.Action]:
        while True:
            yield steps.delta(content="x")
            yield steps.sleep(0.05)

    outcome = call(loop, fake, endless, timeout=0.5)

    error = failed(outcome)
    assert (error.reason, error.status, len(fake.requests)) == ("timeout", None, 1)
    assert str(error) == (
        "model 'openai/fake' failed: no whole answer came in 0.5 s; raise timeout= (seconds)"
    )
    fake.wait_for_disconnects(1)


# -- cancel ------------------------------------------------------------------------------------


# B22 B23
@pytest.mark.parametrize("before_hang", [[], [steps.delta(content="a")]], ids=["headers", "text"])
def test_cancelling_the_task_closes_the_connection(
    before_hang: list, loop: Loop, fake: FakeOpenAI
) -> None:
    fake.script([*before_hang, steps.hang()])

    async def cancelled() -> bool:
        task = asyncio.create_task(collect(model_of(fake), ModelRequest(messages=(HI,))))
        await asyncio.to_thread(fake.wait_for_requests, 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert loop.run(cancelled())
    fake.wait_for_disconnects(1)


# B22
def test_closing_the_stream_closes_the_connection(loop: Loop, fake: FakeOpenAI) -> None:
    fake.script([steps.delta(content="a"), steps.hang()])

    async def first_only() -> Delta:
        async with aclosing(model_of(fake).stream(ModelRequest(messages=(HI,)))) as deltas:
            return await anext(deltas)

    assert loop.run(first_only()).text == "a"
    fake.wait_for_disconnects(1)


# B22
def test_cancelling_the_wait_before_a_retry_ends_it(loop: Loop, fake: FakeOpenAI) -> None:
    fake.script(steps.status(429, retry_after_s=50))

    async def cancelled() -> tuple[bool, list]:
        noticed, seen = asyncio.Event(), []

        async def read() -> None:
            model = model_of(fake, timeout=600)
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
    loop: Loop, fake: FakeOpenAI
) -> None:
    step = steps.tools(("f", '{"a":1}'), ("g", '{"b":2}'), size=3, same_index=True)

    outcome = call(loop, fake, step)

    assert {d.key for d in outcome.of(CallDelta)} == {0, 1}
    assert [(c.id, c.raw) for c in outcome.calls] == [
        ("call_0", '{"a":1}'),
        ("call_1", '{"b":2}'),
    ]
