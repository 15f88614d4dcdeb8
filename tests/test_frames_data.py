"""The column ``data`` says what `Run.data` says, whatever form was asked for and how it ended."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import nbdurable as nb
from nbdurable.frames import entries_frame
from nbdurable.models.base import Finish
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stored import SessionRecord
from nbdurable.stores.base import Store
from nbdurable.stores.conformance import stored
from nbdurable.wire import dumps

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ANY_OBJECT = {"type": "json_object"}


def look(place: str) -> str:
    """Look at a place."""
    return f"nothing at {place}"


class Cut(ScriptedModel):
    """A model whose answers come to their token limit."""

    def _finish(self, script: Any) -> Finish:
        return replace(super()._finish(script), stop_reason="length")


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (('{"a": 1}',), {"schema": SCHEMA}),
        (('{"a": "one"}',), {"schema": SCHEMA}),
        (('{"b": 2}',), {"response_format": ANY_OBJECT}),
        (("[1]",), {"response_format": ANY_OBJECT}),
        (('{"a": 3}', "length"), {"schema": SCHEMA}),
        (('{"a": 3', "length"), {"schema": SCHEMA}),
        (("null",), {"schema": {"type": "null"}}),
    ],
)
def test_data_in_the_frame_is_that_of_the_run(
    store: Store, answer: tuple[str, ...], asked: dict[str, object]
) -> None:
    model = (Cut if "length" in answer else ScriptedModel)(answer[0])
    with nb.open("d", store=store, model=model) as chat:
        run = chat.run("Q", show=None, **asked)
        found = chat.df()["data"].iloc[-1]

    if run.data_error is None:
        assert json.loads(found) == run.data
    else:
        assert pd.isna(found)


def test_a_step_that_calls_a_tool_has_no_data(store: Store) -> None:
    model = ScriptedModel(('{"a": 1}', calls(("look", {"place": "x"}))), '{"a": 2}')
    with nb.open("d", store=store, model=model, tools=[look]) as chat:
        run = chat.run("Q", show=None, schema=SCHEMA)

        data = chat.df()["data"]

    assert run.data == {"a": 2}
    assert list(data.dropna()) == ['{"a":2}']


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_an_answer_that_was_cut_has_its_error(store: Store, reason: str) -> None:
    payload = dumps({"v": 1, "role": "assistant", "blocks": [], "reply": {"error": "it was cut"}})
    cut = stored(role="assistant", model="m", stop_reason=reason, payload=payload)
    store.create_session(SessionRecord(id="s", created_at=1), [stored(), cut])

    frame = entries_frame(store, "s")

    assert list(frame["error"].fillna("none")) == ["none", "it was cut"]
