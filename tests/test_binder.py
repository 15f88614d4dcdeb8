"""The Binder set-up builds: checked in four steps without a container engine.

The fourth step, running each notebook headless, is in ``test_notebooks.py``; what is really built
is looked at in ``browser/test_binder_built.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
BINDER = ROOT / "binder"


def pins() -> dict[str, str]:
    lines = (BINDER / "requirements.txt").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


PINS = pins()


def is_pinned(need: Requirement) -> bool:
    pinned = PINS.get(canonicalize_name(need.name))
    return pinned is not None and need.specifier.contains(pinned, prereleases=True)


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
        r"ENV R2D_ENTRYPOINT.*binder/start",
        r"environment-2epy-2d3-2e12-2dlinux",  # its lock file, as its name is escaped
    ],
)
def test_the_recipe_takes_up_each_file(recipe: str, step: str) -> None:
    assert re.search(step, recipe)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_pinned_requirements_can_be_installed_together_on_binders_python(
    tmp_path: Path,
) -> None:
    version = (BINDER / "runtime.txt").read_text("utf-8").strip().removeprefix("python-")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    options = ["--dry-run", "--ignore-installed", "--quiet", "--target", str(tmp_path)]
    options += ["--python-version", version, "--only-binary", ":all:"]

    resolved = subprocess.run(
        [*pip, *options, "-r", BINDER / "requirements.txt"], capture_output=True, text=True
    )

    assert resolved.returncode == 0, resolved.stderr


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_a_script_is_executable_and_parses(name: str) -> None:
    script = BINDER / name

    parsed = subprocess.run(["bash", "-n", script], capture_output=True, text=True)

    assert parsed.returncode == 0, parsed.stderr
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize(("failing", "code"), [("nbdurable", 0), ("python", 1), ("jupyter", 1)])
def test_only_missing_weights_do_not_end_the_build(tmp_path: Path, failing: str, code: int) -> None:
    for name in ("python", "nbdurable", "jupyter"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexit {int(name == failing)}\n", "utf-8")
        program.chmod(0o755)

    built = subprocess.run(
        [BINDER / "postBuild"],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )

    assert built.returncode == code
    assert ("weights were not fetched" in built.stdout) is (failing == "nbdurable")


def test_what_start_starts_finds_the_recorded_answers(tmp_path: Path) -> None:
    program = "import os; print(os.environ['NBDURABLE_ANSWERS'])"

    started = subprocess.run(
        [BINDER / "start", sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert Path(started.stdout.strip()) == BINDER / "answers.jsonl"
    assert Path(started.stdout.strip()).is_file()


def test_start_finds_them_wherever_it_stands_and_keeps_those_that_are_named(
    tmp_path: Path,
) -> None:
    """`cd` says where it went when it looked into ``CDPATH``; a folder may have blanks."""
    moved = shutil.copytree(BINDER, tmp_path / "a folder" / "binder")

    def shown(**named: str) -> str:
        command = ["binder/start", "printenv", "NBDURABLE_ANSWERS"]
        env = {**os.environ, "CDPATH": ".", **named}
        done = subprocess.run(
            command, cwd=moved.parent, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert shown() == str(moved / "answers.jsonl")
    assert shown(NBDURABLE_ANSWERS="mine") == "mine"


def test_every_requirement_of_the_package_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    own = [text for text in extras["demo"] if not text.startswith(f"{project['name']}[")]
    needed = [*project["dependencies"], *extras["local"], *extras["plot"], *own]

    assert [text for text in needed if not is_pinned(Requirement(text))] == []


def test_what_a_pinned_package_needs_is_pinned_within_its_bounds() -> None:
    """Asked without a network, of the packages that are installed here in the pinned version."""
    here = {canonicalize_name(d.name): d for d in metadata.distributions() if d.name}
    same = [here[n] for n, version in PINS.items() if n in here and here[n].version == version]
    needs = [(found.name, Requirement(text)) for found in same for text in found.requires or ()]

    loose = [
        f"{name} needs {need}"
        for name, need in needs
        if (need.marker is None or need.marker.evaluate({"extra": ""})) and not is_pinned(need)
    ]

    assert loose == []


def test_the_documented_address_opens_a_notebook_that_exists() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")

    (path,) = re.findall(r"\?urlpath=lab/tree/([\w./]+)", readme)

    assert (ROOT / path).is_file()
