"""``nbdurable doctor``: what is installed, what state the store is in, and what to do about it.

Owns what is looked at and how it is told; it changes nothing. The one idea: a line for each thing,
which says what was found and, where something is wrong, what to do.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nbdurable.commands.places import console, named, named_store
from nbdurable.errors import ModelError, NbDurableError, StoreLocked, shown
from nbdurable.reprs import count, one_line

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

State = Literal["ok", "note", "wrong"]

_NEEDED = ("duckdb", "litellm", "pandas", "ipywidgets", "anywidget", "pydantic", "filelock")
_OPTIONAL = {
    "ipykernel": "pip install ipykernel, where notebooks run here",
    "jupyterlab": "pip install jupyterlab, where notebooks are shown here",
    "xllamacpp": "pip install 'nbdurable[local]' for model=\"local\"",
    "psycopg": "pip install 'nbdurable[postgres]' for a store that a team shares",
}
_OLDEST_DUCKDB = (2, 0, 1)
_LEAST_FREE_BYTES = 200_000_000
_MOST_CHECKED_BYTES = 50_000_000  # of a store that is checked whole, which takes seconds
_WAIT_S = 2.0  # for another process that has the store at this moment
_MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "bold red")}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at."""

    state: State
    what: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        told = f"{self.what}: {self.found}{f'; {self.remedy}' if self.remedy else ''}"
        return one_line(told, 2_000)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "doctor",
        help="look whether all is in order here, and what to do where it is not",
        description="Look at what is installed, at a store, at keys (by name only) and at models. "
        "Changes nothing. Ends with 1 when something is wrong.",
    )
    parser.add_argument(
        "store", nargs="?", type=named, metavar="STORE", help="the store's file, or its address"
    )
    parser.add_argument(
        "--model", metavar="M", help="ask this model for one word, which a provider may charge"
    )
    parser.set_defaults(command=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    lines = []
    is_terminal = sys.stdout.isatty()
    for line in looked_at(arguments.store, arguments.model):
        lines.append(line)
        _show(line, is_terminal=is_terminal)
    return int(any(line.state == "wrong" for line in lines))


def _show(line: Line, *, is_terminal: bool) -> None:
    if not is_terminal:
        print(f"{line.state}: {line}", flush=True)
        return
    from rich.text import Text

    mark, style = _MARKS[line.state]
    # not broken into lines, so that a path or a command can be copied as it is
    console().print(Text.assemble((f"{mark} ", style), str(line)), soft_wrap=True)


def looked_at(store: str | None = None, model: str | None = None) -> Iterator[Line]:
    """Yield what was found, line by line.

    Parameters
    ----------
    store : str, optional
        A store's file or address; by default the one that `nbdurable.open` takes.
    model : str, optional
        A model to be asked for one word.
    """
    yield from _versions()
    yield from _store(store)
    yield from _local()
    yield _keys()
    if model is not None:
        yield _answer(model)


# -- what is installed ---------------------------------------------------------------------------


def _versions() -> Iterator[Line]:
    yield Line("ok", "python", f"{platform.python_version()} at {sys.executable}")
    yield Line("ok", "nbdurable", installed_version("nbdurable") or "from source, not installed")
    for name in _NEEDED:
        found = installed_version(name)
        if found is None:
            yield Line("wrong", name, "is not installed", f"pip install {name}")
        elif name == "duckdb" and _numbers(found) < _OLDEST_DUCKDB:
            yield Line("wrong", name, found, "pip install 'duckdb>=2.0.1,<3'")
        else:
            yield Line("ok", name, found)
    for name, remedy in _OPTIONAL.items():
        found = installed_version(name)
        yield Line("ok", name, found) if found else Line("note", name, "is not here", remedy)


def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None when it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal())


# -- the store -----------------------------------------------------------------------------------


def _store(given: str | None) -> Iterator[Line]:
    where = named_store(given)
    if "://" in where:
        yield _database(where)
        return
    path = os.path.realpath(os.path.expanduser(where))
    if not os.path.exists(path):
        if given:
            yield Line("wrong", "store", f"{path} is not there", "give the path of a store")
        else:
            yield Line("note", "store", f"none at {path} yet", "open() makes it")
        yield from _disk(path)
        return
    yield _state(path)
    if not path.endswith(".jsonl"):
        yield from _beside(path)
    yield from _disk(path)


def _database(address: str) -> Line:
    from nbdurable.stores import open_store, release_store

    try:
        store = open_store(address, for_reading=True)
    except NbDurableError as exc:
        return Line("wrong", "store", str(exc))
    try:
        return Line("ok", "store", f"{store.name}, {count(len(store.list_sessions()), 'session')}")
    except NbDurableError as exc:
        return Line("wrong", "store", str(exc))
    finally:
        release_store(store)


