"""What may be asked for by `schema=`, and the parameter that it becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.schemas import Schema, answer_data, as_response_format, is_strict, recorded_schema
from nbdurable.stores.memory import MemoryStore
from tests.new_process import in_new_process


class City(BaseModel):
    name: str
    people: int


class Street(BaseModel):
    """A street of a city."""

    city: City
    lanes: Literal[1, 2]
    names: list[str]


@dataclass
class Point:
    x: float
    y: float


class Pair(TypedDict):
    first: str


def opened(store: MemoryStore) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel("{}"))


def form_of(wanted: object) -> Any:
    return Schema.of(wanted).response_format["json_schema"]


# -- what is refused at the call -------------------------------------------------------------------

BAD = [
    (5, r"schema is 5 of type int; give a pydantic class, a type such as list\[int\], or a"),
    ("City", r"schema is 'City' of type str; give a pydantic class"),
    (City(name="x", people=1), r"schema is City\(.* of type City; give a pydantic class"),
    (object(), r"schema is <object object at .*> of type object; give"),
    (MemoryStore, r"schema <class .*MemoryStore'> has no JSON schema: .*; give a pydantic"),
    (list[MemoryStore], r"schema list\[.*MemoryStore\] has no JSON schema: .*; give"),
    ({"type": "nonsense"}, r"not a valid JSON schema at 'type': 'nonsense' is not .*; give a JSON"),
    (
        {"properties": {"a": {"pattern": "("}}},
        r"not a valid JSON schema at 'properties.a.pattern': '\(' is not a 'regex'; give",
    ),
    ({"enum": [float("nan")]}, r"schema is not JSON at 'enum.*'; give plain JSON values"),
    ({"items": City}, r"schema is not JSON at 'items'; give plain JSON values"),
    ({"$ref": "#/$defs/Lost"}, r"schema refers to '#/\$defs/Lost', which is not in it; define it"),
    ({"$ref": "http://127.0.0.1:9/x"}, r"schema refers to 'http://127.0.0.1:9/x', which is not"),
]


# B13
@pytest.mark.parametrize(("schema", "text"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_a_bad_schema_is_refused_at_the_call(schema: Any, text: str) -> None:
    store = MemoryStore()
    chat = opened(store)

    with pytest.raises((TypeError, ValueError), match=text) as caught:
        chat.run("Which city?", schema=schema)

    assert "\n" not in str(caught.value)
    assert (store.load_entries("s"), store.load_runs("s")) == ([], [])


# B13
def test_a_schema_beside_a_response_format_is_refused() -> None:
    chat = opened(MemoryStore())

    with pytest.raises(TypeError, match="schema and response_format are the same thing; give one"):
        chat.run("?", schema=City, response_format={"type": "json_object"})


# -- the parameter it becomes ----------------------------------------------------------------------


def test_a_class_is_closed_where_a_provider_can_then_guarantee_it() -> None:
    form = form_of(Street)

    assert (form["name"], form["strict"]) == ("Street", True)
    assert form["schema"]["additionalProperties"] is False
    assert form["schema"]["$defs"]["City"]["additionalProperties"] is False


class Noted(BaseModel):
    name: str
    note: str | None = None


class Told(BaseModel):
    city: City = Field(description="Where it is.")  # pydantic writes this beside a reference


class Short(BaseModel):
    name: str = Field(max_length=5)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


@pytest.mark.parametrize("wanted", [Noted, Told, Short, Open, dict[str, int], list[int], int])
def test_what_no_provider_can_guarantee_is_sent_as_it_is(wanted: Any) -> None:
    form = form_of(wanted)

    assert form["strict"] is False
    assert form["schema"] == TypeAdapter(wanted).json_schema()


@pytest.mark.parametrize(("wanted", "name"), [(City, "City"), (Point, "Point"), (Pair, "Pair")])
def test_classes_of_any_kind_keep_their_name(wanted: Any, name: str) -> None:
    assert form_of(wanted)["name"] == name


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("A city's name?", "A_city_s_name"),
        ("x" * 90, "x" * 64),
        ("\u00e9", "answer"),
        (3, "answer"),
    ],
)
def test_a_name_is_made_fit_for_every_provider(title: Any, name: str) -> None:
    assert as_response_format({"title": title})["json_schema"]["name"] == name  # type: ignore[call-overload, index]


STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_a_json_schema_is_sent_to_the_letter() -> None:
    assert form_of(STRICT) == {"name": "answer", "schema": STRICT, "strict": True}


@pytest.mark.parametrize(
    "change",
    [
        {"required": []},
        {"additionalProperties": True},
        {"properties": {"name": {"type": "string", "minLength": 1}}},
        {"properties": {"name": {"type": "string", "format": "uri"}}},
        {"properties": {"name": {"properties": {}}}},
        {"allOf": []},
        {"required": "name"},
    ],
)
def test_only_a_schema_within_the_strict_rules_is_strict(change: dict[str, Any]) -> None:
    assert is_strict(STRICT)
    assert not is_strict({**STRICT, **change})


def test_what_stands_under_enum_or_default_is_no_schema() -> None:
    values = {"name": {"enum": [{"$ref": "#/nowhere"}], "default": {"$ref": "#/nowhere"}}}

    assert Schema.of({"properties": values}).schema_json


@pytest.mark.parametrize("ref", ["#", "#/$defs/a~1b", "#/prefixItems/0"])
def test_a_reference_within_the_schema_is_found(ref: str) -> None:
    schema = {"$defs": {"a/b": {}}, "prefixItems": [{}], "items": {"$ref": ref}}

    assert Schema.of(schema).schema_json


# -- and back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "schema"),
    [
        ({}, None),
        ({"response_format": None}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "json_object"}}, {"type": "object"}),
        ({"response_format": {"type": "json_schema"}}, None),
        ({"response_format": as_response_format(STRICT)}, STRICT),
        ({"response_format": STRICT}, STRICT),
        ({"stop": "response_format"}, None),
    ],
)
def test_the_recorded_schema_is_found_in_any_form(params: Any, schema: object) -> None:
    found = recorded_schema(json.dumps(params))

    assert (json.loads(found) if found else None) == schema


def test_text_and_mapping_are_the_same_schema() -> None:
    text = '{"name": 3}'

    assert answer_data(text, STRICT) == answer_data(text, json.dumps(STRICT))
    assert answer_data(text, STRICT) == (None, "name: 3 is not of type 'string'")


CLASS_ONLY = """
import json, sys
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from pydantic import BaseModel

class City(BaseModel):
    name: str

chat = nb.open("s", store=":memory:", model=ScriptedModel('{"name": "Paris"}'))
run = chat.run("Which city?", schema=City, show=None)
print(json.dumps([run.data.name, "jsonschema" in sys.modules]))
"""


def test_a_class_does_not_import_the_slow_validator_of_json_schemas() -> None:
    assert in_new_process(CLASS_ONLY) == ["Paris", False]
