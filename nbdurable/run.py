"""The handle of a run; see `loop` for what it runs."""

from __future__ import annotations


class Run:
    """One call of the loop, from input to the last reply."""
