"""Hearing of what others store: one connection that listens while somebody watches (B11).

Owns that connection, its thread, and who is woken. The one idea: a watcher is woken too often
rather than too seldom: whenever something may have been missed, and once a second where the server
tells nothing, as behind a pooler or on a server that has no LISTEN.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from nbdurable.errors import StoreError
from nbdurable.stores.postgres.address import Address
from nbdurable.watching import call

log = logging.getLogger("nbdurable")

Connection = psycopg.Connection[tuple[Any, ...]]
Wake = Callable[[], None]

TELL = "select pg_notify('nbdurable', topic) from unnest($1::text[]) as told (topic)"
_LISTEN = "listen nbdurable"
PROBE_S = 2.0  # in which a server that tells anything at all has told
POLL_S = 1.0  # between two looks where nothing is told
_DEAF_S = 60.0  # after which such a server is tried again
_CLOSE_S = 2.0


def topic(session_id: str) -> str:
    """Return under which name a session's changes are told; it holds nothing of the id."""
    return hashlib.sha256(session_id.encode(errors="replace")).hexdigest()[:32]


class Listener:
    """Wakes those who watch sessions of one database; from any thread.

    Parameters
    ----------
    address : Address
        The database.
    tell : callable
        Tells a topic over another connection than the listening one; may raise `StoreError`.
    """

    def __init__(self, address: Address, tell: Callable[[str], object]) -> None:
        self._address = address
        self._tell = tell
        self._lock = threading.Lock()
        self._watchers: list[tuple[str, Wake]] = []
        self._thread: threading.Thread | None = None
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._is_closed = False
        self._deaf_until = 0.0

    def watch(self, session_id: str, wake: Wake) -> Callable[[], None]:
        """Call `wake` now, and soon after each change of a session; return what ends that.

        It is called in a thread of ours and must return at once.
        """
        one = topic(session_id), wake
        with self._lock:
            self._watchers.append(one)
            if self._thread is None and not self._is_closed:
                self._start()
        call(wake)  # what came since the caller last looked

        def stop() -> None:
            with self._lock:
                self._watchers = [other for other in self._watchers if other is not one]
                if not self._watchers:
                    self._ring()

        return stop

    def close(self) -> None:
        """Hang up; nobody is woken any more."""
        with self._lock:
            self._is_closed = True
            self._watchers = []
            self._ring()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSE_S)  # it may be waiting for a server that does not answer

    # -- under the lock ------------------------------------------------------------------------

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="nbdurable-listener", daemon=True)
        bell = socket.socketpair()
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, and whoever watches with it
            _hang_up(bell)
            return
        self._thread, self._bell = thread, bell

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell[1].send(b"\0")

    # -- the thread ----------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._is_over():
            if time.monotonic() >= self._deaf_until:
                try:
                    with contextlib.closing(self._address.connect()) as connection:
                        self._listen(connection)
                except (StoreError, psycopg.Error) as exc:
                    log.debug("store %r is not listened to: %s", self._address.name,
                              type(exc).__name__)  # fmt: skip
            if self._has_watchers():
                self._wake()
                self._wait(POLL_S)

    def _is_over(self) -> bool:
        """Whether nobody watches any more; then this thread has ended for all others."""
        with self._lock:
            if self._watchers:
                return False
            bell, self._thread, self._bell = self._bell, None, None
        if bell is not None:
            _hang_up(bell)
        return True

    def _listen(self, connection: Connection) -> None:
        """Wake watchers as the server tells, until nobody is left or the server is deaf."""
        if not self._is_heard(connection):
            self._deaf_until = time.monotonic() + _DEAF_S
            log.debug("store %r tells nothing; it is asked every second", self._address.name)
            return
        self._wake()  # what was stored before it listened
        while self._has_watchers():
            self._wait(None, connection)
            self._wake(_told(connection))

    def _is_heard(self, connection: Connection) -> bool:
        """Listen, and look whether what another connection tells is heard."""
        try:
            connection.execute(_LISTEN)
        except (psycopg.NotSupportedError, psycopg.ProgrammingError, psycopg.InternalError):
            return False
        probe, deadline = f"probe {secrets.token_hex(8)}", time.monotonic() + PROBE_S
        self._tell(probe)
        while (left := deadline - time.monotonic()) > 0 and self._has_watchers():
            self._wait(left, connection)
            if probe in _told(connection):
                return True
        return not self._has_watchers()

    def _has_watchers(self) -> bool:
        with self._lock:
            return bool(self._watchers)

    def _wait(self, timeout_s: float | None, connection: Connection | None = None) -> None:
        """Wait until the server says something, or somebody has stopped watching."""
        with self._lock:
            bell = self._bell
        if bell is None:
            return
        with selectors.DefaultSelector() as selector:
            selector.register(bell[0], selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection.fileno(), selectors.EVENT_READ)
            for key, _ in selector.select(timeout_s):
                if key.fileobj is bell[0]:
                    bell[0].recv(4096)

    def _wake(self, topics: set[str] | None = None) -> None:
        """Wake who watches one of the topics, or everyone."""
        with self._lock:
            due = [wake for about, wake in self._watchers if topics is None or about in topics]
        for wake in due:
            call(wake)


def _told(connection: Connection) -> set[str]:
    """Return the topics that have arrived."""
    connection.pgconn.consume_input()
    topics = set()
    while (told := connection.pgconn.notifies()) is not None:
        topics.add(told.extra.decode())
    return topics


def _hang_up(bell: tuple[socket.socket, socket.socket]) -> None:
    for end in bell:
        end.close()
