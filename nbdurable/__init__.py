"""Conversations with language models that you do not lose, in a notebook.

::

    import nbdurable as nb

    chat = nb.open("support-42", store="chats.duckdb", model="openai/gpt-5-mini")
    chat.run("The customer asked about order 1234.")

Names are loaded when they are first used, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbdurable import errors
    from nbdurable.entries import CompactionEntry, CustomEntry, Entry, MessageEntry, OpaqueEntry
    from nbdurable.formats import load
    from nbdurable.hooks import Hooks
    from nbdurable.inputs import assistant, ephemeral, file, image, meta, text, user
    from nbdurable.library import connect
    from nbdurable.lifecycle import SessionEvent
    from nbdurable.notebook.compare import compare
    from nbdurable.opening import open
    from nbdurable.references import LEAF
    from nbdurable.run import Run
    from nbdurable.session import Session
    from nbdurable.tools import tool

_HOME = {
    "LEAF": "references",
    "CompactionEntry": "entries",
    "CustomEntry": "entries",
    "Entry": "entries",
    "Hooks": "hooks",
    "MessageEntry": "entries",
    "OpaqueEntry": "entries",
    "Run": "run",
    "Session": "session",
    "SessionEvent": "lifecycle",
    "assistant": "inputs",
    "compare": "notebook.compare",
    "connect": "library",
    "ephemeral": "inputs",
    "errors": "",
    "file": "inputs",
    "image": "inputs",
    "load": "formats",
    "load_ipython_extension": "notebook.magics",
    "unload_ipython_extension": "notebook.magics",
    "meta": "inputs",
    "open": "opening",
    "text": "inputs",
    "tool": "tools",
    "user": "inputs",
}

__all__ = [
    "LEAF",
    "CompactionEntry",
    "CustomEntry",
    "Entry",
    "Hooks",
    "MessageEntry",
    "OpaqueEntry",
    "Run",
    "Session",
    "SessionEvent",
    "assistant",
    "compare",
    "connect",
    "ephemeral",
    "errors",
    "file",
    "image",
    "load",
    "meta",
    "open",
    "text",
    "tool",
    "user",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = (
        getattr(import_module(f"nbdurable.{home}"), name)
        if home
        else import_module(f"nbdurable.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
