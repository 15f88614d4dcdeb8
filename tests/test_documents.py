"""The README and the docs hold: their code runs and shows what they say, their links lead there."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import figures
from documents import (
    DOCS,
    PAGES,
    ROOT,
    Provider,
    Reader,
    blocks_of,
    commands_in,
    fits,
    indented_in,
)
from generate_behaviours import PAGE as BEHAVIOURS
from generate_behaviours import page as behaviours_page

import nbdurable as nb
from nbdurable.cli import _parser

LANGUAGES = {"python", "sh", "text"}  # what is run, and what is shown of it
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
TEAM, TEAM_STORE = "postgres", "NBDURABLE_STORE"  # the mark and fixture, and what a page names


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def told(path: Path) -> str:
    return path.read_text("utf-8")


def with_marks(path: Path) -> object:
    """Mark a page by what its blocks need."""
    needed = {"local_model": 'model="local"', TEAM: TEAM_STORE}
    marks = [getattr(pytest.mark, mark) for mark, code in needed.items() if code in code_of(path)]
    return pytest.param(path, id=name_of(path), marks=marks)


def code_of(path: Path) -> str:
    return "\n".join(block.text for block in blocks_of(told(path)) if block.language == "python")


RUN = [path for path in PAGES if {b.language for b in blocks_of(told(path))} & {"python", "sh"}]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """One who has a key of a provider, which is on loopback and answers as the pages say."""
    with Provider() as provider:
        monkeypatch.setenv("OPENAI_API_BASE", provider.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.delenv("COLUMNS", raising=False)  # wide, as in a pipe
        made = Reader(provider)
        yield made
        made.close()


@pytest.mark.parametrize("path", [with_marks(path) for path in RUN])
def test_the_code_of_a_page_runs_and_shows_what_it_says(
    path: Path,
    reader: Reader,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if TEAM_STORE in code_of(path):
        monkeypatch.setenv(TEAM_STORE, request.getfixturevalue(TEAM).emptied())

    reader.read(told(path), name_of(path))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_of_a_page_is_run_or_is_what_one_shows(path: Path) -> None:
    blocks = blocks_of(told(path))
    odd = [f"{b.line}: {b.language}" for b in blocks if b.language not in LANGUAGES]

    assert [one for one in odd if not re.search(r"\{(eval-rst|toctree|include)\}", one)] == []
    assert indented_in(told(path)) == []


class TestTheReader:
    def test_what_a_page_shows_otherwise_is_told_by_its_line(self, reader: Reader) -> None:
        page = "Look:\n\n```python\n1 + 1\n```\n\n```text\n3\n```\n"

        with pytest.raises(AssertionError, match=r"page\.md:3 shows\n2\n"):
            reader.read(page, "page.md")

    @pytest.mark.parametrize(
        ("code", "told"),
        [
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("import warnings\nwarnings.warn('look out')", "UserWarning: look out"),
        ],
    )
    def test_what_a_page_does_not_show_must_not_come(
        self, reader: Reader, code: str, told: str
    ) -> None:
        with pytest.raises(AssertionError, match=f"page.md:1: {told}"):
            reader.read(f"```python\n{code}\n```\n", "page.md")

    def test_an_error_and_a_warning_are_shown_like_a_value(self, reader: Reader) -> None:
        page = "```python\n{}['key']\n```\n\n```text\nKeyError: 'key'\n```\n"

        reader.read(page, "page.md")

    def test_a_command_that_fails_is_named(self, reader: Reader) -> None:
        with pytest.raises(
            AssertionError, match=r"page\.md:1: .*nbdurable ls gone\.duckdb ends with 1"
        ):
            reader.read("```sh\nnbdurable ls gone.duckdb\n```\n", "page.md")

    @pytest.mark.parametrize(
        ("shown", "expected", "is_fit"),
        [
            ("a  b\n", "a b", True),
            ("a 17 b", "a … b", True),
            ("a b", "a … b", True),
            ("a b", "a", False),
            ("ab", "a b", False),
        ],
    )
    def test_only_an_ellipsis_stands_for_anything(
        self, shown: str, expected: str, is_fit: bool
    ) -> None:
        assert fits(shown, expected) is is_fit


# -- commands --------------------------------------------------------------------------------------


def all_commands() -> Iterator[tuple[str, list[str]]]:
    for path in PAGES:
        for block in blocks_of(told(path)):
            if block.language == "sh":
                for words in commands_in(block.text):
                    yield f"{name_of(path)}:{block.line}", words


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(groups[0].choices) if groups else {}


def test_every_command_of_a_page_is_there() -> None:
    known = subcommands(_parser())
    targets = set(re.findall(r"^([\w-]+):", told(ROOT / "Makefile"), re.MULTILINE))
    programs = {
        "nbdurable": lambda words: words[0] in known,
        "make": lambda words: words[0] in targets,
        "pip": lambda words: words[0] == "install",
        "python": lambda words: (ROOT / words[0]).is_file(),
        "export": lambda words: "=" in words[0],
    }

    odd = [
        f"{where}: {' '.join(words)}"
        for where, words in all_commands()
        if not (words[0] in programs and programs[words[0]](words[1:]))
    ]

    assert odd == []


def test_every_command_is_told_of() -> None:
    page = told(DOCS / "commands.md")

    assert [name for name in subcommands(_parser()) if f"`nbdurable {name}" not in page] == []


# -- links -----------------------------------------------------------------------------------------


def anchors_of(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", told(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_link_of_a_page_leads_somewhere(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(told(path)):
        where = (path.parent / target) if target else path
        is_there = where.exists() and (not anchor or anchor in anchors_of(where))
        broken += [] if is_there else [f"{target}#{anchor}"]

    assert broken == []


def test_every_page_is_in_the_contents() -> None:
    listed = {
        line
        for block in blocks_of(told(DOCS / "index.md"))
        if block.language == "{toctree}"
        for line in block.text.splitlines()
    }
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES[1:]}

    assert pages - {"index", "performance-figures"} - listed == set()


def test_the_page_of_the_behaviours_is_that_of_the_tests() -> None:
    assert told(BEHAVIOURS) == behaviours_page(), "run python tests/generate_behaviours.py"


def test_what_a_bench_prints_becomes_tables_under_their_files() -> None:
    printed = "\nbench_a.py\n| what | measured |\n|---|---|\n| append | 1 ms |\nall met\n"

    _, _, told = figures.page(printed).partition("### ")

    assert told == ("bench_a.py\n\n| what | measured |\n|---|---|\n| append | 1 ms |\n\nall met\n")


# -- the reference ---------------------------------------------------------------------------------

# Of a run, what widgets and readers inside the package use.
INSIDE = {f"Run.{n}" for n in "events_since read stop_for_reader tell_watchers watch".split()}


def documented() -> set[str]:
    """Return the dotted names that the reference documents, without the package's own."""
    found: set[str] = set()
    for path in sorted(DOCS.glob("api*.md")):
        at = ""
        for line in told(path).splitlines():
            if hit := re.match(r"\.\. auto\w+:: nbdurable\.([\w.]+)", line):
                at = hit[1]
                found.add(at)
            elif hit := re.match(r"   :members: (.+)", line):
                found |= {f"{at}.{name}" for name in re.split(r",\s*", hit[1])}
    return found


