"""What lies in an export beside its conversations, so that a report can say what was not taken.

Owns the look of such files. The one idea: a person who finds a file passed over wants to know
whether something of theirs was in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LOOKS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"docs", "prompt_template"}), "projects of Claude"),
    (frozenset({"conversations_memory"}), "what Claude remembers"),
    (frozenset({"conversation_id", "rating"}), "ratings of answers"),
    (frozenset({"conversation_id", "is_anonymous"}), "links to shared conversations"),
    (frozenset({"full_name", "email_address"}), "an account"),
    (frozenset({"email", "chatgpt_plus_user"}), "an account"),
)


def told_of(values: Iterable[Any]) -> str:
    """Return what to say of a file that holds these values and no conversation."""
    for value in values:
        for keys, what in _LOOKS:
            if isinstance(value, dict) and keys <= value.keys():
                return f"it holds {what} and no conversation; nothing of it is imported"
    return "no conversation of a format that is known is in the file"
