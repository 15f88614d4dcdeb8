"""Processes that share one store with a test: started, told what to do, killed."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What every child begins with. A line on its input is what it waits for; it says lines back.
BEGIN = """
import os, sys, warnings
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SessionRecord, SpoolDraft
from nbdurable.stores.conformance import chain, stored
from nbdurable.stores.duckdb import DuckDBStore
path = sys.argv[1]

def say(*words):
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")

def told():
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return line.strip()
"""

# Appends one entry after the other to session "s", each under the last of its own, and says each
# one's id once it is acknowledged.
APPENDER = """
store, parent = DuckDBStore(path, timeout_s=120), None
say("ready")
told()
for _ in range(int(sys.argv[2])):
    [entry] = store.append("s", [stored(parent_id=parent)])
    parent = entry.id
    say(entry.id)
store.close()
"""


class Child:
    """A running process with the ends of its pipes."""

    def __init__(self, program: str, path: Path, *args: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", BEGIN + program, str(path), *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout

    def hear(self, expected: str | None = None) -> str:
        """Return the next line it says, which is `expected` if that is given."""
        line = self._stdout.readline().rstrip("\n")
        assert expected is None or line == expected, line
        return line

    def tell(self, word: str = "go") -> None:
        """Say a line to it."""
        self._stdin.write(word + "\n")
        self._stdin.flush()

    def has_said(self) -> bool:
        """Whether there is a line that nobody has heard yet."""
        return bool(select.select([self._stdout], [], [], 0)[0])

    def ask(self, word: str = "go") -> str:
        """Say a line to it and return its answer."""
        self.tell(word)
        return self.hear()

    def kill(self) -> list[str]:
        """Kill it at once; return what it had said and nobody had heard."""
        self.process.kill()
        said = self._stdout.read().split("\n")
        self.process.wait()
        return said[:-1]  # what follows the last line end was not said to its end

    def finish(self) -> list[str]:
        """Let it come to its end; return what it said."""
        self._stdin.close()
        said = self._stdout.read().splitlines()
        assert self.process.wait() == 0
        return said

    def end(self) -> None:
        """Kill it if it still runs and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self._stdin, self._stdout):
            pipe.close()


@contextmanager
def child(program: str, path: Path, *args: object) -> Iterator[Child]:
    """Run a program in a process that is ready when the block starts and gone when it ends."""
    started = Child(program, path, *args)
    try:
        started.hear("ready")
        yield started
    finally:
        started.end()
