from __future__ import annotations

import asyncio
import contextvars
import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import pandas as pd
import pytest
from PIL import Image
from pydantic import BaseModel, Field

from nbdurable.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from nbdurable.errors import ToolError
from nbdurable.tools import Tool, as_tools, call_tool, tool


class Address(BaseModel):
    street: str
    number: int = 1


@dataclass
class Line:
    sku: str
    count: int


def answer(
    the_tool: Tool | Callable[..., object] | None,
    raw: str = "{}",
    *,
    known: tuple[str, ...] = (),
    reports: list[str] | None = None,
) -> ToolResultBlock:
    """Return the result of one call, made under a loop of its own."""
    (made,) = as_tools([the_tool]) if the_tool else (None,)
    call = ToolCallBlock("c1", made.name if made else "lokup", raw)
    heard = reports if reports is not None else []
    return asyncio.run(
        call_tool(made, call, known=known, idempotency_key="key-1", report=heard.append)
    )


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    More about it.
    """
    return a + b


# -- schemas -----------------------------------------------------------------------------------


# B27
def test_the_schema_comes_from_the_signature() -> None:
    @tool
    def order(
        line: Line,
        to: Address,
        how: Literal["air", "sea"] = "sea",
        note: str | None = None,
        count: Annotated[int, Field(ge=1, description="how many")] = 1,
        speed: Annotated[float, "in km/h"] = 1.5,
        weight: float = Field(2.0, description="in kg"),
        *,
        tags: list[str] = [],  # noqa: B006
    ) -> None: ...

    schema = order.spec.parameters
    properties = schema["properties"]
    assert isinstance(properties, dict)

    assert (schema["type"], schema["required"]) == ("object", ["line", "to"])
    assert schema["additionalProperties"] is False
    assert properties["how"] == {"default": "sea", "enum": ["air", "sea"], "type": "string"}
    assert properties["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert properties["count"] == {
        "default": 1,
        "description": "how many",
        "minimum": 1,
        "type": "integer",
    }
    assert properties["speed"]["description"] == "in km/h"
    assert (properties["weight"]["default"], properties["weight"]["description"]) == (2, "in kg")
    assert set(schema["$defs"]) == {"Line", "Address"}  # type: ignore[call-overload]


NUMPY = """Look up
    an order.

    Slowly.

    Parameters
    ----------
    id, other : int
        The number

        of it.
    kind : str, optional
        Its kind: any.

    Returns
    -------
    id : int
        Not this.
    """
GOOGLE = """Look up an order.

    Args:
        id (int): The number
            of it.
        other: The number of it.
        kind (Literal["a"]): Its kind: any.

    Returns:
        id: not this.
    """
BARE = """Look up an order.
    Args:
        id: The number of it.
        other: The number of it.
        kind: Its kind: any.
    """


@pytest.mark.parametrize("docstring", [NUMPY, GOOGLE, BARE], ids=["numpy", "google", "bare"])
# B27
def test_descriptions_come_from_the_docstring(docstring: str) -> None:
    def look_up(id: int, other: int, kind: str = "a") -> None: ...

    look_up.__doc__ = docstring
    spec = tool(look_up).spec
    properties = spec.parameters["properties"]
    assert isinstance(properties, dict)

    assert spec.description == "Look up an order."
    told = {name: schema["description"] for name, schema in properties.items()}
    assert told == {
        "id": "The number of it.",
        "other": "The number of it.",
        "kind": "Its kind: any.",
    }


def test_a_first_line_that_ends_in_a_colon_is_a_description() -> None:
    def look_up() -> None:
        """Do these things:

        - one
        """

    assert tool(look_up).spec.description == "Do these things:"


def test_names_that_pydantic_uses_are_legal_parameters() -> None:
    def odd(schema: int, model_config: int, self_: int, json: int, _x: int = 5) -> list[int]:
        return [schema, model_config, self_, json, _x]

    result = answer(odd, '{"schema":1,"model_config":2,"self_":3,"json":4}')

    assert result.text == "[1,2,3,4,5]"


def test_name_and_description_can_be_given() -> None:
    spec = tool(add, name="plus", description="Sum.").spec

    assert (spec.name, spec.description) == ("plus", "Sum.")


def test_a_tool_without_parameters_has_an_empty_object() -> None:
    def ping() -> str:
        return "pong"

    assert tool(ping).spec.parameters["properties"] == {}
    assert answer(ping, "").text == "pong"


def test_a_decorated_function_is_still_called_like_one() -> None:
    @tool(parallel=True, effects=True, confirm=True, timeout_s=3)
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8
    assert (double.parallel, double.effects, double.confirm, double.timeout_s) == (1, 1, 1, 3)


# B29
def test_injected_parameters_are_not_told_to_the_model() -> None:
    def pay(amount: int, idempotency_key: str, report: Callable[[str], None]) -> str:
        report(f"paying {amount}")
        return idempotency_key

    reports: list[str] = []
    result = answer(pay, '{"amount":5}', reports=reports)

    assert list(tool(pay).spec.parameters["properties"]) == ["amount"]  # type: ignore[call-overload]
    assert (result.text, reports) == ("key-1", ["paying 5"])
    assert answer(pay, '{"amount":5,"report":"x"}').is_error


# -- definitions -------------------------------------------------------------------------------


def many(*values: int) -> None: ...


def named(**values: int) -> None: ...


def placed(x: int, /) -> None: ...


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (many, r"parameter 'values' of tool 'many' takes any number of values; a model"),
        (named, r"parameter 'values' of tool 'named' takes any names; a model"),
        (placed, r"parameter 'x' of tool 'placed' is positional-only; a model gives"),
        (lambda x: x, "a lambda cannot be a tool, since it has no name or types; use def"),
        (partial(add, 1), r"a tool of type partial has no name; give one by tool\(fn, name=...\)"),
        (Address, "a tool of type ModelMetaclass cannot be made; give a typed function"),
        ("add", "a tool of type str cannot be made; give a typed function"),
    ],
)
def test_what_a_model_cannot_call_is_refused_when_defined(fn: object, text: str) -> None:
    with pytest.raises(ToolError, match=text):
        tool(fn)  # type: ignore[call-overload]


def test_a_generator_is_refused_when_defined() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(ToolError, match="tool 'numbers' is a generator; return a list"):
        tool(numbers)


@pytest.mark.parametrize("name", ["a b", "naïve", "x" * 65, "a.b", "a\n"])
def test_a_name_that_a_provider_refuses_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match=r"tool name .* is not legal; use 1 to 64 of"):
        tool(add, name=name)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ToolError, match=r"timeout_s of tool 'add' is .*; give seconds > 0"):
        tool(add, timeout_s=seconds)


def test_equal_names_are_refused() -> None:
    with pytest.raises(ToolError, match="tool name 'add' is used 2 times; give tool"):
        as_tools([add, tool(add)])


def test_tools_that_are_no_list_are_refused() -> None:
    with pytest.raises(ToolError, match=r"tools of type function cannot be used; give a list"):
        as_tools(add)  # type: ignore[arg-type]


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    def look(x: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(ToolError, match="tool 'look' cannot be resolved: name 'Missing'"):
        _ = tool(look).spec


@pytest.mark.parametrize("kind", [threading.Thread, Callable[[int], int]])
def test_an_annotation_without_a_schema_is_named(kind: object) -> None:
    def look(x: object) -> None: ...

    look.__annotations__["x"] = kind

    with pytest.raises(ToolError, match=r"tool 'look' .*; use types such as str, int"):
        _ = tool(look).spec


# -- calls -------------------------------------------------------------------------------------


# B27
def test_arguments_arrive_as_their_types() -> None:
    def ship(to: Address, lines: list[Line], when: tuple[int, int] = (1, 2)) -> list[str]:
        return [type(to).__name__, type(lines[0]).__name__, type(when).__name__]

    raw = '{"to":{"street":"s"},"lines":[{"sku":"a","count":"3"}],"when":[1,2]}'

    assert answer(ship, raw).text == '["Address","Line","tuple"]'


# B33
def test_big_integers_pass_unchanged() -> None:
    result = answer(add, f'{{"a":{2**80}}}')

    assert (result.text, result.is_error) == (str(2**80 + 2), False)
    assert (result.call_id, result.name) == ("c1", "add")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"a":"x"}', "arguments of 'add' do not fit: a: Input should be a valid integer"),
        ("{}", "arguments of 'add' do not fit: a: missing"),
        ('{"a":1,"c":2}', "arguments of 'add' do not fit: c: not a parameter"),
        ('{"a":1', "arguments of 'add' do not fit: Invalid JSON: EOF"),
        ("[1]", "arguments of 'add' do not fit: Input should be an object, got [1]"),
    ],
)
# B27
def test_bad_arguments_give_an_error_result_of_one_line(raw: str, text: str) -> None:
    result = answer(add, raw)

    assert result.is_error
    assert result.text.startswith(text)
    assert "\n" not in result.text


# B27
def test_an_unknown_tool_is_answered_with_near_names() -> None:
    assert answer(None, known=("lookup", "pay")).text == (
        "tool 'lokup' is not known; call one of 'lookup'"
    )
    assert answer(None).text == "tool 'lokup' is not known; no tools can be called here"
    assert answer(None).is_error


# B22
def test_a_call_cut_in_mid_stream_is_not_run() -> None:
    call = ToolCallBlock("c1", "add", '{"a":1}', complete=False)

    result = asyncio.run(
        call_tool(tool(add), call, known=["add"], idempotency_key="", report=print)
    )

    assert result.text == "the call of 'add' was cut before its end; not run"


@pytest.mark.parametrize("error", [ValueError("bad\nluck"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("is_async", [False, True])
# B27
def test_what_a_tool_raises_becomes_an_error_result(error: BaseException, is_async: bool) -> None:
    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    result = answer(fail_async if is_async else fail)

    assert result.is_error
    assert result.text == f"{type(error).__name__}: {error}".removesuffix(": ")


def test_a_long_error_text_is_cut_and_has_no_traceback() -> None:
    def fail() -> None:
        raise RuntimeError("x" * 5_000)

    text = answer(fail).text

    assert len(text) == 2_000
    assert text.startswith("RuntimeError: xxx")


def test_a_tool_that_raises_cancelled_by_itself_is_no_cancelled_run() -> None:
    async def fail() -> None:
        raise asyncio.CancelledError("mine")

    assert answer(fail).text == "CancelledError: mine"


# B27
def test_a_timeout_of_a_sync_tool_leaves_its_outcome_unknown() -> None:
    release = threading.Event()

    @tool(timeout_s=0.02)
    def hang() -> None:
        release.wait()

    result = answer(hang)
    release.set()

    assert result.is_error
    assert result.text == (
        "tool 'hang' did not finish within 0.02 s; it may still be running and its outcome is "
        "unknown, check before repeating"
    )


# B27
def test_a_timeout_stops_an_async_tool() -> None:
    ended: list[str] = []

    @tool(timeout_s=0.02)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")

    assert answer(hang).text == "tool 'hang' did not finish within 0.02 s and was stopped"
    assert ended == ["stopped"]


def test_a_timeout_error_of_the_tools_own_is_its_error() -> None:
    @tool(timeout_s=60)
    async def fail() -> None:
        raise TimeoutError("the server")

    assert answer(fail).text == "TimeoutError: the server"


# B23
def test_cancelling_drops_the_late_result_and_reports_of_a_sync_tool() -> None:
    started, release = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []
    reports: list[str] = []
    complaints: list[object] = []

    def slow(report: Callable[[str], None]) -> str:
        threads.append(threading.current_thread())
        started.set()
        release.wait()
        report("late")
        return "late"

    async def cancel_it() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        call = ToolCallBlock("c1", "slow")
        task = asyncio.create_task(
            call_tool(tool(slow), call, known=[], idempotency_key="", report=reports.append)
        )
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await asyncio.to_thread(threads[0].join)
        await asyncio.sleep(0)

    asyncio.run(cancel_it())

    assert (reports, complaints) == ([], [])


# B23
def test_cancelling_reaches_an_async_tool() -> None:
    async def cancel_it() -> bool:
        started = asyncio.Event()

        async def slow() -> None:
            started.set()
            await asyncio.Event().wait()

        call = ToolCallBlock("c1", "slow")
        task = asyncio.create_task(
            call_tool(tool(slow), call, known=[], idempotency_key="", report=print)
        )
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancel_it())


def test_a_hanging_tool_does_not_hold_up_the_exit_of_the_process() -> None:
    code = (
        "import asyncio, threading\n"
        "from nbdurable.blocks import ToolCallBlock\n"
        "from nbdurable.tools import call_tool, tool\n"
        "@tool(timeout_s=0.02)\n"
        "def hang() -> None:\n"
        "    threading.Event().wait()\n"
        "call = ToolCallBlock('c', 'hang')\n"
        "result = call_tool(hang, call, known=[], idempotency_key='', report=print)\n"
        "print(asyncio.run(result).is_error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "True"


# B28
def test_sync_tools_run_beside_each_other() -> None:
    barrier = threading.Barrier(20)

    def meet() -> int:
        return barrier.wait(timeout=30) * 0

    async def all_of_them() -> list[ToolResultBlock]:
        made, call = tool(meet), ToolCallBlock("c", "meet")
        calls = [
            call_tool(made, call, known=[], idempotency_key="", report=print) for _ in range(20)
        ]
        return await asyncio.gather(*calls)

    assert {result.text for result in asyncio.run(all_of_them())} == {"0"}


def test_a_sync_tool_runs_in_another_thread_with_the_callers_context() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("mine")

    def look() -> list[object]:
        return [variable.get(), threading.current_thread() is threading.main_thread()]

    assert answer(look).text == '["mine",false]'


def test_reports_arrive_in_order_before_the_result() -> None:
    def steps(report: Callable[[object], None]) -> str:
        for i in range(3):
            report(i)
        return "done"

    async def steps_async(report: Callable[[object], None]) -> str:
        report(0)
        await asyncio.to_thread(report, 1)
        report(2)
        return "done"

    heard: list[str] = []
    heard_async: list[str] = []
    answer(steps, reports=heard)
    answer(steps_async, reports=heard_async)

    assert heard == ["0", "1", "2"]
    assert sorted(heard_async) == ["0", "1", "2"]


# B31
def test_images_and_frames_that_a_tool_returns_are_in_the_result() -> None:
    def chart() -> tuple[object, ...]:
        return "see", Image.new("RGB", (3, 3)), pd.DataFrame({"x": [1]})

    text, image, frame = answer(chart).content

    assert (text, frame) == (TextBlock("see"), TextBlock("x\n1"))
    assert image.type == "image"
    assert Image.open(io.BytesIO(image.data)).size == (3, 3)


def test_a_long_result_is_kept_whole() -> None:
    def long() -> str:
        return "é" * 2_500_000

    assert len(answer(long).text) == 2_500_000


def test_a_result_block_of_the_tools_own_answers_its_call() -> None:
    def refuse() -> ToolResultBlock:
        return ToolResultBlock("other", (TextBlock("no"),), is_error=True)

    assert answer(refuse) == ToolResultBlock("c1", (TextBlock("no"),), is_error=True, name="refuse")


def test_a_result_without_content_of_its_own_is_refused() -> None:
    async def later() -> int:
        return 1

    def coroutine() -> object:
        return later()

    def generator() -> object:
        return (i for i in range(3))

    assert answer(coroutine).text.startswith("tool 'coroutine' returned a coroutine, which has no")
    assert answer(generator).text.startswith("tool 'generator' returned a generator, which has no")


def test_bound_methods_and_callable_objects_are_tools() -> None:
    class Shop:
        def count(self, sku: str) -> str:
            """Count."""
            return f"{sku}: 3"

        async def __call__(self, sku: str) -> str:
            return f"{sku}: called"

    shop = Shop()

    assert answer(shop.count, '{"sku":"a"}').text == "a: 3"
    assert answer(tool(shop, name="shop"), '{"sku":"a"}').text == "a: called"
    assert answer(tool(partial(add, b=40), name="more"), '{"a":2}').text == "42"
