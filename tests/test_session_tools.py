"""Tools through `chat.run`: every call gets one stored result, in call order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import nbdurable as nb
from nbdurable.blocks import Message, ToolCallBlock, ToolResultBlock
from nbdurable.models.base import CallDelta, Finish
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stores.base import Store


def results_of(chat: nb.Session) -> list[ToolResultBlock]:
    """Return the tool results on the path, as another reader of the store finds them."""
    chat.image.refresh()
    return [block for entry in messages_of(chat) for block in entry.message.tool_results]


def messages_of(chat: nb.Session) -> list[nb.MessageEntry]:
    return [entry for entry in chat.path() if isinstance(entry, nb.MessageEntry)]


def sent_results(model: ScriptedModel) -> list[ToolResultBlock]:
    return [block for message in model.requests[-1].messages for block in message.tool_results]


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """An event that a tool may wait for; set at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


# -- what goes wrong is a result -------------------------------------------------------------------


def divide(a: int, b: int) -> float:
    """Divide."""
    return a / b


# B27
@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("divide", '{"a": 1}', "b"),
        ("divide", '{"a": "one", "b": 2}', "a"),
        ("divide", '{"a": 1, "b"', "JSON"),
        ("divide", "[1, 2]", "object"),
        ("divid", '{"a": 1, "b": 2}', "'divid' is not known; call one of 'divide'"),
        ("divide", '{"a": 1, "b": 0}', "ZeroDivisionError: division by zero"),
    ],
    ids=["missing", "type", "torn", "array", "unknown", "raises"],
)
def test_a_call_that_cannot_be_done_is_answered_by_an_error_and_the_run_goes_on(
    store: Store, name: str, arguments: str, text: str
) -> None:
    model = ScriptedModel(calls((name, arguments)), "I see.")
    chat = nb.open("s", store=store, model=model, tools=[divide])

    run = chat.run("Divide.", show=None)

    (result,) = results_of(chat)
    assert run.outcome == "done"
    assert run.text == "I see."
    assert result.is_error
    assert result.call_id == "call_1_0"
    assert text in result.text
    assert sent_results(model) == [result]


# B27
def test_a_tool_that_takes_too_long_is_answered_by_an_error(
    store: Store, released: threading.Event
) -> None:
    @nb.tool(timeout_s=0.01)
    def hang() -> str:
        """Hang."""
        released.wait(30)
        return "late"

    chat = nb.open("s", store=store, model=ScriptedModel(calls(("hang", {})), "ok"), tools=[hang])

    run = chat.run("Go.", show=None)

    (result,) = results_of(chat)
    assert run.text == "ok"
    assert result.is_error
    assert "did not finish within 0.01 s" in result.text
    assert "outcome is unknown" in result.text


# B27
def test_one_call_that_fails_leaves_the_others_their_results(store: Store) -> None:
    model = ScriptedModel(
        calls(("divide", {"a": 1, "b": 0}), ("nope", {}), ("divide", {"a": 1, "b": 4})), "ok"
    )
    chat = nb.open("s", store=store, model=model, tools=[divide])

    chat.run("Divide.", show=None)

    assert [(r.call_id, r.is_error) for r in results_of(chat)] == [
        ("call_1_0", True),
        ("call_1_1", True),
        ("call_1_2", False),
    ]
    assert results_of(chat)[2].text == "0.25"


async def _double(n: int) -> int:
    """Double a number."""
    return 2 * n


# B27
def test_an_async_tool_is_called_like_a_sync_one(store: Store) -> None:
    double = nb.tool(_double, name="double")
    model = ScriptedModel(calls(("double", {"n": 21})), "42")
    chat = nb.open("s", store=store, model=model, tools=[double])

    chat.run("Double.", show=None)

    assert [result.text for result in results_of(chat)] == ["42"]


# -- order -----------------------------------------------------------------------------------------


