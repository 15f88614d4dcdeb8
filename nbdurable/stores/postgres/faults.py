"""What PostgreSQL reports, told as the package's own errors (B63).

No text of ours repeats a stored value: of what the server says only its first line is passed on,
and only where that speaks of the database and not of a value.
"""

from __future__ import annotations

import psycopg
from psycopg import errors

from nbdurable.errors import EntryError, NbDurableError, StoreError, StoreLocked
from nbdurable.stores.postgres.address import Address

_GOING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)


def is_lost(exc: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """Whether the connection is gone, so that what was asked last may have been done."""
    return connection.closed or isinstance(exc, (*_GOING, errors.IdleInTransactionSessionTimeout))


def is_passing(exc: psycopg.Error) -> bool:
    """Whether nothing was done and the same may be tried again at once.

    A key that is taken is told by the checks of the next try, which say what is there.
    """
    return isinstance(exc, _AGAIN)


def told(exc: psycopg.Error, address: Address) -> NbDurableError:
    """Return the error to raise for what the server refused."""
    name, line = repr(address.name), address.without_secrets(exc)
    if isinstance(exc, errors.LockNotAvailable):
        return StoreLocked(
            f"store {name} is locked: another connection has been writing to this session for "
            "long; try again, or look for it in pg_stat_activity",
            path=address.name,
        )
    if isinstance(exc, psycopg.DataError | errors.ProgramLimitExceeded | errors.CheckViolation):
        return EntryError(
            f"a value cannot be stored in {name} ({type(exc).__name__}); "
            "give text, finite numbers and times of the documented types"
        )
    if isinstance(exc, errors.DiskFull):
        return StoreError(f"disk of store {name} is full ({line}); free space and try again")
    if isinstance(exc, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
        return StoreError(
            f"store {name} cannot be written ({line}); ask for the rights, or for the server that "
            "takes writes"
        )
    return StoreError(f"store {name} failed ({line}); see the server's log")
