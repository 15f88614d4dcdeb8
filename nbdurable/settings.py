"""What a handle was given, and what a verb overrides: the settings of a run.

Nothing of it is stored but what a run records (B2); none of it is shown but names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Literal

from nbdurable.blocks import Json, Message
from nbdurable.budget import Budget
from nbdurable.entries import Entry
from nbdurable.errors import shown
from nbdurable.frozen import collected_later
from nbdurable.growing import GrowingViews
from nbdurable.hooks import HookChain
from nbdurable.inputs import input_digest
from nbdurable.models import resolve_model
from nbdurable.models.base import Model, ModelRequest
from nbdurable.models.params import recorded, recorded_json, warn_unknown
from nbdurable.schemas import Schema
from nbdurable.stored import Context
from nbdurable.tools import Tool, as_tools
from nbdurable.views import View
from nbdurable.wire import as_python, clean, digest, dumps

Effects = Literal["refuse", "run"]
Show = Literal["stream", "line"] | None
ToolValue = Tool | Callable[..., object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Model, system text, tools, parameters and limits of runs."""

    model: Model = field(repr=False)
    system: str | None = field(default=None, repr=False)
    tools: tuple[Tool, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict, repr=False)
    hooks: HookChain = field(default_factory=HookChain, repr=False)
    max_steps: int = 25
    compact_above: int | None = None
    budgets: tuple[Budget, ...] = ()
    effects: Effects = "refuse"
    asked_schema: Schema | None = field(default=None, repr=False)

    @property
    def schema(self) -> Schema | None:
        """The form that answers are asked to have, or None."""
        return self.asked_schema or Schema.of_format(self.params.get("response_format"))

    def override(
        self,
        *,
        model: str | Model | None = None,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolValue] | EllipsisType = ...,
        schema: object = None,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        **params: object,
    ) -> Settings:
        """Return these settings with what a verb was given in their place.

        Raises
        ------
        EntryError, RunError, TypeError, ValueError
            A value cannot be used; the text says which.
        """
        if effects not in ("refuse", "run"):
            raise ValueError(f"effects is {shown(effects)}; give 'refuse' or 'run'")
        asked = None if "response_format" in params else self.asked_schema
        if schema is not None:
            if "response_format" in params:
                raise TypeError("schema and response_format are the same thing; give one of them")
            asked = Schema.of(schema)
            params["response_format"] = asked.response_format
        params = {name: as_python(value) for name, value in params.items()}
        if params:
            warn_unknown(params, stacklevel=4)
            recorded_json(params)
        budgets = self.budgets if budget_usd is None else (*self.budgets, Budget(budget_usd))
        return replace(
            self,
            model=self.model if model is None else resolve_model(model),
            system=self.system if isinstance(system, EllipsisType) else checked_system(system),
            tools=self.tools if isinstance(tools, EllipsisType) else as_tools(tools),
            params={**self.params, **params},
            budgets=budgets,
            effects=effects,
            asked_schema=asked,
        )

    def view(self, path: Sequence[Entry], views: GrowingViews) -> View:
        """Return what the model reads of a path (B44); `views` are those of its session."""
        effects = frozenset(tool.name for tool in self.tools if tool.effects)
        with collected_later():
            return views.view(path, self.model.name, effects)

    def context(self) -> Context:
        """Return system text and tools as they are stored, once per content."""
        tools_json = dumps([tool.spec.to_dict() for tool in self.tools])
        return context_of(clean(self.system), tools_json)

    def request(self, messages: tuple[Message, ...]) -> ModelRequest:
        """Return the request that carries `messages` under these settings."""
        return ModelRequest(
            messages=messages,
            system=self.system,
            tools=tuple(tool.spec for tool in self.tools),
            params=dict(self.params),
        )

    def request_digest(
        self,
        kind: str,
        input: Sequence[Entry],
        context: Context,
        detail: Mapping[str, Json] | None = None,
    ) -> str:
        """Return the digest by which equal requests are known, given `context()` (B56).

        `detail` is what else the verb was given. The order of parameters does not count.
        """
        return digest(
            {
                "kind": kind,
                "input": input_digest(input),
                "model": self.model.name,
                "context": context.digest,
                "params": json.dumps(recorded(self.params), sort_keys=True),
                **({"detail": dict(detail)} if detail else {}),
            }
        )


def checked_system(system: object) -> str | None:
    """Return the system text, or raise `TypeError` for what is neither text nor None."""
    if system is None or isinstance(system, str):
        return system
    raise TypeError(f"system is {shown(system)} of type {type(system).__name__}; give text or None")


def context_of(system: str | None, tools_json: str) -> Context:
    """Return the context of this content, under its digest."""
    return Context(digest=digest([system, tools_json]), system=system, tools_json=tools_json)
