"""grid(): an answer for each combination of what varies."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import nbdurable as nb
from nbdurable.explore import Experiment
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from tests.exploring import children, echo, opened, rows


# B43
def test_a_grid_crosses_its_axes_and_stores_each_input_once(store: Store) -> None:
    a, b = echo("a"), echo("b")
    chat = opened(store, a)

    exp = chat.grid(
        {"short": "one", "long": "two"},
        model=[a, b],
        system={"terse": "T", "none": None},
        temperature=[0, 0.5],
        n=2,
    )

    assert len(exp) == 2 * 2 * 2 * 2 * 2
    assert exp.axes == ("input", "model", "system", "temperature", "sample")
    for cell in exp:
        words = {"short": "one", "long": "two"}[cell.axes["input"]]
        said = [cell.axes["model"], "T" if cell.axes["system"] == "terse" else None]
        said += [cell.axes["temperature"], words]
        assert cell.text == " ".join(str(part) for part in said if part is not None)
    questions = [entry for entry in store.load_entries("s") if entry.role == "user"]
    assert [entry.preview for entry in questions] == ["one", "two"]
    assert [children(store, entry.id) for entry in questions] == [["assistant"] * 16] * 2


# B43
def test_a_plan_is_stored_before_the_first_call(store: Store) -> None:
    plans: list[list[str]] = []

    def look(_: object) -> str:
        plans.append([one.plan_json for one in store.load_experiments("s")])
        return "x"

    exp = opened(store, ScriptedModel(look)).grid("Q", temperature=[0, 1], name="g")

    assert [len(seen) for seen in plans] == [1, 1]
    (plan,) = plans[0]
    assert [cell["axes"] for cell in json.loads(plan)["cells"]] == [c.axes for c in exp]


# B43
def test_runs_of_a_grid_name_their_experiment_and_their_cell(store: Store) -> None:
    exp = opened(store).grid("Q", temperature=[0, 1])

    found = {record.cell: record for record, _ in store.load_runs("s")}

    assert {record.experiment_id for record in found.values()} == {exp.id}
    assert set(found) == {
        '{"sample":1,"temperature":0}',
        '{"sample":1,"temperature":1}',
    }
    assert {record.kind for record in found.values()} == {"grid"}
    assert sorted(json.loads(r.params_json)["temperature"] for r in found.values()) == [0, 1]


# B43
def test_axes_may_be_ranges_and_arrays_and_n_any_whole_number(store: Store) -> None:
    chat = opened(store, echo())
    plain = chat.grid("Q", seed=[1, 2], temperature=[0.0, 0.5], n=2)

    of_arrays = chat.grid(
        "Q", seed=range(1, 3), temperature=np.arange(0, 1, 0.5), n=np.int64(2), start=False
    )
    of_numbers = chat.grid("Q", seed=[np.int64(1), 2], temperature=[0.0, 0.5], n=2, start=False)

    assert plain.id == of_arrays.id == of_numbers.id


# B43
def test_an_equal_grid_calls_nothing_and_adds_no_row(store: Store) -> None:
    model = echo()
    chat = opened(store, model)
    first = chat.grid({"q": "Q"}, temperature=[0, 1])
    before = rows(store)

    again = chat.grid({"q": "Q"}, temperature=[0, 1])

    assert (model.call_count, rows(store), again.id) == (2, before, first.id)
    assert [cell.text for cell in again] == [cell.text for cell in first]


# B43
def test_a_grid_of_the_same_name_pays_only_for_what_is_new(store: Store) -> None:
    a, b, c = echo("a"), echo("b"), echo("c")
    chat = opened(store, a)
    first = chat.grid({"q": "Q"}, model=[a, b], n=2, name="g")

    grown = chat.grid({"q": "Q", "r": "R"}, model=[a, b, c], n=2, name="g")

    assert (a.call_count, b.call_count, c.call_count) == (4, 4, 4)
    assert (len(first), len(grown), first.id == grown.id) == (4, 12, True)
    assert children(store, None) == ["user", "user"]
    assert len(chat.experiment("g")) == 12


# B43
def test_a_grid_that_asks_less_shows_what_it_asked_and_hides_nothing(store: Store) -> None:
    a, b = echo("a"), echo("b")
    chat = opened(store, a)
    chat.grid("Q", model=[a, b], name="g")

    less = chat.grid("Q", model=[b], name="g")

    assert [cell.text for cell in less] == ["b Q"]
    assert (len(chat.experiment("g")), b.call_count) == (2, 1)


# B43
def test_a_grid_that_asks_others_keeps_those_it_had(store: Store) -> None:
    a, b, c = echo("a"), echo("b"), echo("c")
    chat = opened(store, a)
    chat.grid("Q", model=[a, b], name="g")

    chat.grid("Q", model=[b, c], name="g")

    assert [cell.text for cell in chat.experiment("g")] == ["a Q", "b Q", "c Q"]
    assert (a.call_count, b.call_count, c.call_count) == (1, 1, 1)


# B43
def test_a_fresh_grid_asks_all_again(store: Store) -> None:
    model = echo()
    chat = opened(store, model)
    first = chat.grid("Q", temperature=[0, 1], name="g")

    fresh = chat.grid("Q", temperature=[0, 1], name="g", fresh=True)

    assert (model.call_count, first.id == fresh.id) == (4, False)
    assert chat.experiment("g").id == fresh.id
    assert chat.grid("Q", temperature=[0, 1], name="g").id == fresh.id


DIFFERENT: dict[str, tuple[Callable[[nb.Session], Experiment], str]] = {
    "another leaf": (
        lambda chat: chat.grid({"q": "Q"}, temperature=[0], top_p=1, at=None, name="g"),
        "it was asked at another leaf",
    ),
    "a fixed value": (
        lambda chat: chat.grid({"q": "Q"}, temperature=[0], top_p=0.5, name="g"),
        "its top_p was 1, not 0.5",
    ),
    "a default value": (
        lambda chat: chat.grid({"q": "Q"}, temperature=[0], name="g"),
        "its top_p was 1, not None",
    ),
    "the model": (
        lambda chat: chat.grid({"q": "Q"}, model=echo("b"), temperature=[0], top_p=1, name="g"),
        "its model was 'echo', not 'b'",
    ),
    "the system": (
        lambda chat: chat.grid({"q": "Q"}, system="S", temperature=[0], top_p=1, name="g"),
        "its system was another",
    ),
    "an axis": (
        lambda chat: chat.grid({"q": "Q"}, top_p=[1], temperature=0, name="g"),
        "its axes were input, temperature, sample, not input, top_p, sample",
    ),
    "what a name stands for": (
        lambda chat: chat.grid({"q": "Other."}, temperature=[0], top_p=1, name="g"),
        "its input 'q' was another",
    ),
    "the verb": (
        lambda chat: chat.sample(2, "Q", name="g"),
        "it is a grid, not a sample",
    ),
}


# B43
@pytest.mark.parametrize("what", DIFFERENT)
def test_a_name_used_otherwise_is_refused_naming_the_difference(store: Store, what: str) -> None:
    call, text = DIFFERENT[what]
    chat = opened(store, echo())
    chat.run("Hello", show=None)
    chat.grid({"q": "Q"}, temperature=[0], top_p=1, name="g")
    before = rows(store)

    with pytest.raises(nb.errors.RunError, match=f"experiment 'g' cannot .*{text}; give another"):
        call(chat)

    assert rows(store) == before


# B43
def test_equal_inputs_under_two_names_are_stored_once(store: Store) -> None:
    opened(store).grid({"a": "Q", "b": "Q"})

    assert children(store, None) == ["user"]


# B43
def test_inputs_of_several_parts_and_lists_of_inputs(store: Store) -> None:
    model = echo()
    chat = opened(store, model)

    named = chat.grid({"two": ["one", "two"], "meta": [nb.meta("m"), "Q"]})
    listed = chat.grid(["one", "two"])

    assert [cell.text for cell in named] == ["echo one\ntwo", "echo Q"]
    assert [cell.axes["input"] for cell in listed] == ["one", "two"]


# B43
def test_a_grid_without_input_answers_what_the_leaf_answered(store: Store) -> None:
    chat = opened(store, echo())
    run = chat.run("Q", show=None)

    exp = chat.grid(temperature=[0, 1])

    assert [cell.text for cell in exp] == ["echo 0 Q", "echo 1 Q"]
    assert children(store, run.input_ids[0]) == ["assistant"] * 3


# B43
def test_a_parameter_whose_value_is_a_list_goes_in_params(store: Store) -> None:
    model = echo()

    exp = opened(store, model).grid("Q", params={"stop": ["a", "b"]}, temperature=[0, 1])

    assert len(exp) == 2
    assert [request.params["stop"] for request in model.requests] == [["a", "b"]] * 2


# B43
def test_tools_vary_by_name_and_a_list_of_them_is_fixed(store: Store) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    model = echo()
    chat = opened(store, model)

    fixed = chat.grid("Q", tools=[add])
    varied = chat.grid("R", tools={"none": [], "add": [add]})

    assert (fixed.axes, varied.axes) == (("sample",), ("tools", "sample"))
    assert [len(request.tools) for request in model.requests[1:]].count(1) == 1


REFUSED = {
    "twice": ({"temperature": [0, 0.0]}, "axis 'temperature' has 0 twice"),
    "empty": ({"temperature": []}, "axis 'temperature' has no values"),
    "label": ({"temperature": {1: 0}}, "axis 'temperature' has the name 1 of type int"),
    "secret": ({"api_key": ["sk-1", "sk-2"]}, "'api_key' is not one that is recorded"),
    "typo": ({"temprature": [0, 1]}, "did you mean 'temperature'"),
    "both": ({"temperature": [0], "params": {"temperature": 1}}, "'temperature' is given twice"),
}


# B43 B69
@pytest.mark.parametrize("what", REFUSED)
def test_axes_that_cannot_be_are_refused(store: Store, what: str) -> None:
    given, text = REFUSED[what]

    with pytest.raises(nb.errors.RunError, match=text) as caught:
        opened(store).grid("Q", **given)  # type: ignore[arg-type]

    assert "sk-1" not in str(caught.value)
    assert rows(store) == {"entries": 0, "runs": 0, "plans": 0, "moves": 0}


# B69
def test_no_plan_holds_what_is_not_recorded(store: Store) -> None:
    chat = opened(store, api_key="sk-secret", api_base="http://secret.example")

    chat.grid("Q", temperature=[0, 1], params={"extra_headers": {"x": "secret"}})

    assert "secret" not in "".join(one.plan_json for one in store.load_experiments("s"))


@pytest.mark.parametrize("name", ["", "  ", "a\0b", 7])
def test_a_name_that_is_no_text_is_refused(store: Store, name: object) -> None:
    with pytest.raises(ValueError, match=r"name is .*; give text"):
        opened(store).grid("Q", name=name)  # type: ignore[arg-type]


# B26
def test_an_estimate_prices_a_plan_before_anything_is_stored(store: Store) -> None:
    model = echo(price_usd=0.25)
    chat = opened(store, model)

    plan = chat.grid(["Q", "R"], n=3, start=False)
    price = plan.estimate()

    assert (price.cells, price.most_usd, price.input_tokens) == (6, 1.5, 6)
    assert rows(store) == {"entries": 0, "runs": 0, "plans": 0, "moves": 0}
    assert "at most $1.50" in repr(price)
    assert [cell.state for cell in plan.resume()] == ["done"] * 6
    assert plan.estimate().cells == 0


# B26
def test_an_estimate_names_the_models_without_a_price(store: Store) -> None:
    chat = opened(store, echo("free"))

    price = chat.sample(2, "Q", start=False).estimate()

    assert (price.most_usd, price.unknown) == (None, ("free",))
