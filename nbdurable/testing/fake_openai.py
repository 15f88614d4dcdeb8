"""A scripted OpenAI-compatible server on loopback, for tests without a key or a network.

Owns the sockets, the script and the record of requests; `steps` makes what is scripted. The one
idea: each failure happens for real, on the wire, at the byte where the test wants it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from nbdurable.testing.steps import USAGE, Action, HttpReply, status, text

Step = Sequence[Action] | Callable[[dict[str, Any]], Sequence[Action]]
"""Actions, or a function from the request's body to actions."""

_SLICE_S = 0.02  # how often a pause looks for a set event, a stop or a client that left
_MOST_S = 30.0  # no scripted wait outlives a test that failed


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One POST as it arrived; header names are in lower case."""

    path: str
    headers: dict[str, str] = field(repr=False)
    body: dict[str, Any]


class FakeOpenAI:
    """An OpenAI-compatible server that plays a script.

    Each POST is answered by the next step; the last one repeats. Usable as a context manager::

        with FakeOpenAI(steps.status(429, retry_after_s=0), steps.text("Hello")) as server:
            litellm.completion(model="openai/fake", api_base=server.base_url, api_key="x", ...)
            server.requests[-1].body["messages"]

    Parameters
    ----------
    *script : Step
        Lists of actions from `nbdurable.testing.steps`, or functions from a request's body to
        such a list. None at all answers ``ok``.
    max_parallel : int or None
        Answer 429 to requests beyond so many at once.

    Attributes
    ----------
    url, base_url : str
        The server's address, without and with ``/v1``.
    peak_parallel : int
        The most requests that were in flight at once.
    """

    def __init__(self, *script: Step, max_parallel: int | None = None) -> None:
        self._script: tuple[Step, ...] = script or (text("ok"),)
        self._max_parallel = max_parallel
        self._news = threading.Condition()
        self._requests: list[SeenRequest] = []
        self._disconnects = 0
        self._running = 0
        self.peak_parallel = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.base_url = f"{self.url}/v1"

    # -- life --------------------------------------------------------------------------------

    def start(self) -> FakeOpenAI:
        """Begin to answer."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._server.serve_forever, args=(_SLICE_S,), name="fake-openai", daemon=True
            )
            self._thread.start()
        return self

    def stop(self) -> None:
        """Close every connection and wait for the server's threads; may be called twice."""
        self._stopping.set()
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.hang_up()
        self._server.server_close()

    def __enter__(self) -> FakeOpenAI:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- script and record -------------------------------------------------------------------

    def script(self, *steps: Step) -> FakeOpenAI:
        """Play these steps from now on, and forget what was recorded."""
        with self._news:
            self._script = steps or (text("ok"),)
            self._requests = []
            self._disconnects = self.peak_parallel = 0
        return self

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests so far, oldest first."""
        with self._news:
            return list(self._requests)

    @property
    def disconnects(self) -> int:
        """How many clients left before their answer's end."""
        with self._news:
            return self._disconnects

    def wait_for_requests(self, count: int = 1, timeout_s: float = 10.0) -> list[SeenRequest]:
        """Block until so many requests have arrived, and return them.

        Raises
        ------
        TimeoutError
            They did not arrive in time.
        """
        self._wait(lambda: len(self._requests), count, "requests", timeout_s)
        return self.requests

    def wait_for_disconnects(self, count: int = 1, timeout_s: float = 10.0) -> None:
        """Block until so many clients have left in mid-answer.

        Raises
        ------
        TimeoutError
            They did not leave in time.
        """
        self._wait(lambda: self._disconnects, count, "disconnects", timeout_s)

    def _wait(self, seen: Callable[[], int], count: int, what: str, timeout_s: float) -> None:
        with self._news:
            if not self._news.wait_for(lambda: seen() >= count, timeout_s):
                raise TimeoutError(f"{count} {what} expected in {timeout_s:g} s, got {seen()}")

    # -- called by handlers ------------------------------------------------------------------

    def _begin(self, request: SeenRequest) -> tuple[int, Step]:
        with self._news:
            number = len(self._requests)
            self._requests.append(request)
            self._running += 1
            self.peak_parallel = max(self.peak_parallel, self._running)
            self._news.notify_all()
            if self._max_parallel is not None and self._running > self._max_parallel:
                return number, status(429, "too many requests at once", retry_after_s=0)
            return number, self._script[min(number, len(self._script) - 1)]

    def _end(self, *, client_left: bool) -> None:
        with self._news:
            self._running -= 1
            self._disconnects += client_left
            self._news.notify_all()


