"""Where things come from: what a thread that is of no cell is told."""

from __future__ import annotations

import contextvars
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from nbdurable.origin import cell_execution


# B10
def test_a_thread_of_a_kernel_that_knows_requests_by_context_is_of_no_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ipykernel 7.0: a verb called from a thread must not fail for want of a cell."""
    parent: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("parent")
    parent.set({"header": {"msg_id": "m1"}, "metadata": {"cellId": "c1"}})
    monkeypatch.setattr("nbdurable.origin.shell", lambda: SimpleNamespace(get_parent=parent.get))
    told = [cell_execution()]

    thread = threading.Thread(target=lambda: told.append(cell_execution()))
    thread.start()
    thread.join()

    assert told == [("c1", "m1"), (None, None)]