# B28
def test_parallel_tools_run_together_and_are_stored_and_sent_in_call_order(store: Store) -> None:
    together = threading.Barrier(3)
    turns = [threading.Event() for _ in range(3)]
    ended: list[int] = []

    @nb.tool(parallel=True)
    def work(n: int) -> int:
        """Work."""
        together.wait(30)
        if n < 2:
            assert turns[n + 1].wait(30)  # the last call ends first
        ended.append(n)
        turns[n].set()
        return n

    model = ScriptedModel(calls(*(("work", {"n": n}) for n in range(3))), "ok")
    chat = nb.open("s", store=store, model=model, tools=[work])

    chat.run("Go.", show=None)

    assert ended == [2, 1, 0]
    assert [result.text for result in results_of(chat)] == ["0", "1", "2"]
    assert [result.text for result in sent_results(model)] == ["0", "1", "2"]


# B28
def test_one_tool_that_is_not_parallel_puts_the_whole_step_in_sequence(store: Store) -> None:
    seen: list[str] = []

    @nb.tool(parallel=True)
    def fast(n: int) -> int:
        """Be fast."""
        seen.append(f"in {n}, {len(results_of(chat))} stored")
        return n

    @nb.tool
    def slow(n: int) -> int:
        """Be slow."""
        seen.append(f"in {n}, {len(results_of(chat))} stored")
        return n

    step = calls(("fast", {"n": 0}), ("slow", {"n": 1}), ("fast", {"n": 2}))
    chat = nb.open("s", store=store, model=ScriptedModel(step, "ok"), tools=[fast, slow])

    chat.run("Go.", show=None)

    assert seen == ["in 0, 0 stored", "in 1, 1 stored", "in 2, 2 stored"]


# B27 B28
def test_a_parallel_call_that_fails_does_not_shift_the_results(store: Store) -> None:
    @nb.tool(parallel=True)
    def check(n: int) -> int:
        """Check."""
        if n == 0:
            raise ValueError("zero")
        return n

    step = calls(("check", {"n": 0}), ("check", "{"), ("check", {"n": 2}))
    chat = nb.open("s", store=store, model=ScriptedModel(step, "ok"), tools=[check])

    chat.run("Go.", show=None)

    found = [(r.call_id, r.is_error, r.text) for r in results_of(chat)]
    assert [call_id for call_id, _, _ in found] == ["call_1_0", "call_1_1", "call_1_2"]
    assert [is_error for _, is_error, _ in found] == [True, True, False]
    assert found[0][2] == "ValueError: zero"


# -- which calls run -------------------------------------------------------------------------------


# B30
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_calls_under_another_stop_reason_are_not_executed(store: Store, reason: str) -> None:
    step = (CallDelta(0, "c1", "divide", '{"a":1,"b":2}'), Finish(stop_reason=reason))
    model = ScriptedModel(step, "go on")

    def never(a: int, b: int) -> None:
        raise AssertionError("was executed")

    tools = [nb.tool(never, name="divide")]
    chat = nb.open("s", store=store, model=model, tools=tools)

    run = chat.run("Divide.", show=None)
    chat.run("And now?", show=None)

    assert run.outcome == "done"
    assert model.call_count == 2
    assert results_of(chat) == []
    (sent,) = sent_results(model)
    assert (sent.call_id, sent.is_error) == ("c1", True)
    assert f"not executed: the reply that made it ended with '{reason}'" in sent.text


# B30
@pytest.mark.parametrize("reason", ["stop", "tool_calls"])
def test_calls_that_the_provider_ran_are_neither_executed_nor_repaired(
    store: Store, reason: str
) -> None:
    step = (
        CallDelta(0, "srv1", "divide", '{"a":1,"b":2}', provider_run=True),
        "It is a half.",
        Finish(stop_reason=reason),
    )
    model = ScriptedModel(step, "Welcome.")

    def never(a: int, b: int) -> None:
        raise AssertionError("was executed")

    chat = nb.open("s", store=store, model=model, tools=[nb.tool(never, name="divide")])

    run = chat.run("Search.", show=None)
    chat.run("Thanks.", show=None)

    assert run.text == "It is a half."
    assert sent_results(model) == []
    sent = [block for message in model.requests[-1].messages for block in message.tool_calls]
    assert [(call.id, call.provider_run) for call in sent] == [("srv1", True)]


