"""One session with hostile text in every place that a text can stand in."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import nbdurable as nb
from nbdurable.errors import ModelError
from nbdurable.models.base import ThinkingDelta
from nbdurable.models.scripted import ScriptedModel, calls

TRAPS_FILE = Path(__file__).parents[1] / "data" / "text_traps.jsonl"
TRAPS = [
    trap["text"]
    for trap in map(json.loads, TRAPS_FILE.read_bytes().splitlines())
    if trap.get("text", "").strip()
]
# all at once, each where it would begin something; what a name may not hold is left out
TEXT = "\n\n".join(
    [
        *TRAPS,
        '</textarea></title></style></script><script>window.__hit=1</script><b onclick="x">',
        "![a](http://127.0.0.1:9/pixel.png) <iframe srcdoc='<script>parent.__hit=1</script>'>",
        "[a](javascript:window.__hit=1) <a href=javascript:window.__hit=1>b</a> ${__hit=1} {{1}}",
        "<form action=http://127.0.0.1:9/><input name=a autofocus onfocus=window.__hit=1></form>",
    ]
)
NAME = " ".join(TEXT.replace("\0", "").split())


def hostile_session(store: Any, session_id: str = NAME) -> tuple[nb.Session, nb.Experiment]:
    """Return a session and its experiment; no text in them is harmless."""

    def look(text: str) -> str:
        """Look."""
        return text

    look.__name__ = "look"
    model = ScriptedModel(
        (ThinkingDelta(TEXT), *calls(("look", {"text": TEXT}), (NAME, TEXT), text=TEXT)),
        TEXT,
        TEXT[::-1],
        (TEXT, ModelError(TEXT)),
        TEXT,
        name=NAME,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that no provider would take
        chat = nb.open(session_id, store=store, model=model, system=TEXT, tools=[look], stop=[TEXT])
        attached = nb.file(TEXT.encode(), "text/plain", name=NAME)
        first = chat.run(TEXT, attached, show=None)
        chat.rerun(first, show=None)
        try:
            chat.run(TEXT, show=None)
        except ModelError:
            pass
        chat.branch(first.leaf_id)
        # the names of axes are a closed list; those of their values are not
        systems = {NAME: TEXT, "b": TEXT}
        experiment = chat.grid({NAME: TEXT}, system=systems, n=2, name=NAME, show=None)
        experiment.score(lambda cell: 1.0, name=NAME)
    chat.label(first.leaf_id, NAME)
    chat.rate(first.leaf_id, 4, name=NAME, by=NAME, note=TEXT)
    chat.prefer(first.leaf_id, 6, by=NAME)
    return chat, experiment
