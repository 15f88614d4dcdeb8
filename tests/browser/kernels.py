"""Kernels of other versions than the installed one, in the same environment.

A version goes into a folder of its own, without what it depends on, and a kernel spec puts that
folder first on the path. So several versions are at hand in one server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

KEPT = Path(sys.prefix) / "share" / "nbdurable-kernels"


def kernel_code(version: str) -> Path:
    """Return the folder of an ipykernel, which is downloaded once."""
    folder = KEPT / version
    if not folder.joinpath("ipykernel").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet"]
        command += ["--target", str(folder), f"ipykernel=={version}"]
        subprocess.run(command, check=True, timeout=300, capture_output=True)
    return folder


def add_kernel(jupyter_data: Path, version: str) -> str:
    """Put a kernel of `version` beside a server's own; return its name."""
    name = f"ipykernel-{version}"
    spec = jupyter_data / "kernels" / name
    spec.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(kernel_code(version)), os.environ.get("PYTHONPATH", "")])
    content = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": name,
        "language": "python",
        "env": {"PYTHONPATH": path},
    }
    spec.joinpath("kernel.json").write_text(json.dumps(content), "utf-8")
    return name