class _Server(ThreadingHTTPServer):
    """Threads are joined at close, so their connections are known and can be hung up on."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, fake: FakeOpenAI) -> None:
        self.fake = fake
        self._live: set[socket.socket] = set()
        self._live_lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._live_lock:
            self._live.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._live_lock:
            self._live.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Wake every thread that reads from an idle connection."""
        with self._live_lock:
            live = list(self._live)
        for connection in live:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # closed already, by the client or by its own thread

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay quiet: a client that leaves between requests is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        models = [{"id": "fake", "object": "model"}]
        self._json(HttpReply(200, {"object": "list", "data": models}, {}))

    def do_POST(self) -> None:
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, step = fake._begin(SeenRequest(self.path, headers, body))
        left = False
        try:
            _Player(self, number, body).play(step(body) if callable(step) else step)
        except (BrokenPipeError, ConnectionResetError):
            left = not fake._stopping.is_set()
            self.close_connection = True
        finally:
            fake._end(client_left=left)

    def _json(self, answer: HttpReply) -> None:
        data = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def pause(self, seconds: float, event: threading.Event | None = None) -> None:
        """Wait for the time, the event or the server's stop; raise if the client leaves."""
        until = time.monotonic() + seconds
        while not self.server.fake._stopping.is_set() and not (event and event.is_set()):
            left_s = until - time.monotonic()
            if left_s <= 0:
                return
            if self._client_left(min(left_s, _SLICE_S)):
                raise ConnectionResetError("client left")

    def _client_left(self, wait_s: float) -> bool:
        self.connection.settimeout(wait_s)
        try:
            if not self.connection.recv(1, socket.MSG_PEEK):
                return True
        except TimeoutError:
            return False
        finally:
            self.connection.settimeout(None)
        self.server.fake._stopping.wait(wait_s)  # a next request is waiting already
        return False


class _Player:
    """Plays one step on one connection, as a stream or as one JSON answer."""

    def __init__(self, handler: _Handler, number: int, body: dict[str, Any]) -> None:
        self._handler = handler
        self._number = number
        self._body = body
        self._stream = bool(body.get("stream"))
        self._begun = False
        self._whole = _Whole()

    def play(self, step: Sequence[Action]) -> None:
        for action in step:
            if not self._do(action.kind, action.value):
                return
        if not self._stream and not self._begun:
            answer = self._whole.answer(self._envelope("chat.completion"))
            self._handler._json(HttpReply(200, answer, {}))

    def _do(self, kind: str, value: Any) -> bool:
        """Do one action; False ends the step."""
        match kind:
            case "reply":
                self._handler._json(value)
                return False
            case "drop" | "reset":
                self._break(reset=kind == "reset")
                return False
            case "eof" | "done":
                self._close_body(b"data: [DONE]\n\n" if kind == "done" else b"")
                return not (self._stream or self._begun)
            case "sleep":
                self._handler.pause(value)
            case "hang":
                self._handler.pause(_MOST_S)
            case "wait":
                self._handler.pause(_MOST_S, value)
            case "raw":
                self._send(value)
            case _:
                self._say(kind, value)
        return True

    def _say(self, kind: str, value: Any) -> None:
        if not self._stream:
            self._whole.add(kind, value)
        elif kind == "usage":
            if (self._body.get("stream_options") or {}).get("include_usage"):
                self._chunk({"choices": [], "usage": value})
        else:
            fields, reason = (value, None) if kind == "delta" else ({}, value)
            self._chunk({"choices": [{"index": 0, "delta": fields, "finish_reason": reason}]})

    def _envelope(self, kind: str) -> dict[str, Any]:
        model = self._body.get("model", "fake")
        return {"id": f"chatcmpl-{self._number}", "object": kind, "created": 1, "model": model}

    def _chunk(self, fields: dict[str, Any]) -> None:
        chunk = {**self._envelope("chat.completion.chunk"), **fields}
        self._send(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def _send(self, data: bytes) -> None:
        self._begin_body()
        if data:
            self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _begin_body(self) -> None:
        if self._begun:
            return
        self._begun = True
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def _close_body(self, last: bytes) -> None:
        if self._stream or self._begun:
            self._send(last)
            self._handler.wfile.write(b"0\r\n\r\n")

    def _break(self, *, reset: bool) -> None:
        self._handler.close_connection = True
        connection = self._handler.connection
        if reset:
            # no lingering: the close that follows sends RST in place of FIN
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            connection.shutdown(socket.SHUT_RDWR)


class _Whole:
    """The same script as one answer, for a client that does not stream."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._reason = "stop"
        self._usage: Any = dict(USAGE)

    def add(self, kind: str, value: Any) -> None:
        if kind == "finish":
            self._reason = value
        elif kind == "usage":
            self._usage = value
        else:
            for name, part in value.items():
                if name == "tool_calls":
                    for fragment in part:
                        self._add_call(fragment)
                elif part is not None and name != "role":
                    held = self._message.get(name)
                    self._message[name] = part if held is None else held + part

    def _add_call(self, fragment: dict[str, Any]) -> None:
        if "id" in fragment:
            blank = {"name": "", "arguments": ""}
            self._calls.append({"id": fragment["id"], "type": "function", "function": blank})
        function = self._calls[-1]["function"]
        for name in ("name", "arguments"):
            function[name] += fragment["function"].get(name) or ""

    def answer(self, envelope: dict[str, Any]) -> dict[str, Any]:
        calls = {"tool_calls": self._calls} if self._calls else {}
        message = {**self._message, **calls}
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {**envelope, "choices": [choice], "usage": self._usage}
