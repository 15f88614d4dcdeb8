"""The scripted server does on the wire what its steps say."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from nbdurable.testing import FakeOpenAI, steps


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


def post(server: FakeOpenAI, *, stream: bool = True) -> http.client.HTTPResponse:
    body = {"model": "m", "stream": stream, "stream_options": {"include_usage": True}}
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), 10)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"X-Mark": "yes"})
    response = connection.getresponse()
    response.owner = connection  # keeps the socket until `read_all` closes both
    return response


def read_all(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read()
    finally:
        response.close()
        response.owner.close()


def chunks(data: bytes) -> list[dict]:
    lines = [line[6:] for line in data.split(b"\n\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def deltas(data: bytes, name: str) -> list:
    found = [c["choices"][0]["delta"].get(name) for c in chunks(data) if c["choices"]]
    return [value for value in found if value]


def test_text_is_streamed_in_chunks_with_finish_and_usage(server: FakeOpenAI) -> None:
    server.script(steps.text("Hello world", size=4))

    data = read_all(post(server))

    assert deltas(data, "content") == ["Hell", "o wo", "rld"]
    assert chunks(data)[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks(data)[-1]["usage"]["total_tokens"] == 18
    assert data.endswith(b"data: [DONE]\n\n")


def test_thinking_comes_before_text(server: FakeOpenAI) -> None:
    server.script(steps.text("42", thinking="let me see"))

    data = read_all(post(server))

    assert deltas(data, "reasoning_content") == ["let me see"]


def test_tool_calls_are_fragments_with_the_id_in_the_first_only(server: FakeOpenAI) -> None:
    server.script(steps.tools(("add", {"a": 1}), ("now", "")))

    parts = [part for call in deltas(read_all(post(server)), "tool_calls") for part in call]

    assert [part["id"] for part in parts if "id" in part] == ["call_0", "call_1"]
    text = "".join(p["function"].get("arguments", "") for p in parts if p["index"] == 0)
    assert json.loads(text) == {"a": 1}


def test_calls_may_share_index_zero_as_local_servers_do(server: FakeOpenAI) -> None:
    server.script(steps.tools(("add", {"a": 1}), ("add", {"a": 2}), same_index=True))

    parts = [part for call in deltas(read_all(post(server)), "tool_calls") for part in call]

    assert {part["index"] for part in parts} == {0}
    assert [part["id"] for part in parts if "id" in part] == ["call_0", "call_1"]


@pytest.mark.parametrize("same_index", [False, True])
def test_a_client_that_does_not_stream_gets_one_answer(
    server: FakeOpenAI, same_index: bool
) -> None:
    step = steps.tools(("add", {"a": 1}), ("mul", {"b": 2}), content="So", same_index=same_index)
    server.script(step)

    answer = json.loads(read_all(post(server, stream=False)))

    message = answer["choices"][0]["message"]
    assert message["content"] == "So"
    assert [c["function"]["name"] for c in message["tool_calls"]] == ["add", "mul"]
    assert [c["function"]["arguments"] for c in message["tool_calls"]] == ['{"a": 1}', '{"b": 2}']
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert answer["usage"] == dict(steps.USAGE)


def test_steps_answer_in_order_and_the_last_repeats(server: FakeOpenAI) -> None:
    server.script(steps.status(503), steps.text("a"), steps.text("b"))

    seen = [post(server) for _ in range(4)]
    bodies = [read_all(response) for response in seen]

    assert [response.status for response in seen] == [503, 200, 200, 200]
    assert [deltas(body, "content") for body in bodies[1:]] == [["a"], ["b"], ["b"]]


def test_a_step_may_be_a_function_of_the_request(server: FakeOpenAI) -> None:
    server.script(lambda body: steps.text(f"you are {body['model']}", size=99))

    data = read_all(post(server))

    assert deltas(data, "content") == ["you are m"]


def test_a_status_carries_retry_after_and_an_error_body(server: FakeOpenAI) -> None:
    server.script(steps.status(429, "slow down", retry_after_s=1.5))

    response = post(server)
    body = json.loads(read_all(response))

    assert (response.status, response.headers["Retry-After"]) == (429, "1.5")
    assert body["error"]["message"] == "slow down"


def test_requests_are_recorded_with_headers_and_forgotten_by_script(server: FakeOpenAI) -> None:
    read_all(post(server))
    seen = server.requests

    server.script(steps.text("next"))

    assert [(r.path, r.headers["x-mark"], r.body["model"]) for r in seen] == [
        ("/v1/chat/completions", "yes", "m")
    ]
    assert server.requests == []


def test_a_drop_ends_the_body_too_early(server: FakeOpenAI) -> None:
    server.script([*steps.text("Hello world")[:3], steps.drop()])

    with pytest.raises(http.client.IncompleteRead) as caught:
        read_all(post(server))

    assert deltas(caught.value.partial, "content") == ["Hell", "o wo"]


def test_a_reset_is_a_reset(server: FakeOpenAI) -> None:
    server.script([steps.wait(go := threading.Event()), steps.reset()])
    connection = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 10)
    connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
    server.wait_for_requests(1)

    go.set()

    with connection, pytest.raises(ConnectionResetError):
        connection.recv(1)


def test_eof_ends_the_body_well_without_a_finish(server: FakeOpenAI) -> None:
    server.script([*steps.text("Hello")[:2], steps.eof()])

    data = read_all(post(server))

    assert deltas(data, "content") == ["Hell"]
    assert b"DONE" not in data


def test_raw_bytes_are_sent_as_they_are(server: FakeOpenAI) -> None:
    server.script([steps.raw(b"data: {not json}\n\n"), steps.eof()])

    data = read_all(post(server))

    assert data == b"data: {not json}\n\n"


def test_wait_holds_the_answer_until_the_event_is_set(server: FakeOpenAI) -> None:
    go = threading.Event()
    server.script([steps.delta(content="a"), steps.wait(go), *steps.text("b")])
    response = post(server)
    first = response.readline()

    go.set()
    rest = read_all(response)

    assert b'"a"' in first
    assert b'"b"' in rest


def test_a_client_that_leaves_a_silent_stream_is_noticed(server: FakeOpenAI) -> None:
    server.script([steps.delta(content="a"), steps.hang()])
    response = post(server)
    response.readline()

    response.close()
    response.owner.close()

    server.wait_for_disconnects(1)
    assert server.disconnects == 1


def test_a_client_that_reads_to_the_end_is_no_disconnect(server: FakeOpenAI) -> None:
    read_all(post(server))
    read_all(post(server))

    assert server.disconnects == 0


def test_more_than_max_parallel_requests_are_refused() -> None:
    go = threading.Event()
    with FakeOpenAI([steps.wait(go), *steps.text("ok")], max_parallel=1) as server:
        answers: list[int] = []
        first = threading.Thread(
            target=lambda: (read_all(r := post(server)), answers.append(r.status))
        )
        first.start()
        server.wait_for_requests(1)

        second = post(server)
        read_all(second)
        go.set()
        first.join()

    assert (answers, second.status, server.peak_parallel) == ([200], 429, 2)


def test_waiting_for_what_does_not_come_says_what_was_seen(server: FakeOpenAI) -> None:
    with pytest.raises(TimeoutError, match=r"2 requests expected in 0\.01 s, got 0"):
        server.wait_for_requests(2, timeout_s=0.01)
    with pytest.raises(TimeoutError, match=r"1 disconnects expected in 0\.01 s, got 0"):
        server.wait_for_disconnects(1, timeout_s=0.01)


def test_stop_ends_hanging_answers_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    server = FakeOpenAI([steps.delta(content="a"), steps.hang()]).start()
    response = post(server)
    response.readline()

    server.stop()
    server.stop()

    response.close()
    response.owner.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        post(server)


def test_many_streams_run_at_once(server: FakeOpenAI) -> None:
    server.script(steps.text("x" * 40))
    bodies: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: bodies.append(read_all(post(server)))) for _ in range(20)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["".join(deltas(body, "content")) for body in bodies] == ["x" * 40] * 20
