"""Ends that nobody asked for: leaked handles, forks of the process, its exit, the wrong place."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import pytest
from new_process import in_new_process

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.memory import MemoryStore

ENTRIES = (
    "import json, nbdurable as nb\n"
    "chat = nb.open('s', store='s.duckdb', model='local')\n"
    "rows = [[e.text, e.message.stop_reason] for e in chat.entries()]\n"
    "print(json.dumps([rows, [run.outcome for run in chat.runs()]]))\n"
)
PLAY = (
    "import os, sys, threading\n"
    "import nbdurable as nb\n"
    "from nbdurable.models.scripted import ScriptedModel\n"
)
HALF = (
    "model = ScriptedModel(('half an answer', threading.Event()))\n"
    "run = chat.run('q', wait=False, model=model)\n"
    "said = ''\n"
    "for piece in run.stream():\n"
    "    said += piece\n"
    "    if said == 'half an answer':\n"
    "        break\n"
)


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PLAY + script],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


# -- leaked handles (B54) ----------------------------------------------------------------------


# B54
def test_a_handle_that_nobody_keeps_frees_the_file(model: ScriptedModel) -> None:
    chat = nb.open("s", store="s.duckdb", model=model)
    chat.append("q")

    del chat
    gc.collect()

    assert in_new_process(ENTRIES) == [[["q", None]], []]


# B54
def test_a_handle_in_a_ring_of_references_frees_the_file(model: ScriptedModel) -> None:
    ring: list[object] = [nb.open("s", store="s.duckdb", model=model)]
    ring.append(ring)

    del ring
    gc.collect()

    assert in_new_process(ENTRIES) == [[], []]


# B54
def test_a_live_run_keeps_its_handle(model: ScriptedModel) -> None:
    go = threading.Event()
    run = nb.open("s", store="s.duckdb", model=ScriptedModel(("half", go, " whole"))).run(
        "q", wait=False
    )
    gc.collect()
    go.set()

    assert run.wait().text == "half whole"
    assert run.then("more", model=model, show=None).text == "A scripted answer."


# B54 B5
def test_a_handle_that_is_collected_while_a_file_is_opened_does_not_hang() -> None:
    done = run_script(
        "import gc\n"
        "from nbdurable.stores.duckdb import DuckDBStore\n"
        "gc.disable()\n"
        "open_file = DuckDBStore.__init__\n"
        "def open_and_collect(self, *arguments, **named):\n"
        "    gc.collect()\n"  # as any allocation may, under whatever lock is held here
        "    open_file(self, *arguments, **named)\n"
        "DuckDBStore.__init__ = open_and_collect\n"
        "for number in range(4):\n"
        "    ring = [nb.open('s', store=f'{number}.duckdb', model='local')]\n"
        "    ring.append(ring)\n"
        "print('done')\n"
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# -- the end of the process (B54, B24) ---------------------------------------------------------


# B54 B24
@pytest.mark.parametrize("ending", ["", "sys.exit(3)\n", "raise ZeroDivisionError\n"])
def test_the_end_of_a_script_keeps_the_half_answer(ending: str) -> None:
    done = run_script("chat = nb.open('s', store='s.duckdb', model='local')\n" + HALF + ending)

    assert "Closed" not in done.stderr
    assert in_new_process(ENTRIES) == [
        [["q", None], ["half an answer", "aborted"]],
        ["aborted"],
    ]


# B54
def test_the_end_of_a_script_keeps_half_answers_in_every_store() -> None:
    """Also when the second store is loaded after the first handle was made."""
    done = run_script(
        "first = nb.open('memory', store=':memory:', model=ScriptedModel('a'))\n"
        "first.run('q', show=None)\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n" + HALF
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert in_new_process(ENTRIES) == [
        [["q", None], ["half an answer", "aborted"]],
        ["aborted"],
    ]


# B54
def test_a_script_that_forgets_to_close_leaves_one_file() -> None:
    done = run_script(
        "nb.open('s', store='s.duckdb', model='local').append('q')\n"
        "kept = nb.open('t', store='s.duckdb', model='local')\n"
        "kept.append('q')\n"
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in os.listdir() if name.startswith("s.duckdb")] == ["s.duckdb"]


# -- forks of the process (B65) ----------------------------------------------------------------

FORK = (
    "import json\n"
    "sys.stdout.reconfigure(line_buffering=True)\n"
    "pid = os.fork()\n"
    "if not pid:\n"
    "    for verb in (lambda: chat.append('lost'), chat.entries, lambda: chat.branch(None),\n"
    "                 lambda: chat.run('lost', model=ScriptedModel('a'), show=None)):\n"
    "        try:\n"
    "            verb()\n"
    "        except nb.errors.StoreError as exc:\n"
    "            print(str(exc).split(';')[0])\n"
    "    sys.exit(0)\n"
    "_, status = os.waitpid(pid, 0)\n"
)


# B65
@pytest.mark.parametrize("place", ["s.duckdb", ":memory:"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_of_the_process_is_refused_by_every_verb(place: str) -> None:
    done = run_script(
        f"chat = nb.open('s', store={place!r}, model='local')\n"
        "chat.append('mine')\n" + FORK + "chat.append('mine too')\n"
        "print(status, len(chat.entries()))\n"
    )

    *refusals, last = done.stdout.splitlines()
    assert len(refusals) == 4 and all("this is its fork" in line for line in refusals)
    assert last == "0 2", done.stderr


# B65
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_of_the_process_is_refused_to_wait_for_a_run_of_its_parent() -> None:
    done = run_script(
        "chat = nb.open('s', store='s.duckdb', model='local')\n" + HALF + "pid = os.fork()\n"
        "if not pid:\n"
        "    try:\n"
        "        run.wait(20)\n"
        "    except nb.errors.RunError as exc:\n"
        "        print(exc, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "run.cancel()\n"
        "print(run.wait().outcome)\n"
    )

    told, outcome = done.stdout.splitlines()
    assert "has no part in it; wait for it there" in told
    assert outcome == "aborted", done.stderr


# B65 B54
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_in_mid_run_ends_at_once_and_leaves_the_run() -> None:
    done = run_script(
        "from nbdurable import starting\n"
        "starting.STOP_WAIT_S = 40\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n"
        "go = threading.Event()\n"
        "model = ScriptedModel(('half', go, ' whole'))\n"
        "run = chat.run('q', wait=False, model=model)\n"
        "model.wait_for_request()\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    chat.close()\n"
        "    sys.exit(0)\n"
        "_, status = os.waitpid(pid, 0)\n"
        "assert not run.is_done\n"
        "go.set()\n"
        "print(status, run.wait().text)\n"
    )

    assert done.stdout == "0 half whole\n", done.stderr


# B65
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_may_use_a_file_of_its_own() -> None:
    done = run_script(
        "chat = nb.open('s', store='parent.duckdb', model='local')\n"
        "chat.append('mine')\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    own = nb.open('s', store='s.duckdb', model=ScriptedModel('an answer'))\n"
        "    own.run('q', show=None)\n"
        "    sys.exit(0)\n"
        "print(os.waitpid(pid, 0)[1], len(chat.entries()))\n"
    )

    assert done.stdout == "0 1\n", done.stderr
    assert in_new_process(ENTRIES) == [[["q", None], ["an answer", "stop"]], ["done"]]


# -- the wrong place (B6, B63) -----------------------------------------------------------------


# B6 B63
def test_a_folder_without_write_permission_is_named_and_nothing_is_held() -> None:
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    os.mkdir("sealed", 0o555)
    script = PLAY + (
        "os.chdir('sealed')\n"
        f"if os.geteuid() == 0:\n    os.setuid({nobody})\n"
        "told = []\n"
        "try:\n"
        "    nb.open('s', store='s.duckdb', model=ScriptedModel('a'), publisher=told.append)\n"
        "except nb.errors.StoreError as exc:\n"
        "    print(told, str(exc))\n"
        "with nb.open('s', store=':memory:', model=ScriptedModel('a')) as chat:\n"
        "    print(chat.run('q', show=None).text)\n"
    )
    setup = "import nbdurable.opening, nbdurable.stores.duckdb, duckdb\n"

    done = subprocess.run(
        [sys.executable, "-c", setup + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    first, second = done.stdout.splitlines() or ["", done.stderr]
    assert first.startswith("[] ") and "sealed/s.duckdb" in first
    assert second == "a"
    assert os.listdir("sealed") == []


# -- time zones (case 30) ----------------------------------------------------------------------


# case 30
def test_times_are_the_same_instants_in_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import json, sys, nbdurable as nb\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n"
        "if not chat.entries():\n"
        "    chat.append('q')\n"
        "print(json.dumps([e.created_at.isoformat() for e in chat.entries()]))\n"
    )
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    written = in_new_process(script)
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    read = in_new_process(script)

    assert isinstance(written, list) and written == read
    assert written[0].endswith("+00:00")


# B54
def test_a_store_that_was_closed_under_a_handle_says_so(model: ScriptedModel) -> None:
    store = MemoryStore()
    chat = nb.open("s", store=store, model=model)
    store.close()

    with pytest.raises(nb.errors.StoreClosed, match="is closed; open a new one"):
        chat.append("q")
    chat.close()
