"""What a notebook shows of an error: the user's lines and the text, in a real IPython shell."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import nbdurable as nb
from nbdurable.errors import EntryNotFound, NbDurableError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.tracebacks import LEFT_OUT, lines_of

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Notebook:
    """A shell, and what it printed of the last cell."""

    def __init__(self, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self._shell = shell
        self._capsys = capsys

    def run(self, cell: str, **names: object) -> list[str]:
        """Run a cell; return the lines that it printed."""
        self._shell.user_ns.update(names)
        self._shell.run_cell(cell)
        return [line for line in _COLOUR.sub("", self._capsys.readouterr().out).split("\n") if line]


@pytest.fixture
def notebook(capsys: pytest.CaptureFixture[str]) -> Iterator[Notebook]:
    from IPython.core.interactiveshell import InteractiveShell

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what IPython itself warns of while it starts
        shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    yield Notebook(shell, capsys)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def chat() -> Iterator[nb.Session]:
    with nb.open("s", store=":memory:", model=ScriptedModel("Yes.")) as chat:
        yield chat


def test_an_error_shows_the_lines_of_the_cell_and_its_text(
    notebook: Notebook, chat: nb.Session
) -> None:
    cell = "def back(to):\n    chat.branch(to)\n\nback('nosuch')"

    printed = notebook.run(cell, chat=chat)

    assert [line for line in printed if line.startswith("---->")] == [
        "----> 4 back('nosuch')",
        "----> 2     chat.branch(to)",
    ]
    assert printed[-2] == LEFT_OUT
    assert printed[-1].startswith("EntryNotFound: entry 'nosuch' is not in session 's'")
    assert not any("nbdurable/" in line for line in printed)


def test_another_mode_shows_the_inside_too(notebook: Notebook, chat: nb.Session) -> None:
    notebook.run("chat.branch('nosuch')", chat=chat)

    printed = notebook.run("%xmode Plain\n%tb\n%xmode Context")

    assert any("references.py" in line for line in printed)
    assert LEFT_OUT not in printed


def test_what_a_user_raises_is_shown_whole(notebook: Notebook) -> None:
    printed = notebook.run("raise error('mine')", error=NbDurableError)

    assert "----> 1 raise error('mine')" in printed
    assert (printed[-1], LEFT_OUT in printed) == ("NbDurableError: mine", False)


def test_the_cause_of_an_error_is_shown_with_it(notebook: Notebook) -> None:
    cell = "try:\n    1 / 0\nexcept ZeroDivisionError as exc:\n    raise error('mine') from exc"

    printed = notebook.run(cell, error=NbDurableError)

    assert any(line.startswith("ZeroDivisionError") for line in printed)
    assert printed[-1] == "NbDurableError: mine"


def test_without_a_shell_nothing_is_left_out(chat: nb.Session) -> None:
    with pytest.raises(EntryNotFound) as caught:
        chat.branch("nosuch")

    printed = "".join(lines_of(caught.value))

    assert "references.py" in printed
    assert LEFT_OUT not in printed
