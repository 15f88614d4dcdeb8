"""What is changed tells whoever watches, after the change and whatever the watcher does."""

from __future__ import annotations

import logging
import threading

import pytest

import nbdurable as nb
from nbdurable.ids import IdMaker
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


def opened(store: Store, *steps: object) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*steps or ("Hi.",)))  # type: ignore[arg-type]


# B11
@pytest.mark.parametrize("verb", ["append", "branch", "label", "run", "refresh"])
def test_a_watcher_of_a_session_finds_what_it_is_told_of(store: Store, verb: str) -> None:
    chat = opened(store)
    chat.append(nb.user("Q"))
    seen: list[object] = []
    look = {
        "append": lambda: chat.image.count == 2,
        "branch": lambda: chat.leaf.id is None,
        "label": lambda: chat.image.annotations().labels() == ["here"],
        "run": lambda: any(run.is_done is False for run in chat.image.live.values()),
        "refresh": lambda: chat.image.count == 2,
    }[verb]
    other = nb.open("s", store=store, model=ScriptedModel("x"))
    stop = chat.image.watch(lambda: seen.append(look()))

    if verb == "append":
        chat.append(nb.user("R"))
    elif verb == "branch":
        chat.branch(None)
    elif verb == "label":
        chat.label(1, "here")
    elif verb == "run":
        chat.run(show=None)
    else:
        entry = chat.image.stored(chat.image.id_of(1) or "")
        store.append("s", [entry._replace(id=IdMaker()(), parent_id=entry.id)])
        chat.entries()
    stop()
    told = len(seen)
    chat.append(nb.user("after the end"))

    assert True in seen
    assert len(seen) == told
    other.close()
    chat.close()


# B17
def test_a_watcher_of_a_run_is_woken_by_its_events_and_its_end(store: Store) -> None:
    go, ended = threading.Event(), threading.Event()
    chat = opened(store, [go, "Hi."])
    run = chat.run("Q", wait=False, show=None)
    kinds: set[str] = set()

    def wake() -> None:
        kinds.update(event.type for event in run.events_since(0))
        if run.is_done:
            ended.set()

    run.watch(wake)
    go.set()

    assert ended.wait(10)
    assert "agent_end" in kinds
    assert run.events_since(2) == list(run.events[2:])
    chat.close()


# B21
def test_a_watcher_that_fails_is_logged_and_stops_nobody(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    chat = opened(store)

    def fail() -> None:
        raise ValueError("no")

    chat.image.watch(fail)
    with caplog.at_level(logging.WARNING, logger="nbdurable"):
        chat.run("Q", show=None)

    assert [entry.n for entry in chat.entries()] == [1, 2]
    assert "a watcher failed" in caplog.text
    chat.close()
