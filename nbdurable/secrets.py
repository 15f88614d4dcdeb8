"""What is never kept, shown, logged or raised, and how it is taken out of a text (B69).

Owns which values are secrets and what a text looks like without them. Does not own the parameters'
names (`models.params`). The one idea: a text of somebody else, a provider's, a tool's, a hook's,
may repeat whatever it was given, so it passes here before it goes anywhere.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import traceback
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from nbdurable.models.params import RECORDED

E = TypeVar("E", bound=BaseException)

HIDDEN = "***"
TEXT_LIMIT = 300  # characters of what a provider or a model says of its failure that are kept
MOST_CHARS = 100_000  # of a text that is looked through; what comes after is cut

HARMLESS = RECORDED | {
    "model",
    "messages",
    "tools",
    "stream",
    "stream_options",
    "timeout",
    "stream_timeout",
    "max_retries",
    "num_retries",
    "drop_params",
    "custom_llm_provider",
    "api_version",
    "allowed_openai_params",
    "additional_drop_params",
    "mock_response",
    "input_cost_per_token",
    "output_cost_per_token",
    "base_model",
    "ssl_verify",
    "store",
    "cache_control_injection_points",
}
"""Parameters that cannot hold a secret."""

_SECRET_NAME = re.compile(r"key(?!board)|token|secret|passw|credential|auth(?!or)|header|cookie",
                          re.I)  # fmt: skip

# No pattern below can look at a character more than a few hundred times, whatever the text.
_URL_LOGIN = re.compile(r"(?<=://)[^/\s?#]*@")
_KEY = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|xai|hf|gh[oprsu]|github_pat|glpat|xox[abeprs]|r8)[-_]"
    r"(?=[\w*.-]{0,200}[\d*])[\w*.-]{6,}"
    r"|AIza[\w-]{10,}|AKIA[A-Z\d]{12,}|eyJ[\w-]{10,500}\.[\w.-]{10,})"
    r"|(?<=bearer )\S+",
    re.I,
)
_NAMED = re.compile(
    r"((?:[?&](?:key|token|sig|signature)|api[-_]?key|passw(?:or)?d|client[-_]?secret"
    r"|(?:access|auth)[-_]?token)="
    r"|(?:authorization|x-api-key)[\"']?: ?[\"']?(?:basic )?)(?!bearer )"
    r"[^\s&\"'<>,;)*]{4,}",
    re.I,
)


def secrets_of(params: Mapping[str, object] | None = None) -> frozenset[str]:
    """Return every value of `params` and of the environment that must never be shown."""
    found = {
        value for name, value in os.environ.items() if _SECRET_NAME.search(name) and len(value) >= 8
    }
    for name, value in (params or {}).items():
        if name not in HARMLESS:
            found.update(_strings(value))
    return frozenset(found)


def _strings(value: object) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            stack.extend(item)
        elif isinstance(item, str) and len(item) >= 4:
            yield item
            if "://" in item:
                yield from (piece for piece in _of_url(item) if len(piece) >= 4)


def _of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return  # it leads nowhere; as a whole it is hidden all the same
    for piece in (parts.username, parts.password):
        if piece:
            yield from (piece, unquote(piece))
    for _, value in parse_qsl(parts.query):
        yield value
    yield from (pair.partition("=")[2] for pair in parts.query.split("&"))


# -- texts -------------------------------------------------------------------------------------


def scrub(text: str, secrets: frozenset[str], limit: int = MOST_CHARS) -> str:
    """Return `text` with ``***`` for each secret in it, known by its value or by its form.

    It is cut to `limit` characters, after that: half a key would not be known as one.
    """
    text = text[:MOST_CHARS]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _URL_LOGIN.sub(f"{HIDDEN}@", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", _KEY.sub(HIDDEN, text))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def masked(params: Mapping[str, object]) -> dict[str, object]:
    """Return `params` with every value that may be a secret shown as ``***`` (B47)."""
    return {
        name: value if name in HARMLESS else _mask(name, value) for name, value in params.items()
    }


def _mask(name: str, value: object) -> object:
    if name in ("api_base", "base_url") and isinstance(value, str):
        parts = urlsplit(value)
        port = f":{parts.port}" if parts.port else ""
        path = re.sub(r"[^/]{20,}", HIDDEN, parts.path)
        return f"{parts.scheme}://{parts.hostname or ''}{port}{path}"
    if isinstance(value, Mapping):
        return {str(key): HIDDEN for key in value}
    return HIDDEN


# -- errors ------------------------------------------------------------------------------------


def tells_secret(error: BaseException, secrets: frozenset[str]) -> bool:
    """Whether the texts of an error, or of those that led to it, hold a secret.

    Only what they say is looked at: the lines of code that a traceback quotes are no secret.
    """
    said = "".join(text for link in _linked(error) for text in _said(link))
    return scrub(said, secrets) != said[:MOST_CHARS]


def without_secrets(error: E, secrets: frozenset[str]) -> E:
    """Return an error of ours that tells no secret: itself, or its like without its causes."""
    if not tells_secret(error, secrets):
        return error
    like = copy.copy(error)
    like.args = (scrub(str(error), secrets),)
    like.__cause__ = like.__context__ = None
    return like


class Hidden(Exception):
    """Stands in a log for an error that tells a secret; its text is that one's traceback."""


def loggable(error: BaseException, secrets: frozenset[str]) -> BaseException:
    """Return an error that may be logged with its traceback: itself, or what stands for it."""
    if not tells_secret(error, secrets):
        return error
    return Hidden(_traceback(error, secrets))


def _traceback(error: BaseException, secrets: frozenset[str]) -> str:
    return scrub("".join(traceback.format_exception(error)).rstrip(), secrets)


def _said(error: BaseException) -> list[str]:
    try:
        return traceback.format_exception_only(error)
    except Exception:  # an error of somebody else's that fails to say what it is
        return []


def _linked(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that a traceback shows with it, each once."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        link = stack.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        stack += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            stack += link.exceptions


# -- logs --------------------------------------------------------------------------------------


class LogFilter(logging.Filter):
    """Takes the environment's secrets, and whatever looks like one, out of what is logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record where it must be; it is always logged."""
        secrets = secrets_of()
        said = record.getMessage()
        told = scrub(said, secrets)
        if told != said:
            record.msg, record.args = told, ()
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and tells_secret(error, secrets):
            record.exc_text = _traceback(error, secrets)
            record.exc_info = None
        return True


logging.getLogger("nbdurable").addFilter(LogFilter())
