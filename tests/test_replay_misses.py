"""B58, B29: what a call without an equal on record does, says and leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from replaying import Never, held, opened

import nbdurable as nb
from nbdurable.errors import ModelError, ReplayMiss
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.recorded import Request, difference
from nbdurable.stores.base import Store

# -- what differs ------------------------------------------------------------------------------

ASKED = Request(
    kind="run",
    start="#4",
    input=("q",),
    preview="q",
    model="m",
    system="Be kind.",
    tools=(("add", "{1}"),),
    params=(("temperature", "0.2"),),
)

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "start": ({"start": "the root"}, "start the root → #4"),
    "input": ({"input": ("r",), "preview": "r"}, "input 'r' → 'q'"),
    "bytes": ({"input": ("r",)}, "input"),
    "long input": (
        {"input": ("r",), "preview": "r" * 100},
        "input '" + "r" * 38 + "… → 'q'",
    ),
    "ephemeral": ({"ephemeral": ("d",)}, "ephemeral input"),
    "model": ({"model": "n"}, "model 'n' → 'm'"),
    "system": ({"system": None}, "system text"),
    "value": ({"params": (("temperature", "0.9"),)}, "temperature 0.9 → 0.2"),
    "one more": ({"params": ()}, "temperature unset → 0.2"),
    "tools": ({"tools": ()}, "tools none → add"),
    "schema": ({"tools": (("add", "{2}"),)}, "description or schema of tool 'add'"),
    "two": ({"model": "n", "params": ()}, "model 'n' → 'm', temperature unset → 0.2"),
}


# B58
@pytest.mark.parametrize("what", CHANGES)
def test_a_difference_names_what_changed(what: str) -> None:
    values, words = CHANGES[what]

    assert difference(ASKED, replace(ASKED, **values)) == words


# B58
def test_a_miss_that_is_made_says_what_differs(store: Store) -> None:
    model = ScriptedModel("Old.", "New.")
    opened(store, model, temperature=0.2).run("q", show=None)

    with pytest.warns(UserWarning) as said:
        opened(store, model, temperature=0.9).run("q", show=None)

    assert [str(one.message) for one in said] == [
        "this run at the root is made for real: the nearest recorded run, which ended at #2, "
        "differs in temperature 0.2 → 0.9"
    ]
    assert said[0].filename == __file__


# B58
def test_the_first_time_nothing_is_said(store: Store) -> None:
    model = ScriptedModel("An answer.")
    chat = opened(store, model)

    for text in "abc":  # warnings are errors
        chat.run(text, show=None)

    assert chat.replay_report().misses == 3


# B58
def test_a_call_beyond_the_end_of_the_record_is_just_new(
    store: Store, model: ScriptedModel
) -> None:
    opened(store, model).run("a", show=None)

    again = opened(store, model)
    again.run("a", show=None)
    again.run("b", show=None)  # warnings are errors

    assert model.call_count == 2


# B55 B56
@pytest.mark.filterwarnings("ignore:this run at")
def test_an_edited_call_grows_a_sibling_and_the_original_is_free_again(store: Store) -> None:
    model = ScriptedModel("a", "b", "c", "b2", "c2")

    def notebook(words: str) -> list[str]:
        chat = opened(store, model)
        return [chat.run(text, show=None).text for text in ("A", words, "C")]

    first = notebook("B")
    edited = notebook("B?")
    calls_then = model.call_count

    assert (first, edited) == (["a", "b", "c"], ["a", "b2", "c2"])
    assert notebook("B") == first
    assert notebook("B?") == edited
    assert model.call_count == calls_then == 5


# -- replay="only" -----------------------------------------------------------------------------


# B58
def test_only_refuses_a_miss_and_names_the_nearest_run(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model, temperature=0.2)
    chat.run("What is a monad?", show=None)
    chat.run("And a burrito?", show=None)
    before = held(store)

    again = opened(store, Never(name=model.name), temperature=0.9, replay="only")
    with pytest.raises(ReplayMiss) as raised:
        again.run("What is a monad?", show=None)

    assert str(raised.value) == (
        "no recorded run answers this run at the root: the nearest recorded run, which ended at "
        "#2, differs in temperature 0.2 → 0.9; open with replay=True, or with replay_model=, to "
        "have it answered"
    )
    assert held(store) == before
    assert again.leaf_id is None


# B58
def test_only_names_a_run_of_another_place_when_nothing_is_nearer(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    chat.run("a", show=None)
    chat.run("b", show=None)

    again = opened(store, Never(name=model.name), replay="only")
    again.run("a", show=None)
    again.append("in between")
    with pytest.raises(ReplayMiss, match=r"ended at #4, differs in start #2 → #5, input 'b' → 'c'"):
        again.run("c", show=None)


# B58
def test_only_says_when_there_is_nothing_on_record(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model, replay="only")

    with pytest.raises(ReplayMiss, match="session 's' has no other recorded run of that kind"):
        chat.run("q", show=None)


# B58
def test_only_refuses_rerun_edit_and_compact_alike(store: Store, model: ScriptedModel) -> None:
    opened(store, model).run("q", show=None)
    again = opened(store, Never(name=model.name), replay="only")
    run = again.run("q", show=None)
    before = held(store)

    with pytest.raises(ReplayMiss, match="this rerun at #1"):
        again.rerun(show=None)
    with pytest.raises(ReplayMiss, match="this edit at the root"):
        again.edit(run, "r", show=None)
    with pytest.raises(ReplayMiss, match="this compact at #2"):
        again.compact()
    assert held(store) == before


# B58
def test_only_lets_pass_what_needs_no_model(store: Store, model: ScriptedModel) -> None:
    again = opened(store, Never(name=model.name), replay="only")

    (said,) = again.append("noted")

    assert again.leaf_id == said.id


# -- replay_model ------------------------------------------------------------------------------


# B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_a_replay_model_answers_misses_and_the_next_replay_finds_them(store: Store) -> None:
    asked, stand_in = ScriptedModel("Dear.", name="dear"), ScriptedModel("Free.", name="free")
    opened(store, asked).run("a", show=None)

    again = opened(store, Never(name="dear"), replay_model=stand_in)
    texts = [again.run(text, show=None).text for text in "ab"]
    third = opened(store, Never(name="dear"))
    found = [third.run(text, show=None) for text in "ab"]

    assert texts == [run.text for run in found] == ["Dear.", "Free."]
    assert [run.model for run in found] == ["dear", "free"]
    assert [entry.model for entry in store.load_entries("s")] == [None, "dear", None, "free"]
    assert stand_in.call_count == 1


# B58 B2
def test_a_stand_in_does_not_become_the_default_model(store: Store) -> None:
    stand_in = ScriptedModel("Free.", name="free")
    opened(store, Never(name="openai/dear"), replay_model=stand_in).run("a", show=None)

    with pytest.warns(UserWarning, match="goes on with model 'openai/dear'"):
        again = nb.open("s", store=store, replay=True)

    assert again.run("a", show=None).text == "Free."


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
