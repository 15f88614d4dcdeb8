"""A proxy between a store and its server that cuts the line at a chosen message."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Pass bytes on, and cut once at the first that the client sends with some text in them."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._text = b""
        self._deliver = self._for_good = self._is_gone = False
        self.cuts = 0

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_gone = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def through(self, url: str) -> str:
        """Return the address of the same database by way of the proxy."""
        parts = urlsplit(url)
        port = self._listener.getsockname()[1]
        return urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))

    def cut_at(self, text: bytes, *, deliver: bool, for_good: bool = False) -> None:
        """Cut at the next message with `text`, after or before the server gets it."""
        self._text, self._deliver, self._for_good = text, deliver, for_good

    def _accept(self) -> None:
        while not self._is_gone:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._for_good and self.cuts:
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._server_port))
        back = threading.Thread(target=self._pass_back, args=(server, client), daemon=True)
        back.start()
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if self._text and self._text in data:
                    self._text = b""
                    self.cuts += 1
                    # The client learns nothing of what the server answers to this.
                    client.shutdown(socket.SHUT_RDWR)
                    if self._deliver:
                        server.sendall(data)
                        server.shutdown(socket.SHUT_WR)
                        back.join()
                    break
                server.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # the other thread may still read from it
            end.close()

    @staticmethod
    def _pass_back(server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                with contextlib.suppress(OSError):
                    client.sendall(data)
