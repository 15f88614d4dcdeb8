"""What is raised but is no `Exception`, by a model, tool or hook, ends a run or a call aloud."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

import nbdurable as nb
from nbdurable.models.base import CallDelta, Delta, Finish, ModelRequest, TextDelta
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store

PATIENCE_S = 20.0  # before a run that never ends fails its test


class Odd(BaseException):
    """What a library of the user may raise."""


ODD = [asyncio.CancelledError, GeneratorExit, Odd]


class _OwnModel(ScriptedModel):
    """A model whose stream is given whole."""

    def __init__(self, stream: AsyncIterator[Delta]) -> None:
        super().__init__()
        self._stream = stream

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        return self._stream


class _Deltas:
    """An async iterator that is no generator, so it has no `aclose`."""

    def __init__(self, *deltas: Delta) -> None:
        self._deltas = iter(deltas)

    def __aiter__(self) -> _Deltas:
        return self

    async def __anext__(self) -> Delta:
        for delta in self._deltas:
            return delta
        raise StopAsyncIteration


async def _raising(error: BaseException) -> AsyncIterator[Delta]:
    yield TextDelta("part")
    raise error


def ended(run: nb.Run) -> nb.Run:
    """Wait for a run in a thread, so that one without an end fails instead of hanging."""
    waiter = threading.Thread(target=_wait, args=(run,), daemon=True)
    waiter.start()
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive(), "the run has no end"
    return run


def _wait(run: nb.Run) -> None:
    try:
        run.wait()
    except nb.errors.NbDurableError:
        pass


# B22
@pytest.mark.parametrize("kind", ODD)
def test_a_model_that_raises_no_exception_proper_ends_its_run(
    store: Store, kind: type[BaseException]
) -> None:
    chat = nb.open("s", store=store, model=_OwnModel(_raising(kind())))

    run = ended(chat.run("q", wait=False))

    assert run.outcome == "error"
    with pytest.raises(nb.errors.ModelError, match=f"failed: {kind.__name__}"):
        run.wait()
    assert chat.transcript()[-1].message.text == "part"


# B27
@pytest.mark.parametrize("kind", ODD)
def test_an_async_tool_that_raises_no_exception_proper_is_an_error_result(
    store: Store, kind: type[BaseException]
) -> None:
    async def broken() -> str:
        """Break."""
        raise kind

    model = ScriptedModel(
        [CallDelta(0, "c", "broken", "{}"), Finish(stop_reason="tool_calls")], "ok"
    )
    chat = nb.open("s", store=store, model=model, tools=[broken])

    run = ended(chat.run("q", wait=False))

    assert run.text == "ok"
    (result,) = [r for e in chat.path() for r in e.message.tool_results]
    assert result.is_error and kind.__name__ in result.text


# B32
@pytest.mark.parametrize("kind", ODD)
def test_a_hook_that_raises_no_exception_proper_ends_its_run(
    store: Store, kind: type[BaseException]
) -> None:
    class Broken(nb.Hooks):
        def before_model(self, request: ModelRequest) -> None:
            raise kind

    chat = nb.open("s", store=store, model=ScriptedModel("ok"), hooks=Broken())

    run = ended(chat.run("q", wait=False))

    assert run.outcome == "error"
    with pytest.raises(nb.errors.RunError, match=f"before_model failed: {kind.__name__}"):
        run.wait()


# B16
def test_a_models_stream_may_be_an_iterator_that_is_no_generator(store: Store) -> None:
    stream = _Deltas(TextDelta("whole"), Finish())
    chat = nb.open("s", store=store, model=_OwnModel(stream))

    assert ended(chat.run("q", wait=False)).text == "whole"
