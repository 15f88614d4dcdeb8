from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.memory import MemoryStore


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell.instance()
    made.user_ns["chat"] = nb.open("s", store=MemoryStore(), model=ScriptedModel("**Yes.**"))
    yield made
    InteractiveShell.clear_instance()


def shown(shell: InteractiveShell, code: str) -> list[dict[str, str]]:
    """Execute a cell and return the bundles it displayed."""
    with capture_output() as captured:
        shell.run_cell(code, store_history=True).raise_error()
    return [output.data for output in captured.outputs]


# B15
def test_a_run_that_was_not_streamed_shows_its_answer(shell: InteractiveShell) -> None:
    outputs = shown(shell, "chat.run('Well?', show=None)")

    assert "<strong>Yes.</strong>" in outputs[0]["text/html"]
    assert "Yes." in outputs[0]["text/plain"]


# B15
def test_the_cell_that_streamed_a_run_does_not_show_it_again(shell: InteractiveShell) -> None:
    shell.run_cell("run = chat.run('Well?', show=None)", store_history=True)

    outputs = shown(shell, "run.shown_in = get_ipython().execution_count; run")

    assert outputs == []


# B15
def test_a_later_cell_shows_a_streamed_run_again(shell: InteractiveShell) -> None:
    code = "run = chat.run('Well?', show=None); run.shown_in = get_ipython().execution_count"
    shell.run_cell(code, store_history=True)

    outputs = shown(shell, "run")

    assert "<strong>Yes.</strong>" in outputs[0]["text/html"]
