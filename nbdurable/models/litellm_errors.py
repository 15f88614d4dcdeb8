"""What LiteLLM raises, as `ModelError`: one reason, one line, no secret.

Owns classification; decides by class names, status and causes, so that nothing here
imports LiteLLM. The one idea: LiteLLM gives a dropped connection the status 500 and wraps whatever
breaks in mid-stream, so the chain of causes is what tells.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from nbdurable.errors import ModelError
from nbdurable.secrets import TEXT_LIMIT, scrub

_PREFIX = re.compile(
    r"(litellm\.)?(exceptions\.)?\w*(Error|Exception|Timeout)( - |: )|[A-Z]\w+Exception "
)
_TAIL = re.compile(
    r"Original exception:|Traceback \(most|,? ?Received chunk:|This looks like a bug in"
)
_CONTEXT = re.compile(
    r"context.{0,12}(length|window|size|limit)|maximum context|prompt is too long"
    r"|too many (input )?tokens|exceeds? .{0,40}(token|context)|input is too long",
    re.I,
)
_REFUSED = re.compile(r"content.?(policy|management|filter)|safety (system|policy)", re.I)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.I)
_CUT = frozenset({"JSONDecodeError", "StopAsyncIteration", "UnicodeDecodeError"})
_NETWORK = re.compile(
    r"Connect|ReadError|WriteError|RemoteProtocol|ServerDisconnected|Payload|SSL|gaierror"
)

_ADVICE = {
    "auth": "check the provider's API key",
    "rate_limit": "wait, or raise max_retries=",
    "timeout": "raise timeout= (seconds)",
    "context": "compact the session, or use a model that reads more",
    "refused": "change the input",
    "server": "run again, or raise max_retries=",
    "connection": "check the network and api_base=",
    "interrupted": "run again",
    "unavailable": "check the model's name",
    "other": "check the input and the parameters",
}


class StreamCut(Exception):
    """The provider's stream ended without a finish reason."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt, told apart."""

    reason: str
    text: str
    status: int | None = None
    retry_after_s: float | None = None
    may_retry: bool = False

    def error(self, model: str) -> ModelError:
        """Return the error that the caller gets."""
        status = f" with status {self.status}" if self.status else ""
        return ModelError(
            f"model {model!r} failed{status}: {self.text}; {_ADVICE[self.reason]}",
            reason=self.reason,
            status=self.status,
            retry_after_s=self.retry_after_s,
        )


def failure_of(exc: BaseException, secrets: frozenset[str], timeout_s: float | None) -> Failure:
    """Tell what went wrong from what was raised.

    Parameters
    ----------
    exc : BaseException
        Anything that came out of LiteLLM, `StreamCut`, or the builtin ``TimeoutError`` of our own
        deadline.
    secrets : frozenset of str
        Never shown.
    timeout_s : float or None
        The deadline, for the text.
    """
    if isinstance(exc, StreamCut):
        return Failure("interrupted", "the stream ended without a finish", may_retry=True)
    chain = list(_chain(exc))
    names = [type(link).__name__ for link in chain]
    if isinstance(exc, TimeoutError) or _is_client_timeout(exc):
        limit = "in time" if timeout_s is None else f"in {timeout_s:g} s"
        return Failure("timeout", f"no whole answer came {limit}")
    text = scrub(one_line(exc), secrets, TEXT_LIMIT)
    status = _status(exc, chain)
    if status is None and _is_network(names, text):
        middle = "MidStreamFallbackError" in names
        return Failure("interrupted" if middle else "connection", text, may_retry=True)
    reason = _reason(names, text, status)
    retry_after_s = _retry_after(chain)
    again = status is not None and (status in (408, 409, 429) or status >= 500)
    return Failure(
        reason,
        text,
        status,
        retry_after_s,
        again and reason not in ("context", "refused") and not _QUOTA.search(text),
    )


def _reason(names: list[str], text: str, status: int | None) -> str:
    if "ContextWindowExceededError" in names or status == 413:
        return "context"
    if status not in (401, 403, 404, 429):
        if _CONTEXT.search(text):
            return "context"
        if "ContentPolicyViolationError" in names or _REFUSED.search(text):
            return "refused"
    if status is None:
        return "auth" if "api_key" in text else "other"
    if status >= 500 and status != 504:
        return "server"
    by_status = {401: "auth", 403: "auth", 404: "unavailable", 429: "rate_limit"}
    return by_status.get(status, "timeout" if status in (408, 504) else "other")


def _chain(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = exc
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        inner = getattr(link, "original_exception", None)
        link = inner if isinstance(inner, BaseException) else link.__cause__ or link.__context__


def _is_client_timeout(exc: BaseException) -> bool:
    return type(exc).__name__ == "Timeout" and getattr(exc, "response", None) is None


def _is_network(names: list[str], text: str) -> bool:
    if _CUT.intersection(names) or "Connection error" in text:
        return True
    return any(_NETWORK.search(name) for name in names if name != "APIConnectionError")


def _status(exc: BaseException, chain: list[BaseException]) -> int | None:
    """Return the status that the provider sent; LiteLLM makes one up where there was none."""
    for link in chain:
        code = str(getattr(link, "code", None))  # of an error event in a stream of status 200
        if type(link).__module__.startswith("openai") and re.fullmatch(r"[45]\d\d", code):
            return int(code)
    if type(exc).__name__ == "MidStreamFallbackError":
        inner = getattr(exc, "original_exception", None)
        if inner is None or type(inner).__name__ == "APIConnectionError":
            told = any(type(link).__name__ == "APIError" for link in chain)
            return 500 if told else None
        exc = inner
    if type(exc).__name__ == "APIConnectionError":
        return None
    if type(exc).__name__ == "InternalServerError" and "Connection error" in str(exc):
        return None
    status = getattr(exc, "status_code", None)
    return status if isinstance(status, int) else None


def _retry_after(chain: list[BaseException]) -> float | None:
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if value:
            return _seconds(str(value))
    return None


def _seconds(value: str) -> float | None:
    try:
        return max(0.0, float(value))
    except ValueError:
        pass  # then it is a date
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


# -- text --------------------------------------------------------------------------------------


def one_line(exc: BaseException) -> str:
    """Return a foreign error's text on one line, without LiteLLM's wrapping."""
    text = str(getattr(exc, "message", None) or exc) or type(exc).__name__
    text = " ".join(_PREFIX.sub("", _TAIL.split(text)[0]).split())
    return text.rstrip(" .;") or type(exc).__name__
