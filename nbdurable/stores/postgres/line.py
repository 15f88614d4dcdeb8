"""A line to the server: one connection, made anew when it is lost, and transactions over it.

Owns the connection, when to try again, and how an unknown outcome becomes known. The one idea: a
transaction commits only while it holds its sessions' rows, so that whoever gets these rows after it
was cut off knows that it has ended, and finds its first row or never will (B67).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from nbdurable.errors import NbDurableError, StoreError
from nbdurable.stores.postgres import faults, texts
from nbdurable.stores.postgres.address import Address
from nbdurable.stores.postgres.batch import Batch
from nbdurable.stores.postgres.listening import TELL, topic

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Asked = tuple[str, Sequence[object]]

_MOST_TRIES = 20
_PAUSE_S = 0.05

_BEGIN = (
    "begin isolation level read committed",  # each statement sees what came before its own start
    "set local lock_timeout = '20s'",
    # A process that is stopped, or cut off, in mid-append must not keep others out for ever.
    "set local idle_in_transaction_session_timeout = '60s'",
)
_SNAPSHOT = (
    "begin isolation level repeatable read read only",
    "set local search_path = nbdurable, pg_catalog",
    "set local timezone = 'UTC'",
)
_LOCK = "select id from nbd.sessions where id = any($1::text[]) order by id for update"


class Transaction:
    """One transaction under way: what it asked, what it locked, what it is to store."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self._is_begun = False
        self._stored: psycopg.Cursor[tuple[Any, ...]] | None = None
        self.batch = Batch()
        self.locked: list[str] = []

    def ask(self, *questions: Asked) -> list[Rows]:
        """Return the answers to several questions, in one round trip."""
        with self._connection.pipeline():
            self._begin()
            cursors = [self._connection.execute(text, params) for text, params in questions]
        return [cursor.fetchall() for cursor in cursors]

    def lock(self, session_ids: Sequence[str], *questions: Asked) -> list[Rows]:
        """Keep others from writing to sessions; return the ids of those there are, and answers."""
        self.locked = sorted(set(session_ids))
        return self.ask((_LOCK, [self.locked]), *questions)

    def commit(self, *, tells: bool) -> None:
        """Store what was staged, all or nothing; then tell who listens, in the same round trip.

        Within the transaction, telling would have all commits of the server wait for each other.
        """
        with self._connection.pipeline():
            self._begin()
            for text, params in self.batch.statements():
                self._connection.execute(text, params)
            self._stored = self._connection.execute("commit")
            if tells and self.locked:
                self._connection.execute(TELL, [[topic(id) for id in self.locked]])

    @property
    def is_stored(self) -> bool:
        """Whether the server has said that all is stored."""
        return self._stored is not None and self._stored.statusmessage == "COMMIT"

    def _begin(self) -> None:
        if not self._is_begun:
            for text in _BEGIN:
                self._connection.execute(text)
            self._is_begun = True


@dataclass(frozen=True, slots=True)
class _Open:
    """A transaction that was cut off while it was being stored, and what it was to return."""

    batch: Batch
    locked: list[str]
    result: Any


