"""Experiment.score and plot: cells judged, durable, and drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.explore import Cell
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from tests.exploring import echo, opened


def length(cell: Cell) -> int:
    return len(cell.text)


# B70
def test_scores_of_a_function_are_kept_and_are_a_column(store: Store) -> None:
    exp = opened(store, ScriptedModel("a", "bbb")).sample(2, "Q", concurrency=1)

    exp.score(length, name="length")

    kept = store.load_annotations("s")
    assert [(one.name, one.by, one.value_json) for one in kept] == [
        ("length", "length", "1"),
        ("length", "length", "3"),
    ]
    again = opened(store).experiment("sample-1")
    assert again.df()["length"].tolist() == [1, 3]


# B70
def test_a_scoring_that_was_cut_goes_on_where_it_was(store: Store) -> None:
    asked: list[int] = []

    def once(cell: Cell) -> float:
        asked.append(cell.i)
        if len(asked) == 2:
            raise RuntimeError("cut")
        return 0.5

    exp = opened(store).sample(3, "Q")
    with pytest.raises(RuntimeError, match="cut"):
        exp.score(once)

    exp.score(once)
    exp.score(once)

    assert asked == [0, 1, 1, 2]
    assert exp.df()["score"].tolist() == [0.5] * 3


def test_a_function_may_give_several_numbers_or_a_bool(store: Store) -> None:
    exp = opened(store).sample(1, "Q")

    exp.score(lambda cell: {"words": 2, "short": True}, name="is", by="me")
    exp.score(lambda cell: {"words": 9, "short": False}, name="is", by="me")

    frame = exp.df()
    assert (frame["is.words"][0], bool(frame["is.short"][0])) == (2, True)


# B70
def test_a_judge_is_asked_once_for_each_cell_beside_its_leaf(store: Store) -> None:
    exp = opened(store, echo()).grid(["Q", "R"])
    verdicts = ScriptedModel("I give 7 of 10.", "8", name="judge", cost_usd=0.5)
    judge = nb.open("judge", store=store, model=verdicts, system="Judge.")

    exp.score(judge)
    exp.score(judge)

    assert sorted(exp.df()["score"]) == [7, 8]
    assert (verdicts.call_count, judge.leaf_id) == (2, None)
    words = [request.messages[-1].text for request in verdicts.requests]
    assert any("Question:\nQ" in said and "Answer:\necho Q" in said for said in words)
    notes = [one.note or "" for one in store.load_annotations("s")]
    runs = {record.id for record, _ in store.load_runs("judge")}
    assert {note.split()[1].strip(",") for note in notes} == runs
    assert all("$0.5" in note for note in notes)


def test_a_verdict_without_a_number_is_told_and_asked_again(store: Store) -> None:
    exp = opened(store).sample(1, "Q")
    judge = nb.open("judge", store=store, model=ScriptedModel("Hm.", "3"))

    with pytest.warns(UserWarning, match="cell 0 got no 'score': 'Hm.' holds no number"):
        exp.score(judge)
    exp.score(judge)

    assert exp.df()["score"].tolist() == [3]
    assert [json.loads(one.value_json) for one in store.load_annotations("s")] == [3]


# B70
def test_a_name_that_labels_and_preferences_have_is_refused(store: Store) -> None:
    with pytest.raises(nb.errors.EntryError, match="name 'label' of a score means something else"):
        opened(store).sample(1, "Q").score(length, name="label")


# B70
def test_a_rating_of_an_answer_is_a_column(store: Store) -> None:
    chat = opened(store)
    exp = chat.sample(2, "Q")

    chat.rate(exp[1].run, 5, by="me")
    chat.prefer(exp[1].run, exp[0].run)

    assert exp.df()["rating"].tolist()[1] == 5
    assert "prefer" not in exp.df().columns


def test_what_can_score_nothing_is_refused(store: Store) -> None:
    with pytest.raises(TypeError, match="neither a function of a cell nor a session"):
        opened(store).sample(1, "Q").score("good")  # type: ignore[arg-type]


def test_a_picture_has_a_panel_for_cost_time_and_each_score(store: Store) -> None:
    exp = opened(store, echo(cost_usd=0.5)).grid("Q", temperature=[0, 1], n=2)
    exp.score(length)

    panels = exp.plot().get_axes()

    assert [panel.get_title() for panel in panels] == ["cost (USD)", "time (s)", "score"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["0", "1"]


def test_a_picture_of_what_was_free_has_no_panel_for_cost(store: Store) -> None:
    exp = opened(store, echo(cost_usd=0.0)).sample(2, "Q")

    assert [panel.get_title() for panel in exp.plot().get_axes()] == ["time (s)"]


def test_a_picture_of_a_plan_that_is_not_begun_is_empty(store: Store) -> None:
    assert opened(store).sample(2, "Q", start=False).plot().get_axes() == []


def test_a_picture_of_what_cost_nothing_leaves_the_cost_out(store: Store) -> None:
    exp = opened(store, echo(cost_usd=0.0)).sample(2, "Q")

    assert [panel.get_title() for panel in exp.plot().get_axes()] == ["time (s)"]


def test_a_picture_is_drawn_in_a_notebook_that_never_imported_pyplot(store: Store) -> None:
    picture: Any = opened(store).sample(2, "Q").plot()

    assert picture._repr_png_().startswith(b"\x89PNG")
