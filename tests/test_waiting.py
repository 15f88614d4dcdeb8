"""Waits that would have no end are refused, and a run is one object for all handles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store

PATIENCE_S = 20.0  # before a wait without an end fails its test


def asked(chat: nb.Session) -> nb.Run:
    """Run in a thread, so that a run without an end fails instead of hanging."""
    run = chat.run("q", wait=False)
    waiter = threading.Thread(target=run.wait, daemon=True)
    waiter.start()
    waiter.join(PATIENCE_S)
    assert not waiter.is_alive(), "the run has no end"
    return run


def result_of(chat: nb.Session) -> str:
    """Return the text of the only tool result on the path."""
    (result,) = [part for message in chat.messages() for part in message.tool_results]
    return result.text


# B17 B27
@pytest.mark.parametrize(
    "wait",
    [
        lambda other: other.run("q"),
        lambda other: other.compact(),
        lambda other: other.run("q", wait=False).wait(),
        lambda other: list(other.run("q", wait=False)),
        lambda other: list(other.run("q", wait=False).stream()),
    ],
    ids=["run", "compact", "wait", "for", "stream"],
)
def test_a_wait_in_an_async_tool_is_refused_by_name(
    store: Store, wait: Callable[[nb.Session], object]
) -> None:
    other = nb.open("other", store=store, model=ScriptedModel("ok"))
    other.append(nb.user("q"), nb.assistant("a"))

    async def ask() -> str:
        """Ask."""
        wait(other)
        return "answered"

    model = ScriptedModel(calls(("ask", {})), "done")
    chat = nb.open("s", store=store, model=model, tools=[ask])

    assert asked(chat).text == "done"
    assert "cannot be waited for on the event loop that runs it" in result_of(chat)


# B15
def test_an_async_tool_may_await_a_run_of_another_session(store: Store) -> None:
    other = nb.open("other", store=store, model=ScriptedModel("from the other"))

    async def ask() -> str:
        """Ask."""
        return (await other.run("q", wait=False)).text

    model = ScriptedModel(calls(("ask", {})), "done")
    chat = nb.open("s", store=store, model=model, tools=[ask])

    assert asked(chat).text == "done"
    assert result_of(chat) == "from the other"


# B54
def test_an_async_tool_may_close_its_own_session(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"

    async def leave() -> str:
        """Leave."""
        chat.close()
        return "left"

    chat = nb.open("s", store=path, model=ScriptedModel(calls(("leave", {}))), tools=[leave])

    run = asked(chat)

    assert run.outcome == "aborted"
    for closing in threading.enumerate():
        if closing.name == "nbdurable-close":
            closing.join(PATIENCE_S)
    with nb.open("s", store=path, model=ScriptedModel("on")) as again:
        assert [past.outcome for past in again.runs()] == ["aborted"]


# B11
def test_a_live_run_of_another_handle_can_be_waited_for(store: Store) -> None:
    go_on = threading.Event()
    model = ScriptedModel(["half ", go_on, "whole"])
    chat = nb.open("s", store=store, model=model)
    other = nb.open("s", store=store, model=ScriptedModel())
    run = chat.run("q", wait=False)
    model.wait_for_request()

    (seen,) = other.runs()
    go_on.set()

    assert seen.wait(PATIENCE_S).text == "half whole"
    assert run.is_done
