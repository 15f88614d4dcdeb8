"""Tools with effects and tools that ask: nothing is done twice, or without a yes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.blocks import ToolCallBlock, ToolResultBlock
from nbdurable.models.base import CallDelta
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.tools import Tool
from nbdurable.toolstep import idempotency_key

PAY = calls(("pay", {"to": "Ada", "usd": 5}))


class Till:
    """What the tool `pay` did, in order."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []
        self.keys: list[str] = []

    def pay(self, to: str, usd: int, idempotency_key: str) -> str:
        """Pay someone."""
        self.paid.append((to, usd))
        self.keys.append(idempotency_key)
        return "paid"

    @property
    def tool(self) -> Tool:
        return nb.tool(self.pay, effects=True)


@pytest.fixture
def till() -> Till:
    return Till()


def last_result(chat: nb.Session) -> ToolResultBlock:
    found = [e for e in chat.path() if isinstance(e, nb.MessageEntry) and e.role == "tool"]
    return found[-1].message.tool_results[0]


# -- after a kill ----------------------------------------------------------------------------------

# Calls two tools that kill their own process, after it has printed the key of the call.
KILLED = """
import os, signal, sys
import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel, calls

@nb.tool(effects=True)
def pay(usd: int, idempotency_key: str) -> str:
    os.write(1, idempotency_key.encode())
    os.kill(os.getpid(), signal.SIGKILL)

@nb.tool
def look(at: str) -> str:
    return "seen"

model = ScriptedModel(calls(("pay", {"usd": 5}), ("look", {"at": "x"})))
nb.open("s", store=sys.argv[1], model=model, tools=[pay, look]).run("Pay.", show=None)
"""


def pay(usd: int, idempotency_key: str) -> str:
    """Pay."""
    raise AssertionError("was executed again")


def look(at: str) -> str:
    """Look."""
    raise AssertionError("was executed")


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, str]:
    """Return a store whose writer was killed in the body of `pay`, and the key of that call."""
    path = tmp_path / "chats.duckdb"
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, timeout=60
    )
    assert child.returncode == -9
    return path, child.stdout.decode()


# B24 B29
def test_after_a_kill_the_outcome_of_a_call_with_effects_is_told_as_unknown(
    killed: tuple[Path, str],
) -> None:
    path, _ = killed
    model = ScriptedModel("I checked.")
    tools = [nb.tool(pay, effects=True), look]
    with nb.open("s", store=path, model=model, tools=tools) as chat:
        preview = json.dumps(chat.preview())
        told = [m.tool_results[0] for m in chat.messages() if m.tool_results]

        run = chat.run(show=None)

        sent = [m.tool_results[0] for m in model.requests[0].messages if m.tool_results]
        assert run.text == "I checked."
        assert [result.is_error for result in sent] == [True, True]
        assert "outcome unknown, check before repeating" in sent[0].text
        assert "unknown" not in sent[1].text
        assert told == sent
        assert preview.count("outcome unknown, check before repeating") == 1


# B24 B29
def test_the_key_of_a_call_follows_from_what_is_stored_before_its_body_runs(
    killed: tuple[Path, str],
) -> None:
    path, key = killed

    with nb.open("s", store=path, model=ScriptedModel()) as chat:
        (asked,) = [e for e in chat.entries(nb.MessageEntry) if e.role == "assistant"]

        assert key == idempotency_key("s", asked.id, 0)


# B29
def test_each_call_of_a_step_has_its_own_key(store: Store, till: Till) -> None:
    step = calls(("pay", {"to": "Ada", "usd": 5}), ("pay", {"to": "Ada", "usd": 5}))
    chat = nb.open("s", store=store, model=ScriptedModel(step, "ok"), tools=[till.tool])

    chat.run("Pay twice.", show=None)

    assert till.paid == [("Ada", 5)] * 2
    assert len(set(till.keys)) == 2


# -- repeats ---------------------------------------------------------------------------------------


# B29 B42
@pytest.mark.parametrize("verb", ["rerun", "edit"])
def test_a_repeat_of_a_call_with_effects_is_answered_by_an_error(
    store: Store, till: Till, verb: str
) -> None:
    model = ScriptedModel(PAY, "Done.", PAY, "Again.")
    chat = nb.open("s", store=store, model=model, tools=[till.tool])
    chat.run("Pay Ada.", show=None)

    again = chat.rerun(show=None) if verb == "rerun" else chat.edit(1, "Pay Ada!", show=None)

    assert isinstance(again, nb.Run)
    assert again.text == "Again."
    assert till.paid == [("Ada", 5)]
    result = last_result(chat)
    assert result.is_error
    assert "not executed: pay with these arguments already has a result" in result.text
    assert "(#3)" in result.text


# B29
@pytest.mark.parametrize("verb", ["rerun", "edit"])
def test_effects_run_allows_the_repeat(store: Store, till: Till, verb: str) -> None:
    model = ScriptedModel(PAY, "Done.", PAY, "Again.")
    chat = nb.open("s", store=store, model=model, tools=[till.tool])
    chat.run("Pay Ada.", show=None)

    if verb == "rerun":
        chat.rerun(show=None, effects="run")
    else:
        chat.edit(1, "Pay Ada!", show=None, effects="run")

    assert till.paid == [("Ada", 5)] * 2
    assert last_result(chat).text == "paid"


# B29
def test_a_repeat_is_known_however_its_arguments_are_written(store: Store, till: Till) -> None:
    other = (CallDelta(0, "x9", "pay", '{ "usd": 5,\n "to": "\\u0041da" }'),)
    model = ScriptedModel(PAY, "Done.", other, "Again.")
    chat = nb.open("s", store=store, model=model, tools=[till.tool])
    chat.run("Pay Ada.", show=None)

    chat.rerun(show=None)

    assert till.paid == [("Ada", 5)]


