"""The local model's server on loopback, over a scripted model: wire form, key, errors, cancels."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from nbdurable.background import background_loop
from nbdurable.blocks import ToolCallBlock, ToolResultBlock
from nbdurable.errors import ModelError
from nbdurable.models.base import Finish, TextDelta
from nbdurable.models.local_http import MOST_BODY_BYTES, LocalEndpoint
from nbdurable.models.scripted import ScriptedModel, calls

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"


@dataclass
class Client:
    """Who asks a server over HTTP."""

    model: ScriptedModel
    endpoint: LocalEndpoint

    @property
    def address(self) -> tuple[str, int]:
        url = urlsplit(self.endpoint.base_url)
        return str(url.hostname), int(url.port or 0)

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        given = {"Authorization": f"Bearer {self.endpoint.key}", **headers}
        with closing(connection):
            connection.request(method, path, body, given)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def ask(self, **body: Any) -> tuple[int, Any]:
        status, text = self.send("POST", PATH, json.dumps({**HI, **body}).encode())
        return status, json.loads(text)

    def stream(self, **body: Any) -> list[Any]:
        data = json.dumps({**HI, "stream": True, **body}).encode()
        status, text = self.send("POST", PATH, data)
        assert status == 200
        events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        return [event if event == "[DONE]" else json.loads(event) for event in events]


def serving(*steps: Any) -> Client:
    model = ScriptedModel(*steps)
    return Client(model, LocalEndpoint(model))


@pytest.fixture
def client() -> Iterator[Client]:
    yield serving("Hello there.")


# -- answers ---------------------------------------------------------------------------------------


def test_an_answer_in_one_piece_has_text_reason_and_usage(client: Client) -> None:
    status, answer = client.ask()

    (choice,) = answer["choices"]
    assert (status, answer["object"]) == (200, "chat.completion")
    assert choice["message"] == {"role": "assistant", "content": "Hello there."}
    assert choice["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


def test_a_streamed_answer_comes_as_events(client: Client) -> None:
    first, *pieces, last, done = client.stream()

    assert first["choices"][0]["delta"] == {"role": "assistant"}
    assert len(pieces) > 1
    said = "".join(piece["choices"][0]["delta"]["content"] for piece in pieces)
    assert said == "Hello there."
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert done == "[DONE]"
    assert len({event["id"] for event in (first, *pieces, last)}) == 1


def test_usage_is_streamed_when_it_is_asked_for(client: Client) -> None:
    *_, usage, done = client.stream(stream_options={"include_usage": True})

    assert (usage["choices"], done) == ([], "[DONE]")
    assert usage["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True])
def test_calls_arrive_whole_in_either_form(stream: bool) -> None:
    client = serving(calls(("add", {"a": 1, "b": 2}), ("look", {}), text="Well."))

    if stream:
        pieces = [
            piece
            for event in client.stream()[:-1]
            for piece in event["choices"][0]["delta"].get("tool_calls", ())
        ]
        names = [piece["function"].get("name") for piece in pieces]
        raw = ["", ""]
        for piece in pieces:
            raw[piece["index"]] += piece["function"]["arguments"]
    else:
        found = client.ask()[1]["choices"][0]["message"]["tool_calls"]
        names = [call["function"]["name"] for call in found]
        raw = [call["function"]["arguments"] for call in found]

    assert [name for name in names if name] == ["add", "look"]
    assert [json.loads(text) for text in raw] == [{"a": 1, "b": 2}, {}]


# -- requests --------------------------------------------------------------------------------------


def test_what_the_client_said_reaches_the_model(client: Client) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    tool = {"name": "add", "description": "Add.", "parameters": {"type": "object"}}

    client.ask(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Add 1."}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
        ],
        tools=[{"type": "function", "function": tool}],
        tool_choice="required",
        temperature=0,
    )

    (request,) = client.model.requests
    user, assistant, result = request.messages
    assert (request.system, user.text) == ("Be brief.", "Add 1.")
    (asked,), (given,) = assistant.blocks, result.blocks
    assert isinstance(asked, ToolCallBlock) and isinstance(given, ToolResultBlock)
    assert (asked.name, asked.raw, given.call_id, given.text) == ("add", '{"a":1}', "c", "2")
    assert [spec.to_dict() for spec in request.tools] == [tool]
    assert request.params == {"tool_choice": "required", "temperature": 0}


def test_parameters_that_mean_nothing_here_are_left_out_in_silence(client: Client) -> None:
    status, _ = client.ask(model="anything", reasoning_effort="high", n=3, logprobs=True)

    assert status == 200
    assert client.model.requests[0].params == {}


BAD_BODIES = [
    (b"{", "the body is not JSON; send a chat completion request"),
    (b"[" * 100_000, "the body is not JSON; send a chat completion request"),
    (b"[]", "the body is no JSON object; send a chat completion request"),
    (b"{}", "the body is no chat completion request: KeyError: 'messages'"),
    (b'{"messages": [3]}', "the body is no chat completion request: TypeError: "),
    (b'{"messages": [{"role": "clown"}]}', "no chat completion request: ValueError: role 'clown'"),
    (b'{"messages": [], "tools": [{}]}', "no chat completion request: KeyError: 'function'"),
]


@pytest.mark.parametrize(("body", "text"), BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_a_bad_request_says_what_is_wrong(client: Client, body: bytes, text: str) -> None:
    status, answer = client.send("POST", PATH, body)

    assert status == 400
    assert text in json.loads(answer)["error"]["message"]
    assert client.model.requests == ()


def test_other_addresses_are_not_found(client: Client) -> None:
    assert client.send("GET", "/v1/secrets")[0] == 404
    assert client.send("GET", PATH)[0] == 404


def test_the_model_is_listed(client: Client) -> None:
    status, text = client.send("GET", "/v1/models")

    assert (status, [one["id"] for one in json.loads(text)["data"]]) == (200, ["local"])


def raw(client: Client, head: str) -> str:
    with socket.create_connection(client.address, timeout=20) as connection:
        connection.sendall(head.encode())
        return connection.makefile("rb").read().decode()


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("Transfer-Encoding: chunked", "411 Length Required"),
        ("Content-Length: few", "411 Length Required"),
        (f"Content-Length: {MOST_BODY_BYTES + 1}", "413 Request Entity Too Large"),
        ("Content-Length: " + "9" * 5000, "413 Request Entity Too Large"),
        ("X: " + "y" * 100_000, "431 Request Header Fields Too Large"),
    ],
)
def test_a_request_of_no_sound_size_is_refused(client: Client, lines: str, status: str) -> None:
    head = f"POST {PATH} HTTP/1.1\r\nAuthorization: Bearer {client.endpoint.key}\r\n"

    answer = raw(client, f"{head}{lines}\r\n\r\n")

    assert answer.startswith(f"HTTP/1.1 {status}\r\n")


def test_a_client_that_waits_for_a_go_ahead_gets_one(client: Client) -> None:
    body = json.dumps(HI)
    key = client.endpoint.key
    head = f"POST {PATH} HTTP/1.1\r\nAuthorization: Bearer {key}\r\nExpect: 100-continue\r\n"

    answer = raw(client, f"{head}Content-Length: {len(body)}\r\n\r\n{body}")

    assert answer.startswith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


# -- the key ---------------------------------------------------------------------------------------


# B69
@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic \u00e9"])
@pytest.mark.parametrize("route", [f"POST {PATH}", "GET /v1/models", "GET /other"])
def test_nothing_is_served_without_the_key(client: Client, given: str, route: str) -> None:
    status, text = client.send(*route.split(), json.dumps(HI).encode(), Authorization=given)

    assert status == 401
    assert json.loads(text)["error"]["message"].startswith("the key is missing or wrong; send")
    assert client.endpoint.key not in text
    assert client.model.requests == ()


def test_its_health_is_no_secret(client: Client) -> None:
    assert client.send("GET", "/health", Authorization="")[0] == 200


# B69
@pytest.mark.parametrize(
    ("route", "lines"),
    [
        (f"OPTIONS {PATH}", "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST"),
        (f"POST {PATH}", "Origin: http://evil.example"),
        (f"POST {PATH}", "Origin: http://localhost:8888"),
        (f"POST {PATH}", "Origin: null"),
        ("GET /v1/models", "Sec-Fetch-Site: cross-site"),
        ("GET /v1/models", "Host: evil.example:{port}"),
        ("GET /v1/models", "Host: 127.0.0.1.evil.example"),
        ("GET /health", "Host: evil.example"),
    ],
)
def test_no_page_of_a_browser_is_let_in_even_with_the_key(
    client: Client, route: str, lines: str
) -> None:
    """A page of another origin, or of a name that was made to lead to loopback."""
    lines = lines.format(port=client.address[1])
    key = f"Authorization: Bearer {client.endpoint.key}"

    answer = raw(client, f"{route} HTTP/1.1\r\n{lines}\r\n{key}\r\n\r\n")

    assert answer.startswith("HTTP/1.1 403 Forbidden\r\n")
    assert "access-control" not in answer.lower()
    assert client.model.requests == ()


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "LOCALHOST:9999", "localhost", "[::1]:1"])
def test_this_machine_is_let_in_by_any_of_its_names(client: Client, host: str) -> None:
    name = host.format(port=client.address[1])

    assert client.send("GET", "/v1/models", Host=name)[0] == 200


# B69
def test_no_body_is_taken_from_a_caller_without_the_key(client: Client) -> None:
    """More than the line's buffers hold is sent, so that the server must let it go by."""
    status, text = client.send("POST", PATH, b" " * (8 << 20), Authorization="Bearer wrong")

    assert status == 401
    assert len(text) < 200 and client.model.requests == ()


