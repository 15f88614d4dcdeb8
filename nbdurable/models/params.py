"""Which parameters are recorded, and which names are known at all.

The one idea: an allow-list. A parameter that is not on it is passed on to the provider and at most
its name is kept, so that no key or header can reach a store (B69).
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping

from nbdurable.blocks import Json
from nbdurable.schemas import Schema
from nbdurable.wire import dumps

RECORDED = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "n",
        "max_tokens",
        "max_completion_tokens",
        "seed",
        "stop",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "reasoning_effort",
        "thinking",
        "verbosity",
        "presence_penalty",
        "frequency_penalty",
        "repeat_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "modalities",
        "prediction",
        "service_tier",
        "web_search_options",
    }
)

PASSED_ON = frozenset(
    {
        "api_key",
        "api_base",
        "base_url",
        "api_version",
        "api_type",
        "organization",
        "project",
        "headers",
        "extra_headers",
        "extra_body",
        "extra_query",
        "timeout",
        "stream",
        "stream_options",
        "stream_timeout",
        "max_retries",
        "num_retries",
        "drop_params",
        "custom_llm_provider",
        "metadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "store",
        "audio",
        "fallbacks",
        "allowed_openai_params",
        "additional_drop_params",
        "mock_response",
        "input_cost_per_token",
        "output_cost_per_token",
        "base_model",
        "ssl_verify",
        "deployment_id",
        "cache_control_injection_points",
    }
)
# What the verbs take themselves: a misspelled one arrives here.
_OWN = frozenset(
    "input model system tools schema at n name wait move show effects budget_usd replay "
    "replay_model publisher hooks max_steps compact_above concurrency start fresh params".split()
)
_PREFIXES = ("aws_", "vertex_", "azure_", "watsonx_", "sagemaker_", "litellm_", "hf_")


def recorded(params: Mapping[str, object]) -> dict[str, Json]:
    """Return what of `params` is recorded: allowed names, with values as plain JSON.

    A pydantic class under ``response_format`` is recorded as the format with its JSON schema.
    """
    return {name: _plain(value) for name, value in params.items() if name in RECORDED}


def recorded_json(params: Mapping[str, object]) -> str:
    """Return `recorded` as canonical JSON text, names sorted.

    Raises
    ------
    BadPayload
        A recorded value is not JSON.
    """
    return dumps(dict(sorted(recorded(params).items())))


def _plain(value: object) -> Json:
    return Schema.of(value).response_format if hasattr(value, "model_json_schema") else value


def is_transport(name: str) -> bool:
    """Return whether a parameter is known to say how to reach a provider, not what to ask it."""
    return name in PASSED_ON or name.startswith(_PREFIXES)


def warn_unknown(params: Mapping[str, object], stacklevel: int = 3) -> None:
    """Warn of each name that no provider is known to take, with the nearest known one (B25)."""
    known = RECORDED | PASSED_ON | _OWN
    for name in params:
        if name in RECORDED or is_transport(name):
            continue
        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "it is passed on as it is"
        warnings.warn(f"parameter {name!r} is not known; {hint}", stacklevel=stacklevel)
