"""What the tests of replay share: opening again, and counting what a store holds."""

from __future__ import annotations

from typing import Any

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


def opened(store: Store, model: ScriptedModel, **options: Any) -> nb.Session:
    """Open session "s" as a notebook does that is run again."""
    return nb.open("s", store=store, model=model, **{"replay": True, **options})


def held(store: Store, session_id: str = "s") -> dict[str, int]:
    """Count everything that a session has in the store."""
    runs = store.load_runs(session_id)
    return {
        "entries": len(store.load_entries(session_id)),
        "moves": len(store.load_moves(session_id)),
        "starts": len(runs),
        "ends": sum(end is not None for _, end in runs),
        "annotations": len(store.load_annotations(session_id)),
        "sessions": len(store.list_sessions()),
    }


def types(run: nb.Run) -> list[str]:
    """Return the types of a run's events; pieces of one text count once."""
    found: list[str] = []
    for event in run.events:
        if event.type != "message_update" or found[-1] != "message_update":
            found.append(event.type)
    return found


class Never(ScriptedModel):
    """A model that must not be asked for anything, not even whether it is there."""

    def check(self, params: Any = None) -> None:
        raise AssertionError("a replayed run looked for its model")
