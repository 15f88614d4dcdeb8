"""What a run asks a person: whether a tool may run (B29)."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Question:
    """Whether a tool may run; the first reader, or button, to claim it answers it."""

    def __init__(self, call_id: str, text: str, reply: Callable[[bool], None]) -> None:
        self.call_id = call_id
        self.text = text
        self._reply = reply
        self._lock = threading.Lock()
        self.is_open = True

    def claim(self) -> bool:
        """Take the question; False when another has."""
        with self._lock:
            was_open, self.is_open = self.is_open, False
        return was_open

    def answer(self, allow: bool) -> None:
        """Send the answer to the run."""
        self._reply(allow)


def confirm(text: str) -> bool:
    """Ask at the keyboard; no one there means no."""
    try:
        return input(f"{text} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, OSError, RuntimeError):  # no one to ask: ipykernel raises a RuntimeError
        return False