def _state(path: str) -> Line:
    """Look whether a store can be read, and into it unless that takes long."""
    from nbdurable.stores.duckdb.checking import check, counts, opened

    size_bytes = os.path.getsize(path)
    size = f"{path}, {size_bytes / 1e6:,.1f} MB"
    try:
        if path.endswith(".jsonl"):
            from nbdurable.stores.jsonl import RecordingStore

            sessions = len(RecordingStore(path).list_sessions())
            return Line("ok", "store", f"{size}, a recording of {count(sessions, 'session')}")
        if size_bytes > _MOST_CHECKED_BYTES:
            with opened(path, _WAIT_S) as cursor:
                rows = _rows(counts(cursor))
            return Line("ok", "store", f"{size}, {rows}", "nbdurable check looks into all of it")
        report = check(path)
    except StoreLocked as exc:
        return Line("note", "store", f"{size}, in use{_holder(exc.pid)}", "see again later")
    except NbDurableError as exc:
        return Line("wrong", "store", str(exc))
    if report.is_sound:
        return Line("ok", "store", f"{size}, is sound, {_rows(report.counts)}")
    damage = next(str(finding) for finding in report.findings if finding.is_damage)
    remedy = "nbdurable repair mends what a crash did; else go back to a backup"
    return Line("wrong", "store", f"{size}, is damaged: {damage}", remedy)


def _rows(counts: dict[str, int]) -> str:
    sessions, entries = counts.get("sessions", 0), counts.get("entries", 0)
    return f"{count(sessions, 'session')}, {count(entries, 'entry', 'entries')}"


def _holder(pid: int | None) -> str:
    return f" by PID {pid} on {platform.node()}{_program(pid)}" if pid else " by another process"


def _program(pid: int) -> str:
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return ""


def _beside(path: str) -> Iterator[Line]:
    """Look at what stands beside a store's file."""
    from nbdurable.stores.duckdb.place import log_of
    from nbdurable.stores.duckdb.repair import copies_aside
    from nbdurable.stores.duckdb.spool import Spool

    wal_bytes = log_of(path)[1]
    if wal_bytes:
        found = f"{wal_bytes / 1e6:,.2f} MB; it belongs to the store"
        yield Line("ok", "log", found, "copy both files or none (nbdurable backup copies right)")
    spool = Spool(path, "doctor")
    owners = spool.owners()
    if owners:
        named = ", ".join(f"PID {pid}{_program(pid)}" for pid in owners)
        yield Line("ok", "open in", f"{named} on {platform.node()}")
    left = [file for file in spool.folder.glob("*.jsonl") if file not in owners.values()]
    if left:
        found = f"{count(len(left), 'spool')} of processes that ended"
        yield Line("note", "answers in flight", found, "open the store, which recovers them")
    for file in spool.folder.glob("*.unread"):
        yield Line("note", "spool", f"{file} could not be read in full", "keep it, or remove it")
    aside = copies_aside(path)
    if aside:
        found = f"{count(len(aside), 'copy', 'copies')} of damaged files that were repaired"
        remedy = f"remove {aside[0]} and such when you miss nothing"
        yield Line("note", "repairs", found, remedy)


def _disk(path: str) -> Iterator[Line]:
    from nbdurable.hosts import thrown_away

    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        yield Line("wrong", "folder", f"{folder} is not there", "make it, or choose another")
        return
    if not os.access(folder, os.W_OK):
        yield Line("wrong", "folder", f"{folder} cannot be written", "change its permissions")
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:,.1f} GB free at {folder}"
    if free < _LEAST_FREE_BYTES:
        yield Line("wrong", "disk", found, "free space, before a write fails")
    else:
        yield Line("ok", "disk", found)
    lost = thrown_away(path)
    if lost is not None:
        yield Line("note", "disk", lost)


# -- models --------------------------------------------------------------------------------------


def _local() -> Iterator[Line]:
    from nbdurable.models.weights import VARIABLE, fault_of, weights_path

    path = weights_path()
    if not path.is_file():
        found = f"no weights at {path}"
        yield Line("note", "local model", found, "nbdurable local fetch, to work without a key")
        return
    fault = fault_of(path)
    if fault is None:
        yield Line("ok", "local model", f"{path} is whole")
    elif os.environ.get(VARIABLE):
        yield Line("note", "local model", f"{path} is a file of yours, named by ${VARIABLE}")
    else:
        yield Line("wrong", "local model", f"{path}: {fault}", "nbdurable local fetch")


def _keys() -> Line:
    named = sorted(
        name
        for name, value in os.environ.items()
        if value and (name.endswith("_API_KEY") or name.startswith("NBDURABLE_"))
    )
    if named:
        return Line("ok", "variables", f"set: {', '.join(named)} (values are not shown)")
    return Line("note", "variables", "no key is set", 'export OPENAI_API_KEY=…, or model="local"')


def _answer(model: str) -> Line:
    """Ask a model for one word, in a session that is kept nowhere."""
    from nbdurable.opening import open

    try:
        with open("doctor", store=":memory:", model=model, max_tokens=16) as chat:
            run = chat.run("Answer with the word: yes", show=None)
    except ModelError as exc:
        return Line("wrong", "model", f"{shown(model)} does not answer: {exc}")
    except (NbDurableError, ValueError) as exc:
        return Line("wrong", "model", str(exc))
    return Line("ok", "model", f"{shown(model)} answers, in {run.seconds or 0:.1f} s")
