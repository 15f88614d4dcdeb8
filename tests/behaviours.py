"""Which test pins which behaviour: read the markers, list them, fail on a gap.

A marker is a comment such as ``# B17``, ``# B17 B22``, ``# B36-B38`` or ``# case 23`` directly
above a test (decorators may stand between), inside it, or in its docstring. Above a class, or in
its body apart from its tests, it holds for all tests of the class.

Run as a script: exit code 1 when a behaviour that is required has no test, when a marker names an
unknown number, or when a test file holds a function that looks like a test and is never collected.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from behaviour_titles import LAST_CASE, OPEN_PARTS, REQUIRED, TITLES
from uncollected import uncollected

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"\bB(\d+)(?:\s*[-–]\s*B(\d+))?\b")
CASES = re.compile(r"\bcases?((?:[ ,]+\d+)+)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Marked:
    """One test and the numbers its markers name."""

    where: str
    numbers: frozenset[int]
    cases: frozenset[int]


@dataclass(slots=True)
class Report:
    """What the scan of all files found."""

    tests: list[Marked] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)

    def pins(self) -> dict[int, list[str]]:
        """Return the tests of each behaviour number."""
        found: dict[int, list[str]] = defaultdict(list)
        for test in self.tests:
            for number in test.numbers:
                found[number].append(test.where)
        return found

    def problems(self) -> list[str]:
        """Return one line for each reason to fail."""
        pins = self.pins()
        gaps = [f"B{n} has no test: {TITLES[n]}" for n in sorted(REQUIRED) if not pins.get(n)]
        unknown = [
            f"{test.where} names B{n}, which is unknown"
            for test in self.tests
            for n in sorted(test.numbers - TITLES.keys())
        ]
        cases = [
            f"{test.where} names case {n}, which is unknown"
            for test in self.tests
            for n in sorted(test.cases)
            if not 1 <= n <= LAST_CASE
        ]
        return gaps + unknown + cases + self.stray


def numbers_in(text: str) -> set[int]:
    """Return the behaviour numbers that a text names, ranges spelled out."""
    found: set[int] = set()
    for match in NUMBER.finditer(text):
        first = int(match[1])
        found.update(range(first, int(match[2] or first) + 1))
    return found


def cases_in(text: str) -> set[int]:
    """Return the case numbers that a text names."""
    return {int(n) for match in CASES.finditer(text) for n in re.findall(r"\d+", match[1])}


def comments_of(path: Path) -> dict[int, str]:
    """Return the comments of a file by line number."""
    with tokenize.open(path) as source:
        tokens = list(tokenize.generate_tokens(source.readline))
    return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}


def first_line(node: Function | ast.ClassDef) -> int:
    """Return the line of a definition's first decorator, or of the definition."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def start_with_comments(node: Function | ast.ClassDef, own_lines: Container[int]) -> int:
    """Return the first line of the block of comments that ends directly above a definition."""
    line = first_line(node)
    while line - 1 in own_lines:
        line -= 1
    return line


def is_test(node: ast.AST) -> bool:
    """Return whether pytest would take the definition for a test by its name."""
    return isinstance(node, Function) and node.name.startswith("test")


class FileScan:
    """The markers of one file."""

    def __init__(self, path: Path, shown_as: str) -> None:
        text = path.read_text("utf-8")
        lines = text.splitlines()
        self.tree = ast.parse(text)
        self.shown_as = shown_as
        self._comments = comments_of(path)
        indents = {n: len(lines[n - 1]) - len(lines[n - 1].lstrip()) for n in self._comments}
        self._own_lines = {n: at for n, at in indents.items() if lines[n - 1][at] == "#"}

    def tests(self) -> Iterator[Marked]:
        """Yield each test of the file."""
        yield from self._tests_of(self.tree.body, "", "")

    def _tests_of(self, body: Sequence[ast.stmt], prefix: str, outer: str) -> Iterator[Marked]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                text = f"{outer}\n{self._class_text(node)}"
                yield from self._tests_of(node.body, f"{prefix}{node.name}::", text)
            elif isinstance(node, Function) and is_test(node):
                text = f"{outer}\n{self._text(node)}"
                where = f"{self.shown_as}::{prefix}{node.name}"
                yield Marked(where, frozenset(numbers_in(text)), frozenset(cases_in(text)))

    def _text(self, node: Function) -> str:
        comments = [self._comments[n] for n in self._span(node) if n in self._comments]
        return "\n".join([*comments, ast.get_docstring(node) or ""])

    def _span(self, node: Function | ast.ClassDef) -> range:
        """Return the lines of a definition with the comments above it and at its very end."""
        end = node.end_lineno or 0
        while self._own_lines.get(end + 1, -1) > node.col_offset:
            end += 1
        return range(start_with_comments(node, self._own_lines), end + 1)

    def _class_text(self, node: ast.ClassDef) -> str:
        span = set(self._span(node))
        for child in node.body:
            if isinstance(child, Function | ast.ClassDef):
                span -= set(self._span(child))
        comments = [self._comments[n] for n in sorted(span) if n in self._comments]
        return "\n".join([*comments, ast.get_docstring(node) or ""])


def test_files(root: Path) -> list[Path]:
    """Return the files that hold tests: those of pytest, and the contract of stores."""
    stores = root / "nbdurable" / "stores"
    contract = [*stores.glob("conformance.py"), *stores.glob("conformance/*.py")]
    return sorted((root / "tests").rglob("test_*.py")) + sorted(contract)


def scan(root: Path) -> Report:
    """Read all test files under a project's root."""
    report = Report()
    for path in test_files(root):
        shown_as = path.relative_to(root).as_posix()
        file = FileScan(path, shown_as)
        report.tests.extend(file.tests())
        if path.name.startswith("test_"):
            report.stray.extend(f"{shown_as}:{found}" for found in uncollected(file.tree))
    return report


def listing(report: Report, *, brief: bool) -> Iterator[str]:
    """Yield the lines of the list: each number, its title, its tests and what is open."""
    pins = report.pins()
    for number, title in TITLES.items():
        tests = sorted(pins.get(number, []))
        later = "" if number in REQUIRED or tests else " (later)"
        yield f"B{number:<3}{len(tests):>4}  {title}{later}"
        if number in OPEN_PARTS:
            yield f"           open: {OPEN_PARTS[number]}"
        if not brief:
            yield from (f"           {test}" for test in tests)


def summary(report: Report) -> str:
    """Return the closing line."""
    pins = report.pins()
    pinned = sum(1 for n in REQUIRED if pins.get(n))
    later = [f"B{n}" for n in TITLES if n not in REQUIRED and not pins.get(n)]
    cases = {n for test in report.tests for n in test.cases}
    return (
        f"{pinned} of {len(REQUIRED)} required behaviours pinned, {len(OPEN_PARTS)} with open "
        f"parts, {len(cases)} cases cited; later: {' '.join(later) or 'none'}"
    )


def main(arguments: Sequence[str]) -> int:
    """Print the list; return 1 when something is missing, unknown or never run."""
    report = scan(ROOT)
    for line in listing(report, brief="--brief" in arguments):
        print(line)
    print(summary(report))
    for problem in report.problems():
        print(f"behaviours: {problem}", file=sys.stderr)
    return 1 if report.problems() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
