"""A run's events read as text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from nbdurable.events import Event

if TYPE_CHECKING:
    from nbdurable.run import Run


class TextStream:
    """The text of a run's answers, piece by piece."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __iter__(self) -> Iterator[str]:
        return (event.text for event in self._run if _is_text(event))

    async def __aiter__(self) -> AsyncIterator[str]:
        async for event in self._run:
            if _is_text(event):
                yield event.text


def _is_text(event: Event) -> bool:
    return event.type == "message_update" and bool(event.text)
