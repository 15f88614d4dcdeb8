"""A tree in a cell of a real kernel: one model per cell, a static twin, no secret anywhere."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.kernel

DEADLINE_S = 60.0
WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
import gc
import ipywidgets
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.notebook.tree import SessionTree

def open_models():
    widgets = ipywidgets.widgets.widget._instances.values()
    return sum(isinstance(one, SessionTree) for one in widgets)

def all_models():
    return len(ipywidgets.widgets.widget._instances)

chat = nb.open("s", store=":memory:", model=ScriptedModel("An answer."), api_key="sk-s3cr3t")
chat.run("Q", show=None)
"""


class Notebook:
    """A kernel and the messages that came of each cell."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, code: str, cell: str | None = None) -> list[dict[str, Any]]:
        """Execute a cell as a front end does, with the cell's id where it sends one."""
        content = {"code": dedent(code), "silent": False, "store_history": True}
        message = self.client.session.msg("execute_request", content)
        message["metadata"] = {"cellId": cell} if cell else {}
        self.client.shell_channel.send(message)
        seen: list[dict[str, Any]] = []
        ends_at = time.monotonic() + DEADLINE_S
        while time.monotonic() < ends_at:
            got = self.message()
            if got is None:
                continue
            assert got["msg_type"] != "error", got["content"]
            seen.append(got)
            is_own = got["parent_header"].get("msg_id") == message["header"]["msg_id"]
            if is_own and got["content"].get("execution_state") == "idle":
                return seen
        raise TimeoutError(f"the cell still runs after {DEADLINE_S:g} s")

    def message(self) -> dict[str, Any] | None:
        """Return the next message, or None when there is none for a second."""
        try:
            got: dict[str, Any] = self.client.get_iopub_msg(timeout=1)
        except queue.Empty:
            return None
        return got

    def printed(self, code: str) -> str:
        """Execute a cell and return what it printed."""
        texts = [m["content"]["text"] for m in self.run(code) if m["msg_type"] == "stream"]
        return "".join(texts).strip()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder: Path = tmp_path_factory.mktemp("kernel")
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    try:
        made = Notebook(client)
        made.run(SETUP)
        yield made
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def bundles(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [m["content"]["data"] for m in messages if m["msg_type"] == "display_data"]


# case 42
def test_a_session_is_shown_as_a_static_twin_and_a_live_tree(notebook: Notebook) -> None:
    twin, live = bundles(notebook.run("chat", "one"))

    assert 'data-nbd-twin="' in twin["text/html"]
    assert "An answer." in twin["text/html"]
    assert "<script" not in twin["text/html"]
    assert WIDGET in live
    assert "text/html" not in live
    assert live["text/plain"].startswith("<SessionTree of 's', ")


# case 46
@pytest.mark.parametrize("cell", ["again", None])
def test_100_executions_of_a_cell_leave_one_model(notebook: Notebook, cell: str | None) -> None:
    before = int(notebook.printed("print(open_models())"))
    notebook.run("chat", cell)
    models = notebook.printed("print(all_models())")
    sizes = []
    for _ in range(99):
        seen = notebook.run("chat", cell)
        sizes.append(sum(len(str(m["content"])) for m in seen if m["msg_type"] == "comm_open"))

    assert int(notebook.printed("print(open_models())")) == before + 1
    assert notebook.printed("print(all_models())") == models
    assert max(sizes[1:]) == min(sizes[1:])


def test_two_sessions_of_one_cell_stay_and_another_cell_leaves_them(notebook: Notebook) -> None:
    before = int(notebook.printed("print(open_models())"))

    notebook.run("display(chat); chat", "two")
    notebook.run("chat", "three")

    assert int(notebook.printed("print(open_models())")) == before + 3
    notebook.run("0", "two")
    notebook.run("display(chat)", "two")
    assert int(notebook.printed("print(open_models())")) == before + 2


def test_the_twin_shows_what_was_stored_since(notebook: Notebook) -> None:
    notebook.run("chat", "twin")
    seen = notebook.run("chat.run('A fresh question', show=None); None")
    ends_at = time.monotonic() + DEADLINE_S
    while not any(_is_update(m, "A fresh question") for m in seen):
        assert time.monotonic() < ends_at
        seen += [got for got in [notebook.message()] if got is not None]


# case 41 case 42
def test_a_large_session_is_shown_by_its_end_first_and_by_the_rest_soon(notebook: Notebook) -> None:
    notebook.run("""
    big = nb.open("big", store=":memory:", model=ScriptedModel("An answer."))
    _ = big.append(*(nb.user(f"text {n}") for n in range(5_100)))
    """)

    seen = notebook.run("big", "big")
    first = bundles(seen)[0]["text/html"]
    ends_at = time.monotonic() + DEADLINE_S
    while not any(_is_update(m, "… 4,600 more") for m in seen):
        assert time.monotonic() < ends_at
        seen += [got for got in [notebook.message()] if got is not None]

    assert "big · 5,100 entries · 1 branch · leaf #5100" in first
    assert "… 5,040 more" in first
    assert first.count("<li>") == 60


# case 42
def test_a_tree_shown_in_three_cells_has_three_twins_that_say_the_same(notebook: Notebook) -> None:
    notebook.run("tree = chat.widget()")
    uid = notebook.printed("print(tree.uid)")
    for cell in ("first", "second", "third"):
        notebook.run("tree", cell)
    notebook.run("tree", "second")  # again: what it showed before is gone
    seen = notebook.run("chat.run('Asked for all three', show=None); None")
    ends_at = time.monotonic() + DEADLINE_S

    def updated() -> set[str]:
        return {
            m["content"]["transient"]["display_id"]
            for m in seen
            if _is_update(m, "Asked for all three") and uid in m["content"]["data"]["text/html"]
        }

    while len(updated()) < 3:
        assert time.monotonic() < ends_at
        seen += [got for got in [notebook.message()] if got is not None]
    notebook.run("tree.close()")

    assert len(updated()) == 3


def _is_update(message: dict[str, Any], text: str) -> bool:
    if message["msg_type"] != "update_display_data":
        return False
    return text in message["content"]["data"].get("text/html", "")


# B69 case 46
def test_no_message_of_a_shown_tree_holds_a_key(notebook: Notebook) -> None:
    seen = notebook.run("tree = chat.widget(); tree", "secret")
    seen += notebook.run("print(repr(tree), tree.get_state(), tree.state(), flush=True)")
    uid = notebook.printed("print(tree.uid)")

    assert uid in str(seen)
    assert "s3cr3t" not in str(seen)


# B54
def test_a_closed_session_is_shown_in_words(notebook: Notebook) -> None:
    code = """
        other = nb.open("other", store=":memory:", model=ScriptedModel("x"))
        other.close()
        other
    """
    (bundle,) = bundles(notebook.run(code, "closed"))

    assert bundle == {
        "text/plain": "<Session 'other' in :memory:, closed, leaf the root, model scripted>"
    }
