"""Any model that LiteLLM can reach.

Owns the call: retries, the deadline, and the proof that an answer really ended. Reading chunks is
`litellm_stream`'s, telling errors apart `litellm_errors`'s, messages `chat_format`'s. The one idea:
LiteLLM is asked for one plain attempt, and whatever it would do on its own (retry, wait, finish a
cut answer) is switched off, so that every attempt is seen and nothing is made up.

Importing this module does not import LiteLLM, which takes seconds; `preload` begins that early.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
import random
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nbdurable.blocks import Json
from nbdurable.errors import ModelError, shown
from nbdurable.models.base import Delta, ModelRequest, RetryNotice
from nbdurable.models.chat_format import to_chat
from nbdurable.models.litellm_errors import Failure, StreamCut, failure_of
from nbdurable.models.litellm_stream import Reader, Watch, finite
from nbdurable.models.params import recorded
from nbdurable.secrets import masked, secrets_of

TIMEOUT_S = 600.0
MAX_RETRIES = 2
LONGEST_WAIT_S = 60.0  # a longer Retry-After is told, not waited for
RETRY_BASE_S = 0.5

_IMAGES_IN_RESULTS = frozenset({"anthropic"})  # providers that read images in tool results
_KEY_ENDINGS = ("_API_KEY", "_TOKEN")  # other settings of a provider have defaults or logins


# -- the library -------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def load() -> Any:
    """Import LiteLLM with its side effects switched off, and return it.

    Raises
    ------
    ModelError
        It cannot be imported (reason ``unavailable``).
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # else it loads ./.env into the environment
    try:
        import litellm
    except ImportError as exc:
        raise ModelError(
            f"litellm cannot be imported: {exc}; install it with pip install 'litellm<1.111'",
            reason="unavailable",
        ) from exc
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True  # counting tokens must not ask the network
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        _silence(logging.getLogger(name))
    return litellm


def _silence(logger: logging.Logger) -> None:
    """Take LiteLLM's own handler away; records still reach handlers that a user set up."""
    for handler in list(logger.handlers):
        if type(handler).__module__.startswith("litellm"):
            logger.removeHandler(handler)
    logger.addHandler(logging.NullHandler())
    if logger.level == logging.NOTSET:  # its debug records hold whole requests, tokens and all
        logger.setLevel(logging.INFO)


def preload() -> threading.Thread:
    """Begin to import LiteLLM on a daemon thread, so that the first call does not wait for it."""

    def run() -> None:
        try:
            load()
        except ModelError:
            return  # the first call says so

    thread = threading.Thread(target=run, name="nbdurable-preload", daemon=True)
    thread.start()
    return thread


# -- the model ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, ready to be sent; its arguments may hold keys."""

    arguments: dict[str, Any] = field(repr=False)
    retries: int
    timeout_s: float | None
    deadline: float | None
    secrets: frozenset[str] = field(repr=False)


