"""Kill a process in mid-answer here and in the peers; print what is left on disk, as a table.

A server on loopback streams half an answer and then nothing more; the process that asked is killed
(SIGKILL) a while later. What is left is looked for as bytes in every file that the process wrote,
which is kinder than reading it back. Each peer is used as its documentation says. A peer that is
not installed is left out, and named. Exit code 1 when we have lost something.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from nbdurable.testing import FakeOpenAI, steps

PROMPT = "What-the-customer-asked"
HALF = "Half-of-what-was-answered"
PATIENCE_S = 60.0
MEANWHILE_S = 1.5  # between the half answer and the kill

_CLIENT = """
import sys
from openai import OpenAI
folder, base_url, prompt = sys.argv[1:]
client = OpenAI(base_url=base_url, api_key="none")

def answer(messages):
    text = ""
    for chunk in client.chat.completions.create(model="any", messages=messages, stream=True):
        text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    return text
"""

PROGRAMS: dict[str, tuple[str, str]] = {  # what must be there to run it, and the program
    "nbdurable": (
        "nbdurable",
        """
import sys
import nbdurable as nb
folder, base_url, prompt = sys.argv[1:]
chat = nb.open("talk", store=f"{folder}/talk.duckdb", model="openai/any",
               api_base=base_url, api_key="none")
chat.run(prompt)
""",
    ),
    "LangGraph SqliteSaver": (
        "langgraph.graph",
        _CLIENT
        + """
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

def model(state):
    said = [{"role": "user", "content": one.content} for one in state["messages"]]
    return {"messages": [AIMessage(answer(said))]}

graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_edge(START, "model")
with SqliteSaver.from_conn_string(f"{folder}/talk.sqlite") as saver:
    talk = {"configurable": {"thread_id": "talk"}}
    graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage(prompt)]}, talk)
""",
    ),
    "OpenAI Agents AdvancedSQLiteSession": (
        "agents",
        """
import asyncio, sys
from openai import AsyncOpenAI
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.extensions.memory import AdvancedSQLiteSession
folder, base_url, prompt = sys.argv[1:]
set_tracing_disabled(True)

async def main():
    client = AsyncOpenAI(base_url=base_url, api_key="none")
    agent = Agent(name="talk", model=OpenAIChatCompletionsModel("any", client))
    session = AdvancedSQLiteSession(session_id="talk", db_path=f"{folder}/talk.sqlite",
                                    create_tables=True)
    async for _ in Runner.run_streamed(agent, prompt, session=session).stream_events():
        pass

asyncio.run(main())
""",
    ),
    "llm": (
        "llm",
        """
import sys
import llm, sqlite_utils
from llm.default_plugins.openai_models import Chat
from llm.migrations import migrate
folder, base_url, prompt = sys.argv[1:]
db = sqlite_utils.Database(f"{folder}/logs.db")
migrate(db)
model = Chat("any", api_base=base_url, key="none")
response = model.conversation().prompt(prompt, key="none")
for _ in response:
    pass
response.log_to_db(db)
""",
    ),
    "a list of messages in a script": (
        "openai",
        _CLIENT + 'messages = [{"role": "user", "content": prompt}]\nanswer(messages)\n',
    ),
}


def left_of(program: str) -> tuple[bool, bool]:
    """Return whether prompt and half answer are on disk after a process was killed."""
    step = [steps.delta(role="assistant", content=""), steps.delta(content=HALF), steps.hang()]
    with (
        tempfile.TemporaryDirectory() as folder,
        FakeOpenAI(step) as server,
        subprocess.Popen(
            [sys.executable, "-c", program, folder, server.base_url, PROMPT],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        try:
            server.wait_for_requests(1, PATIENCE_S)
            time.sleep(MEANWHILE_S)
        finally:
            early = process.poll()
            process.kill()
        if early is not None:
            raise RuntimeError((process.communicate()[1] or b"").decode()[-2_000:])
        found = b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())
    return PROMPT.encode() in found, HALF.encode() in found


def main() -> int:
    """Measure all that are installed."""
    print("| killed in mid-answer | the prompt | the half answer |\n| --- | --- | --- |")
    kept: dict[str, tuple[bool, bool]] = {}
    for name, (package, program) in PROGRAMS.items():
        if not _is_installed(package):
            print(f"{name} is not installed; `make bench` installs it")
            continue
        kept[name] = left_of(program)
        cells = ["kept" if one else "lost" for one in kept[name]]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0 if all(kept["nbdurable"]) else 1


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main())
