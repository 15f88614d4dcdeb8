"""Pages of Markdown as programs: their code blocks, run as a reader would run them.

The blocks of one page share a namespace and a folder. What a block prints, warns of, raises, or
leaves as its last value is compared with the block of ``text`` that follows it, if one does: ``…``
there stands for anything, and runs of blanks are one. A comment ``<!-- answers`` before a block
says what the provider on loopback answers next, one line each: text, ``call NAME ARGUMENTS``, or
``cut TEXT`` for an answer whose connection breaks; without, it answers ``Answer 1.`` and so on.
"""

from __future__ import annotations

import ast
import asyncio
import io
import json
import re
import shlex
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from inspect import isawaitable
from itertools import zip_longest
from pathlib import Path
from types import CodeType
from typing import Any

import nbdurable as nb
from nbdurable.library import Library
from nbdurable.testing import FakeOpenAI, steps

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "notebooks" / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_FENCE = re.compile(r"^(\s*)(`{3,})(.*)$")
_ANSWERS = re.compile(r"<!-- answers\n(.*?)-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, where it is, and what comes before and after."""

    language: str
    text: str
    line: int
    answers: tuple[str, ...] = ()
    expected: str | None = None


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    lines, at, told = page.splitlines(), 0, 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        indent, fence, language = opened[1], opened[2], opened[3].strip()
        end = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == fence)
        text = "\n".join(line.removeprefix(indent) for line in lines[at + 1 : end])
        before = "\n".join(lines[told:at])
        script = [line for hit in _ANSWERS.finditer(before + "\n") for line in hit[1].splitlines()]
        found.append(Block(language, text, at + 1, tuple(script)))
        at = told = end + 1
    return list(_with_outputs(found))


def indented_in(page: str) -> list[int]:
    """Return the lines where blocks begin that are indented and not fenced, so that none is run."""
    found, fence, before = [], "", ""
    for number, line in enumerate(page.splitlines(), 1):
        if fence or (opened := _FENCE.match(line)):
            fence = ("" if line.strip() == fence else fence) if fence else opened[2]
        elif not before.strip() and line.startswith("    ") and line.strip():
            found.append(number)
        before = line
    return found


def _with_outputs(found: list[Block]) -> Iterator[Block]:
    for block, after in zip_longest(found, found[1:]):
        is_shown = after is not None and after.language == "text" and block.language != "text"
        expected = after.text if after is not None and is_shown else None
        yield Block(block.language, block.text, block.line, block.answers, expected)


class Provider(FakeOpenAI):
    """Answers as a page says, whichever model is asked."""

    def __init__(self) -> None:
        super().__init__(self._step)
        self._script: Any = (self._step,)
        self._next: list[str] = []
        self._count = 0
        self._lock = threading.Lock()

    def say(self, answers: Iterable[str]) -> None:
        """Answer so next."""
        with self._lock:
            self._next = list(answers)

    def _step(self, body: dict[str, Any]) -> list[steps.Action]:
        with self._lock:
            self._count += not self._next
            said = self._next.pop(0) if self._next else f"Answer {self._count}."
        word, _, rest = said.partition(" ")
        if word == "call":
            name, _, arguments = rest.partition(" ")
            return steps.tools((name, json.loads(arguments)))
        if word == "cut":
            return [*steps.text(rest)[:-3], steps.drop()]
        return steps.text(said)


class Reader:
    """One who runs the blocks of a page from the top, in the folder that is the working one."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def read(self, page: str, name: str) -> None:
        """Run all that can be run, and compare what it shows.

        Raises
        ------
        AssertionError
            Blocks show something else than the page says; the text names their lines.
        """
        odd = []
        for block in blocks_of(page):
            self._provider.say(block.answers)
            if block.language in ("python", "sh"):
                shown, trouble = self._shown(block, name)
                if block.expected is None and trouble:
                    odd.append(f"{name}:{block.line}: {trouble}")
                elif block.expected is not None and not fits(shown, block.expected):
                    odd.append(f"{name}:{block.line} shows\n{shown}\nand not\n{block.expected}")
        assert not odd, "\n".join(odd)

    def close(self) -> None:
        """Close what the page left open."""
        for value in self.names.values():
            if isinstance(value, nb.Session | Library):
                value.close()

    def _shown(self, block: Block, name: str) -> tuple[str, str]:
        """Return all that a block shows, and what of it is a warning or an error."""
        out, trouble = io.StringIO(), []
        with warnings.catch_warnings(record=True) as told, redirect_stdout(out):
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)  # as for any library in a notebook
            try:
                self._do(block, name)
            except Exception as exc:  # whatever a page shows of an error, it must be this one
                trouble.append(f"{type(exc).__name__}: {exc}")
        trouble = [*(f"{type(one.message).__name__}: {one.message}" for one in told), *trouble]
        return "\n".join([*trouble, out.getvalue()]), "; ".join(trouble)

    def _do(self, block: Block, name: str) -> None:
        if block.language == "sh":
            run_shell(block.text)
        elif (value := self._value(block, name)) is not None:
            print(repr(value))

    def _value(self, block: Block, name: str) -> object:
        tree = ast.parse("\n" * block.line + block.text, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._done(compile(tree, name, "exec", flags))
        if last is None:
            return None
        return self._done(compile(ast.Expression(last.value), name, "eval", flags))

    def _done(self, code: CodeType) -> object:
        value = eval(code, self.names)
        if isawaitable(value) and code.co_flags & 0x80:  # a coroutine, as of a cell that awaits
            return asyncio.run(value)  # type: ignore[arg-type]
        return value


def fits(shown: str, expected: str) -> bool:
    """Return whether a text is as a page says, where ``…`` is anything and blanks are one."""
    parts = [re.escape(" ".join(part.split())) for part in expected.split("…")]
    pattern = r"\s?.*?\s?".join(parts)
    return re.fullmatch(pattern, " ".join(shown.split()), re.DOTALL) is not None


# -- shell -----------------------------------------------------------------------------------------

# Those that do not end soon, do not leave this machine alone, or tell what is odd about it.
NOT_RUN = frozenset({"demo", "doctor", "local"})


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the commands of a block for a shell, as words; comments are left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def run_shell(text: str) -> None:
    """Run the commands of this package that are safe; they print as in a shell."""
    from nbdurable.cli import main

    for program, *arguments in commands_in(text):
        if program == "nbdurable" and arguments[0] not in NOT_RUN:
            code = main(arguments)
            assert code == 0, f"{shlex.join([program, *arguments])} ends with {code}"