class LiteLLMModel:
    """A model by its LiteLLM name, such as ``openai/gpt-5-mini``.

    Parameters
    ----------
    name : str
        The name, with its provider.
    defaults : mapping
        Parameters for every call; those of a request win. ``timeout`` (600) is a deadline in
        seconds for the whole call, retries included; ``max_retries`` (2) counts attempts after the
        first; ``stream=False`` asks for one whole answer. Everything else goes to the provider.
    retry_base_s : float
        The first wait before a retry, in seconds; it doubles each time.
    """

    def __init__(
        self,
        name: str,
        defaults: Mapping[str, object] | None = None,
        *,
        retry_base_s: float = RETRY_BASE_S,
    ) -> None:
        self._name = name
        self._defaults = dict(defaults or {})
        self._retry_base_s = retry_base_s

    def __repr__(self) -> str:
        return f"LiteLLMModel({self._name!r})"

    @property
    def name(self) -> str:
        """The requested model name."""
        return self._name

    # -- before the call ---------------------------------------------------------------------

    def check(self, params: Mapping[str, object] | None = None) -> None:
        """Raise `ModelError` (reason ``unavailable``) saying what is missing, if anything (B7).

        Parameters
        ----------
        params : mapping or None
            Parameters that a request will bring, such as ``api_key``.
        """
        litellm = load()
        given = {**self._defaults, **(params or {})}
        provider = self._provider(litellm, given)
        if provider is None:
            near = difflib.get_close_matches(self._name, ["local"])
            hint = "did you mean 'local'? else " if near else ""
            raise ModelError(
                f"no provider can be named for model {shown(self._name)}; {hint}give one in front, "
                "such as 'openai/gpt-5-mini' or 'anthropic/claude-sonnet-4-5', or use 'local'",
                reason="unavailable",
            )
        missing = self._missing_keys(litellm, given)
        if missing:
            raise ModelError(
                f"model {shown(self._name)} needs a key: {' or '.join(missing)} is not set; set it "
                "in the environment, pass api_key=, or use 'local'",
                reason="unavailable",
            )

    def _provider(self, litellm: Any, given: Mapping[str, object]) -> str | None:
        litellm.utils.custom_llm_setup()  # else custom providers are unknown before a first call
        try:
            found = litellm.get_llm_provider(
                model=self._name,
                custom_llm_provider=given.get("custom_llm_provider"),
                api_base=given.get("api_base") or given.get("base_url"),
            )
        except litellm.exceptions.BadRequestError:
            return None
        return str(found[1])

    def _missing_keys(self, litellm: Any, given: Mapping[str, object]) -> list[str]:
        own = ("api_key", "api_base", "base_url", "custom_llm_provider", "mock_response")
        prefixed = ("aws_", "azure_", "vertex_", "watsonx_")
        if litellm.api_key or any(n in own or n.startswith(prefixed) for n in given):
            return []
        missing = litellm.validate_environment(model=self._name)["missing_keys"]
        return [name for name in missing if name.endswith(_KEY_ENDINGS)]

    def describe(self, request: ModelRequest) -> dict[str, Json]:
        """Return the exact request that `stream` would send, secrets shown as ``***`` (B47)."""
        arguments = self._arguments(load(), request)
        return {**masked(arguments), **recorded(arguments)}

    def count_tokens(self, request: ModelRequest) -> int:
        """Return the request's size in tokens, estimated where no tokenizer is known."""
        arguments = self._arguments(load(), request)
        try:
            return int(
                load().token_counter(
                    model=self._name,
                    messages=arguments["messages"],
                    tools=arguments.get("tools"),
                )
            )
        except Exception:  # any tokenizer may fail on any input: four characters are about a token
            return len(str(arguments["messages"])) // 4

    def context_limit(self) -> int | None:
        """Return how many tokens the model reads at most, or None when unknown."""
        limit = finite(self._info().get("max_input_tokens"))
        return int(limit) if limit else None

    def max_cost_usd(self, request: ModelRequest) -> float | None:
        """Return the most the call can cost, or None: no price or output limit known (B26).

        The dearest price counts: that of writing a cache, or of a long prompt.
        """
        params = {**self._defaults, **request.params}
        info = {**self._info(), **params}
        limits = (params.get("max_completion_tokens"), params.get("max_tokens"))
        limit = next((n for n in map(finite, limits) if n), None)
        limit = limit or finite(info.get("max_output_tokens"))
        per_input = _dearest(info, ("input_cost_per_token", "cache_creation_input_token_cost"))
        per_output = _dearest(info, ("output_cost_per_token", "output_cost_per_reasoning_token"))
        if limit is None or per_input is None or per_output is None:
            return None
        answers = finite(params.get("n")) or 1
        return self.count_tokens(request) * per_input + answers * limit * per_output

    def _info(self) -> dict[str, Any]:
        litellm = load()
        name = self._defaults.get("base_model") or self._name
        try:
            return dict(litellm.get_model_info(model=name))
        except Exception:  # LiteLLM raises a bare Exception for a model without a price
            return {}

    # -- the call ----------------------------------------------------------------------------

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """Yield deltas and one `Finish`; retry before any output only (B25).

        Raises
        ------
        ModelError
            The call failed for good, or its stream ended without a finish (``interrupted``).
        """
        litellm = await asyncio.to_thread(load)
        call = self._call(litellm, request)
        attempt = 0
        while True:
            reader, failure = Reader(), None
            async with aclosing(_attempt(litellm, call, reader)) as deltas:
                try:
                    async for delta in deltas:
                        yield delta
                except Exception as exc:  # LiteLLM lets errors of any class out
                    failure = failure_of(exc, call.secrets, call.timeout_s)
            if failure is None:
                return
            attempt += 1
            delay_s = self._delay_s(call, failure, attempt)
            if reader.has_output or delay_s is None:
                # outside the handler, so that the error holds no text that was not scrubbed
                raise failure.error(self._name)
            yield RetryNotice(attempt, delay_s, failure.text)
            await asyncio.sleep(delay_s)

    def _delay_s(self, call: _Call, failure: Failure, attempt: int) -> float | None:
        """Return how long to wait before the next attempt; None when there is none."""
        if not failure.may_retry or attempt > call.retries:
            return None
        backoff_s = self._retry_base_s * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
        delay_s = max(min(backoff_s, LONGEST_WAIT_S), failure.retry_after_s or 0.0)
        now = asyncio.get_running_loop().time()
        too_late = call.deadline is not None and now + delay_s >= call.deadline
        return None if too_late or delay_s > LONGEST_WAIT_S else delay_s

    def _call(self, litellm: Any, request: ModelRequest) -> _Call:
        params = {**self._defaults, **request.params}
        retries = finite(params.get("max_retries", params.get("num_retries")))
        timeout_s = finite(params.get("timeout", TIMEOUT_S))
        now = asyncio.get_running_loop().time()
        return _Call(
            self._arguments(litellm, request),
            MAX_RETRIES if retries is None else int(retries),
            timeout_s,
            None if timeout_s is None else now + timeout_s,
            secrets_of(params),
        )

    def _arguments(self, litellm: Any, request: ModelRequest) -> dict[str, Any]:
        params = {**self._defaults, **request.params}
        provider = self._provider(litellm, params)
        messages = to_chat(
            request.messages, request.system, images_in_results=provider in _IMAGES_IN_RESULTS
        )
        arguments: dict[str, Any] = {"stream": True, "timeout": TIMEOUT_S, **params}
        arguments |= {"model": self._name, "messages": messages}
        arguments |= {"max_retries": 0, "num_retries": 0}
        if request.tools:
            functions = [tool.to_dict() for tool in request.tools]
            arguments["tools"] = [{"type": "function", "function": f} for f in functions]
        if arguments["stream"]:
            options = arguments.get("stream_options")
            options = options if isinstance(options, Mapping) else {}
            arguments["stream_options"] = {**options, "include_usage": True}
        return arguments


