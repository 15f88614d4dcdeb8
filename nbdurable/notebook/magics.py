"""``%%chat``: a cell whose text is a prompt.

Owns the line's options and the sessions that cells opened. A session stays open under its id, so
that the next cell goes on where this one ended.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any, NoReturn

from nbdurable.errors import NbDurableError, shown, told
from nbdurable.opening import open as open_session
from nbdurable.run import Run
from nbdurable.session import Session

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_KEPT = "_nbdurable_chats"
EPILOG = "Options of the model are for this cell; store and replay are for the first of a session."


class Usage(ValueError):
    """A line that cannot be understood; its text says what to write."""


class Line(ArgumentParser):
    """The options of a ``%%chat`` line; it raises where a program would end."""

    def __init__(self) -> None:
        super().__init__(prog="%%chat", add_help=False, allow_abbrev=False, epilog=EPILOG)
        self.add_argument("session", metavar="SESSION", nargs="?")
        self.add_argument("--model")
        self.add_argument("--store")
        self.add_argument("--system")
        self.add_argument("--temperature", type=float)
        self.add_argument("--max-tokens", type=int)
        self.add_argument("--replay", action="store_true")

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the line, and how it goes."""
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        raise Usage(f"{message}; write {usage}")

    def read(self, line: str) -> Any:
        """Return the options of a line.

        Raises
        ------
        Usage
            It cannot be understood.
        """
        try:
            words = shlex.split(line)
        except ValueError as exc:
            raise Usage(f"line {shown(line)} cannot be read: {exc}; close its quotes") from exc
        given = self.parse_args(words)
        if not given.session:
            self.error("no session is named")
        return given


class Chats:
    """The sessions that cells talk to, by id and store; made by `load_ipython_extension`."""

    def __init__(self) -> None:
        self._line = Line()
        self._open: dict[tuple[str, str | None], Session] = {}

    def chat(self, line: str, cell: str | None, names: dict[str, Any]) -> Run:
        """Run a cell's text as a prompt; an empty cell goes on with what is unfinished.

        `names` are the variables of the notebook: a session among them may be given by its name.

        Raises
        ------
        Usage
            The line cannot be understood.
        NbDurableError
            What the session, or its run, says.
        """
        given = self._line.read(line)
        session = self._session(given, names)
        wanted = {
            "model": None if given.model == session.model else given.model,
            "system": given.system,
            "temperature": given.temperature,
            "max_tokens": given.max_tokens,
        }
        options = {name: value for name, value in wanted.items() if value is not None}
        text = (cell or "").strip("\n")
        return session.run(*([text] if text.strip() else []), **options)

    def _session(self, given: Any, names: dict[str, Any]) -> Session:
        named = names.get(given.session)
        if isinstance(named, Session) and not named._is_closed:
            if given.store is not None or given.replay:
                raise Usage(
                    f"{given.session} is a session that is open here, so --store and --replay "
                    "mean nothing; leave them out"
                )
            return named
        key = (given.session, given.store)
        session = self._open.get(key)
        if session is None or session._is_closed:
            session = open_session(
                given.session, store=given.store, model=given.model, replay=given.replay
            )
            self._open[key] = session
        elif given.replay and session.replay is None:
            raise Usage(
                f"session {shown(given.session)} was opened without replay; restart the kernel, "
                "or give --replay where it is first used"
            )
        return session

    def close(self) -> None:
        """Close the sessions that cells have opened."""
        while self._open:
            self._open.popitem()[1].close()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Give a notebook the ``%%chat`` magic; called by ``%load_ext nbdurable``."""
    from IPython.core.error import UsageError

    chats = Chats()

    def chat(line: str, cell: str | None = None) -> Run:
        """Run the cell's text as a prompt: %%chat SESSION [--model M] [--store S] ..."""
        try:
            return chats.chat(line, cell, shell.user_ns)
        except (NbDurableError, Usage) as exc:
            raise UsageError(told(exc)) from exc

    shell.register_magic_function(chat, magic_kind="cell", magic_name="chat")
    shell.user_ns_hidden[_KEPT] = chats


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take ``%%chat`` away, and close the sessions that it opened."""
    chats = shell.user_ns_hidden.pop(_KEPT, None)
    if chats is not None:
        chats.close()
    shell.magics_manager.magics["cell"].pop("chat", None)
