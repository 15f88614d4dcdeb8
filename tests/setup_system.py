"""Install the system programs that some tests drive, where that may be done; name the others.

A program counts as wanted only while a test file uses its marker, so that nothing is downloaded
for tests that do not exist. Never fails: the tests that need a missing program say so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
MARK = re.compile(r"^\s*(?:@|pytestmark\b.*)pytest\.mark\.(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that tests marked ``mark`` need: any of `names` on the path, or of `globs`."""

    label: str
    mark: str
    packages: tuple[str, ...]
    names: tuple[str, ...]
    globs: tuple[str, ...] = ()

    def is_present(self) -> bool:
        """Return whether one of the names or files is there."""
        found = any(shutil.which(name) for name in self.names)
        return found or any(any(Path("/").glob(pattern)) for pattern in self.globs)


PROGRAMS = (
    Program(
        "a Chromium browser",
        "browser",
        ("chromium", "fonts-dejavu-core"),
        ("chromium", "chromium-browser", "google-chrome"),
    ),
    Program(
        "a PostgreSQL server",
        "postgres",
        ("postgresql",),
        ("postgres",),
        ("usr/lib/postgresql/*/bin/postgres",),
    ),
    Program("a C compiler", "compiler", ("gcc", "libc6-dev"), ("cc", "gcc", "clang")),
    Program("Node.js 20", "node", ("nodejs", "npm"), ("node",)),
)


def marks_used(tests: Path) -> set[str]:
    """Return the marks of `PROGRAMS` that a test file under `tests` uses."""
    sources = [path.read_text("utf-8") for path in tests.rglob("test_*.py")]
    used = {mark for source in sources for mark in MARK.findall(source)}
    return used & {program.mark for program in PROGRAMS}


def missing_for(marks: Iterable[str]) -> list[Program]:
    """Return the programs that tests of these marks need and that are not there."""
    return [p for p in PROGRAMS if p.mark in marks and not p.is_present()]


def apt_get() -> list[str] | None:
    """Return how to call ``apt-get``, or None where it is missing or not allowed."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True).returncode == 0:
        return [sudo, "-n", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    return None


def install(command: list[str], packages: Sequence[str]) -> str:
    """Install Debian packages, with a fresh package list only when needed; return the complaint."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    line = [*command, "install", "-y", "-q", "--no-install-recommends", *packages]

    def attempt(line: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    first = attempt(line)
    if first.returncode == 0:
        return ""
    attempt([*command, "update", "-q"])
    second = attempt(line)
    complaints = second.stderr.strip().splitlines() or ["no reason was given"]
    return "" if second.returncode == 0 else complaints[-1]


def main(marks: Sequence[str]) -> int:
    """Install what these marks need, or else what the tests need; name what is still missing."""
    chosen = set(marks) or marks_used(TESTS)
    missing = missing_for(chosen)
    if not missing:
        return 0
    labels = ", ".join(program.label for program in missing)
    command = apt_get()
    reason = "apt-get is missing or not allowed here"
    if command is not None:
        print(f"Installing {labels} (once)", flush=True)
        reason = install(command, [name for program in missing for name in program.packages])
    for program in missing_for(chosen):
        print(
            f"{program.label} is missing and was not installed: {reason}; "
            f"tests marked {program.mark!r} need {' '.join(program.packages)}",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
