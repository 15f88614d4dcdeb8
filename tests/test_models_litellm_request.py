"""LiteLLM over a real server: the request, its price, and that no secret gets out."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator

import pytest

from nbdurable.errors import ModelError
from nbdurable.models.base import (
    ModelRequest,
    ToolSpec,
)
from nbdurable.models.litellm import LiteLLMModel
from nbdurable.models.litellm_errors import TEXT_LIMIT, failure_of
from nbdurable.testing import FakeOpenAI, steps
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


# -- the request -------------------------------------------------------------------------------


def test_the_request_carries_system_tools_and_parameters(loop: Loop, fake: FakeOpenAI) -> None:
    tool = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
    request = ModelRequest(
        messages=(HI,), system="Be brief.", tools=(tool,), params={"temperature": 0.2}
    )

    loop.run(collect(model_of(fake, temperature=0.9, seed=7), request))

    body = fake.requests[-1].body
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["tools"] == [{"type": "function", "function": tool.to_dict()}]
    assert (body["temperature"], body["seed"]) == (0.2, 7)
    assert body["stream_options"] == {"include_usage": True}


# B47
def test_describe_shows_the_request_and_no_secret(fake: FakeOpenAI) -> None:
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
def test_describe_gives_the_messages_that_stream_sends(loop: Loop, fake: FakeOpenAI) -> None:
    model, request = model_of(fake), ModelRequest(messages=(HI,), system="S")

    shown = model.describe(request)
    loop.run(collect(model, request))

    assert fake.requests[-1].body["messages"] == shown["messages"]


# -- secrets -----------------------------------------------------------------------------------


# B69
@pytest.mark.parametrize("code", [400, 401, 429, 500])
def test_no_error_holds_a_secret_of_the_request(
    code: int, loop: Loop, fake: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "token-of-the-environment")
    echo = f"bad key {KEY} header letmein99 body swordfish env token-of-the-environment"
    params = {
        "extra_headers": {"X-Auth": "letmein99"},
        "extra_body": {"deep": [{"password": "swordfish"}]},
        "max_retries": 1,
    }

    outcome = call(loop, fake, steps.status(code, echo, retry_after_s=0), **params)

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


def test_a_provider_s_long_text_is_one_short_line(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, steps.status(400, "line one\nline two " + "x" * 5000))

    text = str(failed(outcome))
    assert "\n" not in text
    assert "line one line two xxx" in text
    assert len(text) < TEXT_LIMIT + 150


def test_an_error_names_model_status_cause_and_what_to_do(loop: Loop, fake: FakeOpenAI) -> None:
    outcome = call(loop, fake, steps.status(401, "no such key"))

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
def test_a_misspelt_local_is_told_of() -> None:
    with pytest.raises(ModelError, match=r"model 'lokal'; did you mean 'local'\? else give one"):
        LiteLLMModel("lokal").check()


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
