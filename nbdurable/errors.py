"""The exception tree; every error the package raises on purpose lives here.

::

    NbDurableError
    ├── StoreError (OSError)
    │   ├── StoreLocked
    │   ├── StoreClosed
    │   └── StoreTooNew
    ├── TreeError
    │   ├── EntryNotFound (LookupError)
    │   ├── SessionNotFound (LookupError)
    │   ├── SessionExists (ValueError)
    │   └── CycleFound (ValueError)
    ├── EntryError (ValueError)
    │   └── BadPayload
    ├── ToolError (ValueError)
    ├── ImportFormatError (ValueError)
    ├── QueryError (ValueError)
    ├── RunError (RuntimeError)
    │   ├── RunActive
    │   ├── ReplayMiss
    │   ├── ModelError
    │   └── BudgetExceeded
    └── SessionClosed (RuntimeError)

Each text is one line: what, which one, what was found; what to do. Attributes carry the same
facts. No text holds a payload or a key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbdurable.tracebacks import lines_of

if TYPE_CHECKING:
    from nbdurable.run import Run

__all__ = [
    "BadPayload",
    "BudgetExceeded",
    "CycleFound",
    "EntryError",
    "EntryNotFound",
    "ImportFormatError",
    "ModelError",
    "NbDurableError",
    "QueryError",
    "ReplayMiss",
    "RunActive",
    "RunError",
    "SessionClosed",
    "SessionExists",
    "SessionNotFound",
    "StoreClosed",
    "StoreError",
    "StoreLocked",
    "StoreTooNew",
    "ToolError",
    "TreeError",
    "shown",
]


_LOGIN = re.compile(r"(:/{1,2})[^/\s?#]*@")


def shown(value: object, limit: int = 80) -> str:
    """Return ``repr(value)`` cut to `limit` characters, for an error text.

    An address may be given where none is taken: what it says of user and password is hidden.
    """
    try:
        said = repr(value)
    except RecursionError:
        said = f"<{type(value).__name__}, too deep to be shown>"
    text = _LOGIN.sub(r"\1***@", said)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def told(error: BaseException) -> str:
    """Return an error's text, or its type's name where it has none."""
    return str(error) or type(error).__name__


class NbDurableError(Exception):
    """Base of every error raised on purpose by this package."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints: the lines that led here, without the package's own."""
        return lines_of(self)


class StoreError(NbDurableError, OSError):
    """The store could not do what was asked; nothing acknowledged was lost."""


class StoreLocked(StoreError):
    """Another process holds the store's file.

    Attributes
    ----------
    path : str
        The file.
    pid : int or None
        The holder, where the system tells.
    """

    def __init__(self, text: str, *, path: str = "", pid: int | None = None) -> None:
        super().__init__(text)
        self.path = path
        self.pid = pid


class StoreClosed(StoreError):
    """The store was closed before this call."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of the package or of DuckDB."""


class TreeError(NbDurableError):
    """A session's tree does not hold what was asked for."""


class EntryNotFound(TreeError, LookupError):
    """No entry of the session fits the reference.

    Attributes
    ----------
    entry_id : str
        The reference as it was given, as text.
    """

    def __init__(self, text: str, *, entry_id: str = "") -> None:
        super().__init__(text)
        self.entry_id = entry_id


class SessionNotFound(TreeError, LookupError):
    """The store has no session of this id."""


class SessionExists(TreeError, ValueError):
    """The store already has a session of this id."""


class CycleFound(TreeError, ValueError):
    """Parent pointers of entries form a ring."""


class EntryError(NbDurableError, ValueError):
    """An entry cannot be stored as given."""


class BadPayload(EntryError):
    """A value in an entry is not JSON, such as NaN.

    Attributes
    ----------
    path : str
        Keys from the payload's top to the value, such as ``fields.scores[2]``.
    """

    def __init__(self, text: str, *, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class ToolError(NbDurableError, ValueError):
    """A function cannot be a tool, or tools cannot stand side by side."""


class ImportFormatError(NbDurableError, ValueError):
    """A file is in no format that can be imported, or a format is none that is known."""


class QueryError(NbDurableError, ValueError):
    """A query was refused, or failed as DuckDB says; nothing was changed."""


class RunError(NbDurableError, RuntimeError):
    """A run could not start or did not finish.

    Attributes
    ----------
    run : Run or None
        The run, when one was started.
    """

    run: Run | None = None


class RunActive(RunError):
    """A foreground run of this session is still going on in this process."""


class ReplayMiss(RunError):
    """A replay that may call no model found no recorded run for the request."""


class BudgetExceeded(RunError):
    """A model call was refused because it could pass the budget."""


class ModelError(RunError):
    """A model call failed.

    Attributes
    ----------
    reason : str
        ``auth``, ``rate_limit``, ``timeout``, ``context``, ``refused``, ``server``,
        ``connection``, ``interrupted`` (the stream ended early), ``unavailable`` or ``other``.
    status : int or None
        The HTTP status, where there was one.
    retry_after_s : float or None
        What the provider asked for, in seconds.
    """

    def __init__(
        self,
        text: str,
        *,
        reason: str = "other",
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after_s


class SessionClosed(NbDurableError, RuntimeError):
    """The session handle was closed; ``open`` by id works again."""
