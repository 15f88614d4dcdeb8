"""Answers of a given form: what a caller asks for, and what of that is recorded.

Owns the way from a class or a JSON schema to the parameter ``response_format`` and back. Does not
own sending (`models`) or what an answer holds (`answers`). The one idea: what is stored is the
JSON schema alone, so an answer can be read again where its class is not known; where it is, the
class makes instances.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_origin

from nbdurable.answers import (
    SHOWN_CHARS,
    answered,
    class_reader,
    plain_reader,
    schema_problem,
)
from nbdurable.blocks import Json, Message
from nbdurable.errors import BadPayload, shown
from nbdurable.wire import dumps

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_FORMATS = frozenset({"text", "json_object", "json_schema"})


# -- what is asked for -------------------------------------------------------------------------


class Schema:
    """The form that an answer was asked to have.

    Parameters
    ----------
    response_format : mapping
        As recorded, and as providers take it.
    schema_json : str
        The JSON schema as text.
    read : callable, optional
        Makes the data of a class from an answer's JSON text; plain JSON values without it.
    """

    __slots__ = ("_read", "response_format", "schema_json")

    def __init__(
        self,
        response_format: Mapping[str, Json],
        schema_json: str,
        read: Callable[[str], object] | None = None,
    ) -> None:
        self.response_format = dict(response_format)
        self.schema_json = schema_json
        self._read = read

    def __repr__(self) -> str:
        return f"Schema({shown(self.schema_json)})"

    @classmethod
    def of(cls, wanted: object) -> Schema:
        """Return the schema that a caller means by a class, a type or a JSON schema.

        Raises
        ------
        TypeError
            It is none of these, or a class that has no JSON schema.
        ValueError
            It is no valid JSON schema; the text says where.
        """
        if isinstance(wanted, Mapping):
            text = _checked(wanted)
            schema = json.loads(text)
            return cls(_format(schema, schema.get("title"), is_strict(schema)), text)
        adapter = _adapter(wanted)
        schema, strict = _for_models(_schema_of(adapter, wanted))
        name = getattr(wanted, "__name__", None) or schema.get("title")
        return cls(_format(schema, name, strict), dumps(schema), class_reader(adapter))

    @classmethod
    def of_format(cls, response_format: object) -> Schema | None:
        """Return the schema in a ``response_format`` as given or recorded; None without one."""
        if hasattr(response_format, "model_json_schema"):
            return cls.of(response_format)
        if not isinstance(response_format, Mapping):
            return None
        schema: object = response_format
        match response_format.get("type"):
            case "text":
                return None
            case "json_object":
                schema = {"type": "object"}
            case "json_schema":
                inner = response_format.get("json_schema")
                schema = inner.get("schema") if isinstance(inner, Mapping) else None
        return cls(response_format, dumps(schema)) if isinstance(schema, Mapping) else None

    @classmethod
    def recorded(cls, params_json: str) -> Schema | None:
        """Return the schema in a run's recorded parameters; None without one."""
        if '"response_format"' not in params_json:
            return None
        return cls.of_format(json.loads(params_json).get("response_format"))

    def answer(self, message: Message | None) -> tuple[Any, str | None]:
        """Return the data of a run's last answer, and what is wrong with it."""
        if message is None:
            return None, "there is no answer"
        reason = message.reply.stop_reason if message.reply else None
        return answered(self._read or plain_reader(self.schema_json), message.text, reason)


def as_response_format(wanted: object) -> Json:
    """Return ``response_format`` as providers take it: a class or a bare schema is wrapped."""
    if hasattr(wanted, "model_json_schema"):
        return Schema.of(wanted).response_format
    if isinstance(wanted, Mapping) and wanted.get("type") not in _FORMATS:
        return _format(dict(wanted), wanted.get("title"), is_strict(wanted))
    return wanted


def _format(schema: Mapping[str, Json], name: object, strict: bool) -> dict[str, Json]:
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_") if isinstance(name, str) else ""
    named = {"name": plain[:64] or "answer", "schema": dict(schema), "strict": strict}
    return {"type": "json_schema", "json_schema": named}


def _checked(schema: Mapping[str, Json]) -> str:
    """Return a JSON schema as text, or raise `ValueError` for one that is not valid."""
    try:
        text = dumps(dict(schema))
    except BadPayload as exc:
        raise ValueError(f"schema is not JSON at {exc.path!r}; give plain JSON values") from exc
    if wrong := schema_problem(json.loads(text)):
        raise ValueError(
            f"schema is not a valid JSON schema {wrong}; "
            "give a JSON schema as a dict, or a pydantic class"
        )
    if lost := next(_unresolved(json.loads(text)), None):
        raise ValueError(f"schema refers to {lost!r}, which is not in it; define it under '$defs'")
    return text


