"""Out as ``finetune``: an example of OpenAI's for each branch, one to a line, to tune a model on.

Owns which branches are examples. `openai_export` owns what stands on a line.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from pathlib import Path

from nbdurable.errors import shown
from nbdurable.formats.openai_export import lines
from nbdurable.formats.outgoing import Outgoing, outgoing, outgoing_of
from nbdurable.formats.redaction import Redact
from nbdurable.loaded import Loaded
from nbdurable.reprs import count
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import replacing


def is_ours(path: Path) -> bool:
    """Whether a file's first line is an example."""
    with path.open("rb") as file:
        try:
            first = json.loads(file.readline())
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict) and isinstance(first.get("messages"), list)


def export(
    image: Loaded, path: Path, *, leaf_id: str | None = None, redact: Redact | None = None
) -> None:
    """Write a session's branches, or the path to one of its entries."""
    _write(path, [outgoing(image, leaf_id, redact)])


def export_store(store: Store, path: Path, *, redact: Redact | None = None) -> None:
    """Write the branches of all sessions, by their ids."""
    ids = sorted(summary.session.id for summary in store.list_sessions())
    _write(path, (outgoing_of(store, id, None, redact) for id in ids))


def _write(path: Path, outs: Iterable[Outgoing]) -> None:
    left_out = 0
    with replacing(path) as file:
        for out in outs:
            made, less = lines(out)
            left_out += less
            file.writelines(line.encode("utf-8") + b"\n" for line in made)
    if left_out:
        warnings.warn(
            f"{count(left_out, 'branch', 'branches')} left out of {shown(path.name)}: "
            "an example ends in an answer",
            stacklevel=5,
        )
