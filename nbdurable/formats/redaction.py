"""Redaction: a function over every text of a section before it leaves the house.

Owns what counts as a text: what people, models, tools and programs said, in payloads, contexts,
plans and annotations. Names, ids, roles, numbers of tokens and pictures are none. The one idea: in
what applications and models shaped freely, everything is text, keys and numbers included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nbdurable.blocks import Blob
from nbdurable.codec import decode, preview_of
from nbdurable.errors import EntryError, shown
from nbdurable.settings import context_of
from nbdurable.stored import (
    Annotation,
    Beside,
    Context,
    ExperimentRecord,
    RunEnd,
    RunRecord,
    StoredEntry,
)
from nbdurable.stores.jsonl import Section
from nbdurable.wire import clean, dumps

Redact = Callable[[str], str]
Fetch = Callable[[str], bytes]

# Whose texts are not what somebody said, in blocks and replies.
_NAMES = frozenset(
    "kind type role id call_id name media_type sha256 size base64 v model answered_by provider "
    "fingerprint stop_reason signature data first_kept_id author".split()
)
_ID = re.compile(r"[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LABEL = re.compile(r'"([^"\\]|\\.)*"')
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/x-ndjson")


class Redactor:
    """Apply one function to sections.

    Parameters
    ----------
    redact : callable
        Takes a text and returns what stands in its place.
    fetch : callable
        Returns the bytes of a hash.
    """

    def __init__(self, redact: Redact, fetch: Fetch) -> None:
        self._redact = redact
        self._fetch = fetch
        self._changed: dict[str, bytes] = {}
        self._digests: dict[str, str] = {}  # of contexts, to those of what became of them

    def fetch(self, sha256: str) -> bytes:
        """Return the bytes of a hash, also of what became of a redacted file."""
        return self._changed[sha256] if sha256 in self._changed else self._fetch(sha256)

    def text(self, text: str) -> str:
        """Return what stands in the place of a text.

        Raises
        ------
        EntryError
            The function returned no text.
        """
        changed = self._redact(text)
        if not isinstance(changed, str):
            raise EntryError(
                f"redact returned {shown(type(changed).__name__)} for a text; return text"
            )
        return clean(changed) or ""

    def section(self, section: Section) -> Section:
        """Return a section with its texts changed; ids and order stay."""
        beside = section.beside
        contexts = tuple(map(self._context, beside.contexts))  # first: others name their digests
        return replace(
            section,
            entries=tuple(map(self._entry, section.entries)),
            beside=Beside(
                moves=beside.moves,
                runs=tuple(map(self._run, beside.runs)),
                ends=tuple(map(self._end, beside.ends)),
                contexts=contexts,
                annotations=tuple(map(self._annotation, beside.annotations)),
                experiments=tuple(map(self._plan, beside.experiments)),
            ),
        )

    # -- records -------------------------------------------------------------------------------

    def _entry(self, entry: StoredEntry) -> StoredEntry:
        changed = entry._replace(payload=self._payload(entry))
        if changed.payload == entry.payload:
            return entry._replace(preview=self.text(entry.preview))
        # made afresh: a text cut at the preview's end may hold half of what is to be hidden
        return changed._replace(preview=preview_of(decode(changed, self.fetch)))

    def _payload(self, entry: StoredEntry) -> str:
        try:
            wire = json.loads(entry.payload)
        except (ValueError, RecursionError):
            return self.text(entry.payload)
        is_ours = isinstance(wire, dict) and wire.get("v") == 1
        if is_ours and "source" in wire and entry.kind in ("message", "compaction"):
            changed = {**self._said(wire), "source": self._source(wire["source"])}
        elif is_ours and entry.kind == "message":
            changed = self._said(wire)
        elif is_ours and isinstance(wire.get("fields"), dict):
            fields = {name: self._anything(value) for name, value in wire["fields"].items()}
            changed = {**wire, "fields": fields}
        elif is_ours:
            changed = self._said(wire)
        else:
            changed = self._anything(wire)
        return entry.payload if changed == wire else dumps(changed)

    def _run(self, run: RunRecord) -> RunRecord:
        cell = None if run.cell is None else self._cell(run.cell)
        digest = self._digests.get(run.context_digest or "", run.context_digest)
        params_json = self._json(run.params_json)
        return replace(run, params_json=params_json, cell=cell, context_digest=digest)

    def _cell(self, cell: str) -> str:
        """Change a cell's key as its labels are changed in the plan, so that both still fit."""
        try:
            return self._json(cell)
        except ValueError:
            return self.text(cell)

    def _end(self, end: RunEnd) -> RunEnd:
        return replace(end, error=self._optional(end.error))

    def _context(self, context: Context) -> Context:
        tools_json = self._json(context.tools_json, self._said)
        changed = context_of(self._optional(context.system), tools_json)
        if (changed.system, tools_json) == (context.system, context.tools_json):
            return context
        self._digests[context.digest] = changed.digest
        return changed

    def _annotation(self, annotation: Annotation) -> Annotation:
        value_json = self._json(annotation.value_json, self._leaves)
        return replace(annotation, value_json=value_json, note=self._optional(annotation.note))

    def _plan(self, plan: ExperimentRecord) -> ExperimentRecord:
        return replace(plan, plan_json=self._json(plan.plan_json, self._leaves))

    def _optional(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def _json(self, text: str, change: Callable[[Any], Any] | None = None) -> str:
        value = json.loads(text)
        changed = (change or self._leaves)(value)
        return text if changed == value else dumps(changed)

    # -- values --------------------------------------------------------------------------------

    def _said(self, value: Any) -> Any:
        """Change what was said in a message, a summary or a tool's description."""
        if isinstance(value, list):
            return [self._said(part) for part in value]
        if not isinstance(value, dict):
            return self.text(value) if isinstance(value, str) else value
        if value.get("type") in ("image", "file"):
            return self._file(value)
        changed = {
            name: part if name in _NAMES and not isinstance(part, dict | list) else self._said(part)
            for name, part in value.items()
        }
        if value.get("type") == "tool_call" and isinstance(value.get("arguments"), str):
            changed["arguments"] = self._arguments(value["arguments"])
        if value.get("type") == "thinking" and changed["text"] != value["text"]:
            changed.pop("signature", None)  # it is of the text as it was
        return changed

    def _arguments(self, raw: str) -> str:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return self.text(raw)
        changed = self._anything(value)
        return raw if changed == value else dumps(changed)

    def _anything(self, value: Any) -> Any:
        """Change every text, key and number of a value that may be anything."""
        if isinstance(value, dict):
            return {self.text(key): self._anything(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._anything(part) for part in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown_as = json.dumps(value)
            changed = self.text(shown_as)
            return value if changed == shown_as else changed
        return self.text(value) if isinstance(value, str) else value

    def _source(self, value: Any) -> Any:
        """Change what an import kept that has no place elsewhere; whose words it is stays."""
        changed = self._anything(value)
        role = value.get("role") if isinstance(value, dict) else None
        return {**changed, "role": role} if isinstance(role, str) else changed

    def _leaves(self, value: Any) -> Any:
        """Change every text, but no id, of a value whose keys are ours or labels as JSON text."""
        if isinstance(value, dict):
            return {
                self._label(key): part
                if key in _NAMES and isinstance(part, str)
                else self._leaves(part)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._leaves(part) for part in value]
        if not isinstance(value, str):
            return value
        return self._digests.get(value, value) if _ID.fullmatch(value) else self.text(value)

    def _label(self, key: str) -> str:
        return dumps(self.text(json.loads(key))) if _LABEL.fullmatch(key) else key

    def _file(self, wire: dict[str, Any]) -> dict[str, Any]:
        """Change a file's name, and its bytes where they are text."""
        named = {"name": self.text(wire["name"])} if isinstance(wire.get("name"), str) else {}
        changed = {**wire, **named}
        if not str(wire.get("media_type")).startswith(_TEXT_TYPES):
            return changed
        try:
            blob = Blob.from_dict(wire, self._fetch)
            text = blob.read().decode("utf-8")
        except (KeyError, ValueError):
            return changed  # of another shape, or no text after all
        other = Blob.of(self.text(text).encode("utf-8"))
        if other == blob:
            return changed
        if not other.is_inline:
            self._changed[other.sha256] = other.read()
        held = ("base64", "sha256", "size")
        kept = {key: part for key, part in changed.items() if key not in held}
        return {**kept, **other.to_dict()}
