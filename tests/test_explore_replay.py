"""B55 B56 B58: experiments in a replay are those that are stored."""

from __future__ import annotations

import warnings

import pytest

import nbdurable as nb
from nbdurable.explore import Experiment
from nbdurable.models.scripted import ScriptedModel
from nbdurable.replay import Replay
from nbdurable.stores.base import Store
from tests.exploring import echo, opened, rows


def replayed(store: Store, model: ScriptedModel, /, **options: object) -> nb.Session:
    """Return a handle that replays, at the root."""
    chat = opened(store, model)
    chat.replay = Replay(**options)  # type: ignore[arg-type]
    chat.go_to(None)
    return chat


def told(chat: nb.Session, a: ScriptedModel, b: ScriptedModel) -> list[Experiment]:
    """Ask what a notebook asks."""
    return [
        chat.sample(2, "Q"),
        chat.sample(2, "Q"),
        chat.grid({"q": "Q"}, model=[a], name="g"),
        chat.grid({"q": "Q"}, model=[a, b], name="g"),
        chat.grid("R", temperature=[0, 1]),
        chat.sample(2, "Q").then("more"),
    ]


# B55 B56 B43
@pytest.mark.parametrize("is_only", [True, False])
def test_a_replayed_notebook_calls_nothing_and_adds_no_row(store: Store, is_only: bool) -> None:
    a, b = echo("a"), echo("b")
    first = told(opened(store, a), a, b)
    before = rows(store)
    c, d = echo("a"), echo("b")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = told(replayed(store, c, is_only=is_only), c, d)

    assert (c.call_count, d.call_count, rows(store)) == (0, 0, before)
    assert [exp.id for exp in again] == [exp.id for exp in first]
    assert [[cell.text for cell in exp] for exp in again] == [
        [cell.text for cell in exp] for exp in first
    ]
    assert again[0].id != again[1].id


# B58
def test_a_miss_that_may_call_no_model_names_the_nearest_and_the_difference(store: Store) -> None:
    opened(store, echo()).sample(2, "Q", temperature=0)
    before = rows(store)
    chat = replayed(store, echo(), is_only=True)

    with pytest.raises(
        nb.errors.ReplayMiss, match="nearest is 'sample-1': its temperature was 0, "
    ):
        chat.sample(2, "Q", temperature=1)

    assert rows(store) == before


# B58
def test_a_miss_that_runs_for_real_says_what_differs(store: Store) -> None:
    opened(store, echo()).sample(2, "Q")
    model = echo()

    with pytest.warns(
        UserWarning, match="nearest is 'sample-1': it has no sample 3; it runs for real"
    ):
        exp = replayed(store, model).sample(3, "Q")

    assert (len(exp), model.call_count) == (3, 3)


# B56
def test_the_sample_after_the_last_equal_one_is_a_miss(store: Store) -> None:
    opened(store, echo()).sample(2, "Q")
    chat = replayed(store, echo(), is_only=True)
    chat.sample(2, "Q")

    with pytest.raises(nb.errors.ReplayMiss):
        chat.sample(2, "Q")


# B56
def test_failed_cells_run_again_in_a_replay_and_never_in_a_strict_one(store: Store) -> None:
    chat = opened(store, ScriptedModel("one", ConnectionError("reset"), "three"))
    with pytest.warns(UserWarning, match="1 of 2 cells"):
        chat.sample(2, "Q", concurrency=1)

    with pytest.raises(nb.errors.ReplayMiss, match="1 of 2 cells without a finished answer"):
        replayed(store, ScriptedModel("x"), is_only=True).sample(2, "Q")
    model = ScriptedModel("again")
    exp = replayed(store, model).sample(2, "Q")

    assert [cell.text for cell in exp] == ["one", "again"]
    assert model.call_count == 1


# B58
def test_a_replay_model_answers_what_is_missing(store: Store) -> None:
    asked, other = echo("asked"), echo("other")

    exp = replayed(store, asked, model=other).grid("Q", temperature=[0, 1])

    assert [cell.text for cell in exp] == ["other 0 Q", "other 1 Q"]
    assert asked.call_count == 0


# B56 B58
def test_the_report_has_a_line_for_each_experiment(store: Store) -> None:
    first = opened(store, echo(cost_usd=0.25))
    first.sample(2, "Q")
    first.grid("R", temperature=[0, 1], name="g")
    chat = replayed(store, echo())

    chat.sample(2, "Q")
    chat.grid("R", temperature=[0, 1, 2], name="g")
    chat.sample(1, "new")

    lines = [str(line) for line in chat.replay_report().lines]
    assert lines == [
        "sample replayed, 'sample-1', $0.5000 saved",
        "grid made, 'g', 1 of 3 cells had no finished answer, $0.5000 saved",
        "sample made, at the root",
    ]


# B58
def test_a_plan_that_is_only_priced_is_no_miss(store: Store) -> None:
    opened(store, echo()).sample(2, "Q", temperature=0)
    chat = replayed(store, echo(), is_only=True)

    priced = chat.sample(2, "Q", temperature=1, start=False).estimate()

    assert priced.cells == 2
    assert chat.replay_report().lines == ()


# B58
def test_an_experiment_that_a_call_has_taken_is_not_named_as_near(store: Store) -> None:
    opened(store, echo()).sample(2, "Q")
    chat = replayed(store, echo())
    chat.sample(2, "Q")

    exp = chat.sample(2, "Q")

    assert len(exp) == 2
    assert not chat.replay_report().lines[-1].differs


# B55 B56
def test_an_experiment_that_is_not_started_takes_nothing_from_a_replay(store: Store) -> None:
    first = opened(store, echo()).sample(2, "Q")
    chat = replayed(store, echo(), is_only=True)

    chat.sample(2, "Q", start=False).estimate()
    again = chat.sample(2, "Q")

    assert again.id == first.id
