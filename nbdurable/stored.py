"""What a store keeps: entries as columns and text, and the records beside the tree.

Owns the shapes that cross the `Store` protocol. The one idea: a store never looks into a payload;
what it must filter, count or sort by stands in a column, so that lists and frames parse nothing.
All of it is append-only.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nbdurable.blocks import Json

Outcome = Literal["done", "max_steps", "error", "aborted"]


class StoredEntry(NamedTuple):
    """One entry as a store keeps it; a tuple, since long sessions are made of many.

    The author of an append fills all but ``seq n depth digest``, which the store assigns;
    ``depth`` counts the entries on the path, 1 for a root.
    ``moves_leaf`` is True or False, or None for "only if its parent is the position when stored"
    (B3), which the store resolves to a bool. ``created_at`` is in microseconds UTC, costs in USD,
    times in seconds. ``preview`` has at most 120 code points. ``payload`` is JSON text.
    """

    id: str
    session_id: str
    parent_id: str | None
    kind: str
    payload: str
    created_at: int
    seq: int = 0
    n: int = 0
    depth: int = 0
    run_id: str | None = None
    role: str | None = None
    meta: bool = False
    model: str | None = None
    stop_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    ttft_s: float | None = None
    preview: str = ""
    moves_leaf: bool | None = True
    source_id: str | None = None
    digest: str = ""


_PAYLOAD = StoredEntry._fields.index("payload")


def digest_of(entry: StoredEntry) -> str:
    """Return the SHA-256 over all columns but the digest, which is the last, as 64 hex digits.

    It is taken over the JSON text of the other columns in a line, then the payload as it is: to
    write that as JSON once more would take longer than all the rest.
    """
    head = json.dumps(entry[:_PAYLOAD] + entry[_PAYLOAD + 1 : -1])
    taken = hashlib.sha256(head.encode())
    taken.update(b"\n")
    taken.update(entry.payload.encode("utf-8", "surrogatepass"))
    return taken.hexdigest()


def is_intact(entry: StoredEntry) -> bool:
    """Whether an entry's columns are those its digest was taken over, by this rule or the first."""
    if digest_of(entry) == entry.digest:
        return True
    return hashlib.sha256(json.dumps(entry[:-1]).encode()).hexdigest() == entry.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as created; a fork names where it came from."""

    id: str
    created_at: int
    parent_session_id: str | None = None
    parent_entry_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One line of a listing, made from columns alone.

    ``title`` is the preview of the first user message that is not meta; ``last_at`` the time of
    the newest entry by ``seq``, in microseconds UTC; ``cost_usd`` sums what is known.
    """

    session: SessionRecord
    title: str
    entries: int
    leaves: int
    last_at: int
    models: tuple[str, ...]
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An explicit move of a session's position; ``entry_id`` None is the root."""

    session_id: str
    entry_id: str | None
    seq: int
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """System text and tools of a run, stored once per content."""

    digest: str
    system: str | None
    tools_json: str  # a list of {name, description, parameters}, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as it started.

    ``kind`` names the verb. ``input_ids`` are the stored entries of its input. ``moves`` tells a
    foreground run from a detached one. ``owner`` names the process that runs it. ``request_digest``
    covers what the caller gave (B56); ``ephemeral_json`` the digests of ephemeral input (B35).
    ``cell`` is the place in an experiment's plan, ``origin`` the notebook cell that asked.
    """

    id: str
    session_id: str
    kind: str
    created_at: int
    start_leaf_id: str | None = None
    input_ids: tuple[str, ...] = ()
    request_digest: str = ""
    context_digest: str | None = None
    model: str | None = None
    params_json: str = "{}"
    ephemeral_json: str = "[]"
    moves: bool = True
    rerun_of: str | None = None
    experiment_id: str | None = None
    cell: str | None = None
    origin: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended; stored in the transaction of its last entry."""

    run_id: str
    session_id: str
    outcome: Outcome
    created_at: int
    leaf_id: str | None = None
    error: str | None = None
    steps: int = 0
    seconds: float | None = None
    usage_json: str = "{}"
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A label, rating or preference on an entry; the latest per target, name and author counts.

    ``counter`` is its order in the store, assigned there. ``value_json`` ``null`` clears.
    """

    id: str
    session_id: str
    target_id: str
    name: str
    value_json: str
    created_at: int
    by: str | None = None
    note: str | None = None
    counter: int = 0

    @property
    def value(self) -> Json:
        """What it says: a text, a number, a bool, None where it takes back, or any JSON."""
        value: Json = json.loads(self.value_json)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRecord:
    """A plan of sibling runs, stored before the first call; ``plan_json`` holds axes and cells."""

    id: str
    session_id: str
    name: str
    plan_json: str
    created_at: int
    counter: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is stored together with entries, in one transaction.

    ``contexts`` may be known to the store already. Ends are those of ``runs``, or of runs stored
    before. A ``seq`` of entries and moves is one of where they came from: it tells which came
    first, and the store numbers them afresh in that order.
    """

    moves: tuple[Move, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    ends: tuple[RunEnd, ...] = ()
    contexts: tuple[Context, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    experiments: tuple[ExperimentRecord, ...] = ()


NOTHING = Beside()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolDraft:
    """An answer in flight: what `recover` stores as an aborted entry if its process dies (B24).

    ``entry`` is the aborted entry as it would be appended now, its id chosen in advance.
    """

    entry: StoredEntry
    end: RunEnd | None = None
