"""Paths that cannot be written for a while."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


class immutable:
    """Keep a path from being written, by root too where the system can."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mode = path.stat().st_mode

    def __enter__(self) -> None:
        if os.geteuid() != 0:
            self._path.chmod(self._mode & ~0o222)
        elif subprocess.run(["chattr", "+i", self._path], capture_output=True).returncode:
            pytest.skip("root writes everything here")

    def __exit__(self, *exc: object) -> None:
        if os.geteuid() != 0:
            self._path.chmod(self._mode)
        else:
            subprocess.run(["chattr", "-i", self._path], check=True)
