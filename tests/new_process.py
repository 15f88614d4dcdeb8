"""Scripts in processes of their own, for what a second process must find or must not do."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys


def in_new_process(script: str, *arguments: str, timeout_s: float = 60) -> object:
    """Run a script in a process of its own; return what it printed last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def killed_after(seconds: float, script: str) -> None:
    """Run a script that prints "ready", and kill it some time after it did, or let it end."""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