def test_every_public_name_is_in_the_reference() -> None:
    assert {*nb.__all__} - documented() == set()


def test_every_verb_of_a_session_is_in_the_reference() -> None:
    with nb.open("s", store=":memory:", model="openai/any") as chat:
        verbs = {f"Session.{name}" for name in dir(chat) if not name.startswith("_")}

    assert verbs - documented() == set()


@pytest.mark.parametrize(
    "name", ["Run", "explore.experiment.Experiment", "library.Library", "stores.base.Store"]
)
def test_every_method_is_in_the_reference(name: str) -> None:
    module, _, of = f"nbdurable.{name}".rpartition(".")
    found = getattr(importlib.import_module(module), of)
    public = {f"{name}.{one}" for one in dir(found) if not one.startswith("_")}

    assert public - documented() - INSIDE == set()


def test_the_reference_names_nothing_that_is_not_there() -> None:
    gone = [name for name in sorted(documented()) if not is_there(name)]

    assert gone == []


def is_there(name: str) -> bool:
    found: object = nb
    for part in name.split("."):
        if not hasattr(found, part) and inspect.ismodule(found):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"{found.__name__}.{part}")
        is_field = part in getattr(found, "__dataclass_fields__", {})
        if not hasattr(found, part) and not is_field:
            return False
        found = getattr(found, part, None)
    return True
