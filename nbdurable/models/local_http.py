"""The local model as an OpenAI-like server on loopback.

Owns HTTP, the key and the wire form; what a request means to the model is `local_prompt`'s. The one
idea: a client of the server gets what a session gets in the process. The engine has a server of its
own, but that one ignores ``tool_choice`` and shows the model neither calls nor results.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import socket
import time
import weakref
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from nbdurable.background import background_loop, submit
from nbdurable.blocks import Json, TextBlock, ToolCallBlock
from nbdurable.errors import ModelError, shown
from nbdurable.models.base import (
    Assembly,
    CallDelta,
    Delta,
    Finish,
    Model,
    ModelRequest,
    TextDelta,
    ToolSpec,
)
from nbdurable.models.chat_format import message_from_openai
from nbdurable.models.local_prompt import left_out
from nbdurable.wire import dumps

MOST_BODY_BYTES = 64 << 20
LINGER_S = 1.0  # in which a refused client may finish what it sends

_OUR_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SYSTEM_ROLES = ("system", "developer")
_STATUS = {"context": 400, "other": 400, "unavailable": 503}

log = logging.getLogger("nbdurable")


class LocalEndpoint:
    """A server on a free port of loopback, for as long as its model is there.

    Attributes
    ----------
    base_url : str
        The address, with ``/v1``.
    key : str
        What a client must send as its bearer token.
    """

    def __init__(self, model: Model) -> None:
        self._model = weakref.ref(model)
        self._pid = os.getpid()
        self.key = secrets.token_urlsafe(16)
        listening = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        submit(self._listen(listening))

    @property
    def is_ours(self) -> bool:
        """Whether it was started in this process and not before a fork."""
        return self._pid == os.getpid()

    async def _listen(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(self._connected, sock=listening)
        loop, model = background_loop(), self._model()
        if model is None:
            server.close()
        else:
            weakref.finalize(model, loop.call_soon_threadsafe, server.close).atexit = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; a client that leaves ends the decoding."""
        with suppress(OSError, asyncio.IncompleteReadError):
            try:
                call = await _read_head(reader)
                self._admit(call)
                call = replace(call, body=await _read_body(call, reader, writer))
                work = asyncio.create_task(self._answer(call, writer))
                gone = asyncio.create_task(_until_gone(reader))
                try:
                    await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in (work, gone):
                        task.cancel()
                    await asyncio.wait({work, gone})
                if not work.cancelled():
                    work.result()
            except _Refused as exc:
                await _send(writer, exc.status, {"error": exc.error})
                await _let_finish(reader, writer)
            finally:
                writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _admit(self, call: _Call) -> None:
        """Refuse whoever may not ask, before a byte of a body is read.

        The key alone keeps others out; a page of a browser is refused even with it, also one whose
        name was made to lead here.
        """
        if "origin" in call.headers or call.headers.get("sec-fetch-site", "none") != "none":
            raise _Refused(403, "pages of browsers are not served")
        if not _is_ours(call.headers.get("host", "")):
            raise _Refused(403, "only requests to this machine are served")
        given = call.headers.get("authorization", "").removeprefix("Bearer ")
        is_known = secrets.compare_digest(given.encode(), self.key.encode())
        if call.route != "GET /health" and not is_known:
            raise _Refused(401, "the key is missing or wrong; send it as a bearer token")

    async def _answer(self, call: _Call, writer: asyncio.StreamWriter) -> None:
        model = self._model()
        if call.route == "GET /health":
            return await _send(writer, 200, {"status": "ok"})
        if call.route == "GET /v1/models":
            one = {"id": "local", "object": "model", "created": 0, "owned_by": "nbdurable"}
            return await _send(writer, 200, {"object": "list", "data": [one]})
        if call.route != "POST /v1/chat/completions":
            raise _Refused(404, f"{shown(call.route)} is not served; POST /v1/chat/completions is")
        if model is None:
            raise _Refused(503, "the model of this server is gone; ask for its endpoint again")
        body = call.json()
        try:
            async with aclosing(_deltas(model, request_of(body))) as deltas:
                if body.get("stream"):
                    await _stream(writer, deltas, with_usage=_wants_usage(body))
                else:
                    await _send(writer, 200, await _whole(deltas))
        except ModelError as exc:
            status = exc.status or _STATUS.get(exc.reason, 500)
            text = str(exc)
            if exc.reason == "context":  # in the words by which clients know it
                text = f"the request exceeds the context size: {text.partition(';')[0]}"
            raise _Refused(status, text) from exc


