"""`ScriptedModel`: each step answers one call, delta by delta, as it was written."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from nbdurable.blocks import Message, TextBlock, ToolCallBlock, Usage
from nbdurable.errors import ModelError
from nbdurable.models.base import (
    Assembly,
    CallDelta,
    Delta,
    Finish,
    Model,
    ModelRequest,
    RetryNotice,
    TextDelta,
    ToolSpec,
)
from nbdurable.models.scripted import ScriptedModel, calls, cut, thinking

ASK = ModelRequest(messages=(Message("user", (TextBlock("Hi there"),)),))


async def _collect(model: Model, request: ModelRequest = ASK) -> list[Delta]:
    return [delta async for delta in model.stream(request)]


def answer(model: Model, request: ModelRequest = ASK) -> list[Delta]:
    return asyncio.run(_collect(model, request))


def assemble(deltas: list[Delta]) -> Assembly:
    assembly = Assembly()
    for delta in deltas:
        assembly.add(delta)
    return assembly


def test_a_scripted_model_is_a_model() -> None:
    assert isinstance(ScriptedModel("x"), Model)


def test_text_streams_as_several_deltas_that_join_to_the_same_text() -> None:
    text = "  Two  words,\n\nünïcode 🙂 and a tail \n"

    deltas = answer(ScriptedModel(text))

    pieces = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(pieces) > 3
    assert "".join(pieces) == text


def test_empty_text_is_an_answer_without_deltas() -> None:
    (finish,) = answer(ScriptedModel(""))

    assert finish == Finish(
        stop_reason="stop", usage=Usage(11, 7), answered_by="scripted", provider="scripted"
    )


def test_steps_answer_in_order_and_the_last_one_repeats() -> None:
    model = ScriptedModel("one", "two")

    texts = [assemble(answer(model)).blocks()[0] for _ in range(4)]

    assert texts == [TextBlock("one"), TextBlock("two"), TextBlock("two"), TextBlock("two")]


def test_a_call_beyond_the_script_fails_when_the_last_step_does_not_repeat() -> None:
    model = ScriptedModel("one", repeat=False)
    answer(model)

    with pytest.raises(ModelError, match="has no step for call 2, its script has 1; add a step"):
        answer(model)


def test_a_model_without_steps_says_so_when_called() -> None:
    with pytest.raises(ModelError, match="has no step for call 1, its script has 0"):
        answer(ScriptedModel())


def test_an_exception_as_a_step_is_raised() -> None:
    with pytest.raises(ConnectionResetError, match="gone"):
        answer(ScriptedModel(ConnectionResetError("gone")))


async def _until_raised(model: Model) -> tuple[list[Delta], BaseException]:
    seen: list[Delta] = []
    try:
        async for delta in model.stream(ASK):
            seen.append(delta)
    except BaseException as exc:
        return seen, exc
    raise LookupError("nothing was raised")


def test_an_exception_in_the_middle_comes_after_the_deltas_before_it() -> None:
    model = ScriptedModel([TextDelta("half"), ModelError("no", reason="server")])

    seen, error = asyncio.run(_until_raised(model))

    assert seen == [TextDelta("half")]
    assert isinstance(error, ModelError) and error.reason == "server"


def test_a_keyboard_interrupt_passes_through() -> None:
    stream = ScriptedModel(KeyboardInterrupt()).stream(ASK)

    with pytest.raises(KeyboardInterrupt):
        stream.__anext__().__await__().send(None)


# B22
def test_a_cut_step_ends_as_a_truncated_stream_does() -> None:
    model = ScriptedModel(cut("half an ", calls(("add", '{"a": '))))

    seen, error = asyncio.run(_until_raised(model))

    assert isinstance(error, ModelError) and error.reason == "interrupted"
    assert "the answer of model 'scripted' broke off before its end; run again" in str(error)
    assert assemble(seen).blocks() == (
        TextBlock("half an "),
        ToolCallBlock("call_1_0", "add", '{"a": ', complete=False),
    )


def test_calls_finish_with_tool_calls_and_arrive_in_pieces() -> None:
    deltas = answer(ScriptedModel(calls(("add", {"a": 1}), ("say", {"w": "é"}), text="Both.")))

    assembly = assemble(deltas)
    assert assembly.blocks() == (
        TextBlock("Both."),
        ToolCallBlock("call_1_0", "add", '{"a": 1}'),
        ToolCallBlock("call_1_1", "say", '{"w": "é"}'),
    )
    assert assembly.finish is not None and assembly.finish.stop_reason == "tool_calls"
    assert sum(isinstance(delta, CallDelta) for delta in deltas) == 4


def test_call_ids_differ_between_answers_of_one_repeated_step() -> None:
    model = ScriptedModel(calls(("add", {})))

    ids = [call.id for _ in range(2) for call in answer(model) if isinstance(call, CallDelta)]

    assert set(ids) == {"call_1_0", "call_2_0"}


def test_an_id_given_in_the_script_stays() -> None:
    deltas = answer(ScriptedModel([CallDelta(0, id="mine", name="add", arguments="{}")]))

    assert assemble(deltas).blocks() == (ToolCallBlock("mine", "add", "{}"),)


# B30
def test_provider_run_calls_alone_finish_with_stop() -> None:
    model = ScriptedModel([CallDelta(0, name="web_search", provider_run=True), "Found."])

    finish = assemble(answer(model)).finish

    assert finish is not None and finish.stop_reason == "stop"


def test_a_finish_in_the_script_is_the_only_one() -> None:
    model = ScriptedModel(["no", Finish(stop_reason="length")])

    finishes = [delta for delta in answer(model) if isinstance(delta, Finish)]

    assert finishes == [Finish(stop_reason="length")]


def test_thinking_keeps_its_signature() -> None:
    (block, _) = assemble(answer(ScriptedModel([thinking("hm", "sig"), "ok"]))).blocks()

    assert (block.type, block.text, block.signature) == ("thinking", "hm", "sig")  # type: ignore[union-attr]


# B25
def test_retry_notices_pass_through() -> None:
    notice = RetryNotice(1, 0.5, "busy")

    assert answer(ScriptedModel([notice, "ok"]))[0] == notice


def test_a_function_step_reads_the_request() -> None:
    model = ScriptedModel(lambda request: request.messages[-1].text.upper())

    assert assemble(answer(model)).blocks() == (TextBlock("HI THERE"),)


def test_a_function_step_may_return_a_cut() -> None:
    with pytest.raises(ModelError, match="broke off"):
        answer(ScriptedModel(lambda request: cut("ha")))


@pytest.mark.parametrize("make", [threading.Event, asyncio.Event])
def test_an_event_holds_the_answer_and_leaves_the_loop_free(make: type) -> None:
    async def main() -> list[str]:
        gate, order = make(), []
        model = ScriptedModel(["before", gate, "after"])

        async def read() -> None:
            async for delta in model.stream(ASK):
                order.append(type(delta).__name__)

        reader = asyncio.create_task(read())
        while len(order) < 2:
            await asyncio.sleep(0.001)
        order.append("loop ran")
        threading.Thread(target=gate.set).start()
        await reader
        return order

    order = asyncio.run(main())

    assert order == ["TextDelta"] * 2 + ["loop ran"] + ["TextDelta"] * 2 + ["Finish"]


def test_seconds_in_a_script_are_slept_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def record(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", record)
    answer(ScriptedModel(["x", 0.25, 3, "y"]))

    assert [seconds for seconds in slept if seconds] == [0.25, 3.0]


def test_a_cancelled_answer_is_counted() -> None:
    async def main() -> ScriptedModel:
        model = ScriptedModel(["half", threading.Event()])
        task = asyncio.create_task(_collect(model))
        await asyncio.to_thread(model.wait_for_request)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return model

    model = asyncio.run(main())

    model.wait_for_cancel(timeout_s=1)
    assert model.cancelled == 1


def test_a_cancel_gets_in_between_two_deltas_without_any_wait() -> None:
    async def main() -> int:
        seen = 0
        model = ScriptedModel([TextDelta("x")] * 1000)

        async def read() -> None:
            nonlocal seen
            async for _ in model.stream(ASK):
                seen += 1
                if seen == 5:
                    task.cancel()

        task = asyncio.create_task(read())
        await asyncio.wait([task])
        return seen

    assert asyncio.run(main()) == 5


def test_requests_are_recorded_as_they_came() -> None:
    model = ScriptedModel("ok")
    other = ModelRequest(messages=(), system="Be brief.", params={"temperature": 0})

    answer(model)
    answer(model, other)

    assert model.requests == (ASK, other)
    assert model.call_count == 2
    assert model.started.is_set()
    assert model.wait_for_request(2) is other


def test_waiting_for_a_call_that_never_comes_names_the_counts() -> None:
    with pytest.raises(TimeoutError, match=r"model 'm' got 0 of 2 calls in 0.01 s; start the run"):
        ScriptedModel("x", name="m").wait_for_request(2, timeout_s=0.01)


def test_waiting_for_a_cancel_that_never_comes_names_the_counts() -> None:
    with pytest.raises(TimeoutError, match=r"had 0 of 1 answers cancelled in 0.01 s; cancel"):
        ScriptedModel("x").wait_for_cancel(timeout_s=0.01)


def test_usage_cost_price_and_limit_are_those_given() -> None:
    model = ScriptedModel(
        "x", usage=Usage(1, 2), cost_usd=0.5, price_usd=0.75, context_limit=99, name="m"
    )

    finish = assemble(answer(model)).finish

    assert finish is not None
    assert (finish.usage, finish.cost_usd, finish.answered_by) == (Usage(1, 2), 0.5, "m")
    assert (model.max_cost_usd(ASK), model.context_limit()) == (0.75, 99)


def test_tokens_are_a_fourth_of_the_characters_rounded_up() -> None:
    call = Message("assistant", (ToolCallBlock("c", "add", "{}"),))  # 3 + 2 characters
    request = ModelRequest(messages=(*ASK.messages, call), system="abcd")

    assert ScriptedModel("x").count_tokens(request) == 5  # 17 characters


# B47 B69
def test_describe_is_json_and_hides_what_is_not_recorded() -> None:
    request = ModelRequest(
        messages=ASK.messages,
        system="Be brief.",
        tools=(ToolSpec("add", "Add.", {"type": "object"}),),
        params={"temperature": 0.5, "api_key": "sk-very-secret", "extra_body": {"k": "secret"}},
    )

    text = json.dumps(ScriptedModel("x").describe(request))

    assert "secret" not in text
    assert json.loads(text) == {
        "model": "scripted",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi there"}]}],
        "tools": [{"name": "add", "description": "Add.", "parameters": {"type": "object"}}],
        "temperature": 0.5,
        "api_key": "***",
        "extra_body": "***",
    }


def test_a_part_of_a_wrong_type_is_refused_when_the_script_is_written() -> None:
    with pytest.raises(TypeError, match=r"part True of a script is a bool; use text, deltas"):
        ScriptedModel("x", ["y", True])


def test_check_finds_nothing_missing() -> None:
    ScriptedModel().check()
