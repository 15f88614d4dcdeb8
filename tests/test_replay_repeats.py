"""B58, B29: failed runs are made again from their stored input, effects are not repeated."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from replaying import Never, held, opened

import nbdurable as nb
from nbdurable.errors import ModelError
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stores.base import Store

# -- failed, aborted and interrupted runs --------------------------------------------------------


# B58
@pytest.mark.parametrize("before_output", [True, False])
def test_a_failed_run_is_made_again_from_its_stored_input(
    store: Store, before_output: bool
) -> None:
    failing = ModelError("no") if before_output else cut("Half")
    model = ScriptedModel(failing, "Whole.")
    with pytest.raises(ModelError) as raised:
        opened(store, model).run("q", nb.meta("m"), show=None)
    first = raised.value.run
    assert first is not None

    with pytest.warns(UserWarning, match="the equal run of #2 ended 'error'"):
        again = opened(store, model).run("q", nb.meta("m"), show=None)

    assert again.text == "Whole."
    assert [e.id for e in again.entries[:2]] == [e.id for e in first.entries[:2]]
    (old, _), (new, _) = store.load_runs("s")
    assert (new.start_leaf_id, new.input_ids) == (old.start_leaf_id, old.input_ids)
    assert [e.parent_id for e in store.load_entries("s")[2:]] == [again.input_ids[-1]] * (
        1 if before_output else 2
    )
    seen = [message.text for message in model.requests[-1].messages]
    assert seen == ["q", "m"]


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_the_run_that_repeats_a_failed_one_is_replayed(store: Store) -> None:
    model = ScriptedModel(ModelError("no"), "Whole.")
    with pytest.raises(ModelError):
        opened(store, model).run("q", show=None)
    repeated = opened(store, model).run("q", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name)).run("q", show=None)

    assert (again.run_id, again.input_ids) == (repeated.run_id, repeated.input_ids)
    assert [e.id for e in again.entries] == [e.id for e in repeated.entries]
    assert held(store) == before
    runs = nb.open("s", store=store, model=model).runs()
    assert [e.id for e in runs[1].entries] == [e.id for e in again.entries]


# B58 B35
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_repeated_run_says_its_ephemeral_input_where_it_was_said(store: Store) -> None:
    model = ScriptedModel(ModelError("no"), "Whole.")
    input = ("a", nb.ephemeral("e"), "b")
    with opened(store, model) as chat, pytest.raises(ModelError):
        chat.run(*input, show=None)

    chat = opened(store, model)
    chat.run(*input, show=None)

    assert [message.text for message in model.requests[-1].messages] == ["a", "e", "b"]
    assert [e.text for e in chat.entries(nb.MessageEntry)] == ["a", "e", "b", "Whole."]


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_run_that_fails_again_is_made_again_from_the_same_input(store: Store) -> None:
    model = ScriptedModel(ModelError("no"), ModelError("no"), "Whole.")
    for _ in range(2):
        with pytest.raises(ModelError):
            opened(store, model).run("q", show=None)

    opened(store, model).run("q", show=None)

    assert [entry.role for entry in store.load_entries("s")] == ["user", "assistant"]


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_of_equal_detached_runs_only_the_failed_one_is_made_again(store: Store) -> None:
    model = ScriptedModel("one", ModelError("no"), "three", "two")
    chat = opened(store, model)
    for fails in (False, True, False):
        run = chat.run("q", move=False, wait=False)
        if fails:
            with pytest.raises(ModelError):
                run.wait()
        else:
            run.wait()

    def notebook() -> list[str]:
        again = opened(store, model)
        return [again.run("q", move=False, show=None).text for _ in range(3)]

    assert notebook() == ["one", "three", "two"]
    assert notebook() == ["one", "three", "two"]
    assert (model.call_count, len(store.load_entries("s"))) == (4, 6)


# B58 B17
@pytest.mark.filterwarnings("ignore:this run at")
def test_two_calls_at_once_do_not_repeat_one_failed_run(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel(ModelError("no"), ["x", go], ["y", go])
    with pytest.raises(ModelError):
        opened(store, model).run("q", move=False, show=None)

    again = opened(store, model)
    live = [again.run("q", move=False, wait=False) for _ in range(2)]
    go.set()
    inputs = {run.wait().input_ids for run in live}

    assert len(inputs) == 2


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_cancelled_run_is_made_again(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel(["Half", go], "Whole.")
    live = opened(store, model).run("q", wait=False)
    for event in live:
        if event.type == "message_update":
            live.cancel()

    again = opened(store, model).run("q", show=None)

    assert (again.text, again.input_ids) == ("Whole.", live.input_ids)


# B58 B24
def test_a_run_that_was_killed_is_made_again(tmp_path: Path) -> None:
    script = (
        "import sys, time, nbdurable as nb\n"
        "from nbdurable.models.scripted import ScriptedModel\n"
        "chat = nb.open('s', store='s.duckdb', model=ScriptedModel(['Half', 60.0]), replay=True)\n"
        "for event in chat.run('q', wait=False):\n"
        "    if event.type == 'agent_start': print('in it', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert it.stdout.readline().strip() == "in it"
        it.send_signal(signal.SIGKILL)

    model = ScriptedModel("Whole.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with nb.open("s", store="s.duckdb", model=model, replay=True) as chat:
            run = chat.run("q", show=None)
    with nb.open("s", store="s.duckdb", model=Never(), replay=True) as chat:
        assert chat.run("q", show=None).run_id == run.run_id
        assert [e.text for e in chat.path()] == ["q", "Whole."]
        assert nb.open("s", store="s.duckdb", model=model).leaf_id == run.leaf_id


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_run_that_still_goes_on_is_not_repeated(store: Store) -> None:
    go = threading.Event()
    model = ScriptedModel(["Half", go], "Other.")
    live = opened(store, model).run("q", move=False, wait=False)
    next(event for event in live if event.type == "agent_start")

    with pytest.warns(UserWarning, match=f"the equal run {live.run_id} still goes on elsewhere"):
        other = opened(store, model).run("q", move=False, show=None)
    go.set()

    assert other.text == "Other."
    assert live.wait().input_ids != other.input_ids


# B7 B58
def test_a_miss_whose_model_is_missing_stores_nothing_and_can_be_asked_again(store: Store) -> None:
    model = ScriptedModel(ModelError("no"), "Whole.")
    with pytest.raises(ModelError):
        opened(store, model).run("q", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name))
    for _ in range(2):
        with (
            pytest.warns(UserWarning, match="ended 'error'"),
            pytest.raises(AssertionError, match="looked for its model"),
        ):
            again.run("q", show=None)

    assert held(store) == before


# -- tools with effects ------------------------------------------------------------------------


# B29 B58
@pytest.mark.parametrize(("effects", "times"), [("refuse", 1), ("run", 2)])
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_miss_does_not_repeat_an_effect_unasked(store: Store, effects: Any, times: int) -> None:
    sent = []

    @nb.tool(effects=True)
    def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return "sent"

    asks = calls(("send", {"to": "Ann"}))
    model = ScriptedModel(asks, "Sent.", asks, "Sent again.")
    opened(store, model, tools=[send]).run("Send it.", show=None)

    run = opened(store, model, tools=[send]).run("Send it!", effects=effects, show=None)

    assert sent == ["Ann"] * times
    refusals = [r.text for m in run.messages for r in m.tool_results if r.is_error]
    assert [text.startswith("not executed: send") for text in refusals] == [True] * (2 - times)
