"""Entries: the nodes of a session's tree, as immutable values.

Owns the kinds of entry and the registry of custom ones. Does not own the tree (`tree`), the stored
form (`stored`) or any I/O. The one idea: an entry is a header that only a store can fill in
(``id parent_id seq n created_at run_id``) and a content that only its author can.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from datetime import datetime
from inspect import get_annotations
from typing import Any, ClassVar

from nbdurable.blocks import Block, Json, Message, Role, Usage
from nbdurable.errors import EntryError, shown, told


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One node of a session's tree.

    ``seq`` is the append order in the store, ``n`` the ordinal in the session (shown as ``#12``);
    both are None for an ephemeral entry (B35). ``created_at`` is UTC.
    """

    kind: ClassVar[str] = ""

    id: str = ""
    parent_id: str | None = None
    seq: int | None = None
    n: int | None = None
    created_at: datetime | None = None
    run_id: str | None = None
    source_id: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class MessageEntry(Entry):
    """A message in the tree.

    ``meta`` hides it from the transcript, ``ephemeral`` keeps it out of the store and of every
    later prompt; ``author`` is ``"human"`` for an answer that a person wrote.
    """

    kind: ClassVar[str] = "message"

    message: Message
    meta: bool = False
    ephemeral: bool = False
    author: str | None = None
    is_repaired: bool = field(default=False, repr=False)  # held a lone surrogate (B64)

    @property
    def role(self) -> Role:
        """``user``, ``assistant`` or ``tool``."""
        return self.message.role

    @property
    def text(self) -> str:
        """The message's text."""
        return self.message.text

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The message's blocks."""
        return self.message.blocks


@dataclass(frozen=True, kw_only=True)
class CompactionEntry(Entry):
    """A summary that stands for what came before ``first_kept_id`` on its path.

    ``first_kept_id`` None keeps nothing. ``tokens_before`` is an estimate of the view replaced.
    """

    kind: ClassVar[str] = "compaction"

    summary: str
    first_kept_id: str | None = None
    tokens_before: int | None = None
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None

    @property
    def text(self) -> str:
        """The summary."""
        return self.summary


@dataclass(frozen=True)
class CustomEntry(Entry):
    """A record of the application's, which no model reads; subclass it to give it fields.

    ::

        class Note(nb.CustomEntry):
            kind = "note"
            text: str = ""

    Annotated fields make the subclass a dataclass. A class registered again under its kind
    replaces the former one (B36). An entry of a kind without a class is a plain `CustomEntry`;
    its ``fields`` hold everything (B37).
    """

    fields_json: str = field(default="", repr=False, kw_only=True, compare=False)
    stored_kind: str = field(default="", repr=False, kw_only=True, compare=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _refuse_header_fields(cls)
        dataclass(frozen=True)(cls)
        register(cls)

    @property
    def fields(self) -> dict[str, Json]:
        """The entry's own fields as a fresh dict."""
        stored = dict(json.loads(self.fields_json)) if self.fields_json else {}
        return {**stored, **{name: getattr(self, name) for name in own_fields(type(self))}}


@dataclass(frozen=True, kw_only=True)
class OpaqueEntry(Entry):
    """An entry of a kind or version unknown here, kept byte for byte (B37)."""

    raw: str = field(repr=False)
    stored_kind: str = ""


def words_of(entry: object) -> str:
    """Return an entry's ``text``; that of an application's class may be no text, or raise."""
    try:
        text = getattr(entry, "text", "")
    except Exception as error:  # said in its place: one entry must not hide the others
        return f"[the text of {type(entry).__name__} cannot be read: {told(error)}]"
    return text if isinstance(text, str) else ""


BUILT_IN_KINDS = frozenset({"message", "compaction", "opaque"})
_REGISTRY: dict[str, type[CustomEntry]] = {}
_HEADER = frozenset(f.name for f in fields(CustomEntry))


def _refuse_header_fields(cls: type[CustomEntry]) -> None:
    """Refuse a field that the header would swallow, as the store fills the header in."""
    taken = (_HEADER | {"fields"}) & get_annotations(cls).keys()
    if taken:
        raise EntryError(
            f"field {min(taken)!r} of {cls.__name__} cannot be used, since every entry has one; "
            "give it another name"
        )


def register(cls: type[CustomEntry]) -> None:
    """Make `cls` the class of custom entries of its kind; an abstract one (no kind) is passed over.

    Raises
    ------
    EntryError
        The kind is no text, or is one of the package's own.
    """
    kind = cls.__dict__.get("kind")
    if kind is None:
        return
    if not isinstance(kind, str) or not kind or kind in BUILT_IN_KINDS or "\0" in kind:
        raise EntryError(
            f"kind {shown(kind)} of {cls.__name__} cannot be used; choose other text, "
            f"not one of {sorted(BUILT_IN_KINDS)}"
        )
    _REGISTRY[kind] = cls


def custom_class(kind: str) -> type[CustomEntry] | None:
    """Return the class registered for `kind`, or None."""
    return _REGISTRY.get(kind)


def own_fields(cls: type[CustomEntry]) -> tuple[str, ...]:
    """Return the names of the fields that `cls` adds to the header."""
    return tuple(f.name for f in fields(cls) if f.name not in _HEADER)


def kind_of(entry: Entry) -> str:
    """Return the kind under which an entry is stored."""
    if isinstance(entry, CustomEntry | OpaqueEntry):
        return entry.stored_kind or entry.kind
    return entry.kind


def moves_position(draft: Entry, moves: bool) -> bool | None:
    """Whether a draft moves the position: messages do, custom entries only from it (B3)."""
    if not moves:
        return False
    return None if isinstance(draft, CustomEntry) else True
