"""What a typed function takes: its JSON schema for a model, and the check of a call's arguments.

Owns signatures and docstrings; `tools` owns calling. The one idea: the signature is the schema, so
both come from one pydantic dataclass made of it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import make_dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, get_args, get_origin

from nbdurable.answers import problems
from nbdurable.blocks import Json
from nbdurable.errors import ToolError
from nbdurable.wire import clean

if TYPE_CHECKING:
    from pydantic import TypeAdapter

INJECTED = frozenset({"idempotency_key", "report"})  # given by the loop, unknown to the model

_REFUSED_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values",
    inspect.Parameter.VAR_KEYWORD: "takes any names",
}


class UnfitArguments(ValueError):
    """A call's arguments do not fit the function; the text tells the model why."""


class Arguments:
    """The arguments of one function: `schema` for models, `read` for their calls.

    Parameters
    ----------
    fn : callable
        The typed function.
    name : str
        The tool's name, for error texts.
    """

    def __init__(self, fn: Callable[..., object], name: str) -> None:
        self._name = name
        self._names = tuple(n for n in parameters_of(fn, name) if n not in INJECTED)
        self._adapter = _adapter(fn, name, self._names)
        self.schema = self._schema()

    def _schema(self) -> dict[str, Json]:
        from pydantic.errors import PydanticInvalidForJsonSchema
        from pydantic.json_schema import GenerateJsonSchema

        class Untitled(GenerateJsonSchema):
            ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

            def field_title_should_be_set(self, schema: object) -> bool:
                return False

        try:
            schema = self._adapter.json_schema(schema_generator=Untitled)
        except PydanticInvalidForJsonSchema as exc:
            raise ToolError(
                f"tool {self._name!r} has a parameter that JSON cannot carry: {exc.message}; "
                "use types such as str, int, list, dict, Literal, dataclasses"
            ) from exc
        schema.pop("title", None)
        schema.pop("description", None)
        return {"type": "object", "properties": {}, **schema}

    def read(self, raw: str) -> dict[str, object]:
        """Return a call's arguments as keywords for the function, defaults filled in.

        Raises
        ------
        UnfitArguments
            The text is no JSON object, or a value does not fit its parameter.
        """
        from pydantic import ValidationError

        try:
            given = self._adapter.validate_json(clean(raw) or "{}")
        except ValidationError as exc:
            text = f"arguments of {self._name!r} do not fit: {problems(exc)}"
            raise UnfitArguments(text) from exc
        return {name: getattr(given, name) for name in self._names}


