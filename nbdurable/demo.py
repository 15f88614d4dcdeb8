"""The demo: a conversation loses its process in mid-answer and nothing else.

Owns the story only. Three processes play it: one that is killed, one that goes on, and this one,
which starts both and never touches the conversation. All of it is the public API.
"""

from __future__ import annotations

import codecs
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nbdurable.errors import NbDurableError
from nbdurable.reprs import count, one_line, visible

if TYPE_CHECKING:
    from rich.console import Console

    from nbdurable.entries import Entry
    from nbdurable.session import Session

SESSION = "demo"
SYSTEM = "You are a friendly and concise assistant."
GREETING = "I am planning a small vegetable garden. Name three vegetables that are easy to grow."
QUESTION = "Describe how to grow the first one, step by step."
OTHER_WAY = "Write a short, cheerful note that invites a neighbour to help me plant them."
KILL_AFTER_S = 1.8  # from the first text on; an answer in flight is saved every half second
KILL_AFTER_CHARS = 80
GIVE_UP_S = 120.0


def run_demo(store: str | None = None, *, keep: bool = False) -> int:
    """Play the demo in the terminal and return its exit code.

    Parameters
    ----------
    store : str or None
        Where the conversation is kept; a temporary file when None.
    keep : bool
        Leave the temporary file in place.
    """
    from nbdurable.models import resolve_model

    resolve_model("local").check()  # says what is missing before anything begins
    if store is not None:
        return _play(Path(store))
    folder = Path(tempfile.mkdtemp(prefix="nbdurable-demo-"))
    path = folder / "chats.duckdb"
    try:
        return _play(path)
    finally:
        if keep:
            _say(
                f"\nThe conversation is kept in {path}\nLook at it: nbdurable show {path} {SESSION}"
            )
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _play(path: Path) -> int:
    _say("1. A process asks the local model two questions. The second answer will not be finished.")
    child = _start("converse", path, stdout=subprocess.PIPE)
    try:
        seen = _watch(child)
    finally:
        child.kill()  # SIGKILL: no handler, no goodbye
        child.wait()
    if seen is None:
        _say(f"the first process ended by itself (exit code {child.returncode}); see above")
        return 1
    _say(f"\n\n   kill -9 {child.pid}: the process is gone, after {count(seen, 'character')}.\n")
    _say("2. A new process opens the same file.")
    return _start("go-on", path).wait()


def _start(part: str, path: Path, stdout: int | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nbdurable.demo", part, str(path)]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8:replace"} if stdout else None
    return subprocess.Popen(command, stdout=stdout, env=environment)


def _watch(child: subprocess.Popen[bytes]) -> int | None:
    """Show what the child writes till some time after its answer began; return its length.

    None means that the child ended first, or never began.
    """
    out: IO[bytes] | None = child.stdout
    if out is None:
        return None
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    is_answering = False
    length, began = 0, 0.0
    give_up = time.monotonic() + GIVE_UP_S
    while (chunk := os.read(out.fileno(), 4096)) and time.monotonic() < give_up:
        text, mark, answer = decode(chunk).partition(MARK)
        _say(visible(text + answer), end="")
        added = len(answer) if mark else len(text) * is_answering
        is_answering = is_answering or bool(mark)
        if added and not length:
            began = time.monotonic()
        length += added
        if length >= KILL_AFTER_CHARS and time.monotonic() - began > KILL_AFTER_S:
            return length
    return None


# -- the processes -----------------------------------------------------------------------------

MARK = "\0"  # stands in the pipe where the answer to be cut begins


def _open(path: str, max_tokens: int) -> Session:
    import nbdurable as nb

    return nb.open(
        SESSION,
        store=path,
        model="local",
        system=SYSTEM,
        temperature=0,
        max_tokens=max_tokens,
    )


def _converse(path: str) -> int:
    """Hold the conversation; the parent ends this process in the middle of the second answer."""
    chat = _open(path, max_tokens=700)
    first = chat.run(GREETING, show=None, max_tokens=60)
    _say(f"\n   you    {GREETING}\n   model  {_indented(first.text)}\n\n   you    {QUESTION}")
    _say(f"   model  {MARK}", end="")
    for event in chat.run(QUESTION, wait=False):
        _say(event.text, end="")
    return 0


def _go_on(path: str) -> int:
    """Open the conversation that lost its process, finish it, and ask the other way."""
    from rich.console import Console

    console = Console(highlight=False)
    with warnings.catch_warnings(record=True) as told:
        chat = _open(path, max_tokens=110)
    for warning in told:
        _say(f"   It says: {one_line(str(warning.message), 200)}\n")
    with chat:
        entries = chat.entries()
        _show_tree(console, chat)
        _say("   The question needs no retyping. The answer is there up to its last half second:\n")
        _say(f"   you    {QUESTION}\n   model  {_half(entries[-1])}\n")

        _say("3. run() without a question asks again. The cut answer stays beside the new one.\n")
        whole = chat.run(show=None)
        _say(f"   model  {_indented(whole.text)}\n")

        _say("4. Back to the answer before, to ask the other way. Nothing is overwritten.\n")
        chat.branch(_checkpoint(entries))
        other = chat.run(OTHER_WAY, show=None)
        _side_by_side(console, (QUESTION, whole.text), (OTHER_WAY, other.text))
        _say("\n   The whole tree, with every attempt in it:\n")
        _show_tree(console, chat)
    return 0


def _checkpoint(entries: Sequence[Entry]) -> str:
    """Return the first answer's id: the second entry, in the order they were stored."""
    return entries[1].id


def _half(entry: Entry) -> str:
    from nbdurable.entries import MessageEntry

    if isinstance(entry, MessageEntry) and entry.role == "assistant":
        return f"{_indented(entry.text)} ✂"
    return "(killed before the first half second was over)"


def _show_tree(console: Console, chat: Session) -> None:
    from rich.padding import Padding

    from nbdurable.terminal import render_tree

    view = render_tree(chat.entries(), chat.leaf_id, title=chat.id)
    console.print(Padding(view, (0, 0, 1, 3)))


def _side_by_side(console: Console, *answers: tuple[str, str]) -> None:
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.text import Text

    width = max((console.width - 2) // len(answers), 30)
    panels = [
        Panel(Text(visible(answer)), title=Text(one_line(question, width - 8)), width=width)
        for question, answer in answers
    ]
    console.print(Columns(panels))


def _indented(text: str) -> str:
    return visible(text).strip().replace("\n", "\n          ")


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Play one process's part: ``converse PATH`` or ``go-on PATH``."""
    part, path = argv if argv is not None else sys.argv[1:]
    try:
        return _converse(path) if part == "converse" else _go_on(path)
    except KeyboardInterrupt:
        return 130
    except NbDurableError as exc:
        print(f"nbdurable: {one_line(str(exc), 1_000)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