# B69
def test_a_caller_without_the_key_learns_nothing_of_the_size_it_may_send(client: Client) -> None:
    answer = raw(client, f"POST {PATH} HTTP/1.1\r\nContent-Length: {MOST_BODY_BYTES + 1}\r\n\r\n")

    assert answer.startswith("HTTP/1.1 401 Unauthorized\r\n")


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (
            ModelError("prompt of 9 tokens is too long; compact", reason="context", status=400),
            400,
            "the request exceeds the context size: prompt of 9 tokens is too long",
        ),
        (ModelError("weights are missing", reason="unavailable"), 503, "weights are missing"),
        (ModelError("it broke", reason="server", status=500), 500, "it broke"),
        (KeyError("inner"), 500, "the model failed: KeyError"),
    ],
)
def test_a_failure_before_the_answer_is_a_status(
    stream: bool, error: Exception, status: int, text: str
) -> None:
    found, answer = serving(error).ask(stream=stream)

    assert (found, answer["error"]["message"]) == (status, text)


def test_a_failure_within_a_stream_is_its_last_event() -> None:
    *_, last = serving(["Well, ", ModelError("it broke")]).stream()

    assert last["error"]["message"] == "it broke"


# B23
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_the_answer(stream: bool) -> None:
    never = threading.Event()
    client = serving(["Well, ", never])
    connection = http.client.HTTPConnection(*client.address, timeout=20)
    headers = {"Authorization": f"Bearer {client.endpoint.key}"}
    connection.request("POST", PATH, json.dumps({**HI, "stream": stream}).encode(), headers)
    client.model.wait_for_request()

    connection.close()

    client.model.wait_for_cancel()


def test_many_clients_are_served_at_once() -> None:
    gate = threading.Event()
    client = serving(["a", gate, TextDelta("b"), Finish()])
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(client.ask())) for _ in range(5)]
    for thread in threads:
        thread.start()
    client.model.wait_for_request(5)

    gate.set()
    for thread in threads:
        thread.join(20)

    assert [answer["choices"][0]["message"]["content"] for _, answer in answers] == ["ab"] * 5


# B54
def test_the_port_is_closed_when_the_model_is_gone() -> None:
    model, is_gone = ScriptedModel("ok"), threading.Event()
    weakref.finalize(model, is_gone.set)  # the first made is called last
    client = Client(model, LocalEndpoint(model))
    client.ask()

    client.model = model = None  # type: ignore[assignment]
    gc.collect()

    assert is_gone.wait(20)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), background_loop()).result(20)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(client.address, timeout=20)
