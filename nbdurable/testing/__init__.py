"""Helpers for tests without a key or a network, for users' own tests too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbdurable.testing import steps
from nbdurable.testing.fake_openai import FakeOpenAI, SeenRequest, Step

if TYPE_CHECKING:
    from nbdurable.models.scripted import ScriptedModel

__all__ = ["FakeOpenAI", "ScriptedModel", "SeenRequest", "Step", "steps"]


def __getattr__(name: str) -> object:
    if name != "ScriptedModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nbdurable.models.scripted import ScriptedModel

    return ScriptedModel
