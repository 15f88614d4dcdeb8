"""Parameters: an allow-list is recorded, everything else is passed on unseen."""

from __future__ import annotations

import json
import warnings

import pytest
from pydantic import BaseModel

from nbdurable.errors import BadPayload
from nbdurable.models.params import (
    PASSED_ON,
    RECORDED,
    is_transport,
    recorded,
    recorded_json,
    warn_unknown,
)

SECRETS = {
    "api_key": "sk-secret",
    "api_base": "https://user:secret@example.invalid",
    "headers": {"Authorization": "secret"},
    "extra_headers": {"x": "secret"},
    "extra_body": {"x": "secret"},
    "aws_secret_access_key": "secret",
    "vertex_credentials": "secret",
    "azure_ad_token": "secret",
    "never_heard_of": "secret",
    "timeout": object(),
}


# B69
def test_only_allowed_names_are_recorded() -> None:
    assert recorded({"temperature": 0.2, "seed": 7, **SECRETS}) == {"temperature": 0.2, "seed": 7}


# B69
def test_no_secret_is_in_the_recorded_text() -> None:
    assert recorded_json({"stop": ["x"], **SECRETS}) == '{"stop":["x"]}'


# B69
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_each_allowed_name_is_recorded(name: str) -> None:
    assert recorded({name: 1}) == {name: 1}


# B69
def test_no_name_is_both_recorded_and_passed_on_only() -> None:
    assert not RECORDED & PASSED_ON
    assert not [name for name in RECORDED if is_transport(name)]


def test_recorded_text_does_not_depend_on_the_order_of_names() -> None:
    one = recorded_json({"top_p": 1, "seed": 2, "temperature": 0})

    assert one == recorded_json({"temperature": 0, "seed": 2, "top_p": 1})
    assert one == '{"seed":2,"temperature":0,"top_p":1}'


class _City(BaseModel):
    name: str


def test_a_pydantic_class_is_recorded_as_its_schema() -> None:
    wire = json.loads(recorded_json({"response_format": _City}))

    schema = wire["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["name"] == {"title": "Name", "type": "string"}


# B64
def test_a_recorded_value_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(BadPayload, match="value at 'temperature' of the payload"):
        recorded_json({"temperature": float("nan")})


def test_a_value_of_None_is_recorded() -> None:
    assert recorded_json({"max_tokens": None}) == '{"max_tokens":null}'


# B10
def test_recording_leaves_the_parameters_as_they_are() -> None:
    params = {"temperature": 0, "api_key": "k"}

    recorded(params)

    assert params == {"temperature": 0, "api_key": "k"}


# B25
def test_an_unknown_name_warns_with_the_nearest_known_one() -> None:
    with pytest.warns(
        UserWarning, match="parameter 'temprature' is not known; did you mean 'temperature'"
    ):
        warn_unknown({"temprature": 1})


# B25
def test_an_unknown_name_without_a_near_one_is_said_to_be_passed_on() -> None:
    with pytest.warns(
        UserWarning, match="parameter 'zzzzqqq' is not known; it is passed on as it is"
    ):
        warn_unknown({"zzzzqqq": 1})


# B25 B69
def test_a_warning_never_shows_a_value() -> None:
    with pytest.warns(UserWarning) as caught:
        warn_unknown({"apikey": "sk-secret"})

    assert "did you mean 'api_key'?" in str(caught[0].message)
    assert "secret" not in str(caught[0].message)


# B25
def test_each_unknown_name_warns_once_a_call() -> None:
    with pytest.warns(UserWarning) as caught:
        warn_unknown({"temprature": 1, "seeed": 2, "seed": 3})

    assert len(caught) == 2


# B25
def test_a_warning_points_to_the_caller_of_the_caller() -> None:
    def verb() -> None:
        warn_unknown({"seeed": 1})

    with pytest.warns(UserWarning) as caught:
        verb()

    assert caught[0].filename == __file__


# B25
@pytest.mark.parametrize(
    "name", [*sorted(RECORDED | PASSED_ON), "aws_region_name", "vertex_project", "azure_ad_token"]
)
def test_a_known_name_warns_of_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unknown({name: 1})


def test_how_to_reach_a_provider_is_told_from_what_to_ask() -> None:
    told = {name: is_transport(name) for name in ("api_key", "aws_x", "temperature", "mirostat")}

    assert told == {"api_key": True, "aws_x": True, "temperature": False, "mirostat": False}
