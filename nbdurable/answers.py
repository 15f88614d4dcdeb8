"""The data in an answer's text: out of its code fence, read as JSON, held against its schema.

Owns what is accepted and the one line that says what is wrong with the rest. Does not own what
was asked for (`schemas`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nbdurable.blocks import Json
from nbdurable.errors import BadPayload, shown
from nbdurable.wire import dumps

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic import TypeAdapter, ValidationError

SHOWN_PROBLEMS = 5
SHOWN_CHARS = 120

_FENCED = re.compile(r"^[ \t]*```[\w+-]*[ \t]*\n?(.*?)```[ \t]*$", re.MULTILINE | re.DOTALL)


class UnfitAnswer(ValueError):
    """An answer does not fit what was asked for; the text says where and why."""


def answered(
    read: Callable[[str], Any], text: str, stop_reason: str | None
) -> tuple[Any, str | None]:
    """Return what `read` makes of an answer's JSON, and what is wrong with the answer."""
    if stop_reason in ("error", "aborted"):
        return None, f"the answer is not whole: it ended as {stop_reason!r}"
    if stop_reason == "tool_calls":
        return None, "the last answer asks for tools"
    cut = "; it was cut at its token limit" if stop_reason == "length" else ""
    try:
        json_text = _json_text(text)
        if cut and json_text[-1].isdigit():
            raise UnfitAnswer("the number may go on")
        return read(json_text), None
    except UnfitAnswer as exc:
        return None, f"{exc}{cut}"


def _json_text(text: str) -> str:
    """Return the JSON of an answer as we write it, out of its code fence."""
    text = text.strip().removeprefix("\ufeff")
    if not text:
        raise UnfitAnswer("the answer has no text")
    try:
        return _rewritten(text)
    except UnfitAnswer:
        fenced = _FENCED.findall(text)
        if len(fenced) != 1:
            raise
    return _rewritten(fenced[0].strip())


def _rewritten(text: str) -> str:
    try:
        return dumps(json.loads(text))
    except json.JSONDecodeError as exc:
        raise UnfitAnswer(f"not JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}") from exc
    except BadPayload as exc:  # Python reads NaN and 1e999, JSON has neither
        raise UnfitAnswer(f"not JSON: {exc.path or 'the value'} is no finite number") from exc
    except (ValueError, RecursionError) as exc:
        raise UnfitAnswer("not JSON that can be read: too long a number, or too deep") from exc


# -- by a JSON schema --------------------------------------------------------------------------


def kind_of_schema(schema: Mapping[str, Json]) -> type[Validator]:
    """Return the validator of the draft that a schema is written for."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    found: type[Validator] = validator_for(schema, default=Draft202012Validator)
    return found


def schema_problem(schema: Mapping[str, Json]) -> str | None:
    """Return where and why a JSON schema is not valid, or None."""
    from jsonschema import SchemaError

    kind = kind_of_schema(schema)
    try:
        kind.check_schema(schema, format_checker=kind.FORMAT_CHECKER)
    except SchemaError as exc:
        return f"at {'.'.join(_place(exc)) or 'the top'!r}: {_short(exc)}"
    return None


def plain_reader(schema_json: str) -> Callable[[str], Any]:
    """Return what reads JSON text by a JSON schema."""

    def read(text: str) -> object:
        value = json.loads(text)
        if wrong := _unfit(_validator(schema_json), value):
            raise UnfitAnswer(wrong)
        return value

    return read


@lru_cache(maxsize=64)
def _validator(schema_json: str) -> Validator:
    from referencing import Registry

    schema = json.loads(schema_json)
    if wrong := schema_problem(schema):
        raise UnfitAnswer(f"the schema is not valid {wrong}")
    # An empty registry: a reference to elsewhere must not be fetched.
    return kind_of_schema(schema)(schema, registry=Registry())


def _unfit(validator: Validator, value: Json) -> str | None:
    from referencing.exceptions import Unresolvable

    try:
        found = sorted(validator.iter_errors(value), key=_place)
    except (Unresolvable, RecursionError) as exc:
        return f"the schema cannot be applied: {shown(str(exc), SHOWN_CHARS)}"
    return _listed(map(_line, found)) if found else None


def _place(error: Any) -> list[str]:
    return [str(step) for step in error.absolute_path]


def _line(error: Any) -> str:
    where = ".".join(_place(error))
    return f"{where}: {_short(error)}".removeprefix(": ")


def _short(error: Any) -> str:
    """Return the message of a jsonschema error in one line, the value in it cut."""
    text = error.message.replace(repr(error.instance), shown(error.instance, 40), 1)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


# -- by a class --------------------------------------------------------------------------------


def class_reader(adapter: TypeAdapter[Any]) -> Callable[[str], Any]:
    """Return what reads JSON text as an instance of a class."""

    def read(text: str) -> object:
        from pydantic import ValidationError

        try:
            return adapter.validate_json(text)
        except ValidationError as exc:
            raise UnfitAnswer(problems(exc)) from exc
        except Exception as exc:  # a validator of the application's own may raise anything
            name = type(exc).__name__
            raise UnfitAnswer(f"its class failed: {name}: {shown(str(exc), SHOWN_CHARS)}") from exc

    return read


def problems(error: ValidationError) -> str:
    """Return what pydantic found wrong, in one line that a model or a person can act on."""
    found = error.errors(include_url=False, include_context=False)
    return _listed(
        _problem(item["loc"], item["msg"], item["type"], item["input"]) for item in found
    )


def _problem(place: tuple[int | str, ...], text: str, kind: str, value: object) -> str:
    where = ".".join(str(step) for step in place)
    if kind == "missing":
        return f"{where}: missing"
    if kind == "unexpected_keyword_argument":
        return f"{where}: not a parameter"
    text = " ".join(text.split())
    if kind == "json_invalid":
        return text
    return f"{where}: {text}, got {shown(value, 40)}".removeprefix(": ")


def _listed(lines: Iterator[str]) -> str:
    found = list(lines)
    more = len(found) - SHOWN_PROBLEMS
    return "; ".join([*found[:SHOWN_PROBLEMS], *([f"and {more} more"] if more > 0 else [])])
