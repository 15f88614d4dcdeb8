"""Nothing that a source says is dropped in silence: all of it is in the store, or in the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from importing import DATA

import nbdurable as nb
from nbdurable.blocks import Block
from nbdurable.codec import decode
from nbdurable.formats.picking import instant
from nbdurable.stored import StoredEntry
from nbdurable.stores.memory import MemoryStore

SAMPLES = [
    "chatgpt_export.json",
    "claude_export.json",
    "open_webui_export.json",
    "librechat_export.json",
    "pi_session.jsonl",
    "openai_finetune.jsonl",
    "openai_preference.jsonl",
    "sharegpt.json",
]
# What a format says of its form: roles, kinds, ends; and ids that stand for no parent.
WORDS = frozenset(
    "human toolCall toolResult toolUse tool_use image_url compaction execution_output "
    "finished_successfully multimodal_text user_editable_context thoughts client-created-root "
    "00000000-0000-0000-0000-000000000000 00000000-0000-4000-8000-000000000000".split()
)


def values_of(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return [json.loads(text)]


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a value that is no time; of JSON inside a text, what it holds."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and one.startswith("{") and is_json(one):
            waiting.append(json.loads(one))
        elif isinstance(one, str) and instant(one) is None:
            yield one.partition("base64,")[2] or one


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def blocks_of(stored: StoredEntry) -> tuple[Block, ...]:
    entry = decode(stored)
    return entry.blocks if isinstance(entry, nb.MessageEntry) else ()


def kept_in(store: MemoryStore) -> Iterator[str]:
    for summary in store.list_sessions():
        yield summary.session.id
        for entry in store.load_entries(summary.session.id):
            yield from texts_in(json.loads(entry.payload))
            yield f"{entry.source_id} {entry.model}"
            files = (getattr(block, "data", None) for block in blocks_of(entry))
            yield from (data.decode("utf-8", "replace") for data in files if data)
        for note in store.load_annotations(summary.session.id):
            yield from texts_in(note.value)
            yield f"{note.note} {note.by} {note.name}"


# B37
@pytest.mark.parametrize("name", SAMPLES)
def test_no_text_of_a_sample_is_dropped_in_silence(name: str) -> None:
    store = MemoryStore()
    report = nb.load(DATA / name, store=store)
    kept = "\n".join([*kept_in(store), str(report), *map(str, report.oddities)])

    said = set(texts_in(values_of(DATA / name)))
    lost = {text for text in said if text.strip() and text not in kept} - WORDS

    assert lost == set()
