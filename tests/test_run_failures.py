"""B21, B22: what is stored when an append or a provider fails, and how a run goes on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.models.base import CallDelta, Finish
from nbdurable.models.scripted import ScriptedModel, calls, cut
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.memory import MemoryStore

ModelError = nb.errors.ModelError


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def opened(store: Store, *steps: object, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*steps), **options)  # type: ignore[arg-type]


def failed(chat: nb.Session, *input: object, **options: object) -> nb.Run:
    """Run what fails with a `ModelError`, and return the run."""
    with pytest.raises(ModelError) as caught:
        chat.run(*input, show=None, **options)  # type: ignore[arg-type]
    assert caught.value.run is not None
    return caught.value.run


def rows(store: Store) -> list[tuple[str | None, str, str | None]]:
    return [(e.role, e.preview, e.stop_reason) for e in store.load_entries("s")]


# -- B21: an append fails --------------------------------------------------------------------------


class _FailingAppend:
    """A store whose k-th append is refused by its medium."""

    fail_at = 0
    appends = 0

    def append(self, *args: object, **given: object) -> object:
        self.appends += 1
        if self.appends == self.fail_at:
            raise nb.errors.StoreError("the disk is full; make room")
        return super().append(*args, **given)  # type: ignore[misc]


class FailingMemory(_FailingAppend, MemoryStore):
    pass


class FailingDuckDB(_FailingAppend, DuckDBStore):
    pass


@pytest.fixture(params=["memory", "duckdb"])
def failing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_FailingAppend]:
    is_memory = request.param == "memory"
    made = FailingMemory() if is_memory else FailingDuckDB(tmp_path / "failing.duckdb")
    yield made
    made.close()


def assert_memory_is_store(chat: nb.Session, store: Store) -> None:
    """Compare what the handle knows with what a store hands out."""
    ids = [entry.id for entry in store.load_entries("s")]
    assert [entry.id for entry in chat.entries()] == ids
    assert chat.leaf_id == (ids[-1] if ids else None)


# B21
def test_a_refused_input_calls_no_model_and_changes_nothing(failing: FailingMemory) -> None:
    model = ScriptedModel("Yes.")
    chat = nb.open("s", store=failing, model=model)
    failing.fail_at = 1

    with pytest.raises(nb.errors.StoreError, match="the disk is full") as caught:
        chat.run("Is it?", show=None)

    assert caught.value.run.outcome == "error"  # type: ignore[attr-defined]
    assert (model.call_count, failing.load_entries("s"), failing.load_runs("s")) == (0, [], [])
    assert_memory_is_store(chat, failing)
    assert chat.run("Is it?", show=None).text == "Yes."


# B21 B35
def test_refused_input_leaves_no_ephemeral_entry_behind(failing: FailingMemory) -> None:
    chat = nb.open("s", store=failing, model=ScriptedModel("Yes."))
    failing.fail_at = 1

    with pytest.raises(nb.errors.StoreError, match="the disk is full"):
        chat.run("Is it?", nb.ephemeral("It rains."), show=None)

    assert chat.entries() == []


# B21
@pytest.mark.parametrize(("fail_at", "kept", "tools_run"), [(2, 1, 0), (3, 2, 1), (5, 4, 2)])
def test_a_refused_message_stops_the_run_and_its_tools(
    failing: FailingMemory, fail_at: int, kept: int, tools_run: int
) -> None:
    ran: list[int] = []

    def note(n: int) -> int:
        ran.append(n)
        return n

    model = ScriptedModel(calls(("note", {"n": 1}), ("note", {"n": 2})), "Done.", "Done again.")
    chat = nb.open("s", store=failing, model=model, tools=[note])
    failing.fail_at = fail_at

    with pytest.raises(nb.errors.StoreError, match="the disk is full") as caught:
        chat.run("Note both.", show=None)

    assert len(ran) == tools_run
    assert len(failing.load_entries("s")) == kept
    assert_memory_is_store(chat, failing)
    run = caught.value.run  # type: ignore[attr-defined]
    assert [entry.id for entry in run.entries] == [e.id for e in failing.load_entries("s")]
    assert [end.outcome for _, end in failing.load_runs("s") if end] == ["error"]


# B21 B44
def test_a_run_goes_on_after_a_refused_message(failing: FailingMemory) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), "Done.")
    chat = nb.open("s", store=failing, model=model, tools=[add])
    failing.fail_at = 3
    with pytest.raises(nb.errors.StoreError, match="the disk is full"):
        chat.run("Add both.", show=None)

    run = chat.run(show=None)

    assert run.text == "Done."
    results = [r for m in model.requests[-1].messages for r in m.tool_results]
    assert [(r.call_id, r.is_error) for r in results] == [("call_1_0", True), ("call_1_1", True)]


# B21 B22
def test_a_partial_answer_that_cannot_be_stored_ends_in_the_stores_error(
    failing: FailingMemory,
) -> None:
    chat = nb.open("s", store=failing, model=ScriptedModel(["Half", ModelError("broken")], "All"))
    failing.fail_at = 2

    with pytest.raises(nb.errors.StoreError, match="the disk is full"):
        chat.run("Say.", show=None)

    assert_memory_is_store(chat, failing)
    assert chat.run(show=None).text == "All"


# -- B22: the provider fails -----------------------------------------------------------------------


# B22
def test_an_error_before_output_leaves_only_the_input(store: Store) -> None:
    chat = opened(store, ModelError("no such model", reason="other"), "Yes.")

    run = failed(chat, "Is it?")

    assert rows(store) == [("user", "Is it?", None)]
    assert (run.outcome, run.error, run.leaf_id) == ("error", "no such model", chat.leaf_id)
    assert [end.outcome for _, end in store.load_runs("s") if end] == ["error"]


# B22
def test_an_error_of_any_kind_becomes_a_model_error(store: Store) -> None:
    chat = opened(store, ["Half", ValueError("no JSON at 7")])

    with pytest.raises(ModelError, match="ValueError: no JSON at 7") as caught:
        chat.run("Is it?", show=None)

    assert isinstance(caught.value.__cause__, ValueError)
    assert rows(store)[1] == ("assistant", "Half", "error")


# B22
@pytest.mark.parametrize("end", [cut("Half an"), ["Half an", ModelError("reset by peer")]])
def test_an_error_in_mid_text_keeps_the_part_as_failed(store: Store, end: object) -> None:
    chat = opened(store, end)

    run = failed(chat, "Say.")

    reply = run.entries[-1].message.reply  # type: ignore[attr-defined]
    assert rows(store)[1] == ("assistant", "Half an", "error")
    assert reply.error == run.error
    assert (run.text, chat.leaf_id) == ("Half an", run.leaf_id)


# B22
def test_a_refusal_by_the_provider_is_no_normal_reply(store: Store) -> None:
    filtered = ["I can", Finish(stop_reason="error", error="stopped by the content filter")]

    run = failed(opened(store, filtered), "Say.")

    assert (rows(store)[1][2], run.error) == ("error", "stopped by the content filter")


# B22
def test_a_half_streamed_call_is_kept_raw_never_run_and_never_sent(store: Store) -> None:
    ran: list[int] = []

    def note(n: int) -> int:
        ran.append(n)
        return n

    half = ["I note: ", CallDelta(0, name="note", arguments='{"n": '), ModelError("reset")]
    model = ScriptedModel(half, "Later.")
    chat = nb.open("s", store=store, model=model, tools=[note])

    run = failed(chat, "Note 1.")
    chat.run("Go on.", show=None)

    (call,) = run.messages[-1].tool_calls
    assert (call.raw, call.complete, ran) == ('{"n": ', False, [])
    assert [m.tool_calls for m in model.requests[-1].messages] == [()] * 3
    assert [m.text for m in model.requests[-1].messages] == ["Note 1.", "I note: ", "Go on."]


# B22
def test_a_whole_call_before_an_error_is_not_run(store: Store) -> None:
    whole = [*calls(("add", {"a": 1, "b": 2})), ModelError("reset")]
    model = ScriptedModel(whole, "Later.")
    chat = nb.open("s", store=store, model=model, tools=[add])

    failed(chat, "Add.")
    chat.run("Go on.", show=None)

    assert [m.role for m in model.requests[-1].messages] == ["user", "user"]


# B22
def test_a_blank_partial_answer_is_not_sent(store: Store) -> None:
    model = ScriptedModel([" \n", ModelError("reset")], "Yes.")
    chat = nb.open("s", store=store, model=model)

    failed(chat, "Is it?")
    chat.run("Well?", show=None)

    assert [m.text for m in model.requests[-1].messages] == ["Is it?", "Well?"]


# B22
def test_running_on_after_a_failed_answer_asks_again_beside_it(store: Store) -> None:
    model = ScriptedModel(cut("Half"), "Whole.")
    chat = nb.open("s", store=store, model=model)
    first = failed(chat, "Say.")

    run = chat.run(show=None)

    assert (run.text, run.start_leaf_id) == ("Whole.", first.input_ids[0])
    assert [entry.text for entry in chat.path()] == ["Say.", "Whole."]  # type: ignore[attr-defined]
    assert [m.text for m in model.requests[-1].messages] == ["Say."]
    assert rows(store)[1] == ("assistant", "Half", "error")


# B22
def test_running_on_after_several_failures_stays_beside_them(store: Store) -> None:
    chat = opened(store, cut("one"), cut("two"), ModelError("three"), "Whole.")
    failed(chat, "Say.")
    failed(chat)
    failed(chat)

    run = chat.run(show=None)

    assert [entry.text for entry in chat.path()] == ["Say.", "Whole."]  # type: ignore[attr-defined]
    assert run.text == "Whole."


# B22
def test_running_on_answers_a_user_entry_that_was_only_appended(store: Store) -> None:
    chat = opened(store, "Yes.")
    chat.append(nb.user("Is it?"))

    run = chat.run(show=None)

    assert (run.text, run.input_ids, len(store.load_entries("s"))) == ("Yes.", (), 2)


# B22 B25
def test_running_on_after_max_steps_goes_on_from_the_results(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3.")
    chat = nb.open("s", store=store, model=model, tools=[add], max_steps=1)
    first = chat.run("Add.", show=None)

    run = chat.run(show=None)

    assert (first.outcome, run.outcome, run.text) == ("max_steps", "done", "3.")
    assert [m.role for m in model.requests[-1].messages] == ["user", "assistant", "tool"]


# B22
def test_running_on_after_a_finished_reply_is_refused(store: Store) -> None:
    model = ScriptedModel("Yes.")
    chat = nb.open("s", store=store, model=model)
    chat.run("Is it?", show=None)

    with pytest.raises(nb.errors.RunError, match="nothing to continue"):
        chat.run(show=None)

    assert (model.call_count, len(store.load_runs("s"))) == (1, 1)


# B22
def test_running_on_in_an_empty_session_is_refused(store: Store) -> None:
    with pytest.raises(nb.errors.RunError, match="give input"):
        opened(store, "Yes.").run(show=None)

    assert store.load_runs("s") == []


# B22
def test_input_that_would_end_in_an_assistant_message_is_refused(store: Store) -> None:
    with pytest.raises(nb.errors.RunError, match="ends in an assistant message"):
        opened(store, "Yes.").run(nb.user("Q"), nb.assistant("A"), show=None)

    assert (store.load_entries("s"), store.load_runs("s")) == ([], [])


# B22
@pytest.mark.parametrize("step", [ModelError("down"), cut("Half")])
def test_the_same_input_after_a_failure_says_that_run_would_continue(
    store: Store, step: object
) -> None:
    chat = opened(store, step, "Yes.")
    failed(chat, nb.meta("Be brief."), "Is it?")

    with pytest.warns(UserWarning, match=r"#2 .* run\(\) without input would continue") as caught:
        chat.run(nb.meta("Be brief."), "Is it?", show=None)

    assert [w.filename for w in caught] == [__file__]


# B22
def test_other_input_after_a_failure_warns_of_nothing(store: Store) -> None:
    chat = opened(store, ModelError("down"), "Yes.")
    failed(chat, "Is it?")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = chat.run("Is it so?", show=None)

    assert run.text == "Yes."