class _Passed(Exception):
    """A try that failed for a reason that may pass."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__()
        self.error = error


def _is_stored(connection: psycopg.Connection[tuple[Any, ...]], one: _Open) -> bool:
    """Whether a transaction that was cut off was stored; it has ended when this returns."""
    transaction = Transaction(connection)
    table, column, key = one.batch.first()
    question = f"select 1 from nbd.{table} where {column} = $1 limit 1", [key]
    found = transaction.lock(one.locked, question)[1]
    connection.rollback()
    if found and one.locked:
        with contextlib.suppress(psycopg.Error):  # it may have been cut off before it told
            connection.execute(TELL, [[topic(id) for id in one.locked]])
    return bool(found)


class Line:
    """A connection for one thread."""

    def __init__(self, address: Address, *, patience_s: float) -> None:
        self._address = address
        self._patience_s = patience_s
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._tells = True  # until the server proves to have no way to

    # -- writing -------------------------------------------------------------------------------

    def write(self, plan: Callable[[Transaction], T]) -> T:
        """Return what a plan returns, once what it staged is stored.

        The plan is called again when nothing of it was stored and trying again may help.

        Raises
        ------
        StoreError
            The server is away, or refuses.
        """
        deadline = time.monotonic() + self._patience_s
        open_ones: list[_Open] = []
        tries = 0
        while True:
            tries += 1
            try:
                return self._try(plan, open_ones, deadline)
            except _Passed as passed:
                exc = passed.error
                if tries >= _MOST_TRIES or time.monotonic() > deadline:
                    raise self._told(exc, open_ones) from exc

    def _try(self, plan: Callable[[Transaction], T], open_ones: list[_Open], deadline: float) -> T:
        """Run a plan once, unless one that was cut off was stored after all.

        Raises
        ------
        _Passed
            Trying again may help.
        """
        is_storing, result = False, None
        try:
            connection = self._connected(deadline)
        except StoreError as exc:
            raise self._told(exc, open_ones) from None
        transaction = Transaction(connection)
        try:
            for one in open_ones:
                if _is_stored(connection, one):
                    return one.result  # type: ignore[no-any-return]
            result = plan(transaction)
            is_storing = True
            transaction.commit(tells=self._tells)
            return result
        except NbDurableError:
            self._roll_back(connection)
            for one in open_ones:  # what it found in its way may be what it stored itself
                if _is_stored(connection, one):
                    return one.result  # type: ignore[no-any-return]
            raise
        except psycopg.Error as exc:
            is_lost = faults.is_lost(exc, connection)
            self._roll_back(connection, is_lost=is_lost)
            if transaction.is_stored:
                no_way = psycopg.NotSupportedError | psycopg.errors.UndefinedFunction
                self._tells = not isinstance(exc, no_way)
                return result  # type: ignore[return-value]
            if is_lost and is_storing and len(transaction.batch):
                open_ones.append(_Open(transaction.batch, transaction.locked, result))
            if is_lost or faults.is_passing(exc):
                raise _Passed(exc) from exc
            raise self._told(exc, open_ones) from exc

    def _told(self, exc: Exception, open_ones: Sequence[_Open]) -> NbDurableError:
        told = exc if isinstance(exc, NbDurableError) else None
        if isinstance(exc, psycopg.Error):
            told = faults.told(exc, self._address)
        if open_ones or told is None:
            return StoreError(
                f"outcome of a write to store {self._address.name!r} is not known ({told}); "
                "look before you repeat it"
            )
        return told

    # -- reading -------------------------------------------------------------------------------

    def read(self, work: Callable[[psycopg.Connection[tuple[Any, ...]]], T]) -> T:
        """Return what `work` reads, which is called again when the connection was lost."""
        deadline = time.monotonic() + self._patience_s
        while True:
            connection = self._connected(deadline)
            try:
                return work(connection)
            except psycopg.Error as exc:
                is_lost = faults.is_lost(exc, connection)
                self._roll_back(connection, is_lost=is_lost)
                may_help = is_lost or isinstance(exc, psycopg.errors.SerializationFailure)
                if not may_help or time.monotonic() > deadline:
                    raise faults.told(exc, self._address) from exc

    def ask(self, *questions: Asked) -> list[Rows]:
        """Return the answers to several questions, in one round trip."""

        def answers(connection: psycopg.Connection[tuple[Any, ...]]) -> list[Rows]:
            if len(questions) == 1:
                return [connection.execute(*questions[0]).fetchall()]
            with connection.pipeline():
                cursors = [connection.execute(text, params) for text, params in questions]
            return [cursor.fetchall() for cursor in cursors]

        return self.read(answers)

    def snapshot(self, work: Callable[[psycopg.Connection[tuple[Any, ...]]], T]) -> T:
        """Return what `work` reads of one moment, with the views' names in reach; writes fail."""

        def in_one_moment(connection: psycopg.Connection[tuple[Any, ...]]) -> T:
            with connection.pipeline():
                for text in _SNAPSHOT:
                    connection.execute(text)
            try:
                return work(connection)
            finally:
                if not connection.closed:
                    connection.rollback()

        return self.read(in_one_moment)

    # -- the connection ------------------------------------------------------------------------

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self, deadline: float) -> psycopg.Connection[tuple[Any, ...]]:
        """Return the connection, made anew where it is lost; until then for a server to be back."""
        while self._connection is None or self._connection.closed:
            try:
                self._connection = self._address.connect()
                texts.adapt(self._connection)
            except StoreError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
        return self._connection

    def _roll_back(
        self, connection: psycopg.Connection[tuple[Any, ...]], *, is_lost: bool = False
    ) -> None:
        if is_lost:
            connection.close()
            return
        # A connection that cannot even do this is lost, and noticed at its next use.
        with contextlib.suppress(psycopg.Error):
            connection.rollback()
