"""The data in an answer's text: what is accepted, and the one line about the rest."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from nbdurable.schemas import answer_data

ANY: dict[str, Any] = {}


# B15
@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\n {"a": 1}\n',
        '\ufeff{"a": 1}',
        '```json\n{"a": 1}\n```',
        '```\n{\n  "a": 1\n}\n```\n',
        '```{"a": 1}```',
        'Here it is:\n\n```json\n{"a": 1}\n```\n\nAnything else?',
    ],
)
def test_json_is_read_bare_or_out_of_one_code_fence(text: str) -> None:
    assert answer_data(text, ANY) == ({"a": 1}, None)


def test_a_fence_within_a_value_is_left_alone() -> None:
    value = {"code": "```python\nprint()\n```"}

    assert answer_data(json.dumps(value), ANY) == (value, None)
    assert answer_data(f"```json\n{json.dumps(value)}\n```", ANY) == (value, None)


NOT_JSON = [
    ("", "the answer has no text"),
    ("  ", "the answer has no text"),
    ("Paris", "not JSON: Expecting value at line 1, column 1"),
    ("{'a': 1}", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
    ('{"a": 1} {"a": 2}', "not JSON: Extra data at line 1, column 10"),
    ("```\n1\n```\nor\n```\n2\n```", "not JSON: Expecting value at line 1, column 1"),
    ("```json\n{]\n```", "not JSON: Expecting property name enclosed in double quotes at line 1, "),
    ('{"a": NaN}', "not JSON: a is no finite number"),
    ("-Infinity", "not JSON: the value is no finite number"),
    ('{"a": [1e999]}', "not JSON: a"),
    ("1" * 5000, "not JSON that can be read: too long a number, or too deep"),
    ("[" * 200_000, "not JSON that can be read: too long a number, or too deep"),
]


# B15 B64
@pytest.mark.parametrize(("text", "error"), NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_no_json_is_told_in_one_line(text: str, error: str) -> None:
    value, found = answer_data(text, ANY)

    assert value is None
    assert found is not None and found.startswith(error) and "\n" not in found


# B33
def test_values_are_as_we_would_write_them() -> None:
    text = '{"a": 1, "a": 9007199254740993, "b": "\\ud800"}'

    assert answer_data(text, ANY) == ({"a": 9007199254740993, "b": "\ufffd"}, None)


CITY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "at": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


# B15
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"name": 3}, "name: 3 is not of type 'string'"),
        ({"name": "x", "at": [1, "y"]}, "at.1: 'y' is not of type 'number'"),
        ({}, "'name' is a required property"),
        ([], "[] is not of type 'object'"),
        (
            {"a": 1},
            "'name' is a required property; "
            "Additional properties are not allowed ('a' was unexpected)",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(value: object, error: str) -> None:
    assert answer_data(json.dumps(value), CITY) == (None, error)


def test_long_values_and_many_problems_are_cut() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}

    _, error = answer_data(json.dumps(["x" * 10_000] * 9), schema)

    assert error is not None and error.endswith("; and 4 more")
    assert error.startswith("0: 'xxx") and "is not of type 'integer'; 1: " in error
    assert len(error) < 500


# -- answers that were cut -------------------------------------------------------------------------


# B22
@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_a_partial_answer_is_never_data(reason: str) -> None:
    expected = f"the answer is not whole: it ended as {reason!r}"

    assert answer_data('{"a": 1}', ANY, reason) == (None, expected)


def test_a_number_at_the_token_limit_may_go_on() -> None:
    cut = "; it was cut at its token limit"

    assert answer_data("12", ANY, "length") == (None, f"the number may go on{cut}")
    assert answer_data("12", ANY, "stop") == (12, None)
    assert answer_data('{"a": 12}', ANY, "length") == ({"a": 12}, None)
    assert answer_data('{"a": 12', ANY, "length")[1] == (
        f"not JSON: Expecting ',' delimiter at line 1, column 9{cut}"
    )


def test_a_call_of_tools_is_no_answer() -> None:
    assert answer_data("{}", ANY, "tool_calls") == (None, "the last answer asks for tools")


# -- recorded schemas that are bad -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "nonsense"}, "the schema is not valid at 'type': 'nonsense' is not valid under"),
        ({"pattern": "("}, "the schema is not valid at 'pattern': '(' is not a 'regex'"),
        ({"required": 3}, "the schema is not valid at 'required': 3 is not of type 'array'"),
        ({"$ref": "#/$defs/lost"}, "the schema cannot be applied: "),
        ({"$ref": "#"}, "the schema cannot be applied: "),
    ],
)
def test_a_schema_that_cannot_be_applied_is_an_error_of_the_data(schema: Any, error: str) -> None:
    value, found = answer_data("{}", schema)

    assert value is None
    assert found is not None and found.startswith(error) and "\n" not in found


def test_a_reference_to_elsewhere_is_not_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"

        value, error = answer_data("{}", {"$ref": url})

        with pytest.raises(BlockingIOError):
            server.accept()
    assert value is None
    assert (error or "").startswith("the schema cannot be applied: ")