class _Refused(Exception):
    """A request that gets an error for its answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.error: dict[str, Json] = {"message": text, "type": kind, "code": status}


# -- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """One HTTP request."""

    route: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    def json(self) -> dict[str, Any]:
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError) as exc:
            raise _Refused(400, "the body is not JSON; send a chat completion request") from exc
        if not isinstance(body, dict):
            raise _Refused(400, "the body is no JSON object; send a chat completion request")
        return body


async def _read_head(reader: asyncio.StreamReader) -> _Call:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.LimitOverrunError as exc:
        raise _Refused(431, "the headers are too long") from exc
    method, _, rest = head[0].partition(" ")
    named = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in named}
    path = rest.partition(" ")[0].partition("?")[0]
    return _Call(f"{method} {path}", headers)


async def _read_body(
    call: _Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    length = call.headers.get("content-length", "0")
    if "transfer-encoding" in call.headers or not length.isdecimal():
        raise _Refused(411, "the length of the body is not given; send Content-Length")
    if len(length) > 20 or int(length) > MOST_BODY_BYTES:
        raise _Refused(413, f"the body has over {MOST_BODY_BYTES:,} bytes; send less")
    if call.headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return await reader.readexactly(int(length))


def _is_ours(place: str) -> bool:
    """Whether a Host is this machine, at any port; a program may send none, a browser does."""
    name, colon, port = place.rpartition(":")
    host = name if colon and port.isdecimal() else place
    return not host or host.lower() in _OUR_HOSTS


async def _let_finish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take what a refused client still sends: a line that is cut meanwhile loses the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            writer.write_eof()
            while await reader.read(1 << 16):
                pass


async def _until_gone(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(1024):
            pass


def request_of(body: Mapping[str, Any]) -> ModelRequest:
    """Return the request that a chat completion's body stands for."""
    try:
        chats = [dict(chat) for chat in body["messages"]]
        told = [chat for chat in chats if chat.get("role") in _SYSTEM_ROLES]
        said = [chat for chat in chats if chat.get("role") not in _SYSTEM_ROLES]
        system = [message_from_openai({**chat, "role": "user"}).text for chat in told]
        tools = [tool["function"] for tool in body.get("tools") or ()]
        return ModelRequest(
            messages=tuple(map(message_from_openai, said)),
            system="\n\n".join(system) or None,
            tools=tuple(
                ToolSpec(
                    str(tool["name"]),
                    str(tool.get("description") or ""),
                    dict(tool.get("parameters") or {}),
                )
                for tool in tools
            ),
            params=_params(body),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        what = " ".join(f"{type(exc).__name__}: {exc}".split())[:120]
        raise _Refused(400, f"the body is no chat completion request: {what}") from exc


def _params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that mean something here, as servers do with others: leave them."""
    unused = {"messages", "model", "tools", "stream", "stream_options", *left_out(body)}
    return {name: value for name, value in body.items() if name not in unused}


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


# -- answers -----------------------------------------------------------------------------------


async def _deltas(model: Model, request: ModelRequest) -> AsyncGenerator[Delta, None]:
    """Yield the model's deltas; whatever else than `ModelError` it raises is told without it."""
    try:
        async for delta in model.stream(request):
            yield delta
    except (ModelError, _Refused):
        raise
    except Exception as exc:
        log.exception("the local model failed")
        raise _Refused(500, f"the model failed: {type(exc).__name__}") from exc


async def _whole(deltas: AsyncGenerator[Delta, None]) -> dict[str, Json]:
    """Return an answer in one piece."""
    assembly = Assembly()
    async for delta in deltas:
        assembly.add(delta)
    finish, blocks = assembly.finish or Finish(), assembly.blocks()
    calls = [block for block in blocks if isinstance(block, ToolCallBlock)]
    text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
    message: dict[str, Json] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [_call(call.id, call.name, call.raw) for call in calls]
    choice = {"index": 0, "message": message, "finish_reason": finish.stop_reason}
    told = {"system_fingerprint": finish.fingerprint, "usage": _usage(finish)}
    return {**_head("chat.completion"), **told, "choices": [choice]}


async def _stream(
    writer: asyncio.StreamWriter, deltas: AsyncGenerator[Delta, None], *, with_usage: bool
) -> None:
    """Write an answer as server-sent events; an error before the first one is a plain answer."""
    head, has_begun = _head("chat.completion.chunk"), False
    try:
        async for delta in deltas:
            if not has_begun:
                _write_head(writer, 200, "text/event-stream", "Transfer-Encoding: chunked")
                await _event(writer, {**head, "choices": [_choice({"role": "assistant"})]})
                has_begun = True
            for event in _events(delta, with_usage):
                await _event(writer, {**head, **event})
    except (ModelError, _Refused) as exc:
        if not has_begun:
            raise
        await _event(writer, {"error": {"message": str(exc), "type": "server_error", "code": 500}})
    else:
        await _chunk(writer, b"data: [DONE]\n\n")
    await _chunk(writer, b"")


def _events(delta: Delta, with_usage: bool) -> Iterator[dict[str, Json]]:
    match delta:
        case TextDelta():
            yield {"choices": [_choice({"content": delta.text})]}
        case CallDelta():
            call = _call(delta.id, delta.name, delta.arguments)
            yield {"choices": [_choice({"tool_calls": [{"index": delta.key, **call}]})]}
        case Finish():
            told = {"system_fingerprint": delta.fingerprint}
            yield {**told, "choices": [_choice({}, delta.stop_reason)]}
            if with_usage:
                yield {**told, "choices": [], "usage": _usage(delta)}


def _head(kind: str) -> dict[str, Json]:
    made = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time())}
    return {**made, "object": kind, "model": "local"}


def _choice(delta: dict[str, Json], reason: str | None = None) -> dict[str, Json]:
    return {"index": 0, "delta": delta, "finish_reason": reason}


def _call(id: str, name: str, arguments: str) -> dict[str, Json]:
    """Return a call, or a piece of one, which has id and name in its first piece only."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"id": id, "type": "function", "function": function} if id else {"function": function}


def _usage(finish: Finish) -> dict[str, Json] | None:
    if finish.usage is None:
        return None
    read, written = finish.usage.input_tokens, finish.usage.output_tokens
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


# -- bytes -------------------------------------------------------------------------------------


def _write_head(writer: asyncio.StreamWriter, status: int, kind: str, *more: str) -> None:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {kind}"]
    lines += [*more, "Cache-Control: no-store", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode("ascii"))


async def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Json]) -> None:
    data = dumps(body).encode()
    _write_head(writer, status, "application/json", f"Content-Length: {len(data)}")
    writer.write(data)
    await writer.drain()


async def _event(writer: asyncio.StreamWriter, event: dict[str, Json]) -> None:
    await _chunk(writer, f"data: {dumps(event)}\n\n".encode())


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()
