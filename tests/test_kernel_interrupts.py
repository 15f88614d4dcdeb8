"""B15, B17, B22, B23 in a real kernel: Stop in each form of following a run, tools that print."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

pytestmark = pytest.mark.kernel

DEADLINE_S = 20.0

# `Held` answers odd calls with "Half", says READY, and goes on when told; even calls with "Next.".
SETUP = """
import asyncio, sys, threading, time
import nbdurable as nb
from nbdurable.models.base import TextDelta
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.memory import MemoryStore

store = MemoryStore()
sessions = 0

def main_thread_waits():
    frame = sys._current_frames()[threading.main_thread().ident]
    return frame.f_code.co_name in ("wait", "select")

class Held(ScriptedModel):
    async def _play(self, number, request):
        if number % 2:
            yield TextDelta("Half")
            for _ in range(100):  # Stop is for the cell that waits, not for one on its way there
                await asyncio.sleep(0.01)
                if main_thread_waits():
                    break
            print("READY", flush=True)
            while not go.is_set():
                await asyncio.sleep(0.01)
        yield TextDelta(" whole." if number % 2 else "Next.")
        yield self._finish(type("script", (), {"actions": ()}))

def fresh(model=None, **options):
    global sessions, chat, go
    sessions += 1
    go = threading.Event()
    chat = nb.open(f"s{sessions}", store=store, model=model or Held(), **options)
    return chat

def stored():
    rows = [(e.role, e.preview, e.stop_reason) for e in store.load_entries(chat.id)]
    return rows, [end.outcome for _, end in store.load_runs(chat.id) if end]
"""


@dataclass
class Cell:
    """What one execution gave."""

    id: str
    printed: str = ""  # by this cell's own id
    elsewhere: dict[str, str] = field(default_factory=dict)  # by the id of an earlier cell
    error: str = ""


class Kernel:
    """One kernel for all tests of the module."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str, *, on_print: tuple[str, Callable[[], None]] | None = None) -> Cell:
        """Execute a cell to its end; call a function when a text has been printed, by whom ever."""
        cell = Cell(self.client.execute(dedent(code), store_history=False, allow_stdin=False))
        seen, ends_at = "", time.monotonic() + DEADLINE_S
        while time.monotonic() < ends_at:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            content, parent = message["content"], message["parent_header"].get("msg_id", "")
            if message["msg_type"] == "stream":
                seen += content["text"]
                if parent == cell.id:
                    cell.printed += content["text"]
                else:
                    cell.elsewhere[parent] = cell.elsewhere.get(parent, "") + content["text"]
                if on_print and on_print[0] in seen:
                    on_print[1]()
                    on_print = None
            elif message["msg_type"] == "error":
                cell.error = content["ename"]
            elif message["msg_type"] == "status" and parent == cell.id:
                if content["execution_state"] == "idle":
                    return cell
        raise TimeoutError(f"the cell still runs after {DEADLINE_S:g} s; it printed {seen!r}")

    def stopped(self, code: str, *, when: str = "READY") -> Cell:
        """Execute a cell and interrupt it once `when` was printed, as the Stop button does."""
        return self.run(code, on_print=(when, self.manager.interrupt_kernel))

    def said(self, code: str) -> str:
        """Execute a cell that must not fail; return what it printed."""
        cell = self.run(code)
        assert cell.error == ""
        return cell.printed.strip()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder: Path = tmp_path_factory.mktemp("kernel")
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder))
    try:
        made = Kernel(manager, client)
        assert made.run(SETUP).error == ""
        yield made
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


FOLLOWED = {
    "run": "chat.run('Say.', show=None)",
    "for": "for event in chat.run('Say.', wait=False): pass",
    "stream": "for piece in chat.run('Say.', wait=False).stream(): pass",
    "wait": "chat.run('Say.', wait=False).wait()",
    "async for": "async for event in chat.run('Say.', wait=False): pass",
    "async stream": "async for piece in chat.run('Say.', wait=False).stream(): pass",
    "run in an async cell": "await asyncio.sleep(0); chat.run('Say.', show=None)",
    "await": "await chat.run('Say.', wait=False)",
}


# B17 B22 B23
@pytest.mark.parametrize("form", FOLLOWED)
def test_stop_in_a_cell_that_follows_a_run_cancels_it_and_keeps_the_part(
    kernel: Kernel, form: str
) -> None:
    kernel.run("fresh()")

    cell = kernel.stopped(FOLLOWED[form])

    assert cell.error in ("KeyboardInterrupt", "CancelledError")
    said = kernel.said("print(stored(), chat.run('Next?', show=None).text)")
    rows = [("user", "Say.", None), ("assistant", "Half", "aborted")]
    assert said == f"{(rows, ['aborted'])} Next."


