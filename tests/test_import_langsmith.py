"""LangSmith's runs: threads found in them, branches, tools, costs, feedback, in any order."""

from __future__ import annotations

import json
import random
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importing import Talk, talks, told

import nbdurable as nb
from nbdurable.formats import langsmith
from nbdurable.formats.drafts import Conversation
from nbdurable.formats.source import Assets
from nbdurable.formats.values import Found
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

CALL = {"name": "tide", "args": {"port": "Portville"}, "id": "c1", "type": "tool_call"}


def human(text: str) -> dict[str, Any]:
    return made("HumanMessage", content=text)


def made(kind: str, **kwargs: Any) -> dict[str, Any]:
    id = ["langchain", "schema", "messages", kind]
    return {"lc": 1, "type": "constructor", "id": id, "kwargs": kwargs}


def run(id: str, minute: int, asked: list[Any], answer: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "run_type": "llm",
        "trace_id": f"trace-{id}",
        "start_time": f"2026-01-02T10:{minute:02d}:00",
        "end_time": f"2026-01-02T10:{minute:02d}:02.5+00:00",
        "inputs": {"messages": [asked]},
        "outputs": {"generations": [[{"text": "", "message": answer}]]},
        "extra": {"metadata": {"thread_id": "t1", "ls_model_name": "m-small"}},
        **more,
    }


def runs() -> list[dict[str, Any]]:
    system = made("SystemMessage", content="Be brief.")
    first = [system, human("Tide at Portville?")]
    called = made("AIMessage", content="", tool_calls=[CALL])
    result = made("ToolMessage", content="1.4 m", tool_call_id="c1", name="tide")
    second = [*first, called, result]
    answer = made("AIMessage", content="It is 1.4 m.")
    third = [*second, answer, human("And tomorrow?")]
    chain = {"id": "x", "run_type": "chain", "trace_id": "trace-r1", "inputs": {"input": "?"}}
    chain["extra"] = {"metadata": {"thread_id": "t1"}}
    return [
        run("r1", 1, first, called),
        chain,
        run("r2", 2, second, answer, prompt_tokens=12, completion_tokens=5, total_cost=0.25),
        run("r3", 3, third, made("AIMessage", content="1.6 m.")),
        run("r4", 4, third, made("AIMessage", content="About 1.6 m.")),
    ]


def saved(values: list[dict[str, Any]]) -> Path:
    Path("runs.jsonl").write_text("".join(json.dumps(v) + "\n" for v in values), "utf-8")
    return Path("runs.jsonl")


def loaded(values: list[dict[str, Any]]) -> Talk:
    store = MemoryStore()
    nb.load(saved(values), store=store)
    (found,) = talks(store).values()
    return found


# B42
def test_runs_of_one_thread_are_laid_over_one_another(store: Store) -> None:
    report = nb.load(saved(runs()), store=store)

    assert [(s.id, s.entries, s.leaves) for s in report.sessions] == [("langsmith:t1", 8, 2)]
    found = talks(store)["langsmith:t1"]
    assert [entry.role for entry in found.entries] == [
        *["user", "user", "assistant", "tool", "assistant", "user", "assistant", "assistant"]
    ]
    assert found.leaves == {"r3", "r4"} and found.position == "r4"
    assert found.parents["r3"] == found.parents["r4"]
    assert "1 run that called no model (1 chain) left out" in told(report)


# B44
def test_a_call_and_its_result_are_a_pair() -> None:
    view = loaded(runs()).view("r2")

    assert view.messages[-2].text == "1.4 m"
    assert {repair.kind for repair in view.repairs} == {"blank"}


# B34
def test_the_system_message_is_meta() -> None:
    assert loaded(runs()).entries[0].meta


# B14
def test_models_usage_costs_and_times_are_kept() -> None:
    entry = loaded(runs()).stored("r2")

    assert (entry.model, entry.input_tokens, entry.output_tokens) == ("m-small", 12, 5)
    assert (entry.cost_usd, entry.seconds) == (0.25, 2.5)


# B41
def test_the_order_of_runs_does_not_matter(store: Store) -> None:
    nb.load(saved(runs()), store=store)
    values = runs()
    random.Random(3).shuffle(values)

    assert nb.load(saved(values), store=store).entries == 0


# B2
def test_a_later_export_adds_what_is_new(store: Store) -> None:
    nb.load(saved(runs()[:3]), store=store)

    report = nb.load(saved(runs()), store=store)

    assert report.entries == 3


# B33
def test_other_shapes_of_messages_are_read_too() -> None:
    plain = run("p", 1, [], None)
    plain["inputs"] = {"messages": [{"role": "user", "content": "a"}, ["ai", "b"], ["human", "c"]]}
    plain["outputs"] = {"choices": [{"message": {"role": "assistant", "content": "d"}}]}
    chain = {**run("q", 2, [], None), "run_type": "chain", "extra": {}}
    chain |= {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}
    store = MemoryStore()

    nb.load(saved([plain, chain]), store=store)

    texts = {id: [e.preview for e in talk.entries] for id, talk in talks(store).items()}
    assert texts == {
        "langsmith:t1": ["a", "b", "c", "d"],
        "langsmith:trace-q": ["Why?", "So."],
    }


# B22
def test_a_failed_run_is_a_failed_answer() -> None:
    failed = {**run("f", 1, [human("a")], None), "outputs": None, "error": "RateLimit()"}

    reply = loaded([failed]).entry("f").message.reply

    assert (reply.stop_reason, reply.error) == ("error", "RateLimit()")


# B70
def test_feedback_is_a_rating() -> None:
    values = runs()
    values[2]["feedback_stats"] = {"helpful": {"n": 2, "avg": 0.5}}

    assert loaded(values).said("helpful") == [("r2", 0.5)]


# B22
def test_an_imported_session_can_be_run_at_once() -> None:
    assert loaded(runs()).open("Yes.").run("Sure?", show=None).text == "Yes."


# B41
def test_no_more_than_one_run_of_a_file_is_in_memory() -> None:
    class Run(dict[str, Any]):
        """A run whose life can be watched."""

        __hash__ = object.__hash__

    alive: weakref.WeakSet[Run] = weakref.WeakSet()
    most = 0

    def found() -> Iterator[Found]:
        nonlocal most
        for minute in range(50):
            value = Run(run(f"r{minute}", minute, [human(f"{n}") for n in range(minute)], None))
            alive.add(value)
            yield Found(value, minute, in_line=True)
            del value
            most = max(most, len(alive))

    (made_of_all,) = langsmith.read(found(), Assets())

    assert most <= 2
    assert isinstance(made_of_all, Conversation) and len(made_of_all.drafts) >= 49
