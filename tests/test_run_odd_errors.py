"""What is raised but is no `Exception`, by a model, tool or hook, ends a run or a call aloud."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest

import nbdurable as nb
from nbdurable import modelcall
from nbdurable.lifecycle import SessionEvent
from nbdurable.models.base import CallDelta, Delta, Finish, ModelRequest, TextDelta
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import RunEnd, RunRecord, SpoolDraft, StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore

PATIENCE_S = 20.0  # before a run that never ends fails its test


class Mute(Exception):
    """An error that has no text to give."""

    def __str__(self) -> str:
        raise LookupError("no text")


class Odd(BaseException):
    """What a library of the user may raise."""


ODD = [asyncio.CancelledError, GeneratorExit, Odd, SystemExit]


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


# B22
def test_an_error_whose_text_fails_does_not_cost_the_partial_answer(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel(["part", Mute()]))

    with pytest.raises(nb.errors.ModelError, match="failed: Mute: <Mute: its text failed with"):
        chat.run("q")

    assert chat.transcript()[-1].text == "part"  # type: ignore[attr-defined]


# B22 B64
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bad\r\n\u2028luck\x1b[31m", "ValueError: bad luck[31m"),
        ("half \ud800", "ValueError: half"),
        ("long " * 10_000, "ValueError: long long"),
    ],
)
def test_the_text_of_anothers_error_is_one_line_that_can_be_sent(
    store: Store, text: str, shown: str
) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel(["part", ValueError(text)]))

    with pytest.raises(nb.errors.ModelError) as caught:
        chat.run("q")

    told = str(caught.value)
    assert shown in told and told.encode() and len(told) < 1_100
    assert chat.runs()[0].error == told


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


# B17
def test_a_task_of_a_tool_that_exits_leaves_other_runs_alone(store: Store) -> None:
    """Asyncio lets `SystemExit` out of its loop, which all runs of the process share."""

    async def leave() -> str:
        """Leave."""

        async def gone() -> None:
            raise SystemExit(3)

        asyncio.get_running_loop().create_task(gone())
        await asyncio.sleep(0)
        return "left"

    model = ScriptedModel(
        [CallDelta(0, "c", "leave", "{}"), Finish(stop_reason="tool_calls")], "ok"
    )
    chat = nb.open("s", store=store, model=model, tools=[leave])

    assert ended(chat.run("q", wait=False)).text == "ok"
    assert ended(chat.run("again", wait=False)).text == "ok"


# B53
def test_a_publisher_that_exits_in_a_run_undoes_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def leave(event: SessionEvent) -> None:
        if event.type == "session_compacted":
            raise SystemExit(3)

    chat = nb.open(
        "s", store=store, model=ScriptedModel("word " * 40), publisher=leave, compact_above=20
    )
    chat.run("first " * 40)

    assert ended(chat.run("second", wait=False)).outcome == "done"
    assert "the publisher failed on session_compacted" in caplog.text


class _Failing(MemoryStore):
    """A store of another's, whose driver raises errors of its own."""

    def __init__(self, verb: str, error: BaseException) -> None:
        super().__init__()
        self._verb, self._error = verb, error

    def append(
        self,
        session_id: str,
        entries: Sequence[StoredEntry] = (),
        *,
        start: RunRecord | None = None,
        end: RunEnd | None = None,
    ) -> tuple[StoredEntry, ...]:
        self._fail("append")
        return super().append(session_id, entries, start=start, end=end)

    def end_run(self, end: RunEnd) -> None:
        self._fail("end_run")
        super().end_run(end)

    def spool(self, draft: SpoolDraft) -> None:
        self._fail("spool")
        super().spool(draft)

    def _fail(self, verb: str) -> None:
        if verb == self._verb:
            raise self._error


# B21
@pytest.mark.parametrize("verb", ["append", "end_run"])
@pytest.mark.parametrize("error", [RuntimeError("gone"), SystemExit("gone")])
def test_a_store_that_raises_errors_of_its_own_ends_the_run(
    verb: str, error: BaseException
) -> None:
    chat = nb.open("s", store=_Failing(verb, error), model=ScriptedModel(ValueError("refused")))

    run = ended(chat.run("q", wait=False))

    assert run.outcome == "error"
    with pytest.raises(nb.errors.RunError, match="gone" if verb == "append" else "refused"):
        run.wait()


# B24
def test_a_spool_that_raises_errors_of_its_own_does_not_end_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(modelcall, "SPOOL_EVERY_S", 0.01)
    tried, whole = threading.Event(), threading.Event()
    store = _Failing("spool", RuntimeError("gone"))
    monkeypatch.setattr(store, "_fail", lambda verb: verb == "spool" and _raise_after(tried))
    chat = nb.open("s", store=store, model=ScriptedModel(["half ", whole, "whole"]))

    run = chat.run("q", wait=False)
    assert tried.wait(PATIENCE_S)
    whole.set()

    assert ended(run).text == "half whole"


def _raise_after(tried: threading.Event) -> None:
    tried.set()
    raise RuntimeError("gone")
