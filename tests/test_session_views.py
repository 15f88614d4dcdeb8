"""What a model is sent through real runs, and what `preview` and `context` say beforehand."""

from __future__ import annotations

import json

import pytest

import nbdurable as nb
from nbdurable.blocks import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.models.base import ThinkingDelta
from nbdurable.models.scripted import ScriptedModel, calls, cut, thinking
from nbdurable.stores.base import Store


def roles(messages: tuple[Message, ...]) -> list[str]:
    return [message.role for message in messages]


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def tool_message(*results: ToolResultBlock) -> nb.MessageEntry:
    return nb.MessageEntry(message=Message("tool", results))


def look() -> str:
    """Look."""
    return "seen"


# -- pairs -----------------------------------------------------------------------------------------


# B44 case 16
def test_a_result_without_its_call_is_kept_and_not_sent(store: Store) -> None:
    model = ScriptedModel("ok", "ok")
    chat = nb.open("s", store=store, model=model)
    chat.append("one", tool_message(ToolResultBlock("nobody", (TextBlock("lost"),))))

    chat.run("two", show=None)
    chat.run("three", show=None)

    assert texts(model.requests[0].messages) == ["one", "two"]
    assert texts(model.requests[1].messages) == ["one", "two", "ok", "three"]
    assert "lost" in [getattr(entry, "text", "") for entry in chat.transcript()]


# B44 B50 case 16
def test_a_result_whose_call_was_summarised_is_not_sent(store: Store) -> None:
    model = ScriptedModel("A summary.", "ok")
    chat = nb.open("s", store=store, model=model)
    chat.append("one", nb.assistant(ToolCallBlock("c1", "look")))
    chat.append(tool_message(ToolResultBlock("c1", (TextBlock("seen"),))), nb.assistant("I saw."))
    chat.compact()
    chat.append(tool_message(ToolResultBlock("c1", (TextBlock("seen late"),))))

    chat.run("two", show=None)

    sent = model.requests[-1].messages
    assert roles(sent) == ["user", "user"]
    assert "seen late" not in json.dumps(texts(sent))


# B44
def test_results_that_come_later_are_sent_right_after_their_call_in_call_order(
    store: Store,
) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)
    asked = nb.assistant(ToolCallBlock("a", "look"), ToolCallBlock("b", "look"))
    chat.append("one", asked, "Well?", tool_message(ToolResultBlock("b", (TextBlock("B"),))))
    chat.append(tool_message(ToolResultBlock("a", (TextBlock("A"),))))

    chat.run("two", show=None)

    sent = model.requests[0].messages
    assert roles(sent) == ["user", "assistant", "tool", "tool", "user", "user"]
    assert texts(sent)[2:4] == ["A", "B"]
    assert [entry.kind for entry in chat.path()] == ["message"] * 7


# B40 B44
def test_branching_onto_a_call_whose_result_is_on_another_branch_answers_it_by_an_error(
    store: Store,
) -> None:
    model = ScriptedModel(calls(("look", {})), "ok", "ok")
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run("one", show=None)
    chat.branch(2)

    chat.run("Never mind.", show=None)

    sent = model.requests[-1].messages
    assert roles(sent) == ["user", "assistant", "tool", "user"]
    assert sent[2].tool_results[0].is_error
    assert [e.message.tool_results[0].is_error for e in chat.entries(nb.MessageEntry)[2:3]] == [
        False
    ]


# -- blanks ----------------------------------------------------------------------------------------


# B45 case 20
def test_an_answer_cut_after_blank_lines_is_kept_and_not_sent(store: Store) -> None:
    model = ScriptedModel(cut("\n\n"), "ok")
    chat = nb.open("s", store=store, model=model)
    with pytest.raises(nb.errors.ModelError, match="broke off"):
        chat.run("one", show=None)

    chat.run("two", show=None)

    assert texts(model.requests[1].messages) == ["one", "two"]
    assert roles(model.requests[1].messages) == ["user", "user"]
    kept = chat.path()[1]
    assert getattr(kept, "text", "") == "\n\n"


# B45 case 21
def test_every_form_of_content_comes_back_as_it_was_and_the_blank_ones_are_not_sent(
    store: Store,
) -> None:
    forms = [nb.assistant(None), nb.assistant(""), nb.assistant([]), nb.assistant("a", "b")]
    given = [form.message for form in forms]
    nb.open("s", store=store, model=ScriptedModel()).append(*forms)
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)

    chat.run("one", show=None)

    assert [entry.message for entry in chat.entries(nb.MessageEntry)][:4] == given
    assert len({repr(message) for message in given}) == 4
    assert texts(model.requests[0].messages) == ["a\nb", "one"]
    assert [entry.preview for entry in store.load_entries("s")][:4] == ["", "", "", "a b"]
    assert chat.context().total_tokens > 0
    assert chat.compact() is not None


# B45
@pytest.mark.parametrize("blank", ["", " \n\t", "\u2003"])
def test_blank_input_alone_is_refused_and_beside_words_left_out(store: Store, blank: str) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)

    with pytest.raises(nb.errors.RunError, match="give input that is not blank"):
        chat.run(blank, show=None)
    chat.run(blank, "one", show=None)

    assert [b.text for b in model.requests[0].messages[0].blocks] == ["one"]  # type: ignore[union-attr]
    assert len(store.load_entries("s")) == 2


# -- thinking --------------------------------------------------------------------------------------

SIGNED = (thinking("Let me "), thinking("see…\u2028\n", "c2ln=="), "It is 4.")


