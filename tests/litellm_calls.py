"""What the tests of `LiteLLMModel` share: one loop, one call, and all that the call gave."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from nbdurable.blocks import Message, TextBlock
from nbdurable.errors import ModelError
from nbdurable.models.base import Assembly, Delta, Finish, Model, ModelRequest
from nbdurable.models.litellm import LiteLLMModel, load
from nbdurable.testing import FakeOpenAI, Step, steps

KEY = "sk-proj-SECRETsecret1234"
CLAUDE = "anthropic/claude-sonnet-4-5"
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


@contextmanager
def running_loop() -> Iterator[Loop]:
    """A loop for the tests of one file; LiteLLM's clients are closed with it."""
    load()
    loop = Loop()
    try:
        yield loop
    finally:
        loop.close()


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


# -- Anthropic's wire form ------------------------------------------------------------


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
