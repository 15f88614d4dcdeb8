"""Out as ``openai``: the chat messages of one path, as ``{"messages": […], "tools": […]}``.

Owns the object, of which ``finetune`` writes one to a line. What is written is what a model would
be sent, so that any provider takes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from nbdurable.blocks import Message
from nbdurable.entries import Entry, MessageEntry
from nbdurable.formats.outgoing import Outgoing, outgoing
from nbdurable.formats.picking import as_list, as_map
from nbdurable.formats.redaction import Redact
from nbdurable.loaded import Loaded
from nbdurable.models.chat_format import to_chat
from nbdurable.stores.jsonl import replacing
from nbdurable.views import model_view
from nbdurable.wire import dumps

_SYSTEM = ("system", "developer")
_LARGEST = 64 << 20


def is_ours(path: Path) -> bool:
    """Whether a file holds chat messages as one object."""
    if path.stat().st_size > _LARGEST:
        return False
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write the path to an entry, by default to the position."""
    out = outgoing(image, leaf_id, redact)
    with replacing(path) as file:
        file.write(dumps(record(out, out.leaf_id)).encode("utf-8") + b"\n")


def record(out: Outgoing, leaf_id: str | None) -> dict[str, Any]:
    """Return the messages of the path to an entry, with the tools of its run."""
    path = out.tree.path(leaf_id)
    made: dict[str, Any] = {"messages": _messages(out, path)}
    return {**made, **_tools(out, path)}


def lines(out: Outgoing) -> tuple[list[str], int]:
    """Return a line for each branch that ends in an answer, and how many do not."""
    leaves = [out.leaf_id] if len(out.tree.leaves()) == 1 else [n.id for n in out.tree.leaves()]
    made = [record(out, leaf_id) for leaf_id in leaves if leaf_id is not None]
    whole = [one for one in made if one["messages"] and one["messages"][-1]["role"] == "assistant"]
    return [dumps(one) for one in whole], len(made) - len(whole)


def _messages(out: Outgoing, path: list[Entry]) -> list[dict[str, Any]]:
    view = model_view(path)
    by_id = {entry.id: entry for entry in path}
    told: list[dict[str, Any]] = []
    pairs = zip(view.messages, view.entry_ids, strict=True)
    for role, group in groupby(pairs, key=lambda pair: pair[0].role):
        if role == "tool":  # together, since pictures follow the last result of a step
            told += to_chat(message for message, _ in group)
            continue
        for message, id in group:
            told += _chat(out, message, by_id.get(id or ""))
    system = _system(out, path)
    if system and not (told and told[0]["role"] in _SYSTEM):
        told.insert(0, {"role": "system", "content": system})
    return told


def _chat(out: Outgoing, message: Message, entry: Entry | None) -> Iterator[dict[str, Any]]:
    source = out.source_of(entry) if entry is not None else {}
    for chat in to_chat([message]):
        role = source.get("role")
        if role in _SYSTEM and isinstance(entry, MessageEntry) and entry.meta:
            chat["role"] = role
        kept = {key: source[key] for key in ("name", "weight") if key in source}
        yield {**chat, **kept}


def _system(out: Outgoing, path: list[Entry]) -> str | None:
    for entry in reversed(path):
        context = out.context_of(entry)
        if context is not None:
            return context.system
    return None


def _tools(out: Outgoing, path: list[Entry]) -> dict[str, Any]:
    for entry in reversed(path):
        context = out.context_of(entry)
        if context is not None:
            specs = json.loads(context.tools_json)
            return {"tools": [{"type": "function", "function": s} for s in specs]} if specs else {}
    tools = as_list(out.source.get("tools"))
    old = [{"type": "function", "function": f} for f in as_list(out.source.get("functions"))]
    kept = {key: out.source[key] for key in ("parallel_tool_calls",) if key in out.source}
    named = [tool for tool in [*tools, *old] if as_map(tool)]
    return {**({"tools": named} if named else {}), **kept}
