"""Replay: a notebook that can be run again without paying twice (B55-B58).

Owns what a handle opened with ``replay=`` remembers: how it answers a miss and which of several
equal calls comes next. What is equal is each verb's own affair; all of them count here.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable

from nbdurable.models.base import Model


class Replay:
    """How one handle replays.

    Parameters
    ----------
    is_only : bool
        Never call a model: a miss raises `ReplayMiss`.
    model : Model, optional
        Answers misses in place of the requested model.
    """

    def __init__(self, *, is_only: bool = False, model: Model | None = None) -> None:
        self.is_only = is_only
        self.model = model
        self._taken: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def take(self, key: Hashable) -> int:
        """Return how many equal calls came before this one, and count it (B56).

        `key` names the verb, the leaf and the digest of what was asked, such as
        ``("sample", leaf_id, digest)``; the n-th equal call takes the n-th equal stored thing.
        """
        with self._lock:
            before = self._taken[key]
            self._taken[key] += 1
            return before
