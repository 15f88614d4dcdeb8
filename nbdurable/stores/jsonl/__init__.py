"""Recordings: our own JSONL, which holds sessions without loss, and a store over one.

A recording is text with one JSON object a line: a header, then for each session its record, plans,
runs with their contexts, entries and moves in the order they were stored, and annotations; bytes
come before the first entry that needs them; the last line holds counts and a sum of all before.
"""

from __future__ import annotations

from nbdurable.stores.jsonl.reader import is_recording, opened
from nbdurable.stores.jsonl.sections import Addition, Section, add, along, blobs_of, section_of
from nbdurable.stores.jsonl.store import RecordingStore
from nbdurable.stores.jsonl.writer import lines_of, replacing, write_recording

__all__ = [
    "Addition",
    "RecordingStore",
    "Section",
    "add",
    "along",
    "blobs_of",
    "is_recording",
    "lines_of",
    "opened",
    "replacing",
    "section_of",
    "write_recording",
]
