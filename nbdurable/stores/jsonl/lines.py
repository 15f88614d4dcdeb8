"""The lines of a recording: records to JSON text and back, field by field.

Owns what a line of each type holds. Does not own files (`writer`, `reader`). The one idea: a field
is written as it is stored, so that nothing is lost; what only its store could know (``seq``,
``counter``, ``digest``, the process of a run) is left out, so that equal content gives equal lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from inspect import get_annotations
from typing import Any, NoReturn, TypeVar, get_args

from nbdurable.blocks import Json
from nbdurable.errors import shown
from nbdurable.stored import (
    Annotation,
    Context,
    ExperimentRecord,
    Move,
    Outcome,
    RunEnd,
    RunRecord,
    SessionRecord,
    StoredEntry,
)
from nbdurable.wire import dumps, finite

T = TypeVar("T")

FORMAT = "nbdurable"
VERSION = 1

RECORDS: dict[str, type[Any]] = {
    "session": SessionRecord,
    "experiment": ExperimentRecord,
    "context": Context,
    "run": RunRecord,
    "run_end": RunEnd,
    "entry": StoredEntry,
    "move": Move,
    "annotation": Annotation,
}

_LEFT_OUT = frozenset({"session_id", "seq", "depth", "counter", "owner"})

# JSON text is written as JSON where that gives the same text again, under the first name; as text
# under the second where it does not.
_JSON_TEXT = {
    "payload": ("payload", "payload_text"),
    "plan_json": ("plan", "plan_json"),
    "params_json": ("params", "params_json"),
    "ephemeral_json": ("ephemeral", "ephemeral_json"),
    "usage_json": ("usage", "usage_json"),
    "value_json": ("value", "value_json"),
    "tools_json": ("tools", "tools_json"),
}
_DEEPEST = 100  # of JSON written as JSON: a reader's own limit is not far above
_FEW_BRACKETS = 2 * _DEEPEST


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a record: its name, its type as written, its default or `MISSING`."""

    name: str
    type: str
    default: object


# Legal in JSON, but line ends to many a reader of lines.
_LINE_ENDS = {char: f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


def to_line(kind: str, record: object) -> str:
    """Return a record as one line of JSON, without the line end.

    Fields that have their default are left out.
    """
    plain: dict[str, Json] = {"type": kind}
    parts: list[str] = []
    for field in _FIELDS[kind]:
        value = getattr(record, field.name)
        if _is_real(field, value):
            value = finite(float(value))
        if field.default is not MISSING and value == field.default:
            continue
        if field.name not in _JSON_TEXT:
            plain[field.name] = value
            continue
        as_json, as_text = _JSON_TEXT[field.name]
        if is_exact(value):
            parts.append(f'"{as_json}":{value}')
        else:
            plain[as_text] = value
    head = dumps(plain)[:-1]
    return one_line(",".join([head, *parts]) + "}")


def plain_line(kind: str, **values: Json) -> str:
    """Return a line that is no record."""
    return one_line(dumps({"type": kind, **values}))


def one_line(text: str) -> str:
    """Return JSON text with what some take for a line end escaped; its value is the same."""
    for char, escape in _LINE_ENDS.items():
        if char in text:
            text = text.replace(char, escape)
    return text


def is_exact(text: str) -> bool:
    """Whether JSON text comes back the same when it is read and written again."""
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > _FEW_BRACKETS and _is_deep(value):
            return False
        return dumps(value) == text
    except (ValueError, RecursionError):
        return False


def _is_deep(value: Json) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def _is_real(field: _Field, value: object) -> bool:
    return field.type == "float | None" and value is not None


def kind_of(line: str) -> str:
    """Return the type of a line made here."""
    start = len('{"type":"')
    return line[start : line.index('"', start)]


# -- back --------------------------------------------------------------------------------------


def parsed(line: bytes) -> dict[str, Any]:
    """Return the object of a line, strictly read.

    Raises
    ------
    ValueError
        The line is no JSON object with a type, or not UTF-8; the text says which.
    """
    try:
        wire = _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as exc:
        raise ValueError(f"not UTF-8 at byte {exc.start}") from exc
    except json.JSONDecodeError as exc:
        raise ValueError(f"no JSON at character {exc.pos}: {exc.msg.lower()}") from exc
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc
    if not isinstance(wire, dict) or not isinstance(wire.get("type"), str):
        raise ValueError("no JSON object with a type")
    return wire


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which JSON does not have")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def from_line(record: type[T], kind: str, wire: Mapping[str, Any], **known: object) -> T:
    """Return the record of a parsed line; `known` gives the fields that no line holds.

    Raises
    ------
    ValueError
        A field is missing, is unknown, or is of a wrong type; the text names it.
    """
    left = dict(wire)
    del left["type"]
    values: dict[str, object] = dict(known)
    for field in _FIELDS[kind]:
        name = field.name
        for key in _JSON_TEXT.get(name, (name,)):
            if key not in left:
                continue
            value = left.pop(key)
            is_json = name in _JSON_TEXT and key == _JSON_TEXT[name][0]
            values[name] = dumps(value) if is_json else _checked(field, value)
            break
        else:
            if field.default is MISSING:
                raise ValueError(f"field {name!r} of type {kind!r} is missing")
    if left:
        raise ValueError(f"field {shown(min(left))} of type {kind!r} is not known")
    return record(**values)


def _checked(field: _Field, value: object) -> object:
    is_fit = _IS_FIT[str(field.type)]
    if not is_fit(value):
        raise ValueError(f"field {field.name!r} must be {field.type}, got {shown(value, 40)}")
    if _is_real(field, value):
        return float(value)  # type: ignore[arg-type]
    return tuple(value) if isinstance(value, list) else value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not _SURROGATE.search(value)


def _is_count(value: object) -> bool:
    return type(value) is int and -_LARGEST <= value < _LARGEST


def _is_number(value: object) -> bool:
    return _is_count(value) or (isinstance(value, float) and finite(value) is not None)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _or_none(is_fit: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_fit(value)


_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 1 << 63
_IS_FIT: dict[str, Callable[[object], bool]] = {
    "str": _is_text,
    "int": _is_count,
    "bool": lambda value: isinstance(value, bool),
    "str | None": _or_none(_is_text),
    "int | None": _or_none(_is_count),
    "float | None": _or_none(_is_number),
    "bool | None": lambda value: isinstance(value, bool),  # a store has made it one
    "tuple[str, ...]": _is_texts,
    "Outcome": lambda value: value in get_args(Outcome),
}


def _fields_of(kind: str, record: type[Any]) -> list[_Field]:
    """Return the fields that a line of this type holds."""
    if kind == "entry":  # a tuple with names
        types: dict[str, Any] = get_annotations(record)
        defaults = record._field_defaults
        found = [
            _Field(name, types[name].__forward_arg__, defaults.get(name, MISSING))
            for name in record._fields
            if name != "digest"
        ]
    else:
        found = [_Field(field.name, str(field.type), field.default) for field in fields(record)]
    return [field for field in found if field.name not in _LEFT_OUT]


_FIELDS = {kind: _fields_of(kind, record) for kind, record in RECORDS.items()}
