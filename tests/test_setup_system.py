"""System programs are installed only for tests that exist, and only where that may be done."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import setup_system
from setup_system import Program, install, main, marks_used, missing_for

ABSENT = Program("a thing", "browser", ("thing-1",), ("surely-no-such-program",))


@pytest.mark.parametrize(
    "line", ["@pytest.mark.browser", "    @pytest.mark.browser", "pytestmark = pytest.mark.browser"]
)
def test_a_marker_in_a_test_file_asks_for_its_program(tmp_path: Path, line: str) -> None:
    (tmp_path / "test_a.py").write_text(f"import pytest\n{line}\n", "utf-8")

    assert marks_used(tmp_path) == {"browser"}


def test_no_marker_asks_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("NAME = 'pytest.mark.browser'\n", "utf-8")

    assert marks_used(tmp_path) == set()


def test_a_program_on_the_path_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    present = Program("a shell", "browser", ("dash",), ("sh",))
    monkeypatch.setattr(setup_system, "PROGRAMS", (present, ABSENT))

    assert missing_for({"browser"}) == [ABSENT]


def test_a_program_found_by_its_file_is_not_missing() -> None:
    pattern = sys.executable.lstrip("/")

    assert Program("Python", "browser", (), (), (pattern,)).is_present()


def test_an_install_that_failed_says_why(tmp_path: Path) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\necho "$@" >> "$0.log"\necho no such package >&2\nexit 1\n', "utf-8")
    apt.chmod(0o755)

    complaint = install([str(apt)], ["thing-1"])

    asked = apt.with_name("apt-get.log").read_text("utf-8").splitlines()
    assert complaint == "no such package"
    assert [line.split()[0] for line in asked] == ["install", "update", "install"]


def test_an_install_that_works_asks_for_no_package_list(tmp_path: Path) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\necho "$@" >> "$0.log"\n', "utf-8")
    apt.chmod(0o755)

    complaint = install([str(apt)], ["thing-1"])

    (asked,) = apt.with_name("apt-get.log").read_text("utf-8").splitlines()
    assert complaint == ""
    assert asked == "install -y -q --no-install-recommends thing-1"


def test_what_could_not_be_installed_is_named_without_failing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup_system, "PROGRAMS", (ABSENT,))
    monkeypatch.setattr(setup_system, "apt_get", lambda: None)

    code = main(["browser"])

    assert code == 0
    assert capsys.readouterr().err == (
        "a thing is missing and was not installed: apt-get is missing or not allowed here; "
        "tests marked 'browser' need thing-1\n"
    )