def parameters_of(fn: Callable[..., object], name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function that can be a tool; annotations stay unread.

    Raises
    ------
    ToolError
        A parameter cannot be given by name.
    """
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError) as exc:
        raise ToolError(
            f"tool {name!r} has no signature that Python can read; wrap it in a typed function"
        ) from exc
    for parameter in parameters.values():
        if parameter.kind in _REFUSED_KINDS:
            raise ToolError(
                f"parameter {parameter.name!r} of tool {name!r} {_REFUSED_KINDS[parameter.kind]}; "
                "a model gives arguments by name, so name each one"
            )
    return parameters


def _adapter(fn: Callable[..., object], name: str, names: tuple[str, ...]) -> TypeAdapter[object]:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.dataclasses import dataclass
    from pydantic.errors import PydanticUserError

    try:
        parameters = inspect.signature(fn, eval_str=True).parameters
        told = parameter_docs(fn.__doc__)
        columns = [_column(parameters[n], told.get(n)) for n in names]
        plain = make_dataclass(name.replace("-", "_"), columns, kw_only=True)
        checked = dataclass(config=ConfigDict(extra="forbid"))(plain)
        return TypeAdapter(checked)
    except (NameError, AttributeError, SyntaxError) as exc:
        raise ToolError(
            f"an annotation of tool {name!r} cannot be resolved: {exc}; "
            "define the name at the top level of the cell or module"
        ) from exc
    except (PydanticUserError, TypeError) as exc:
        reason = str(exc).partition("\n")[0].rstrip(".")
        raise ToolError(
            f"an annotation of tool {name!r} has no JSON schema: {reason}; "
            "use types such as str, int, list, dict, Literal, dataclasses"
        ) from exc


def _column(parameter: inspect.Parameter, told: str | None) -> tuple[str, object, object]:
    """Return name, annotation and default of a parameter as a dataclass takes them."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    annotation: object = parameter.annotation
    base: object = object if annotation is parameter.empty else annotation
    notes: tuple[object, ...] = ()
    if get_origin(annotation) is Annotated:
        base, *rest = get_args(annotation)
        notes = tuple(Field(description=note) if isinstance(note, str) else note for note in rest)
    if told:  # first, so that a description of the annotation's own wins
        notes = (Field(description=told), *notes)
    typed = Annotated[(base, *notes)] if notes else base
    default: object = parameter.default
    if default is parameter.empty:
        return parameter.name, typed, Field()
    return parameter.name, typed, default if isinstance(default, FieldInfo) else Field(default)


# -- docstrings --------------------------------------------------------------------------------

_NUMPY_SECTION = re.compile(r"^(?P<title>[A-Z][\w ]+)\n-{3,}[ ]*$", re.MULTILINE)
_GOOGLE_SECTION = re.compile(r"^(?P<title>[A-Z][\w ]+):[ ]*$", re.MULTILINE)
_PARAMETER_TITLES = frozenset({"Parameters", "Other Parameters", "Args", "Arguments"})
_OTHER_TITLES = frozenset({"Returns", "Yields", "Raises", "Note", "Notes", "Example", "Examples"})
_NUMPY_NAMES = re.compile(r"^(?P<names>\w+(?:, *\w+)*) *(?::.*)?$")
_GOOGLE_NAME = re.compile(r"^(?P<names>\w+) *(?:\([^)]*\))?: *(?P<text>.*)$")


def summary_of(docstring: str | None) -> str:
    """Return the first paragraph of a docstring in one line."""
    text = inspect.cleandoc(docstring or "")
    first = re.split(r"\n\s*\n", text, maxsplit=1)[0]
    cut = _section_start(first)
    return " ".join(first[:cut].split())


def _section_start(text: str) -> int:
    starts = [match.start() for match in (_NUMPY_SECTION.search(text), _google(text)) if match]
    return min(starts, default=len(text))


def _google(text: str) -> re.Match[str] | None:
    matches = _GOOGLE_SECTION.finditer(text)
    titles = _PARAMETER_TITLES | _OTHER_TITLES
    return next((match for match in matches if match["title"] in titles), None)


def parameter_docs(docstring: str | None) -> dict[str, str]:
    """Return the descriptions of parameters in a NumPy or Google docstring, by name."""
    text = inspect.cleandoc(docstring or "")
    docs: dict[str, str] = {}
    for match in _NUMPY_SECTION.finditer(text):
        if match["title"] in _PARAMETER_TITLES:
            following = _NUMPY_SECTION.search(text, match.end())
            body = text[match.end() : following.start() if following else len(text)]
            docs |= _items(body.strip("\n"), _NUMPY_NAMES)
    for match in _GOOGLE_SECTION.finditer(text):
        if match["title"] in _PARAMETER_TITLES:
            lines = text[match.end() :].strip("\n").splitlines()
            inside = takewhile(lambda line: not line or line.startswith((" ", "\t")), lines)
            docs |= _items(textwrap.dedent("\n".join(inside)), _GOOGLE_NAME)
    return docs


def _items(body: str, header: re.Pattern[str]) -> dict[str, str]:
    """Return name to description of a section whose items start at its left edge."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in body.splitlines():
        match = header.match(line)
        if match:
            current = [match.groupdict().get("text") or ""]
            found |= dict.fromkeys(re.split(r", *", match["names"]), current)
        else:
            current.append(line)
    folded = {name: " ".join(" ".join(lines).split()) for name, lines in found.items()}
    return {name: text for name, text in folded.items() if text}