# B17
def test_stop_in_a_cell_that_does_not_follow_the_run_leaves_it_alone(kernel: Kernel) -> None:
    kernel.run("fresh(); run = chat.run('Say.', wait=False)")

    cell = kernel.stopped("print('BUSY', flush=True); time.sleep(60)", when="BUSY")

    assert cell.error == "KeyboardInterrupt"
    assert kernel.said("print(run.outcome); go.set(); print(run.wait().text, run.outcome)") == (
        "None\nHalf whole. done"
    )


# B17 B23
def test_stop_in_a_later_cell_that_waits_cancels_the_run(kernel: Kernel) -> None:
    kernel.run("fresh(); run = chat.run('Say.', wait=False)")

    cell = kernel.stopped("print('WAITING', flush=True); await run", when="WAITING")

    assert cell.error in ("KeyboardInterrupt", "CancelledError")
    assert kernel.said("print(run.outcome, stored()[1])") == "aborted ['aborted']"


# B17
def test_stop_in_a_cell_that_broke_out_of_the_iteration_leaves_the_run_alone(
    kernel: Kernel,
) -> None:
    cell = kernel.stopped(
        """
        fresh(); run = chat.run('Say.', wait=False)
        for event in run:
            if event.type == "message_update":
                break
        print('BUSY', flush=True); time.sleep(60)
        """,
        when="BUSY",
    )

    assert cell.error == "KeyboardInterrupt"
    assert kernel.said("go.set(); print(run.wait().text, run.outcome)") == "Half whole. done"


# B23
def test_stop_while_a_tool_runs_answers_its_call(kernel: Kernel) -> None:
    kernel.run(
        """
        held = threading.Event()
        def slow() -> str:
            "Work."
            print("READY", flush=True)
            held.wait(60)
            return "too late"
        fresh(ScriptedModel(calls(("slow", {}), ("slow", {})), "Next."), tools=[slow])
        """
    )

    cell = kernel.stopped("chat.run('Work.', show=None)")

    assert cell.error == "KeyboardInterrupt"
    said = kernel.said(
        "held.set(); print([r.text[:11] for m in chat.messages() for r in m.tool_results]);"
        "print(stored()[1], chat.run(show=None).text)"
    )
    assert said == "['cancelled w', 'not started']\n['aborted'] Next."


# B29 B23
def test_a_question_that_no_one_can_answer_denies_the_call(kernel: Kernel) -> None:
    kernel.run(
        """
        @nb.tool(confirm=True)
        def pay() -> str:
            "Pay."
            return "paid"
        fresh(ScriptedModel(calls(("pay", {})), "Next."), tools=[pay])
        """
    )

    said = kernel.said(
        "print([r.text for m in chat.run('Pay.', show=None).messages for r in m.tool_results])"
    )

    assert said == "['not executed: the user did not allow it']"


# B15
def test_a_live_run_is_returned_at_once_and_shows_nothing(kernel: Kernel) -> None:
    said = kernel.said("fresh(ScriptedModel('Yes.')); run = chat.run('Is it?', wait=False)")

    assert said == ""
    assert kernel.said("print(run.wait().text)") == "Yes."


# B15
def test_every_form_works_under_the_kernels_running_loop(kernel: Kernel) -> None:
    said = kernel.said(
        """
        fresh(ScriptedModel("Yes."))
        asyncio.get_running_loop()
        texts = [chat.run("1", show=None).text]
        texts.append("".join(chat.run("2", wait=False).stream()))
        texts.append((await chat.run("3", wait=False)).text)
        texts.append("".join([piece async for piece in chat.run("4", wait=False).stream()]))
        texts.append(chat.run("5", wait=False).wait().text)
        for question in ("6", "7"):
            texts.append(chat.run(question, show=None).text)
        print(texts == ["Yes."] * 7)
        """
    )

    assert said == "True"


# B15
def test_a_run_goes_on_while_a_cell_computes(kernel: Kernel) -> None:
    kernel.run("fresh(); run = chat.run('Say.', wait=False)")

    said = kernel.said(
        """
        go.set()
        while not run.is_done:  # no await: the kernel's own loop stands still
            pass
        print(run.text)
        """
    )

    assert said == "Half whole."


# B15
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_what_a_tool_prints_lands_in_the_cell_that_started_the_run(
    kernel: Kernel, kind: str
) -> None:
    first = kernel.run(
        f"""
        {kind} speak() -> str:
            "Speak."
            {"go.wait(30)" if kind == "def" else "await asyncio.to_thread(go.wait, 30)"}
            print("from the tool", flush=True)
            return "spoken"
        fresh(ScriptedModel(calls(("speak", {{}})), "Done."), tools=[speak])
        run = chat.run("Speak.", wait=False)
        """
    )

    second = kernel.run("go.set(); run.wait(); print('from the cell', flush=True)")

    assert (first.error, second.error) == ("", "")
    assert second.printed.strip() == "from the cell"
    assert second.elsewhere.get(first.id, "").strip() == "from the tool"
