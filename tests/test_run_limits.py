"""B25: the step limit, retries, unknown parameters."""

from __future__ import annotations

import pytest

import nbdurable as nb
from nbdurable.models.base import RetryNotice
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store

ModelError = nb.errors.ModelError


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def opened(store: Store, *steps: object, **options: object) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*steps), **options)  # type: ignore[arg-type]


def rows(store: Store) -> list[tuple[str | None, str, str | None]]:
    return [(e.role, e.preview, e.stop_reason) for e in store.load_entries("s")]


# B25
def test_max_steps_ends_a_run_with_success(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})))
    chat = nb.open("s", store=store, model=model, tools=[add], max_steps=3)

    run = chat.run("Add for ever.", show=None)

    assert (run.outcome, run.error, run.events[-1].type) == ("max_steps", None, "agent_end")
    assert (model.call_count, [role for role, _, _ in rows(store)][-1]) == (3, "tool")
    assert [end.outcome for _, end in store.load_runs("s") if end] == ["max_steps"]


# B25
def test_an_answer_in_the_last_step_is_a_finished_one(store: Store) -> None:
    model = ScriptedModel(calls(("add", {"a": 1, "b": 2})), "3.")
    chat = nb.open("s", store=store, model=model, tools=[add], max_steps=2)

    assert chat.run("Add.", show=None).outcome == "done"


# B25
def test_retries_add_no_entry(store: Store) -> None:
    chat = opened(store, [RetryNotice(1, 0.0, "429"), RetryNotice(2, 0.0, "503"), "Yes."])

    run = chat.run("Is it?", show=None)

    assert [event.type for event in run.events].count("retry") == 2
    assert rows(store) == [("user", "Is it?", None), ("assistant", "Yes.", "stop")]


# B25
def test_retries_that_end_in_an_error_leave_only_the_input(store: Store) -> None:
    chat = opened(store, [RetryNotice(1, 0.0, "429"), ModelError("429 again", reason="rate_limit")])

    with pytest.raises(ModelError, match="429 again"):
        chat.run("Is it?", show=None)

    assert rows(store) == [("user", "Is it?", None)]


# B25
def test_an_unknown_parameter_warns_with_the_nearest_known_name(store: Store) -> None:
    chat = opened(store, "Yes.")

    with pytest.warns(UserWarning, match="'temprature' .* did you mean 'temperature'") as caught:
        chat.run("Is it?", show=None, temprature=0.5)

    assert [w.filename for w in caught] == [__file__]


# B25
def test_an_unknown_parameter_of_open_warns_as_well(store: Store) -> None:
    with pytest.warns(UserWarning, match="'max_tokns' .* did you mean 'max_tokens'") as caught:
        opened(store, "Yes.", max_tokns=5)

    assert len(caught) == 1


# B25
@pytest.mark.parametrize("steps", [0, -1, True, 2.5])
def test_a_senseless_step_limit_is_refused(store: Store, steps: object) -> None:
    with pytest.raises(ValueError, match=r"max_steps is .* give a whole number"):
        opened(store, "Yes.", max_steps=steps)
