"""Lifecycle events of sessions, for a publisher (B53).

They tell of what happens between runs; what happens in a run is told by its events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from nbdurable.secrets import loggable, secrets_of

log = logging.getLogger("nbdurable")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """One change in the life of a session, told after it is stored.

    ``leaf_id`` is the leaf after it; ``from_id`` the leaf before a branch; ``parent_session_id``
    the source of a fork; ``entry_id`` the compaction entry.
    """

    type: Literal["session_init", "session_branched", "session_forked", "session_compacted"]
    session_id: str
    leaf_id: str | None = None
    from_id: str | None = None
    parent_session_id: str | None = None
    entry_id: str | None = None


Publisher = Callable[[SessionEvent], object]


def publish(publisher: Publisher | None, event: SessionEvent, params: Mapping[str, object]) -> None:
    """Call the publisher; what it raises undoes nothing, and is logged without keys of `params`."""
    if publisher is None:
        return
    try:
        publisher(event)
    except (Exception, SystemExit) as exc:
        failure = loggable(exc, secrets_of(params))
        log.error(
            "the publisher failed on %s of session %r",
            event.type,
            event.session_id,
            exc_info=failure,
        )
