"""What the local model is sent, and which model a name means."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from nbdurable.blocks import (
    Blob,
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from nbdurable.errors import ModelError
from nbdurable.models import resolve_model
from nbdurable.models.base import (
    ModelRequest,
    ToolSpec,
)
from nbdurable.models.local import LocalModel, shared
from nbdurable.models.local_prompt import chat_messages, request_body
from nbdurable.models.scripted import ScriptedModel

ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
SAY = ToolSpec("say", "Say a word.", {"type": "object", "properties": {"word": {}}})


def user(text: str) -> Message:
    return Message("user", (TextBlock(text),))


def assistant(text: str) -> Message:
    return Message("assistant", (TextBlock(text),))


def asking(text: str, **params: object) -> ModelRequest:
    return ModelRequest(messages=(user(text),), params=params)


# -- which model -------------------------------------------------------------------------------


def test_a_model_resolves_to_itself() -> None:
    model = ScriptedModel("x")

    assert resolve_model(model) is model


def test_local_resolves_to_one_shared_model() -> None:
    assert resolve_model("local") is resolve_model("local") is shared()


@pytest.mark.parametrize("spec", [7, None, ScriptedModel, object()])
def test_what_is_no_model_is_refused(spec: object) -> None:
    with pytest.raises(TypeError, match="use 'local', a LiteLLM name or an object with"):
        resolve_model(spec)  # type: ignore[arg-type]


def test_a_blank_name_is_refused() -> None:
    with pytest.raises(ValueError, match="model name ' ' is blank; use 'local'"):
        resolve_model(" ")


def test_importing_the_local_model_loads_no_heavy_library() -> None:
    heavy = ["xllamacpp", "litellm", "pandas", "duckdb", "IPython", "pydantic", "rich"]
    code = f"import sys, nbdurable.models.local; print([m for m in {heavy} if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


# -- the prompt --------------------------------------------------------------------------------


def test_the_system_text_comes_first() -> None:
    assert chat_messages((user("Hi"),), "Be brief.") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]


def test_roles_take_turns_and_blank_messages_are_left_out() -> None:
    messages = (user("a"), user("b"), assistant("  "), user("c"), assistant("d"), assistant("e"))

    assert chat_messages(messages, None) == [
        {"role": "user", "content": "a\n\nb\n\nc"},
        {"role": "assistant", "content": "d\n\ne"},
    ]


# B44
def test_calls_and_results_become_words_under_roles_the_template_knows() -> None:
    call = Message("assistant", (ToolCallBlock("c", "add", '{"a": 1}'),))
    good = ToolResultBlock("c", (TextBlock("3"),), name="add")
    bad = ToolResultBlock("d", (TextBlock("no"),), is_error=True)

    said = chat_messages((user("Sum?"), call, Message("tool", (good, bad))), None)

    assert [message["role"] for message in said] == ["user", "assistant", "user"]
    assert said[1]["content"] == 'I use the tool add with {"a": 1}.'
    assert said[2]["content"] == "The tool add answers: 3\n\nThe tool failed: no"


def test_images_files_and_thinking_do_not_reach_a_text_model() -> None:
    blob = Blob.of(b"secret bytes")
    blocks = (
        ThinkingBlock("hm"),
        TextBlock("Look:"),
        ImageBlock(blob, name="cat.png"),
        FileBlock(blob, "application/pdf"),
    )

    (said,) = chat_messages((Message("user", blocks),), None)

    assert said["content"] == (
        "Look:\n\n[image cat.png, which you cannot see]"
        "\n\n[file application/pdf, which you cannot read]"
    )


# B64
def test_a_lone_surrogate_is_replaced_before_it_reaches_the_engine() -> None:
    (said,) = chat_messages((user("a\ud800b"),), None)

    assert said["content"] == "a\ufffdb"


# B69
def test_sampling_parameters_are_sent_and_transport_is_not() -> None:
    body = request_body(
        asking("Hi", temperature=0, seed=7, mirostat=2, api_key="k", aws_x="k", top_p=None, n=1)
    )

    assert body == {
        "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0,
        "seed": 7,
        "mirostat": 2,
        "max_tokens": 512,
    }


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_either_name_limits_the_answer(name: str) -> None:
    assert request_body(asking("Hi", **{name: 5}))["max_tokens"] == 5


# B25
def test_a_parameter_that_changes_nothing_here_warns_once() -> None:
    model = LocalModel("nowhere.gguf")

    async def ask() -> None:
        with pytest.raises(ModelError, match=r"not at 'nowhere.gguf'"):
            await anext(aiter(model.stream(asking("Hi", reasoning_effort="low", api_key="sk"))))

    with pytest.warns(UserWarning) as caught:
        asyncio.run(ask())
        asyncio.run(ask())

    assert [str(one.message) for one in caught] == [
        "parameter 'reasoning_effort' changes nothing in model 'local'; it is left out"
    ]


# B47 B69
def test_describe_hides_what_is_not_recorded() -> None:
    request = asking("Hi", temperature=0, api_key="sk-secret", mirostat="secret")

    described = LocalModel().describe(request)

    assert "secret" not in json.dumps(described)
    assert (described["model"], described["temperature"], described["mirostat"]) == (
        "local",
        0,
        "***",
    )


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", ["add", "say"]),
        ({"type": "function", "function": {"name": "say"}}, ["say"]),
        ({"type": "tool", "name": "add"}, ["add"]),
        ("auto", []),
        ("none", []),
        (None, []),
    ],
)
def test_only_a_forced_choice_asks_for_a_call(choice: object, names: list[str]) -> None:
    request = ModelRequest(messages=(user("Hi"),), tools=(ADD, SAY), params={"tool_choice": choice})

    schema = request_body(request).get("json_schema", {"anyOf": []})

    each = schema.get("anyOf", [schema])  # type: ignore[attr-defined]
    assert [one["properties"]["name"]["const"] for one in each] == names


def test_a_forced_choice_ends_with_the_tool_s_result() -> None:
    call = Message("assistant", (ToolCallBlock("c", "add"),))
    result = Message("tool", (ToolResultBlock("c", (TextBlock("3"),)),))
    request = ModelRequest(
        messages=(user("Hi"), call, result), tools=(ADD,), params={"tool_choice": "required"}
    )

    assert "json_schema" not in request_body(request)


class _City(BaseModel):
    name: str


@pytest.mark.parametrize("wanted", [_City, _City.model_json_schema()])
def test_a_class_or_a_bare_schema_becomes_a_response_format(wanted: object) -> None:
    body = request_body(asking("Hi", response_format=wanted))

    form: Any = body["response_format"]
    assert (form["type"], form["json_schema"]["name"]) == ("json_schema", "City")
    assert form["json_schema"]["schema"]["properties"] == _City.model_json_schema()["properties"]


def test_a_whole_response_format_stays_as_it_is() -> None:
    body = request_body(asking("Hi", response_format={"type": "json_object"}))

    assert body["response_format"] == {"type": "json_object"}


def test_limit_and_price_are_known_without_loading() -> None:
    model = LocalModel("nowhere.gguf", n_ctx=2048)

    assert (model.context_limit(), model.max_cost_usd(asking("Hi"))) == (2048, 0.0)
    assert model.count_tokens(asking("x" * 700)) >= 175
