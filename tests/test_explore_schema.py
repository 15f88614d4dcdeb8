"""Experiments whose answers have a given form."""

from __future__ import annotations

import pandas as pd
import pytest
from pydantic import BaseModel

import nbdurable as nb
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


class Verdict(BaseModel):
    topic: str
    sure: bool
    reasons: list[str] = []


JSON_SCHEMA = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}


def classifier() -> ScriptedModel:
    """Return a model that answers in JSON, at a high temperature in prose."""

    def say(request: ModelRequest) -> list[str]:
        if request.params.get("temperature") == 2:
            return ["It is about money."]
        return ['{"topic": "refund", "sure": true, "reasons": ["money", "back"]}']

    return ScriptedModel(say)


# B43
@pytest.mark.parametrize("schema", [Verdict, JSON_SCHEMA], ids=["class", "json-schema"])
def test_a_grid_with_a_schema_has_a_column_for_each_field_of_the_answers(
    store: Store, schema: object
) -> None:
    chat = nb.open("s", store=store, model=classifier())

    frame = chat.grid("Refund me.", temperature=[0, 2], schema=schema, show=None).df()

    assert list(frame["data.topic"]) == ["refund", pd.NA]
    assert list(frame["data.reasons"]) == ['["money", "back"]', pd.NA]
    assert frame["data.sure"].dtype == "boolean"
    assert frame["data_error"].notna().tolist() == [False, True]
    assert frame["state"].tolist() == ["done", "done"]  # an unfit answer is an answer


# B43
def test_samples_and_redrives_keep_the_schema_for_a_handle_that_does_not_know_it(
    store: Store,
) -> None:
    chat = nb.open("s", store=store, model=classifier())
    chat.run("Refund me.", show=None)
    chat.sample(2, "Again?", schema=Verdict, name="samples", show=None)
    chat.redrive(schema=Verdict, name="redriven", show=None)

    other = nb.open("s", store=store, model=classifier())
    samples, redriven = (other.experiment(name) for name in ("samples", "redriven"))

    assert [cell.run.data["topic"] for cell in [*samples, *redriven]] == ["refund"] * 3


# B43
def test_a_schema_tells_one_grid_from_another_of_its_name(store: Store) -> None:
    chat = nb.open("s", store=store, model=classifier())
    chat.grid("Refund me.", temperature=[0], name="topics", show=None)

    with pytest.raises(nb.errors.RunError, match="topics"):
        chat.grid("Refund me.", temperature=[0], name="topics", schema=Verdict, show=None)
