from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from nbdurable.blocks import Message, TextBlock, ToolCallBlock, ToolResultBlock
from nbdurable.errors import RunError
from nbdurable.hooks import HookChain, Hooks
from nbdurable.inputs import meta, user
from nbdurable.models.base import ModelRequest

T = TypeVar("T")

CALL = ToolCallBlock("c1", "pay", '{"amount":5}')
RESULT = ToolResultBlock("c1", (TextBlock("paid"),), name="pay")
REQUEST = ModelRequest(messages=(), system="s")
REPLY = Message("assistant", (TextBlock("done"),))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def hook(**methods: object) -> SimpleNamespace:
    return SimpleNamespace(**methods)


def raising(error: BaseException) -> Any:
    def method(*args: object) -> None:
        raise error

    return method


# B32
def test_without_hooks_everything_goes_on_as_it_is() -> None:
    for chain in (HookChain.of(None), HookChain.of([]), HookChain.of(Hooks())):
        assert run(chain.before_model(REQUEST)) is REQUEST
        assert run(chain.before_tool(CALL)) is CALL
        assert run(chain.after_tool(CALL, RESULT)) is RESULT
        assert run(chain.before_stop(REPLY)) == ()
        assert not chain.wants("before_tool")


# B32
def test_before_model_replaces_what_the_model_sees_hook_by_hook() -> None:
    class First(Hooks):
        def before_model(self, request: ModelRequest) -> ModelRequest:
            return replace(request, system=f"{request.system}1")

    class Second(Hooks):
        async def before_model(self, request: ModelRequest) -> ModelRequest:
            return replace(request, system=f"{request.system}2")

    request = run(HookChain.of([First(), Hooks(), Second()]).before_model(REQUEST))

    assert (request.system, REQUEST.system) == ("s12", "s")


# B32
def test_before_tool_allows_with_none() -> None:
    assert run(HookChain.of(hook(before_tool=lambda call: None)).before_tool(CALL)) is CALL


# B32
def test_before_tool_denies_with_a_reason_and_asks_no_further_hook() -> None:
    asked: list[ToolCallBlock] = []
    chain = HookChain.of(
        [hook(before_tool=lambda call: "too much"), hook(before_tool=asked.append)]
    )

    result = run(chain.before_tool(CALL))

    assert result == ToolResultBlock(
        "c1", (TextBlock("not run: too much"),), is_error=True, name="pay"
    )
    assert asked == []


# B32
def test_before_tool_changes_arguments_for_the_next_hook_too() -> None:
    seen: list[object] = []
    chain = HookChain.of(
        [
            hook(before_tool=lambda call: {**call.arguments, "amount": 2**60}),
            hook(before_tool=lambda call: seen.append(call.arguments)),
        ]
    )

    call = run(chain.before_tool(CALL))

    assert call == replace(CALL, raw=f'{{"amount":{2**60}}}')
    assert seen == [{"amount": 2**60}]


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (raising(ValueError("no key")), "not run: no key"),
        (raising(ValueError()), "not run: ValueError"),
        (raising(KeyboardInterrupt()), "not run: KeyboardInterrupt"),
        (lambda call: "", "not run: no reason given"),
        (lambda call: False, "returned False; return None, text or a dict"),
        (
            lambda call: {"x": float("nan")},
            "changed the arguments, but value at 'x' of the payload",
        ),
    ],
)
# B32
def test_before_tool_denies_when_it_fails_or_answers_strangely(method: object, text: str) -> None:
    result = run(HookChain.of(hook(before_tool=method)).before_tool(CALL))

    assert isinstance(result, ToolResultBlock)
    assert result.is_error
    assert text in result.text


# B32
def test_after_tool_changes_the_result_but_not_whose_it_is() -> None:
    chain = HookChain.of(
        hook(after_tool=lambda call, result: ToolResultBlock("x", (TextBlock("***"),)))
    )

    result = run(chain.after_tool(CALL, RESULT))

    assert result == ToolResultBlock("c1", (TextBlock("***"),), name="pay")


# B32
def test_after_step_is_told_message_and_results() -> None:
    told: list[object] = []
    chain = HookChain.of(hook(after_step=lambda *args: told.append(args)))

    run(chain.after_step(REPLY, (RESULT,)))

    assert told == [(REPLY, (RESULT,))]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, ()),
        (" ", ()),
        ([], ()),
        ("go on", (user("go on"),)),
        (meta("m"), (meta("m"),)),
        (["a", "b", meta("m")], (user("a", "b"), meta("m"))),
    ],
)
# B32
def test_before_stop_adds_follow_up_input(answer: object, expected: tuple[object, ...]) -> None:
    assert (
        run(HookChain.of(hook(before_stop=lambda message: answer)).before_stop(REPLY)) == expected
    )


def test_before_stop_joins_the_input_of_all_hooks_in_order() -> None:
    chain = HookChain.of([hook(before_stop=lambda m: "a"), hook(before_stop=lambda m: "b")])

    assert run(chain.before_stop(REPLY)) == (user("a"), user("b"))


def test_before_stop_with_what_is_no_input_names_the_hook() -> None:
    class Eager(Hooks):
        def before_stop(self, message: Message) -> object:
            return 3

    with pytest.raises(RunError, match=r"hook Eager\.before_stop returned no input: input 1 of"):
        run(HookChain.of(Eager()).before_stop(REPLY))


@pytest.mark.parametrize("name", ["before_model", "after_tool", "after_step", "before_stop"])
def test_a_hook_that_fails_is_named_by_a_run_error(name: str) -> None:
    arguments = {"before_model": (REQUEST,), "before_stop": (REPLY,)}.get(name, (CALL, RESULT))
    cause = ZeroDivisionError("by zero")
    chain = HookChain.of(hook(**{name: raising(cause)}))

    with pytest.raises(RunError, match=r"hook .*method failed: ZeroDivisionError: by zero") as got:
        run(getattr(chain, name)(*arguments))

    assert got.value.__cause__ is cause


@pytest.mark.parametrize("name", ["before_model", "after_tool"])
def test_a_hook_that_returns_something_else_is_named(name: str) -> None:
    arguments = (REQUEST,) if name == "before_model" else (CALL, RESULT)
    chain = HookChain.of(hook(**{name: lambda *args: 3}))

    with pytest.raises(RunError, match=r"hook .* returned 3; return None or a (Model|ToolResult)"):
        run(getattr(chain, name)(*arguments))


def test_an_object_without_hook_methods_is_refused() -> None:
    with pytest.raises(RunError, match="hook of type SimpleNamespace has no hook method; give an"):
        HookChain.of([Hooks(), hook(before_tols=print)])


def test_a_sync_hook_may_block_without_holding_up_the_loop() -> None:
    released = threading.Event()

    async def block_and_release() -> ModelRequest:
        chain = HookChain.of(hook(before_model=lambda request: released.wait(30) and None))
        task = asyncio.create_task(chain.before_model(REQUEST))
        await asyncio.sleep(0)
        released.set()
        return await task

    assert run(block_and_release()) is REQUEST


def test_cancelling_a_run_passes_through_a_hook() -> None:
    async def cancel_it() -> bool:
        asked = asyncio.Event()

        async def wait(call: ToolCallBlock) -> None:
            asked.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(HookChain.of(hook(before_tool=wait)).before_tool(CALL))
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run(cancel_it())