# B29 B32
def test_a_repeat_is_known_although_a_hook_changes_its_arguments(store: Store, till: Till) -> None:
    class Double:
        def before_tool(self, call: ToolCallBlock) -> dict[str, object]:
            return {**(call.arguments or {}), "usd": 10}

    model = ScriptedModel(PAY, "Done.", PAY, "Again.")
    chat = nb.open("s", store=store, model=model, tools=[till.tool], hooks=Double())
    chat.run("Pay Ada.", show=None)

    chat.rerun(show=None)

    assert till.paid == [("Ada", 10)]
    assert "already has a result" in last_result(chat).text


# B29
def test_other_arguments_are_no_repeat(store: Store, till: Till) -> None:
    other = calls(("pay", {"to": "Bob", "usd": 5}))
    chat = nb.open(
        "s", store=store, model=ScriptedModel(PAY, "Done.", other, "Again."), tools=[till.tool]
    )
    chat.run("Pay Ada.", show=None)

    chat.rerun(show=None)

    assert till.paid == [("Ada", 5), ("Bob", 5)]


# B29
def test_a_refused_repeat_is_no_result_that_another_repeat_could_name(
    store: Store, till: Till
) -> None:
    model = ScriptedModel(PAY, "Done.", PAY, "Again.", PAY, "Again.")
    chat = nb.open("s", store=store, model=model, tools=[till.tool])
    chat.run("Pay Ada.", show=None)
    chat.rerun(show=None)

    chat.rerun(show=None)

    assert "(#3)" in last_result(chat).text


# B29
def test_a_plain_run_may_call_again_and_a_tool_without_effects_always(store: Store) -> None:
    said: list[str] = []

    def say(word: str) -> str:
        """Say."""
        said.append(word)
        return word

    step = calls(("say", {"word": "a"}))
    chat = nb.open("s", store=store, model=ScriptedModel(step, "x", step, "y"), tools=[say])
    chat.run("Go.", show=None)

    chat.rerun(show=None)

    assert said == ["a", "a"]


# B29
def test_another_value_for_effects_is_refused_at_the_call(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    with pytest.raises(ValueError, match="effects is 'yes'; give 'refuse' or 'run'"):
        chat.run("Hi.", effects="yes", show=None)  # type: ignore[arg-type]

    assert store.load_entries("s") == []


# -- confirm ---------------------------------------------------------------------------------------


def asking(store: Store, model: ScriptedModel, done: list[str]) -> nb.Session:
    """Return a session with a tool `wipe` that asks first and notes what it did."""

    def wipe(path: str) -> str:
        """Wipe."""
        done.append(path)
        return "wiped"

    return nb.open("s", store=store, model=model, tools=[nb.tool(wipe, confirm=True)])


def answers(store: Store) -> list[object]:
    return [json.loads(a.value_json) for a in store.load_annotations("s") if a.name == "confirm"]


# B29
@pytest.mark.parametrize(
    ("typed", "allow"), [("y", True), ("YES ", True), ("", False), ("n", False), ("maybe", False)]
)
def test_a_tool_that_asks_runs_only_after_a_yes_and_the_answer_is_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch, typed: str, allow: bool
) -> None:
    done: list[str] = []
    asked: list[str] = []
    chat = asking(store, ScriptedModel(calls(("wipe", {"path": "/tmp"})), "ok"), done)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or typed)

    run = chat.run("Wipe.", show=None)

    assert run.text == "ok"
    assert asked == ['run wipe({"path": "/tmp"})? [y/N] ']
    assert done == (["/tmp"] if allow else [])
    assert last_result(chat).is_error is not allow
    assert answers(store) == [{"call_id": "call_1_0", "allow": allow}]


# B29
@pytest.mark.parametrize("error", [EOFError, RuntimeError])
def test_where_nobody_can_be_asked_the_tool_does_not_run(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    done: list[str] = []
    chat = asking(store, ScriptedModel(calls(("wipe", {"path": "/"})), "ok"), done)

    def nobody(text: str) -> str:
        raise error("no terminal")

    monkeypatch.setattr("builtins.input", nobody)

    chat.run("Wipe.", show=None)

    assert done == []
    assert last_result(chat).text == "not executed: the user did not allow it"


# B29
@pytest.mark.parametrize("allow", [True, False])
def test_a_button_can_answer_a_run_that_nobody_reads(
    store: Store, monkeypatch: pytest.MonkeyPatch, allow: bool
) -> None:
    done: list[str] = []
    chat = asking(store, ScriptedModel(calls(("wipe", {"path": "a"})), "ok"), done)
    monkeypatch.setattr("builtins.input", lambda text: pytest.fail("the person was asked twice"))
    run = chat.run("Wipe.", wait=False, show=None)
    with run._changed:
        assert run._changed.wait_for(run._has_question, 30)
    run.answer("another call", True)
    assert run._has_question()

    run.answer("call_1_0", allow)
    run.answer("call_1_0", not allow)

    assert run.wait().text == "ok"
    assert done == (["a"] if allow else [])
    assert answers(store) == [{"call_id": "call_1_0", "allow": allow}]


# B29
def test_each_call_is_asked_for_on_its_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    step = calls(("wipe", {"path": "a"}), ("wipe", {"path": "b"}))
    chat = asking(store, ScriptedModel(step, "ok"), done)
    typed = iter(["n", "y"])
    monkeypatch.setattr("builtins.input", lambda text: next(typed))

    chat.run("Wipe.", show=None)

    assert done == ["b"]
    assert answers(store) == [
        {"call_id": "call_1_0", "allow": False},
        {"call_id": "call_1_1", "allow": True},
    ]
