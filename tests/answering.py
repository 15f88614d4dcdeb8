"""A conversation with three answers to one question, as comparisons want it."""

from __future__ import annotations

from dataclasses import dataclass

import nbdurable as nb
from nbdurable.blocks import Usage
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


def says(text: str, name: str = "plain", **options: object) -> ScriptedModel:
    """Return a model that says one thing, always."""
    return ScriptedModel(text, name=name, repeat=True, **options)  # type: ignore[arg-type]


@dataclass
class Answers:
    """The session, and the runs that answered #3."""

    chat: nb.Session
    first: nb.Run
    second: nb.Run
    third: nb.Run

    @property
    def runs(self) -> tuple[nb.Run, ...]:
        return (self.first, self.second, self.third)


def answers(store: Store, session_id: str = "s") -> Answers:
    """Ask and answer, then ask for #3 three times: entries #4, #5, #6."""
    opener = says("It left on Tuesday.", "openai/small")
    chat = nb.open(session_id, store=store, model=opener, temperature=0.2)
    chat.run("Where is order 1234?")
    small = says("Hello Ravi, it ships today.", "openai/small", cost_usd=0.004, usage=Usage(20, 9))
    first = chat.run("Draft a reply.", model=small)
    tiny = says("Your parcel ships today.", "tiny", cost_usd=0.001, usage=Usage(20, 4))
    second = chat.rerun(first, model=tiny)
    large = says("Hi Ravi, it ships today!", "large", cost_usd=0.02, usage=Usage(20, 19))
    third = chat.rerun(first, model=large, system="Be warm.", temperature=0.9)
    return Answers(chat, first, second, third)
