"""Structured answers: what `schema=` asks for, stores and gives back as `Run.data`."""

from __future__ import annotations

import json
import threading
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

import nbdurable as nb
from nbdurable.models.base import Finish, TextDelta
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore
from nbdurable.testing import FakeOpenAI, steps
from tests.litellm_calls import KEY
from tests.new_process import in_new_process

PARIS = '{"name": "Paris", "people": 2100000}'
CITY_JSON = {
    "title": "City",
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
}


class City(BaseModel):
    name: str
    people: int


class Mood(Enum):
    GLAD = "glad"


def opened(store: Store, *answers: Any, **options: Any) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*answers), **options)


def asked(answer: Any, schema: object = City, **options: Any) -> nb.Run:
    """Ask once, of a fresh session in memory."""
    return opened(MemoryStore(), answer).run("Which city?", schema=schema, show=None, **options)


# -- what it gives ---------------------------------------------------------------------------------


# B15
def test_a_class_gives_an_instance_of_it(store: Store) -> None:
    run = opened(store, PARIS).run("Which city?", schema=City, show=None)

    assert run.data == City(name="Paris", people=2_100_000)
    assert run.data_error is None
    assert run.text == PARIS


# B15
def test_a_json_schema_gives_plain_values() -> None:
    assert asked(PARIS, CITY_JSON).data == {"name": "Paris", "people": 2_100_000}


# B15
@pytest.mark.parametrize(
    ("schema", "text", "data"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, City], f'{{"fr": {PARIS}}}', {"fr": City(name="Paris", people=2_100_000)}),
        (Mood, '"glad"', Mood.GLAD),
        (bool, "true", True),
        ({"type": "null"}, "null", None),
        (int | None, "7", 7),
    ],
)
def test_any_type_that_has_a_schema_can_be_asked_for(schema: Any, text: str, data: object) -> None:
    run = asked(text, schema)

    assert (run.data, run.data_error) == (data, None)


# B15
def test_a_run_without_a_schema_has_no_data() -> None:
    run = asked(PARIS, None)

    assert (run.data, run.data_error) == (None, None)


# B15
def test_a_live_run_has_no_data_until_it_ends() -> None:
    gate = threading.Event()
    chat = opened(MemoryStore(), [PARIS, gate])

    run = chat.run("Which city?", schema=City, wait=False)
    while_live = (run.data, run.data_error)
    gate.set()

    assert while_live == (None, None)
    assert run.wait().data == City(name="Paris", people=2_100_000)


# B10
def test_data_that_is_changed_changes_nothing() -> None:
    run = asked(PARIS, CITY_JSON)

    run.data["name"] = "Rome"

    assert run.data["name"] == "Paris"


# B13
def test_the_last_answer_after_tools_is_the_one_that_is_read() -> None:
    def look(name: str) -> int:
        """Look up a city."""
        return 2_100_000

    chat = opened(MemoryStore(), calls(("look", {"name": "Paris"})), PARIS, tools=[look])

    assert chat.run("Which city?", schema=City, show=None).data.name == "Paris"


# B25
def test_a_run_that_ends_at_max_steps_has_no_data() -> None:
    def look(name: str) -> int:
        """Look up a city."""
        return 2_100_000

    step = calls(("look", {"name": "Paris"}))
    run = opened(MemoryStore(), step, tools=[look], max_steps=1).run("?", schema=City, show=None)

    assert (run.outcome, run.data) == ("max_steps", None)
    assert run.data_error == "the last answer asks for tools"


# -- answers that do not fit -----------------------------------------------------------------------


# B15
@pytest.mark.parametrize("schema", [City, CITY_JSON])
def test_an_unfit_answer_is_kept_and_the_run_is_done(store: Store, schema: Any) -> None:
    text = '{"name": "Paris", "people": "many"}'

    run = opened(store, text).run("Which city?", schema=schema, show=None)

    assert (run.outcome, run.error, run.data) == ("done", None, None)
    assert (run.data_error or "").startswith("people: ")
    assert "\n" not in (run.data_error or "")
    assert store.load_entries("s")[-1].payload.count("many") == 1


# B22
def test_a_partial_answer_is_no_data() -> None:
    chat = opened(MemoryStore(), ["12", RuntimeError("the line broke")])

    with pytest.raises(nb.errors.ModelError, match="the line broke") as caught:
        chat.run("How many?", schema=int, show=None)

    run: Any = caught.value.run
    assert (run.text, run.data) == ("12", None)
    assert run.data_error == "the answer is not whole: it ended as 'error'"


# B22
def test_a_failure_before_any_output_leaves_no_data() -> None:
    chat = opened(MemoryStore(), RuntimeError("no line"))

    with pytest.raises(nb.errors.ModelError, match="no line") as caught:
        chat.run("How many?", schema=int, show=None)

    run: Any = caught.value.run
    assert (run.data, run.data_error) == (None, "there is no answer")


# B15
def test_an_answer_cut_at_its_limit_says_so() -> None:
    run = asked([TextDelta('{"name": "Par'), Finish(stop_reason="length")])

    assert run.data is None
    assert (run.data_error or "").endswith("; it was cut at its token limit")


