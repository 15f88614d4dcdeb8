"""Hooks through `chat.run`: each has its say at its joint, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

import nbdurable as nb
from nbdurable.blocks import Message, TextBlock, ToolCallBlock, ToolResultBlock
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store

ECHO = calls(("echo", {"word": "a"}))


def echo(word: str) -> str:
    """Echo a word."""
    return f"echo {word}"


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def stored_texts(chat: nb.Session) -> list[str]:
    return [entry.text for entry in chat.path() if isinstance(entry, nb.MessageEntry)]


# -- before_model ----------------------------------------------------------------------------------


# B32
def test_before_model_changes_one_call_and_nothing_that_is_stored(store: Store) -> None:
    class Shout(nb.Hooks):
        def before_model(self, request: ModelRequest) -> ModelRequest | None:
            if len(request.messages) > 1:
                return None
            shouted = Message("user", (TextBlock(request.messages[0].text.upper()),))
            return replace(request, messages=(shouted,), system="Shout back.")

    model = ScriptedModel("HI", "ok")
    chat = nb.open("s", store=store, model=model, system="Be calm.", hooks=Shout())
    chat.run("hi", show=None)

    chat.run("again", show=None)

    assert texts(model.requests[0].messages) == ["HI"]
    assert model.requests[0].system == "Shout back."
    assert texts(model.requests[1].messages) == ["hi", "HI", "again"]
    assert model.requests[1].system == "Be calm."
    assert stored_texts(chat) == ["hi", "HI", "again", "ok"]


# B32
def test_before_model_is_asked_once_before_each_call_of_a_run(store: Store) -> None:
    seen: list[int] = []

    class Count:
        def before_model(self, request: ModelRequest) -> None:
            seen.append(len(request.messages))

    chat = nb.open(
        "s", store=store, model=ScriptedModel(ECHO, "ok"), tools=[echo], hooks=[Count(), Count()]
    )

    chat.run("Go.", show=None)

    assert seen == [1, 1, 3, 3]


# B32
@pytest.mark.parametrize("hook", ["before_model", "after_tool", "after_step", "before_stop"])
def test_a_hook_that_fails_ends_the_run_as_an_error_that_names_it(store: Store, hook: str) -> None:
    def fail(*args: object) -> None:
        raise KeyError("lost")

    hooks = type("Broken", (), {hook: staticmethod(fail)})()
    model = ScriptedModel(ECHO, "ok")
    chat = nb.open("s", store=store, model=model, tools=[echo], hooks=hooks)

    with pytest.raises(nb.errors.RunError, match="hook fail failed: KeyError: 'lost'") as caught:
        chat.run("Go.", show=None)

    assert caught.value.run is not None
    assert caught.value.run.outcome == "error"
    ((_, end),) = store.load_runs("s")
    assert end is not None
    assert end.outcome == "error"
    assert stored_texts(chat)[0] == "Go."


# B32 B44
def test_after_a_hook_failed_the_next_prompt_is_valid(store: Store) -> None:
    class Once:
        def after_tool(self, call: ToolCallBlock, result: ToolResultBlock) -> None:
            raise ValueError("no")

    chat = nb.open("s", store=store, model=ScriptedModel(ECHO), tools=[echo], hooks=Once())
    with pytest.raises(nb.errors.RunError, match="failed: ValueError: no"):
        chat.run("Go.", show=None)
    chat.close()
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)

    chat.run("And?", show=None)

    assert [m.role for m in model.requests[0].messages] == ["user", "assistant", "tool", "user"]


# -- before_tool, after_tool -----------------------------------------------------------------------


# B32
@pytest.mark.parametrize("fails", [False, True], ids=["denies", "raises"])
def test_before_tool_denies_with_its_reason_and_the_run_goes_on(store: Store, fails: bool) -> None:
    class Guard:
        def before_tool(self, call: ToolCallBlock) -> str:
            if fails:
                raise PermissionError("not on a Sunday")
            return "not on a Sunday"

    def never(word: str) -> None:
        raise AssertionError("was executed")

    model = ScriptedModel(ECHO, "I see.")
    tools = [nb.tool(never, name="echo")]
    chat = nb.open("s", store=store, model=model, tools=tools, hooks=Guard())

    run = chat.run("Go.", show=None)

    assert run.text == "I see."
    (result,) = model.requests[1].messages[2].tool_results
    assert result.is_error
    assert result.text == "not run: not on a Sunday"
    assert result.text in stored_texts(chat)


# B32
def test_before_tool_denies_one_call_of_a_step_only(store: Store) -> None:
    class Guard:
        async def before_tool(self, call: ToolCallBlock) -> str | None:
            return "no b" if (call.arguments or {})["word"] == "b" else None

    step = calls(*(("echo", {"word": word}) for word in "abc"))
    tools = [nb.tool(echo, parallel=True)]
    chat = nb.open("s", store=store, model=ScriptedModel(step, "ok"), tools=tools, hooks=Guard())

    chat.run("Go.", show=None)

    assert stored_texts(chat)[2:5] == ["echo a", "not run: no b", "echo c"]


# B32
def test_before_tool_changes_arguments_for_the_body_and_not_what_the_model_said(
    store: Store,
) -> None:
    class Polite:
        def before_tool(self, call: ToolCallBlock) -> dict[str, object]:
            return {"word": f"please {(call.arguments or {})['word']}"}

    chat = nb.open("s", store=store, model=ScriptedModel(ECHO, "ok"), tools=[echo], hooks=Polite())

    chat.run("Go.", show=None)

    (asked,) = chat[2].message.tool_calls  # type: ignore[attr-defined]
    assert asked.arguments == {"word": "a"}
    assert stored_texts(chat)[2] == "echo please a"


# B32
def test_after_tool_changes_what_is_stored_and_sent(store: Store) -> None:
    class Redact:
        def after_tool(self, call: ToolCallBlock, result: ToolResultBlock) -> ToolResultBlock:
            return ToolResultBlock("whatever", (TextBlock("[redacted]"),))

    model = ScriptedModel(ECHO, "ok")
    chat = nb.open("s", store=store, model=model, tools=[echo], hooks=Redact())

    chat.run("Go.", show=None)

    (result,) = model.requests[1].messages[2].tool_results
    assert (result.call_id, result.name, result.text) == ("call_1_0", "echo", "[redacted]")
    assert all("echo a" not in entry.payload for entry in store.load_entries("s"))


# -- after_step, before_stop -----------------------------------------------------------------------


# B13 B32
def test_after_step_is_told_each_step_once_its_results_are_stored(store: Store) -> None:
    told: list[tuple[str, list[str], int]] = []

    class Note:
        def after_step(self, message: Message, results: tuple[ToolResultBlock, ...]) -> None:
            count = len(store.load_entries("s"))
            told.append((message.text, [result.text for result in results], count))

    model = ScriptedModel(calls(("echo", {"word": "a"}), text="Wait."), "ok")
    chat = nb.open("s", store=store, model=model, tools=[echo], hooks=Note())

    chat.run("Go.", show=None)

    assert told == [("Wait.", ["echo a"], 3), ("ok", [], 4)]


# B32
def test_before_stop_adds_input_that_is_stored_and_answered_in_the_same_run(store: Store) -> None:
    class Check:
        def before_stop(self, message: Message) -> object:
            return "Check the sum." if message.text == "3" else None

    model = ScriptedModel("3", "It is 4.")
    chat = nb.open("s", store=store, model=model, hooks=Check())

    run = chat.run("What is 2 + 2?", show=None)

    assert run.text == "It is 4."
    assert stored_texts(chat) == ["What is 2 + 2?", "3", "Check the sum.", "It is 4."]
    assert [entry.run_id for entry in chat.path()] == [run.run_id] * 4
    assert [entry.id for entry in run.entries] == [entry.id for entry in chat.path()]
    assert len(store.load_runs("s")) == 1


# B32 B34 B35
def test_before_stop_may_add_meta_and_ephemeral_input(store: Store) -> None:
    class Check:
        def before_stop(self, message: Message) -> object:
            if message.text != "draft":
                return None
            return [nb.meta("House style."), nb.ephemeral("The build is red.")]

    model = ScriptedModel("draft", "final", "more")
    chat = nb.open("s", store=store, model=model, hooks=Check())
    chat.run("Write.", show=None)

    chat.run("More.", show=None)

    assert texts(model.requests[1].messages) == [
        *("Write.", "draft", "House style.", "The build is red.")
    ]
    assert texts(model.requests[2].messages) == [
        *("Write.", "draft", "House style.", "final", "More.")
    ]
    assert stored_texts(chat)[:4] == ["Write.", "draft", "House style.", "final"]


# B25 B32
def test_before_stop_is_not_asked_at_max_steps(store: Store) -> None:
    asked: list[str] = []

    class Insist:
        def before_stop(self, message: Message) -> str:
            asked.append(message.text)
            return "more"

    model = ScriptedModel("one", "two", "three")
    chat = nb.open("s", store=store, model=model, hooks=Insist(), max_steps=2)

    run = chat.run("Go.", show=None)

    assert asked == ["one"]
    assert model.call_count == 2
    assert run.text == "two"


# B25 B32
def test_at_max_steps_with_calls_their_results_are_stored_and_nothing_more_is_asked(
    store: Store,
) -> None:
    asked: list[str] = []

    class Insist:
        def before_stop(self, message: Message) -> None:
            asked.append(message.text)

    model = ScriptedModel(ECHO)
    chat = nb.open("s", store=store, model=model, tools=[echo], hooks=Insist(), max_steps=2)

    run = chat.run("Go.", show=None)

    assert run.outcome == "max_steps"
    assert asked == []
    assert stored_texts(chat)[-1] == "echo a"