# B30 B44
def test_our_own_call_beside_one_of_the_provider_is_executed(store: Store) -> None:
    step = (
        CallDelta(0, "srv1", "web_search", "{}", provider_run=True),
        CallDelta(1, "c1", "divide", '{"a":1,"b":2}'),
        Finish(stop_reason="tool_calls"),
    )
    chat = nb.open("s", store=store, model=ScriptedModel(step, "ok"), tools=[divide])

    chat.run("Go.", show=None)

    assert [(r.call_id, r.text) for r in results_of(chat)] == [("c1", "0.5")]


# B22 B44 case 23
def test_a_call_cut_in_its_arguments_is_kept_and_neither_run_nor_sent(store: Store) -> None:
    def read(path: str) -> None:
        raise AssertionError("was executed")

    model = ScriptedModel(cut(CallDelta(0, "c1", "read", '{"path": "a.tx')), "ok")
    chat = nb.open("s", store=store, model=model, tools=[nb.tool(read)])
    with pytest.raises(nb.errors.ModelError, match="broke off"):
        chat.run("Read.", show=None)

    chat.run("Again.", show=None)

    broken = messages_of(chat)[1].message
    assert broken.stop_reason == "error"
    assert [(c.raw, c.complete, c.args_valid) for c in broken.tool_calls] == [
        ('{"path": "a.tx', False, False)
    ]
    assert [m.role for m in model.requests[-1].messages] == ["user", "user"]


# B44 case 19
def test_a_call_id_that_comes_again_in_a_later_step_keeps_its_own_result(store: Store) -> None:
    def step(n: int) -> tuple[object, ...]:
        return (CallDelta(0, "call_0", "divide", f'{{"a":{n},"b":1}}'),)

    model = ScriptedModel(step(1), step(2), "ok", "ok")
    chat = nb.open("s", store=store, model=model, tools=[divide])
    chat.run("Go.", show=None)

    chat.run("Again.", show=None)

    assert [result.text for result in sent_results(model)] == ["1.0", "2.0"]
    assert [m.role for m in model.requests[-1].messages] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant", "user")
    ]


# B44 case 19
def test_a_call_id_that_comes_twice_in_one_message_runs_once(store: Store) -> None:
    twice = (
        CallDelta(0, "c1", "divide", '{"a":1,"b":1}'),
        CallDelta(1, "c1", "divide", '{"a":2,"b":1}'),
    )
    model = ScriptedModel(twice, "ok")
    chat = nb.open("s", store=store, model=model, tools=[divide])

    chat.run("Go.", show=None)

    assert [result.text for result in results_of(chat)] == ["1.0"]
    assert len(messages_of(chat)[1].message.tool_calls) == 2
    sent = [block for message in model.requests[-1].messages for block in message.tool_calls]
    assert [call.raw for call in sent] == ['{"a":1,"b":1}']


# B40 B44 case 14
def test_a_call_without_a_result_is_answered_in_the_view_each_time_alike(store: Store) -> None:
    asked = nb.assistant(ToolCallBlock("c1", "divide"), ToolCallBlock("c2", "divide"))
    got = nb.MessageEntry(message=Message("tool", (ToolResultBlock("c2"),)))
    nb.open("s", store=store, model=ScriptedModel()).append("Go.", asked, got)
    prompts = []
    for _ in range(2):
        model = ScriptedModel("ok")
        chat = nb.open("s", store=store, model=model)
        chat.run("go on", at=3, show=None)
        prompts.append(model.requests[0].messages)
        chat.close()

    assert prompts[0] == prompts[1]
    assert [m.role for m in prompts[0]] == ["user", "assistant", "tool", "tool", "user"]
    first, second = (block for m in prompts[0] for block in m.tool_results)
    assert (first.call_id, first.is_error) == ("c1", True)
    assert (second.call_id, second.is_error) == ("c2", False)
    assert len(store.load_entries("s")) == 3 + 2 * 2
