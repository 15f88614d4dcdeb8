"""The same conversation in this package and in its peers: build, open, branch, load as a frame.

Each peer is used as its documentation says, in its quickest way that keeps every message. What one
of them cannot do has no method here. A peer that is not installed is left out, and named.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

Turn = tuple[str, str]  # a question and its answer


def conversation(messages: int) -> list[Turn]:
    """Return a conversation of that many messages, each of some 200 characters."""
    words = "the order left the depot on Monday and should arrive by the end of the week "
    return [
        (f"Question {at}: {words * 2}", f"Answer {at}: {words * 3}") for at in range(messages // 2)
    ]


class Peer:
    """One way to keep a conversation on disk."""

    name = ""
    package = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, turns: list[Turn]) -> None:
        """Store the conversation."""
        raise NotImplementedError

    def open(self) -> Any:
        """Open the store afresh and have every message of the conversation in memory."""
        raise NotImplementedError

    branch: Callable[[Any, int], object] | None = None
    frame: Callable[[], Any] | None = None

    def back(self, opened: Any) -> None:
        """Go back to where the conversation was before it was branched, if that matters."""

    def close(self, opened: Any) -> None:
        """Let go of what `open` returned."""


class Ours(Peer):
    """This package."""

    name, package = "nbdurable", "nbdurable"

    def build(self, turns: list[Turn]) -> None:
        import nbdurable as nb

        with nb.open("talk", store=self.folder / "talk.duckdb", model="local") as chat:
            for at in range(0, len(turns), 500):
                chunk = turns[at : at + 500]
                chat.append(*(e for q, a in chunk for e in (nb.user(q), nb.assistant(a))))

    def open(self) -> Any:
        import nbdurable as nb

        return nb.open("talk", store=self.folder / "talk.duckdb", model="local")

    def branch(self, opened: Any, turn: int) -> object:
        import nbdurable as nb

        opened.branch(2 * turn)
        return opened.append(nb.user("And if it is late?"))

    def frame(self) -> Any:
        import nbdurable as nb

        with nb.connect(self.folder / "talk.duckdb") as library:
            return library.df()

    def close(self, opened: Any) -> None:
        opened.close()


class LangGraph(Peer):
    """LangGraph's SQLite checkpoints; one checkpoint of the whole state, the kindest case."""

    name, package = "LangGraph SqliteSaver", "langgraph.checkpoint.sqlite"
    config: ClassVar[dict[str, Any]] = {"configurable": {"thread_id": "talk", "checkpoint_ns": ""}}

    def _saver(self) -> Any:
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver(sqlite3.connect(self.folder / "talk.sqlite", check_same_thread=False))

    def _put(self, saver: Any, messages: list[Any], config: dict[str, Any]) -> Any:
        from langgraph.checkpoint.base import empty_checkpoint

        state = empty_checkpoint()
        state["channel_values"] = {"messages": messages}
        state["channel_versions"] = {"messages": "1"}
        return saver.put(config, state, {"source": "update", "step": 0}, {"messages": "1"})

    def build(self, turns: list[Turn]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        saver = self._saver()
        said = [m for q, a in turns for m in (HumanMessage(q), AIMessage(a))]
        self._put(saver, said, self.config)
        saver.conn.close()

    def open(self) -> Any:
        saver = self._saver()
        return saver, saver.get_tuple(self.config)

    def branch(self, opened: Any, turn: int) -> object:
        from langchain_core.messages import HumanMessage

        saver, state = opened
        said = state.checkpoint["channel_values"]["messages"][: 2 * turn]
        return self._put(saver, [*said, HumanMessage("And if it is late?")], state.config)

    def frame(self) -> Any:
        import pandas as pd

        saver, state = self.open()
        messages = state.checkpoint["channel_values"]["messages"]
        saver.conn.close()
        return pd.DataFrame([message.model_dump() for message in messages])

    def close(self, opened: Any) -> None:
        opened[0].conn.close()


class AgentsSession(Peer):
    """The OpenAI Agents SDK's session with branches."""

    name, package = "OpenAI Agents AdvancedSQLiteSession", "agents"
    names = itertools.count()  # its own are of the second they are made in

    def _session(self) -> Any:
        from agents.extensions.memory import AdvancedSQLiteSession

        return AdvancedSQLiteSession(
            session_id="talk", db_path=self.folder / "talk.sqlite", create_tables=True
        )

    def build(self, turns: list[Turn]) -> None:
        session = self._session()
        said = [
            {"role": role, "content": text}
            for turn in turns
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        asyncio.run(session.add_items(said))
        session.close()

    def open(self) -> Any:
        session = self._session()
        return session, asyncio.run(session.get_items())

    def branch(self, opened: Any, turn: int) -> object:
        async def go() -> str:
            name = await opened[0].create_branch_from_turn(turn, f"branch {next(self.names)}")
            await opened[0].add_items([{"role": "user", "content": "And if it is late?"}])
            return str(name)

        return asyncio.run(go())

    def back(self, opened: Any) -> None:
        asyncio.run(opened[0].switch_to_branch("main"))

    def frame(self) -> Any:
        import pandas as pd

        session, said = self.open()
        session.close()
        return pd.DataFrame(said)

    def close(self, opened: Any) -> None:
        opened[0].close()


class LlmLogs(Peer):
    """The log store of the ``llm`` tool."""

    name, package = "llm LogStore", "llm.logs"

    def _store(self) -> Any:
        import sqlite_utils
        from llm.logs import LogStore

        return LogStore(sqlite_utils.Database(self.folder / "talk.sqlite"))

    def _message(self, role: str, text: str) -> Any:
        from llm.parts import Message, TextPart

        return Message(role=role, parts=[TextPart(text=text)])

    def build(self, turns: list[Turn]) -> None:
        store = self._store()
        store.ensure_thread("talk")
        said = [self._message(*m) for q, a in turns for m in (("user", q), ("assistant", a))]
        with store.db.conn:
            store.append("talk", said)
        self.tips = [None, *hashes_of(said)[1::2]]
        store.db.close()

    def open(self) -> Any:
        store = self._store()
        return store, store.thread_messages("talk")

    def branch(self, opened: Any, turn: int) -> object:
        store, _ = opened
        thread = store.fork(self.tips[turn], forked_from="talk")
        return store.append(thread, [self._message("user", "And if it is late?")])

    def frame(self) -> Any:
        import pandas as pd

        store, said = self.open()
        store.db.close()
        return pd.DataFrame([message.to_dict() for message in said])

    def close(self, opened: Any) -> None:
        opened[0].db.close()


def hashes_of(said: list[Any]) -> list[str]:
    """Return the ids by which ``llm`` knows the messages of a chain."""
    from llm.logs import message_hash

    hashes: list[str] = []
    for message in said:
        hashes.append(message_hash(message, hashes[-1] if hashes else None))
    return hashes


class InspectLog(Peer):
    """An Inspect AI evaluation log, read with its own frames; it has no branches."""

    name, package = "Inspect AI messages_df", "inspect_ai.log"

    @property
    def _path(self) -> str:
        return str(self.folder / "talk.eval")

    def build(self, turns: list[Turn]) -> None:
        from inspect_ai.event import ModelEvent
        from inspect_ai.log import (
            EvalConfig,
            EvalDataset,
            EvalLog,
            EvalSample,
            EvalSpec,
            write_eval_log,
        )
        from inspect_ai.model import (
            ChatCompletionChoice,
            ChatMessageAssistant,
            ChatMessageUser,
            GenerateConfig,
            ModelOutput,
        )

        said = [
            message
            for at, (question, answer) in enumerate(turns)
            for message in (
                ChatMessageUser(content=question, id=f"q{at}"),
                ChatMessageAssistant(content=answer, model="scripted", id=f"a{at}"),
            )
        ]
        spec = EvalSpec(
            created="2026-01-01T00:00:00+00:00",
            task="talk",
            model="scripted",
            dataset=EvalDataset(name="talk"),
            config=EvalConfig(),
        )
        call = ModelEvent(
            model="scripted",
            input=said[:-1],
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(),
            output=ModelOutput(model="scripted", choices=[ChatCompletionChoice(message=said[-1])]),
        )
        sample = EvalSample(
            id="talk", epoch=1, input="talk", target="", messages=said, events=[call]
        )
        write_eval_log(EvalLog(eval=spec, status="success", samples=[sample]), self._path)

    def open(self) -> Any:
        from inspect_ai.log import read_eval_log

        return read_eval_log(self._path)

    def frame(self) -> Any:
        from inspect_ai.analysis import messages_df

        return messages_df(self._path, quiet=True)


PEERS: tuple[type[Peer], ...] = (Ours, LangGraph, AgentsSession, LlmLogs, InspectLog)


def installed() -> Iterator[type[Peer]]:
    """Yield the peers that are there; name the others on the way."""
    for peer in PEERS:
        try:
            found = find_spec(peer.package) is not None
        except ModuleNotFoundError:
            found = False
        if found:
            yield peer
        else:
            print(f"{peer.name} is not installed; `make bench` installs it")
