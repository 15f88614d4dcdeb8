"""The local model itself: what is missing, and answers of the real thing.

What the model says is never asserted, only the form of it: texts differ between processors.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pydantic import BaseModel
from streamed import assemble

from nbdurable.blocks import Message, TextBlock, ToolCallBlock
from nbdurable.errors import ModelError
from nbdurable.models.base import Assembly, Finish, Model, ModelRequest, TextDelta, ToolSpec
from nbdurable.models.local import LocalModel, local_endpoint, shared
from nbdurable.models.weights import weights_path


class _City(BaseModel):
    name: str


ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


def user(text: str) -> Message:
    return Message("user", (TextBlock(text),))


def asking(text: str, **params: object) -> ModelRequest:
    return ModelRequest(messages=(user(text),), params=params)


# -- what is missing ---------------------------------------------------------------------------


# B7
def test_missing_weights_say_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"weights .* not at .*; run: nbdurable local fetch$") as e:
        LocalModel(tmp_path / "no.gguf").check()

    assert e.value.reason == "unavailable"


# B7
def test_a_missing_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(ModelError, match=r'run: pip install "nbdurable\[local\]"$') as caught:
        LocalModel().check()

    assert caught.value.reason == "unavailable"


# B7
def test_weights_that_are_no_model_say_so(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"not a model")

    with pytest.raises(ModelError, match=r"bad.gguf' cannot be loaded: .*; fetch them anew"):
        LocalModel(path).check()


# -- the real model ----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def local() -> LocalModel:
    model = shared()
    model.check()  # fails with what to run when something is missing
    return model


def answer(model: Model, request: ModelRequest) -> Assembly:
    return asyncio.run(assemble(model, request))


def finish_of(assembly: Assembly) -> Finish:
    assert assembly.finish is not None
    return assembly.finish


@pytest.mark.local_model
def test_an_answer_streams_with_usage_and_costs_nothing(local: LocalModel) -> None:
    assembly = answer(local, asking("Name three colours.", temperature=0, max_tokens=12))

    (block,) = assembly.blocks()
    finish = finish_of(assembly)
    assert isinstance(block, TextBlock) and block.text.strip()
    assert finish.usage is not None and finish.usage.output_tokens == 12
    assert finish.usage.input_tokens > 5
    assert (finish.stop_reason, finish.cost_usd, finish.provider) == ("length", 0.0, "local")
    assert finish.answered_by == weights_path().stem


@pytest.mark.local_model
def test_a_stop_text_ends_an_answer_properly(local: LocalModel) -> None:
    request = asking("Count: one, two, three.", temperature=0, stop=["e", "a", "o"], max_tokens=200)

    assert finish_of(answer(local, request)).stop_reason == "stop"


@pytest.mark.local_model
def test_the_same_question_gets_the_same_text_whatever_was_asked_between(local: LocalModel) -> None:
    request = asking("Write a line about rain.", temperature=0, max_tokens=16)

    first = answer(local, request).blocks()
    answer(local, asking("Write a line about snow.", max_tokens=8))

    assert answer(local, request).blocks() == first


@pytest.mark.local_model
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_forced_choice_gives_a_valid_call(local: LocalModel, choice: object) -> None:
    request = ModelRequest(
        messages=(user("What is 2 plus 3?"),),
        tools=(ADD,),
        params={"temperature": 0, "tool_choice": choice},
    )

    assembly = answer(local, request)

    (call,) = assembly.blocks()
    assert isinstance(call, ToolCallBlock)
    assert finish_of(assembly).stop_reason == "tool_calls"
    assert call.name == "add" and call.args_valid
    assert {type(value) for value in (call.arguments or {}).values()} == {int}


# B30
@pytest.mark.local_model
def test_a_forced_call_cut_by_the_limit_is_text(local: LocalModel) -> None:
    request = ModelRequest(
        messages=(user("What is 2 plus 3?"),),
        tools=(ADD,),
        params={"tool_choice": "required", "max_tokens": 14},
    )

    assembly = answer(local, request)

    assert finish_of(assembly).stop_reason == "length"
    assert [block.type for block in assembly.blocks()] == ["text"]


@pytest.mark.local_model
def test_an_answer_follows_a_schema(local: LocalModel) -> None:
    (block,) = answer(
        local, asking("Name a city.", temperature=0, response_format=_City, max_tokens=60)
    ).blocks()

    assert isinstance(block, TextBlock)
    assert isinstance(_City.model_validate_json(block.text).name, str)


@pytest.mark.local_model
def test_a_prompt_that_is_too_long_is_an_error_of_the_context(local: LocalModel) -> None:
    with pytest.raises(ModelError, match=r"prompt of \d+ tokens is too long .* 4096;") as caught:
        answer(local, asking("word and then " * 3000))

    assert (caught.value.reason, caught.value.status) == ("context", 400)


@pytest.mark.local_model
def test_a_request_the_engine_refuses_is_an_error_with_its_reason(local: LocalModel) -> None:
    bad = {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}

    with pytest.raises(ModelError, match=r"model 'local' failed: .*unrecognized type nonsense"):
        answer(local, asking("Hi", response_format=bad))


def decoders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "nbdurable-local"]


ENDLESS = asking("Tell me a long story.", max_tokens=3900, ignore_eos=True)


# B23
@pytest.mark.local_model
def test_cancelling_stops_the_decoder(local: LocalModel) -> None:
    async def main() -> list[threading.Thread]:
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in local.stream(ENDLESS):
                begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        threads = decoders()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return threads

    (thread,) = asyncio.run(main())

    thread.join(15)
    assert not thread.is_alive()


@pytest.mark.local_model
def test_a_waiting_answer_can_be_cancelled_and_the_running_one_goes_on(local: LocalModel) -> None:
    async def main() -> Assembly:
        running = asyncio.create_task(assemble(local, asking("Count to ten.", max_tokens=40)))
        while not decoders():
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(assemble(local, ENDLESS))
        while len(decoders()) < 2:
            await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.wait([waiting])
        return await running

    assert finish_of(asyncio.run(main())).usage is not None


@pytest.mark.local_model
def test_the_loop_runs_while_the_model_decodes(local: LocalModel) -> None:
    async def main() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticker = asyncio.create_task(tick())
        await assemble(local, asking("Hi", max_tokens=10))
        ticker.cancel()
        return ticks

    assert asyncio.run(main()) > 100


@pytest.mark.local_model
def test_many_answers_at_once_take_turns(local: LocalModel) -> None:
    async def main() -> list[Assembly]:
        asks = (asking(f"Say {n}.", max_tokens=4) for n in range(4))
        return await asyncio.gather(*(assemble(local, ask) for ask in asks))

    assert [finish_of(one).provider for one in asyncio.run(main())] == ["local"] * 4


@pytest.mark.local_model
def test_tools_that_are_not_forced_do_not_hinder_prose(local: LocalModel) -> None:
    request = ModelRequest(messages=(user("Hi"),), tools=(ADD,), params={"max_tokens": 8})

    assembly = answer(local, request)

    assert not assembly.has_calls and not assembly.is_empty


def _post(url: str, key: str | None) -> int:
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    if key:
        request.add_header("authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


# B69
@pytest.mark.local_model
def test_the_endpoint_is_on_loopback_and_opens_only_with_its_key(local: LocalModel) -> None:
    base_url, key = local_endpoint()
    url = base_url + "/chat/completions"

    assert base_url.startswith("http://127.0.0.1:")
    assert (_post(url, key), _post(url, None), _post(url, "wrong")) == (200, 401, 401)
    assert key not in repr(local)


def _script(code: str) -> subprocess.CompletedProcess[str]:
    head = """