# B46
def test_signed_thinking_goes_back_to_its_model_byte_for_byte(store: Store) -> None:
    model = ScriptedModel(SIGNED, "ok", name="m1")
    chat = nb.open("s", store=store, model=model)
    chat.run("one", show=None)
    chat.close()
    chat = nb.open("s", store=store, model=model)

    chat.run("two", show=None)

    assert model.requests[1].messages[1].blocks == (
        ThinkingBlock("Let me see…\u2028\n", "c2ln=="),
        TextBlock("It is 4."),
    )


# B46
@pytest.mark.parametrize("verb", ["open", "run"])
def test_signed_thinking_goes_to_no_other_model(store: Store, verb: str) -> None:
    first, second = ScriptedModel(SIGNED, "ok", name="m1"), ScriptedModel("ok", name="m2")
    chat = nb.open("s", store=store, model=first)
    chat.run("one", show=None)

    if verb == "run":
        chat.run("two", model=second, show=None)
    else:
        nb.open("s", store=store, model=second).run("two", show=None)
    chat.branch(4)
    chat.run("three", show=None)

    assert second.requests[0].messages[1].blocks == (TextBlock("It is 4."),)
    back = first.requests[1].messages
    assert back[1].blocks[0] == ThinkingBlock("Let me see…\u2028\n", "c2ln==")


# B46
def test_redacted_thinking_goes_back_and_unsigned_thinking_does_not(store: Store) -> None:
    step = (ThinkingDelta(data="b3BhcXVl"), thinking("loose"), "It is 4.")
    model = ScriptedModel(step, "ok")
    chat = nb.open("s", store=store, model=model)
    chat.run("one", show=None)

    chat.run("two", show=None)

    assert model.requests[1].messages[1].blocks == (
        ThinkingBlock("", None, "b3BhcXVl"),
        TextBlock("It is 4."),
    )
    assert len(chat[2].blocks) == 3  # type: ignore[attr-defined]


# B46 B48
def test_a_fork_sends_signed_thinking_back_too(store: Store) -> None:
    model = ScriptedModel(SIGNED, "ok")
    chat = nb.open("s", store=store, model=model)
    chat.run("one", show=None)

    chat.fork("child").run("two", show=None)

    assert model.requests[1].messages[1].blocks[0] == ThinkingBlock("Let me see…\u2028\n", "c2ln==")


# -- preview and context ---------------------------------------------------------------------------


# B47
def test_preview_is_the_request_that_run_then_sends_and_stores_nothing(store: Store) -> None:
    model = ScriptedModel(calls(("look", {})), "a", "b")
    chat = nb.open("s", store=store, model=model, system="Be brief.", tools=[look], temperature=0.5)
    chat.run("one", show=None)
    input = (nb.meta("Use metres."), nb.ephemeral("aside"), "two")
    before = store.load_entries("s"), len(store.load_runs("s")), chat.entries()

    preview = chat.preview(*input, at=1, top_p=0.1)

    assert (store.load_entries("s"), len(store.load_runs("s")), chat.entries()) == before
    chat.run(*input, at=1, top_p=0.1, show=None)
    assert preview == model.describe(model.requests[-1])
    assert preview["temperature"] == 0.5
    assert preview["system"] == "Be brief."


# B22 B47
def test_preview_without_input_is_what_run_without_input_sends(store: Store) -> None:
    model = ScriptedModel(cut("half an ans"), "ok")
    chat = nb.open("s", store=store, model=model)
    with pytest.raises(nb.errors.ModelError, match="broke off"):
        chat.run("one", show=None)

    preview = chat.preview()

    chat.run(show=None)
    assert preview == model.describe(model.requests[-1])
    with pytest.raises(nb.errors.RunError, match="ends in a finished reply"):
        chat.preview()


# B47 B69
def test_preview_shows_secrets_as_stars(store: Store) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model, api_key="sk-one", extra_headers={"X": "sk-two"})

    preview = json.dumps(chat.preview("Hi.", aws_secret_access_key="sk-three"))

    assert "sk-" not in preview
    assert preview.count('"***"') == 3


# B47
def test_context_counts_what_each_entry_takes(store: Store) -> None:
    model = ScriptedModel(calls(("look", {})), "b" * 40, context_limit=1_000)
    chat = nb.open("s", store=store, model=model, tools=[look], system="c" * 400)
    chat.run(nb.meta("a" * 80), "d" * 160, show=None)

    use = chat.context()

    ids = [entry.id for entry in chat.path()]
    assert [entry_id for entry_id, _ in use.entries] == ids
    assert [tokens for _, tokens in use.entries][:2] == [20, 40]
    assert use.limit_tokens == 1_000
    assert use.total_tokens >= sum(tokens for _, tokens in use.entries) + 100


# B47
def test_context_of_an_empty_session_is_that_of_system_and_tools(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel(), system="c" * 400)

    use = chat.context()

    assert (use.total_tokens, use.limit_tokens, use.entries) == (100, None, ())


# B47 B50
def test_context_counts_a_summary_for_what_it_replaces(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("a" * 4_000, "Short.", usage=Usage(1, 1)))
    chat.run("one", show=None)
    full = chat.context().total_tokens
    entry = chat.compact()

    use = chat.context()

    assert entry is not None
    assert [entry_id for entry_id, _ in use.entries] == [entry.id]
    assert use.total_tokens < full / 10


# -- size ------------------------------------------------------------------------------------------


# B41 B48 case 6
def test_a_path_of_thousands_is_read_sent_and_forked_without_recursion(store: Store) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)
    chat.append(*(nb.user(str(n)) for n in range(3_000)))

    chat.run("last", show=None)
    child = chat.fork("child")

    assert len(model.requests[0].messages) == 3_001
    assert len(child.path()) == 3_002
    assert child.messages() == chat.messages()
    assert child.tree().depth(child.leaf_id or "") == 3_002
