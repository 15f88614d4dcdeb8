"""What the tests of experiments share: models that say which cell asked, and what is stored."""

from __future__ import annotations

from collections import Counter

import nbdurable as nb
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store

WAIT_S = 20  # no scripted wait outlives a test that failed


def opened(store: Store, *models: ScriptedModel, **options: object) -> nb.Session:
    model = models[0] if models else ScriptedModel("An answer.")
    return nb.open("s", store=store, model=model, **options)  # type: ignore[arg-type]


def echo(name: str = "echo", **options: object) -> ScriptedModel:
    """Return a model that says back its name, system text, temperature and the last words."""

    def say(request: ModelRequest) -> str:
        parts = [name, request.system, request.params.get("temperature")]
        parts.append(request.messages[-1].text)
        return " ".join(str(part) for part in parts if part is not None)

    return ScriptedModel(say, name=name, **options)  # type: ignore[arg-type]


def rows(store: Store) -> dict[str, int]:
    """Return how many rows of each kind the session has."""
    return {
        "entries": len(store.load_entries("s")),
        "runs": len(store.load_runs("s")),
        "plans": len(store.load_experiments("s")),
        "moves": len(store.load_moves("s")),
    }


def outcomes(store: Store) -> Counter[str | None]:
    """Return how the session's runs ended."""
    return Counter(end.outcome if end else None for _, end in store.load_runs("s"))


def children(store: Store, entry_id: str | None) -> list[str]:
    """Return the roles of the entries right below one."""
    return [e.role or e.kind for e in store.load_entries("s") if e.parent_id == entry_id]
