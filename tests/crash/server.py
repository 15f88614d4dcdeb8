"""Forks children that are to die, so that what they import is imported once.

Reads one JSON object per line: where to live, at which operation or after how many seconds to die.
Answers each with a JSON line: what the child acknowledged, how it ended, and when.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

import pydantic  # noqa: F401
from crash.life import begin

# What a session imports at its first use, once for all children.


def main() -> None:
    """Serve until the input ends."""
    shim = sys.argv[1]
    print("ready", flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            begin(shim, writer, wanted)
        os.close(writer)
        said, died_at = _read(reader, child, wanted["after_s"])
        _, status = os.waitpid(child, 0)
        os.close(reader)
        lines = [json.loads(each) for each in said.split(b"\n")[:-1]]
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"lines": lines, "code": code, "died_at": died_at}), flush=True)


def _read(reader: int, child: int, after_s: float | None) -> tuple[bytes, float]:
    """Return all that the child says; kill it `after_s` seconds from its first word, and say when.

    The time is that of the kill, on the clock that all processes share.
    """
    said, killed_at = b"", 0.0
    deadline = None
    while True:
        if said and deadline is None and after_s is not None:
            deadline = time.monotonic() + after_s
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            os.kill(child, signal.SIGKILL)
            killed_at = time.monotonic()
            deadline, after_s, left = None, None, None
        if not select.select([reader], [], [], left)[0]:
            continue
        data = os.read(reader, 1 << 16)
        if not data:
            return said, killed_at
        said += data


if __name__ == "__main__":
    main()