class Odd(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def break_down(cls, name: str) -> str:
        raise KeyError(name)


# B15
def test_a_class_whose_own_check_breaks_is_an_error_of_the_data() -> None:
    run = asked('{"name": "Paris"}', Odd)

    assert (run.data, run.data_error) == (None, "its class failed: KeyError: \"'Paris'\"")


# -- what is stored of it --------------------------------------------------------------------------


def sent(chat: nb.Session) -> list[Any]:
    model: Any = chat.settings.model
    return [request.params.get("response_format") for request in model.requests]


# B42 B69
def test_the_schema_is_recorded_as_sent(store: Store) -> None:
    chat = opened(store, PARIS)

    chat.run("Which city?", schema=City, show=None)

    ((record, _),) = store.load_runs("s")
    (form,) = sent(chat)
    assert json.loads(record.params_json) == {"response_format": form}
    assert form["type"] == "json_schema"
    assert (form["json_schema"]["name"], form["json_schema"]["strict"]) == ("City", True)
    assert form["json_schema"]["schema"]["required"] == ["name", "people"]


# B56
def test_the_schema_is_part_of_the_request() -> None:
    store = MemoryStore()
    chat = opened(store, PARIS)

    for schema in (City, None, CITY_JSON, City):
        chat.run("Which city?", at=None, schema=schema, show=None)

    one, none, other, again = [record.request_digest for record, _ in store.load_runs("s")]
    assert len({one, none, other}) == 3 and one == again


# B2
def test_past_runs_give_data_by_the_recorded_schema(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"
    with nb.open("s", store=path, model=ScriptedModel(PARIS, "no")) as chat:
        chat.run("Which city?", schema=City, show=None)
        chat.run("Which city now?", schema=CITY_JSON, show=None)
        chat.run("Thanks.", show=None)

    found = in_new_process(
        "import json, sys\nimport nbdurable as nb\n"
        "chat = nb.open('s', store=sys.argv[1], model='local')\n"
        "print(json.dumps([[run.data, run.data_error] for run in chat.runs()]))",
        str(path),
    )

    assert found == [
        [{"name": "Paris", "people": 2_100_000}, None],
        [None, "not JSON: Expecting value at line 1, column 1"],
        [None, None],
    ]


# -- other verbs -----------------------------------------------------------------------------------


# B42
def test_a_rerun_asks_for_the_recorded_schema_again() -> None:
    chat = opened(MemoryStore(), PARIS)
    chat.run("Which city?", schema=City, show=None)

    again = chat.rerun(show=None)

    assert again.data == {"name": "Paris", "people": 2_100_000}
    first, second = sent(chat)
    assert first == second


# B42
def test_a_rerun_takes_another_schema() -> None:
    chat = opened(MemoryStore(), PARIS)
    chat.run("Which city?", show=None)

    assert chat.rerun(schema=City, show=None).data == City(name="Paris", people=2_100_000)


# B42
def test_an_edit_takes_a_schema() -> None:
    chat = opened(MemoryStore(), PARIS)
    first = chat.run("Which town?", show=None)

    run: Any = chat.edit(first, "Which city?", schema=City, show=None)

    assert run.data == City(name="Paris", people=2_100_000)


# B19
def test_then_takes_a_schema_and_inherits_none() -> None:
    chat = opened(MemoryStore(), PARIS)
    first = chat.run("Which city?", schema=City, show=None)

    assert first.then("And now?", show=None).data is None
    assert first.then("And now?", schema=City, show=None).data.name == "Paris"
    assert [form is None for form in sent(chat)] == [False, True, False]


# B47
def test_preview_shows_the_schema() -> None:
    chat = opened(MemoryStore(), PARIS)

    assert "json_schema" in json.dumps(chat.preview("Which city?", schema=City))
    assert "json_schema" not in json.dumps(chat.preview("Which city?"))


# B15
def test_a_response_format_of_the_handle_gives_data_and_a_schema_wins_over_it() -> None:
    chat = opened(MemoryStore(), PARIS, response_format={"type": "json_object"})

    assert chat.run("Which city?", show=None).data == {"name": "Paris", "people": 2_100_000}
    assert isinstance(chat.run("Which city?", schema=City, show=None).data, City)
    assert chat.run("Which city?", response_format=None, show=None).data is None


# B15
def test_a_class_as_response_format_gives_instances() -> None:
    chat = opened(MemoryStore(), PARIS, response_format=City)

    assert isinstance(chat.run("Which city?", show=None).data, City)


# B15
def test_of_two_overrides_the_later_form_counts() -> None:
    settings = opened(MemoryStore(), PARIS).settings.override(schema=City)

    plain = settings.override(response_format=None)
    other = settings.override(response_format={"type": "json_object"})

    assert settings.override(temperature=0).schema is settings.schema
    assert plain.schema is None
    assert other.schema is not None and other.schema.schema_json == '{"type":"object"}'


# B51
def test_a_summary_is_prose_whatever_the_answers_must_be() -> None:
    chat = opened(MemoryStore(), PARIS, "A summary.", response_format=City, tool_choice="none")
    chat.run("Which city?", show=None)

    chat.compact()

    model: Any = chat.settings.model
    assert not {"response_format", "tool_choice"} & set(model.requests[-1].params)


# -- on the wire -----------------------------------------------------------------------------------


# B15
def test_litellm_sends_the_schema_as_recorded(fake: FakeOpenAI) -> None:
    fake.script(steps.text(PARIS))
    chat = nb.open("s", store=":memory:", model="openai/fake", api_base=fake.base_url, api_key=KEY)

    run = chat.run("Which city?", schema=City, show=None)

    assert run.data == City(name="Paris", people=2_100_000)
    (request,) = fake.requests
    ((record, _),) = chat.image.store.load_runs("s")
    assert request.body["response_format"] == json.loads(record.params_json)["response_format"]
    chat.close()


# B15
@pytest.mark.local_model
@pytest.mark.parametrize(("schema", "kind"), [(City, City), (CITY_JSON, dict), (list[int], list)])
def test_the_local_model_answers_in_the_form_that_was_asked_for(schema: Any, kind: type) -> None:
    with nb.open("s", store=":memory:", model="local") as chat:
        run = chat.run("How many people live in Paris?", schema=schema, temperature=0, show=None)

    assert run.data_error is None, run.text
    assert isinstance(run.data, kind)
