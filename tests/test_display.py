"""The choice of a display: the cell, the terminal or nothing; and the cell of a real kernel."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from html_reader import Reader

from nbdurable.display import make_display
from nbdurable.notebook.run.live import cell_output

SHOWN = """
import sys
from nbdurable.display import make_display
display = make_display("stream")
heavy = sorted({"IPython", "rich", "pandas"} & set(sys.modules))
print(type(display).__name__, heavy)
"""


class TestChoice:
    # B15
    def test_nothing_is_shown_when_that_is_asked_for(self) -> None:
        assert make_display(None) is None

    def test_an_unknown_word_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"show 'loud' is not known; give 'stream', 'line'"):
            make_display("loud")  # type: ignore[arg-type]

    # B15
    def test_nothing_is_written_into_a_pipe(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True
        )

        assert done.stdout == "NoneType []\n"

    # B15
    def test_a_terminal_gets_the_terminal_display(self) -> None:
        master, slave = pty.openpty()

        subprocess.run([sys.executable, "-c", SHOWN], stdout=slave, check=True)
        os.close(slave)

        assert os.read(master, 4096) == b"TerminalDisplay []\r\n"
        os.close(master)


KERNEL_CODE = """
from nbdurable.blocks import *
from nbdurable.display import make_display
from nbdurable.events import Event
display = make_display("stream")
for word in ("one ", "two ", "three"):
    display.on_event(Event(type="message_update", step=1, text=word))
message = Message("assistant", (TextBlock("one two three"),), Reply(model="m"))
display.on_event(Event(type="message_end", step=1, message=message))
display.close()
"""


@pytest.fixture(scope="module")
def messages() -> Iterator[list[dict[str, Any]]]:
    """What a real kernel sends while a run is shown in one of its cells."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        heard: list[dict[str, Any]] = []
        client.execute_interactive(KERNEL_CODE, output_hook=heard.append, timeout=60)
        yield heard
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.kernel
class TestKernel:
    # B15
    def test_a_run_has_one_output_and_never_writes_to_stdout(
        self, messages: list[dict[str, Any]]
    ) -> None:
        kinds = [message["header"]["msg_type"] for message in messages]

        assert not {"stream", "error"} & set(kinds)
        assert kinds.count("display_data") == 1
        assert "update_display_data" in kinds

    # B15
    def test_updates_go_to_the_same_output(self, messages: list[dict[str, Any]]) -> None:
        contents = [m["content"] for m in messages if "display" in m["header"]["msg_type"]]

        assert len({content["transient"]["display_id"] for content in contents}) == 1
        last = contents[-1]["data"]
        assert Reader(last["text/html"]).text == "one two threem"
        assert last["text/plain"] == "one two three\nm"


def test_an_output_is_made_once_and_then_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    InteractiveShell.initialized()
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    before, InteractiveShell._instance = InteractiveShell._instance, shell
    try:
        publish = cell_output()
        publish({"text/plain": "one"})
        publish({"text/plain": "two"})
    finally:
        InteractiveShell._instance = before

    first, second = shell.display_pub.outputs
    assert (first["update"], second["update"]) == (False, True)
    assert first["transient"] == second["transient"]
    assert capsys.readouterr().out == ""
