"""One durable message at a time in the peers, each used as its documentation says."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Append = Callable[..., object]  # with a text, or without for one of the usual length


class Appender:
    """A conversation of a peer that grows message by message."""

    name = ""
    package = ""

    def __init__(self, folder: Path, size: int) -> None:
        self.path = folder / f"{type(self).__name__}.sqlite"
        self.usual = "x" * size

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the peer is there."""
        try:
            return find_spec(cls.package) is not None
        except ModuleNotFoundError:
            return False

    def __enter__(self) -> Append:
        self._opened = self._open()
        append = self._opened.__enter__()
        return lambda text=self.usual: append(text)

    def __exit__(self, *exc: Any) -> None:
        self._opened.__exit__(*exc)

    def _open(self) -> Any:
        raise NotImplementedError


class Agents(Appender):
    """The OpenAI Agents SDK's session."""

    name, package = "OpenAI Agents SQLiteSession", "agents"

    def _session(self) -> Any:
        from agents import SQLiteSession

        return SQLiteSession("s", self.path)

    @contextmanager
    def _open(self) -> Iterator[Append]:
        session = self._session()
        with asyncio.Runner() as runner:
            yield lambda text: runner.run(session.add_items([{"role": "user", "content": text}]))
        session.close()


class AgentsBranches(Agents):
    """The same SDK's session with branches."""

    name = "OpenAI Agents AdvancedSQLiteSession"

    def _session(self) -> Any:
        from agents.extensions.memory import AdvancedSQLiteSession

        return AdvancedSQLiteSession(session_id="s", db_path=self.path, create_tables=True)


class LangGraphSteps(Appender):
    """LangGraph's checkpoints: the whole list of messages at each step."""

    name, package = "LangGraph SqliteSaver, the list growing", "langgraph.checkpoint.sqlite"

    @contextmanager
    def _open(self) -> Iterator[Append]:
        from langchain_core.messages import HumanMessage
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.sqlite import SqliteSaver

        saver = SqliteSaver(sqlite3.connect(self.path, check_same_thread=False))
        said: list[Any] = []
        config: Any = {"configurable": {"thread_id": "s", "checkpoint_ns": ""}}

        def put(text: str) -> None:
            nonlocal config
            said.append(HumanMessage(text))
            state = empty_checkpoint()
            versions = {"messages": str(len(said))}
            state["channel_values"] = {"messages": list(said)}
            state["channel_versions"] = versions
            metadata = {"source": "loop", "step": len(said)}
            config = saver.put(config, state, metadata, versions)

        yield put
        saver.conn.close()


class LlmLog(Appender):
    """The log store of the ``llm`` tool."""

    name, package = "llm LogStore", "llm.logs"

    @contextmanager
    def _open(self) -> Iterator[Append]:
        import sqlite_utils
        from llm.logs import LogStore
        from llm.parts import Message, TextPart

        store = LogStore(sqlite_utils.Database(self.path))
        store.ensure_thread("s")
        count = 0

        def put(text: str) -> None:
            nonlocal count
            count += 1  # equal messages of a chain differ by their place
            with store.db.conn:
                store.append("s", [Message(role="user", parts=[TextPart(text=f"{count} {text}")])])

        yield put
        store.db.close()


PEERS: tuple[type[Appender], ...] = (Agents, AgentsBranches, LangGraphSteps, LlmLog)
