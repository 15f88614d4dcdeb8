"""The Binder set-up builds: checked in four steps without a container engine.

The fourth step, running each notebook headless, is in ``test_notebooks.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
BINDER = ROOT / "binder"


def pins() -> dict[str, str]:
    lines = (BINDER / "requirements.txt").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines)


@pytest.fixture(scope="module")
def recipe() -> str:
    """What repo2docker would build, as the text of its container file."""
    program = Path(sys.executable).with_name("jupyter-repo2docker")
    made = subprocess.run(
        [program, "--no-build", "--debug", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout + made.stderr


@pytest.mark.parametrize(
    "step",
    [
        r"COPY .*binder/requirements\.txt",
        r"RUN \./binder/postBuild",
        r"environment-2epy-2d3-2e12-2dlinux",  # its lock file, as its name is escaped
    ],
)
def test_the_recipe_takes_up_each_file(recipe: str, step: str) -> None:
    assert re.search(step, recipe)


@pytest.mark.timeout(300)
def test_the_pinned_requirements_can_be_installed_together() -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    options = ["--dry-run", "--ignore-installed", "--quiet"]

    resolved = subprocess.run(
        [*pip, "install", *options, "-r", BINDER / "requirements.txt"],
        capture_output=True,
        text=True,
    )

    assert resolved.returncode == 0, resolved.stderr


def test_the_post_build_script_is_executable_and_parses() -> None:
    script = BINDER / "postBuild"

    parsed = subprocess.run(["bash", "-n", script], capture_output=True, text=True)

    assert parsed.returncode == 0, parsed.stderr
    assert os.access(script, os.X_OK)


def test_every_requirement_of_the_package_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["local"], *extras["plot"]]
    pinned = pins()

    misfits = [
        text
        for text in needed
        if not (need := Requirement(text)).specifier.contains(pinned.get(need.name, "0"))
    ]

    assert misfits == []


def test_the_documented_address_opens_a_notebook_that_exists() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")

    (path,) = re.findall(r"\?urlpath=lab/tree/([\w./]+)", readme)

    assert (ROOT / path).is_file()