def _unresolved(schema: Mapping[str, Json]) -> Iterator[str]:
    """Yield the references that lead out of a schema, or nowhere: none is ever fetched."""
    if any("$id" in node or "$anchor" in node for node in _nodes(schema)):
        return
    for node in _nodes(schema):
        ref = node.get("$ref")
        if isinstance(ref, str) and not _leads_somewhere(schema, ref):
            yield ref


def _leads_somewhere(schema: Json, ref: str) -> bool:
    if not ref.startswith("#"):
        return False
    at = schema
    for step in ref[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list) and step.isdigit() and int(step) < len(at):
            at = at[int(step)]
        elif isinstance(at, Mapping) and step in at:
            at = at[step]
        else:
            return False
    return True


_DATA = frozenset({"const", "default", "enum", "examples"})  # what stands under these is no schema
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


def _nodes(schema: Json) -> Iterator[Mapping[str, Json]]:
    """Yield a schema and those within it."""
    left: list[Json] = [schema]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
        elif isinstance(node, Mapping):
            yield node
            for key, value in node.items():
                if key in _NAMED and isinstance(value, Mapping):
                    left += value.values()
                elif key not in _DATA:
                    left.append(value)


# -- classes -----------------------------------------------------------------------------------


def _adapter(wanted: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    if isinstance(wanted, TypeAdapter):
        return wanted
    is_alias = get_origin(wanted) is not None or hasattr(wanted, "__value__")
    if not isinstance(wanted, type) and not is_alias:
        raise TypeError(
            f"schema is {shown(wanted)} of type {type(wanted).__name__}; "
            "give a pydantic class, a type such as list[int], or a JSON schema as a dict"
        )
    try:
        return TypeAdapter(wanted)
    except (PydanticUserError, NameError, TypeError) as exc:
        raise _no_schema(wanted, exc) from exc


def _schema_of(adapter: TypeAdapter[Any], wanted: object) -> dict[str, Json]:
    from pydantic.errors import PydanticUserError

    try:
        return adapter.json_schema()
    except (PydanticUserError, NameError) as exc:
        raise _no_schema(wanted, exc) from exc


def _no_schema(wanted: object, exc: Exception) -> TypeError:
    reason = str(exc).partition("\n")[0][:SHOWN_CHARS].rstrip(".")
    return TypeError(
        f"schema {shown(wanted)} has no JSON schema: {reason}; "
        "give a pydantic class, a type such as list[int], or a JSON schema as a dict"
    )


# -- schemas that a provider can guarantee -----------------------------------------------------

_STRICT = frozenset(
    "type properties required additionalProperties items enum const anyOf $ref $defs title "
    "description minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems "
    "format".split()
)
_STRICT_TEXTS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())


def is_strict(schema: Mapping[str, Json]) -> bool:
    """Whether OpenAI can hold a model to a schema to the letter; it refuses others as strict."""
    return schema.get("type") == "object" and all(map(_is_strict_node, _nodes(schema)))


def _is_strict_node(node: Mapping[str, Json]) -> bool:
    if not _STRICT.issuperset(node) or ("$ref" in node and len(node) > 1):
        return False
    if node.get("format", "date") not in _STRICT_TEXTS:
        return False
    if node.get("type") != "object":
        return "properties" not in node
    asked, named = node.get("required", ()), node.get("properties", {})
    if not isinstance(asked, list | tuple) or not isinstance(named, Mapping):
        return False
    return node.get("additionalProperties") is False and set(asked) == set(named)


def _for_models(schema: dict[str, Json]) -> tuple[dict[str, Json], bool]:
    """Return the schema of a class as it is sent: closed to other names where that is enough."""
    closed = json.loads(dumps(schema))
    for node in _nodes(closed):
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)  # type: ignore[attr-defined]
    return (closed, True) if is_strict(closed) else (schema, False)


# -- for readers of records ---------------------------------------------------------------------


def answer_data(
    text: str, schema_json: str | Mapping[str, Json], stop_reason: str | None = None
) -> tuple[Json, str | None]:
    """Return the data in an answer's text as plain JSON values, and what is wrong with it.

    Parameters
    ----------
    text : str
        JSON, perhaps within a code fence.
    schema_json : str or mapping
        The JSON schema, such as `recorded_schema` gives.
    stop_reason : str, optional
        Why the answer ended; one that was cut is told from one that is whole.

    Returns
    -------
    tuple
        The value and None, or None and one line that says where and what is wrong.
    """
    schema_text = schema_json if isinstance(schema_json, str) else dumps(dict(schema_json))
    return answered(plain_reader(schema_text), text, stop_reason)


def recorded_schema(params_json: str) -> str | None:
    """Return the JSON schema, as text, in a run's recorded parameters; None without one."""
    found = Schema.recorded(params_json)
    return None if found is None else found.schema_json
