"""B57: a cell that is executed again goes back to where it began."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from replaying import held, opened

import nbdurable as nb
from nbdurable.errors import ModelError, RunActive
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.testing import FakeOpenAI, steps

DEADLINE_S = 30.0


class Notebook:
    """Executes functions as cells: what a kernel would say of them is said to the package."""

    def __init__(self) -> None:
        self.parent: dict[str, Any] = {}
        self.count = 0

    def get_parent(self) -> dict[str, Any]:
        return self.parent

    def cell(self, id: str | None, code: Callable[[], Any]) -> Any:
        self.count += 1
        self.parent = {"header": {"msg_id": f"m{self.count}"}, "metadata": {"cellId": id}}
        try:
            return code()
        finally:
            self.parent = {}


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    shell = SimpleNamespace(get_parent=made.get_parent, execution_count=None, kernel=None)
    monkeypatch.setattr("nbdurable.origin.shell", lambda: shell)
    return made


def run(chat: nb.Session, text: str) -> Callable[[], str]:
    return lambda: chat.run(text, show=None).text


# B57
def test_a_cell_executed_three_times_asks_once(
    store: Store, notebook: Notebook, model: ScriptedModel
) -> None:
    chat = opened(store, model)

    leaves = {notebook.cell("1", run(chat, "a")) and chat.leaf.id for _ in range(3)}

    assert (model.call_count, len(leaves)) == (1, 1)


# B57
def test_the_next_cell_goes_on_and_is_replayed_too(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    notebook.cell("2", run(chat, "B"))
    before = held(store)

    notebook.cell("1", run(chat, "A"))
    text = notebook.cell("2", run(chat, "B"))

    assert (text, model.call_count) == ("b", 2)
    assert held(store) == before


# B57 B58
@pytest.mark.filterwarnings("ignore:this run at")
def test_an_edited_cell_makes_a_branch_and_the_original_is_found_again(
    store: Store, notebook: Notebook
) -> None:
    model = ScriptedModel("a", "b", "a2")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    notebook.cell("2", run(chat, "B"))

    edited = notebook.cell("1", run(chat, "A?"))
    parents = [entry.parent_id for entry in chat.entries() if entry.n in (1, 5)]
    back = [notebook.cell("1", run(chat, "A")), notebook.cell("2", run(chat, "B"))]

    assert (edited, back) == ("a2", ["a", "b"])
    assert parents == [None, None]
    assert model.call_count == 3


# B57
def test_several_verbs_of_one_execution_are_one_record(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b", "c")
    chat = opened(store, model)

    def cell() -> list[str]:
        return [chat.run(text, show=None).text for text in "abc"]

    assert [notebook.cell("1", cell) for _ in range(2)] == [["a", "b", "c"]] * 2
    assert model.call_count == 3


# B57
def test_equal_calls_of_a_cell_are_counted_from_its_beginning(
    store: Store, notebook: Notebook
) -> None:
    model = ScriptedModel("1", "2", "3")
    chat = opened(store, model)

    def cell() -> list[str]:
        found = []
        for _ in range(3):
            chat.branch(None)
            found.append(chat.run("q", show=None).text)
        return found

    assert [notebook.cell("1", cell) for _ in range(3)] == [["1", "2", "3"]] * 3


# B57
def test_later_cells_are_dropped_from_the_list(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b", "c", "c after a")
    chat = opened(store, model)
    for number, text in enumerate("ABC"):
        notebook.cell(str(number), run(chat, text))
    notebook.cell("0", run(chat, "A"))

    with pytest.warns(UserWarning, match="start #4 → #2"):
        text = notebook.cell("2", run(chat, "C"))  # unlisted by now: goes on from the leaf

    assert text == "c after a"


# B57
def test_a_cell_that_only_reads_begins_as_well(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    looked = notebook.cell("2", chat.transcript)
    notebook.cell("3", run(chat, "B"))

    assert notebook.cell("2", chat.transcript) == looked


# B57
def test_the_leaf_of_a_cell_is_read_where_the_cell_began(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    checkpoint = notebook.cell("2", lambda: (chat.leaf_id, chat.run("B", show=None))[0])

    assert notebook.cell("2", lambda: (chat.leaf_id, chat.run("B", show=None))[0]) == checkpoint
    assert model.call_count == 2


# B57
def test_a_failed_cell_is_made_again_where_it_began(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", ModelError("no"), "b")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    with pytest.raises(ModelError):
        notebook.cell("2", run(chat, "B"))

    with pytest.warns(UserWarning, match="ended 'error'"):
        text = notebook.cell("2", run(chat, "B"))

    assert text == "b"
    assert [entry.preview for entry in store.load_entries("s")] == ["A", "a", "B", "b"]


# B57
def test_without_cell_ids_nothing_is_rewound(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b")
    chat = opened(store, model)

    assert [notebook.cell(None, run(chat, "A")) for _ in range(2)] == ["a", "b"]


# B57
def test_without_replay_nothing_is_rewound(store: Store, notebook: Notebook) -> None:
    model = ScriptedModel("a", "b")
    chat = nb.open("s", store=store, model=model)

    assert [notebook.cell("1", run(chat, "A")) for _ in range(2)] == ["a", "b"]


# B57
def test_a_late_verb_of_an_earlier_execution_rewinds_nothing(
    store: Store, notebook: Notebook
) -> None:
    model = ScriptedModel("a", "b")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    late = {"header": {"msg_id": "m1"}, "metadata": {"cellId": "1"}}
    notebook.cell("2", run(chat, "B"))
    leaf = chat.leaf.id

    notebook.parent = late  # as a thread sees it that cell 1 left behind
    chat.entries()

    assert chat.leaf.id == leaf


# B57 B18
def test_a_cell_executed_while_a_run_goes_on_leaves_the_leaf_alone(
    store: Store, notebook: Notebook
) -> None:
    go = threading.Event()
    model = ScriptedModel("a", ["Half", go])
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    live = notebook.cell("2", lambda: chat.run("B", wait=False))

    with pytest.raises(RunActive):
        notebook.cell("1", run(chat, "A"))
    go.set()

    assert live.wait().leaf_id == chat.leaf.id
    assert notebook.cell("1", run(chat, "A")) == "a"


# B57
def test_what_a_cell_is_written_beyond_takes_the_position_along(
    store: Store, notebook: Notebook
) -> None:
    model = ScriptedModel("a", "b", "new")
    chat = opened(store, model)
    notebook.cell("1", run(chat, "A"))
    notebook.cell("2", run(chat, "B"))
    notebook.cell("1", run(chat, "A"))

    with pytest.warns(UserWarning, match="is made for real"):
        notebook.cell("3", run(chat, "New"))

    assert nb.open("s", store=store, model=model).leaf_id == chat.leaf.id


# B57
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore:this run at")
def test_any_order_of_cells_followed_by_run_all_shows_what_run_all_shows(
    store: Store, notebook: Notebook, seed: int
) -> None:
    model = ScriptedModel(lambda request: "to " + request.messages[-1].text)
    chat = opened(store, model)
    cells = [(str(number), run(chat, text)) for number, text in enumerate("ABCD")]
    for cell in cells:
        notebook.cell(*cell)
    expected = [entry.id for entry in chat.path()]
    chance = random.Random(seed)

    for _ in range(12):
        notebook.cell(*chance.choice(cells))
    for cell in cells:
        notebook.cell(*cell)

    assert [entry.id for entry in chat.path()] == expected


# -- in a real kernel --------------------------------------------------------------------------


class Kernel:
    """A kernel that is told which cell it executes, as JupyterLab tells it."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def cell(self, id: str, code: str) -> str:
        """Execute a cell to its end; return what it printed."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = self.client.session.msg("execute_request", content)
        message["metadata"] = {"cellId": id}
        self.client.shell_channel.send(message)
        printed, ends_at = "", time.monotonic() + DEADLINE_S
        while time.monotonic() < ends_at:
            try:
                heard = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if heard["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            said = heard["content"]
            assert heard["msg_type"] != "error", said["evalue"]
            if heard["msg_type"] == "stream" and said["name"] == "stdout":
                printed += said["text"]
            if heard["msg_type"] == "status" and said["execution_state"] == "idle":
                return printed.strip()
        raise TimeoutError(f"cell {id} still runs after {DEADLINE_S:g} s; it printed {printed!r}")


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


# B57
@pytest.mark.kernel
@pytest.mark.timeout(120)
def test_a_cell_of_a_kernel_executed_three_times_asks_once_and_the_next_cell_not_at_all(
    kernel: Kernel,
) -> None:
    with FakeOpenAI(lambda body: steps.text(f"To {body['messages'][-1]['content']}")) as server:
        kernel.cell(
            "0",
            "import nbdurable as nb\n"
            "chat = nb.open('s', store='s.duckdb', model='openai/fake', replay=True,\n"
            f"               api_base={server.base_url!r}, api_key='sk-none')",
        )
        first, second = "print(chat.run('one').text)", "print(chat.run('two').text)"
        kernel.cell("1", first)
        kernel.cell("2", second)
        asked = len(server.requests)

        texts = [kernel.cell("1", first) for _ in range(3)] + [kernel.cell("2", second)]
        asked_again = len(server.requests) - asked
        edited = kernel.cell("2", second.replace("two", "three"))
        asked_when_edited = len(server.requests) - asked
        rest = [kernel.cell("2", second), kernel.cell("3", "print(len(chat.entries()))")]

    assert (asked, asked_again, asked_when_edited) == (2, 0, 1)
    assert texts == ["To one"] * 3 + ["To two"]
    assert (edited, rest) == ("To three", ["To two", "6"])
