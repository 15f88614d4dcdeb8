"""Scripts in processes of their own, for what a second process must find or must not do."""

from __future__ import annotations

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
