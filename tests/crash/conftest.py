"""What the tests of crashes share: the library that ends a process, and who forks children."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash.kills import HERE, Lives


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("a C compiler is missing")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    line = [compiler, "-O1", "-shared", "-fPIC", "-o", library, HERE / "shim.c", "-ldl"]
    subprocess.run(line, check=True)
    return library


@pytest.fixture(scope="session")
def lives(shim: Path) -> Iterator[Lives]:
    server = Lives(shim)
    yield server
    server.close()


@pytest.fixture(scope="module")
def rivals(shim: Path) -> Iterator[list[Lives]]:
    """Three who fork children, so that three children live at once."""
    servers = [Lives(shim) for _ in range(3)]
    yield servers
    for server in servers:
        server.close()
