"""33 ways in which a call of a model goes, as steps for `FakeOpenAI` and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nbdurable.testing import Step, steps

TEXT = "Hello world, this is a test"
CUT_TEXT = "Hello world,"  # what the first chunks of a cut answer hold

_WHOLE = steps.text(TEXT)
_CUT = _WHOLE[:4]  # the role and three chunks of text
_ONCE = {"max_retries": 0}
_CONTEXT = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens"
_OVERLOADED = b'data: {"error":{"message":"overloaded","type":"server_error","code":503}}\n\n'


@dataclass(frozen=True)
class Failure:
    """One kind.

    ``expected_reason`` is that of the `ModelError`, None when the call succeeds. ``text_kept`` is
    the text that arrived, None where it depends on timing. ``calls`` are the names and raw
    arguments of the tool calls, ``requests`` counts the POSTs.
    """

    name: str
    steps: tuple[Step, ...]
    params: Mapping[str, object] = field(default_factory=lambda: dict(_ONCE))
    expected_reason: str | None = None
    text_kept: str | None = ""
    status: int | None = None
    requests: int = 1
    calls: tuple[tuple[str, str], ...] = ()
    thinking: str = ""


def _status(code: int, reason: str) -> Failure:
    step = steps.status(code, retry_after_s=7 if code == 429 else None)
    return Failure(f"status {code}", (step,), expected_reason=reason, status=code)


_STATUSES = {
    400: "other",
    401: "auth",
    403: "auth",
    404: "unavailable",
    408: "timeout",
    409: "other",
    413: "context",
    422: "other",
    429: "rate_limit",
    500: "server",
    502: "server",
    503: "server",
    504: "timeout",
}

FAILURES: list[Failure] = [
    Failure("ok", (_WHOLE,), text_kept=TEXT),
    Failure("ok without streaming", (_WHOLE,), {**_ONCE, "stream": False}, text_kept=TEXT),
    Failure(
        "clean end without finish",
        ([*_CUT, steps.eof()],),
        expected_reason="interrupted",
        text_kept=CUT_TEXT,
    ),
    Failure(
        "drop in mid-stream",
        ([*_CUT, steps.drop()],),
        expected_reason="interrupted",
        text_kept=CUT_TEXT,
    ),
    Failure(
        "reset in mid-stream",
        ([*_CUT, steps.reset()],),
        expected_reason="interrupted",
        text_kept=None,  # a reset may discard what the client had not read yet
    ),
    Failure(
        "hang in mid-stream",
        ([*_CUT, steps.hang()],),
        {**_ONCE, "timeout": 1.0},
        expected_reason="timeout",
        text_kept=CUT_TEXT,
    ),
    Failure(
        "hang before headers",
        ([steps.hang()],),
        {**_ONCE, "timeout": 0.5},
        expected_reason="timeout",
    ),
    Failure("drop before headers", ([steps.drop()],), expected_reason="connection"),
    Failure(
        "slow but alive, beyond the deadline",
        (steps.text("abcdefghij", size=1, delay_s=0.3),),
        {**_ONCE, "timeout": 1.0},
        expected_reason="timeout",
        text_kept=None,
    ),
    *(_status(code, reason) for code, reason in _STATUSES.items()),
    Failure(
        "context too long",
        (
            steps.status(
                400,
                _CONTEXT,
                kind="invalid_request_error",
                error_code="context_length_exceeded",
            ),
        ),
        expected_reason="context",
        status=400,
    ),
    Failure(
        "content policy",
        (
            steps.status(
                400,
                "content_policy_violation: blocked by content management policy",
                error_code="content_policy_violation",
            ),
        ),
        expected_reason="refused",
        status=400,
    ),
    Failure(
        "error event in mid-stream",
        ([*_CUT, steps.raw(_OVERLOADED), steps.eof()],),
        expected_reason="server",
        text_kept=CUT_TEXT,
        status=503,
    ),
    Failure(
        "garbage in mid-stream",
        ([*_CUT, steps.raw(b"data: {not json}\n\n"), steps.eof()],),
        expected_reason="interrupted",
        text_kept=CUT_TEXT,
    ),
    Failure(
        "429, then ok",
        (steps.status(429, retry_after_s=0), _WHOLE),
        {"max_retries": 2},
        text_kept=TEXT,
        requests=2,
    ),
    Failure(
        "500, then ok", (steps.status(500), _WHOLE), {"max_retries": 2}, text_kept=TEXT, requests=2
    ),
    Failure(
        "500 for ever, default retries",
        (steps.status(500),),
        {},
        expected_reason="server",
        status=500,
        requests=3,
    ),
    Failure(
        "429 with a wait, then ok",
        (steps.status(429, retry_after_s=0.6), _WHOLE),
        {"max_retries": 1},
        text_kept=TEXT,
        requests=2,
    ),
    Failure(
        "two parallel calls",
        (steps.tools(("add", '{"a": 1, "b": 2}'), ("weather", '{"city": "Paris"}')),),
        calls=(("add", '{"a": 1, "b": 2}'), ("weather", '{"city": "Paris"}')),
    ),
    Failure(
        "reasoning",
        (steps.text("42", thinking="let me think"),),
        text_kept="42",
        thinking="let me think",
    ),
    Failure(
        "two calls of one index",
        (steps.tools(("w", '{"city":"A"}'), ("w", '{"city":"B"}'), same_index=True),),
        calls=(("w", '{"city":"A"}'), ("w", '{"city":"B"}')),
    ),
]