async def _attempt(litellm: Any, call: _Call, reader: Reader) -> AsyncGenerator[Delta, None]:
    """Make one attempt; the connection is closed however it ends.

    The deadline holds at each wait, never across a yield: there it would cancel the caller.
    """
    async with asyncio.timeout_at(call.deadline):
        answer = await litellm.acompletion(**call.arguments)
    if not hasattr(answer, "__aiter__"):
        for delta in reader.deltas(answer):
            yield delta
        yield _finish(answer, reader)
        return
    try:
        watch = Watch(answer)
        chunks = aiter(answer)
        while True:
            async with asyncio.timeout_at(call.deadline):
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            for delta in reader.deltas(chunk):
                yield delta
            if _has_told_all(litellm, answer):
                break
        if watch.reason is None:
            raise StreamCut
        yield reader.finish(
            watch.reason,
            has_usage=any(getattr(chunk, "usage", None) for chunk in answer.chunks),
            answered_by=watch.model,
            provider=answer.custom_llm_provider,
        )
    finally:
        await answer.aclose()


def _has_told_all(litellm: Any, answer: Any) -> bool:
    """Whether nothing follows but LiteLLM's own records, which nobody has asked for.

    After the usage it puts the answer together once more and prices it, a fifth of what a call
    takes: for callbacks, of the process or of this call, and for its own budget.
    """
    if not getattr(answer, "sent_stream_usage", False):
        return False
    told = ("callbacks", "success_callback", "_async_success_callback", "max_budget")
    of_call = ("dynamic_success_callbacks", "dynamic_async_success_callbacks")
    log = getattr(answer, "logging_obj", None)
    return not (
        any(getattr(litellm, name, None) for name in told)
        or any(getattr(log, name, None) for name in of_call)
    )


def _finish(answer: Any, reader: Reader) -> Delta:
    """Return the end of an answer that came in one piece."""
    reason = answer.choices[0].finish_reason if answer.choices else None
    if reason is None:
        raise StreamCut
    hidden = getattr(answer, "_hidden_params", None) or {}
    return reader.finish(
        reason,
        has_usage=getattr(answer, "usage", None) is not None,
        answered_by=answer.model,
        provider=hidden.get("custom_llm_provider"),
    )


def _dearest(info: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    """Return the highest of the prices that begin with one of `names`; None without the first."""
    if finite(info.get(names[0])) is None:
        return None
    found = [name for name in info if name.startswith(names)]
    if info.get("service_tier") != "priority":
        found = [name for name in found if "priority" not in name]
    return max(price for price in (finite(info[name]) for name in found) if price is not None)