import asyncio, os, sys, threading, time
from nbdurable.blocks import Message, TextBlock
from nbdurable.models.base import ModelRequest
from nbdurable.models.local import shared

async def ask(begun=None, **params):
    request = ModelRequest(messages=(Message("user", (TextBlock("Hi"),)),), params=params)
    count = 0
    async for delta in shared().stream(request):
        count += 1
        if begun: begun.set()
    return count
"""
    return subprocess.run(
        [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=90, check=False
    )


# B54
@pytest.mark.local_model
def test_a_process_ends_well_in_the_middle_of_an_answer(local: LocalModel) -> None:
    done = _script(
        """
begun = threading.Event()
answer = ask(begun, max_tokens=3900, ignore_eos=True)
threading.Thread(target=lambda: asyncio.run(answer), daemon=True).start()
begun.wait()

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)  # the interpreter is ending, and the decoder reaches its next token

slow = Slow()
print("leaving")
"""
    )

    assert (done.returncode, done.stdout) == (0, "leaving\n"), done.stderr


# B65
@pytest.mark.local_model
@pytest.mark.skipif(sys.platform != "linux", reason="a forked child exits by glibc's on_exit")
def test_a_forked_child_loads_anew_answers_and_exits(local: LocalModel) -> None:
    done = _script(
        """
shared().check()
child = os.fork()
if not child:
    print(asyncio.run(ask(max_tokens=3)) > 1, flush=True)
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(asyncio.run(ask(max_tokens=3)) > 1)
"""
    )

    assert done.stdout.split() == ["True", "7", "True"], done.stderr


@pytest.mark.local_model
def test_the_local_path_never_imports_litellm(local: LocalModel) -> None:
    done = _script("asyncio.run(ask(max_tokens=2)); print('litellm' in sys.modules)")

    assert done.stdout == "False\n", done.stderr


@pytest.mark.local_model
def test_many_threads_load_one_engine() -> None:
    model, endpoints = LocalModel(n_ctx=256), []

    def load() -> None:
        endpoints.append(model.endpoint())

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(endpoints)) == 1


@pytest.mark.local_model
def test_deltas_are_text_until_the_finish(local: LocalModel) -> None:
    async def collect() -> list[object]:
        return [delta async for delta in local.stream(asking("Hi", max_tokens=5))]

    *texts, last = asyncio.run(collect())

    assert isinstance(last, Finish)
    assert texts and all(isinstance(delta, TextDelta) for delta in texts)
