"""The one thread that writes: a queue of plans, a transaction for those queued together.

Owns the thread, the transaction and what is told when a commit fails. The one idea: nobody but
this thread writes, so an interrupt of a caller cannot tear an append, checks and writes need no
lock, and every outcome is certain before it is told (B67).
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb

from nbdurable.errors import NbDurableError, StoreClosed, StoreError, StoreLocked
from nbdurable.stores.duckdb import faults, repair
from nbdurable.stores.duckdb.batch import Batch, Inserter, Query
from nbdurable.stores.duckdb.errands import Append, DoneElsewhere, Errand, Errands, Request, Stored
from nbdurable.stores.duckdb.lease import Lease
from nbdurable.stores.duckdb.plans import Plans
from nbdurable.stores.duckdb.schema import ALIAS
from nbdurable.stores.duckdb.state import State
from nbdurable.stores.duckdb.tail import Tail

T = TypeVar("T")
Plan = Callable[[Plans, Batch], T]

_MOST_PLANS = 256  # of one transaction
_WAIT_S = 0.2  # a slice of a caller's wait, between which an interrupt gets through
_IDLE_S = 0.3


class _Op:
    """One call in the queue: its plan, then its result or its error."""

    __slots__ = ("_done", "error", "plan", "result")

    def __init__(self, plan: Plan[Any]) -> None:
        self.plan = plan
        self.result: Any = None
        self.error: BaseException | None = None
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def finish(self, error: BaseException | None = None) -> None:
        self.error = error
        self._done.set()

    def wait(self, thread: threading.Thread) -> Any:
        while not self._done.wait(_WAIT_S):
            if not thread.is_alive() and not self._done.is_set():
                raise StoreError("the writer's thread is gone; open the store again")
        if self.error is not None:
            raise self.error
        return self.result


@dataclass(frozen=True, slots=True)
class _Failure:
    """What to tell of a transaction, and whether nothing of it was stored for certain."""

    error: BaseException
    is_certain: bool = True


class Writer:
    """Run plans one after the other in a thread of its own, started at first need."""

    def __init__(self, lease: Lease, errands: Errands) -> None:
        self._lease = lease
        self._errands = errands
        self._queue: queue.SimpleQueue[list[_Op] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._tail = Tail(lease.path)
        lease.on_leaving = self._tail.put
        self._state = State(self._look_up, self._tail)
        self._plans = Plans(lease.path, self._state)
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._inserter: Inserter | None = None
        self._made_in = 0  # the instance of the inserter's cursor
        self._foreign = -1  # what others wrote, when the state was last right
        self._least_due_bytes = 0  # more after a checkpoint that failed
        self.changes: Counter[str] = Counter()  # rows stored that a session's image reads

    def run(self, plan: Plan[T]) -> T:
        """Queue a plan and wait until what it staged is stored.

        An interrupt of the wait passes on; the plan is done all the same.
        """
        op = _Op(plan)
        try:
            result: T = op.wait(self._queued([op]))
        finally:
            repair.tell(self._lease.repairs)
        return result

    def run_all(self, plans: Sequence[Plan[T]]) -> list[T | NbDurableError]:
        """Queue plans for one transaction; return the result of each, or why it was refused.

        Where the transaction fails, each gets its own. Any other error is raised, once all are
        done with.
        """
        ops = [_Op(plan) for plan in plans]
        thread = self._queued(ops)
        results: list[T | NbDurableError] = []
        failure: StoreError | None = None
        for op in ops:
            try:
                results.append(op.wait(thread))
            except StoreError as exc:
                failure = failure or exc
            except NbDurableError as exc:
                results.append(exc)
        repair.tell(self._lease.repairs)
        if failure is not None:
            raise failure
        return results

    def _queued(self, ops: list[_Op]) -> threading.Thread:
        """Queue ops that belong together; return the thread that does them."""
        with self._lock:
            if self._is_closed:
                raise StoreClosed(f"store {self._lease.path!r} is closed; open it again")
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="nbdurable-writer", daemon=True
                )
                self._thread.start()
            self._queue.put(ops)
            return self._thread

    def close(self) -> None:
        """Do what is queued and stop the thread."""
        with self._lock:
            self._is_closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join()
        self._tail.remove()

    # -- in the thread -------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            ops = self._next()
            if ops is None:
                self._drop_inserter()
                return
            if ops:
                self._run(ops)
            else:
                self._checkpoint()

    def _next(self) -> list[_Op] | None:
        """Return the ops to run together: none when it is time for a checkpoint, None to stop."""
        due_bytes = max(self._lease.due_bytes(), self._least_due_bytes)
        is_due = self._lease.wal_bytes() > due_bytes
        try:
            first = self._queue.get(timeout=_IDLE_S if is_due else None)
        except queue.Empty:
            return []
        if first is None:
            return None
        ops = list(first)
        while len(ops) < _MOST_PLANS:
            try:
                more = self._queue.get_nowait()
            except queue.Empty:
                break
            if more is None:
                self._queue.put(None)  # stop after these
                break
            ops += more
        return ops

    def _run(self, ops: Sequence[_Op]) -> None:
        """Run ops in one transaction; where one of them may be why that fails, each in its own."""
        failure = self._try(ops)
        if failure is None:
            return
        rest = [op for op in ops if not op.is_done]
        is_of_all = isinstance(failure.error, StoreLocked) or not failure.is_certain
        for op in rest:
            if is_of_all or len(rest) == 1:
                op.finish(failure.error)
            else:
                self._run([op])

    def _try(self, ops: Sequence[_Op]) -> _Failure | None:
        """Run ops in one transaction; return why, where it was not or may not be stored."""
        errand = self._errands.of([op.plan for op in ops])
        try:
            return self._try_here(ops, errand)
        except DoneElsewhere:
            rest = _finished(ops, errand.results if errand else ())
            return self._try_here(rest, None) if rest else None

    def _try_here(
        self, ops: Sequence[_Op], errand: Errand | None, *, is_alone: bool = False
    ) -> _Failure | None:
        generation, batch, witness, staged = 0, Batch(), None, []
        refused: list[tuple[_Op, NbDurableError]] = []
        requests: list[Request] = []
        try:
            with self._lease.held(errand) as cursor:
                generation = self._lease.generation
                self._cursor = cursor
                self._catch_up()
                if errand is not None and errand.take_back():
                    ops = self._not_found(ops)
                for op in ops:
                    try:
                        op.result = op.plan(self._plans, batch)
                        staged.append(op)
                    except NbDurableError as exc:
                        refused.append((op, exc))
                witness = batch.witness() if len(batch) else None
                if not (is_alone or self._lease.is_kept):
                    requests = self._errands.take_up()
                self._store(batch, requests)
        except DoneElsewhere:
            raise
        except Exception as exc:
            failure = self._settled(witness, generation, exc)
            if failure is not None and failure.is_certain and requests:
                # It may be for what others asked; they look for it, and go on by themselves.
                return self._try_here(ops, None, is_alone=True)
            if failure is not None:
                return self._missed(ops, errand, failure)
        self.changes.update(batch.changes)
        for op in staged:
            op.finish()
        for op, refusal in refused:
            op.finish(refusal)
        return None

    def _store(self, batch: Batch, requests: Sequence[Request]) -> None:
        """Store what was staged, and with it what others ask for who wait for the file."""
        results = [[self._staged(batch, one) for one in each.appends] for each in requests]
        if len(batch):
            self._lease.check_files()
            self._write(batch)
        for request, stored in zip(requests, results, strict=True):
            request.answer(stored)

    def _staged(self, batch: Batch, append: Append) -> Stored | None:
        try:
            return append(self._plans, batch)
        except NbDurableError:
            return None  # who asked is refused it in its own turn

    def _not_found(self, ops: Sequence[_Op]) -> list[_Op]:
        """Finish the ops of an errand that were stored; return the others."""
        appends = [op.plan for op in ops if isinstance(op.plan, Append)]
        rows = self._state.rows_of([entry.id for one in appends for entry in one.entries])
        return _finished(ops, [one.found_in(rows) for one in appends])

    def _catch_up(self) -> None:
        """Learn what others wrote since the last transaction."""
        if self._state.is_large:
            self._state.reset()
        foreign = self._lease.witness.foreign
        if foreign != self._foreign:
            self._state.catch_up()
            self._foreign = foreign

    def _write(self, batch: Batch) -> None:
        if self._inserter is None or self._made_in != self._lease.instance:
            self._made_in = self._lease.instance
            self._inserter = Inserter(self._lease.cursor())
        with self._tail.renewed(batch.placed()):
            self._inserter.write(batch)
        self._lease.sync_name()

    def _drop_inserter(self) -> None:
        if self._inserter is not None:
            self._inserter.close()
            self._inserter = None

    def _look_up(self, query: str, params: Sequence[object]) -> list[tuple[object, ...]]:
        assert self._cursor is not None
        return self._cursor.execute(query, list(params)).fetchall()

    # -- when a transaction failed -------------------------------------------------------------

    def _missed(self, ops: Sequence[_Op], errand: Errand | None, failure: _Failure) -> _Failure:
        """Return what to tell of ops that did not get the file; some may be stored by others."""
        if errand is None or not errand.take_back():
            return failure
        try:
            with self._lease.held() as cursor:
                self._cursor = cursor
                self._not_found(ops)
        except (duckdb.Error, NbDurableError) as second:
            return _unknown(self._lease.path, failure.error, second)
        return failure

    def _settled(self, witness: Query | None, generation: int, exc: Exception) -> _Failure | None:
        """Find out whether a failed transaction was stored; None when it was (B67)."""
        path = self._lease.path
        self._state.reset()
        try:
            if faults.is_invalidated(exc):
                self._lease.reattach(generation)
            if witness is not None and self._is_stored(*witness):
                return None
        except (duckdb.Error, NbDurableError) as second:
            return _unknown(path, faults.told_of_call(exc, path), second)
        if not isinstance(exc, duckdb.Error):
            return _Failure(exc)
        told = faults.told_of_call(exc, path)
        told.__cause__ = exc
        return _Failure(told)

    def _is_stored(self, query: str, params: tuple[object, ...]) -> bool:
        with self._lease.held() as cursor:
            return bool(cursor.execute(query, params).fetchall())

    def _checkpoint(self) -> None:
        generation = 0
        try:
            with self._lease.held() as cursor:
                generation = self._lease.generation
                cursor.execute(f"checkpoint {ALIAS}")
                self._lease.sync_name()
            self._least_due_bytes = 0
        except NbDurableError:
            return  # the file is not attached; the next call tries again, and tells
        except duckdb.Error as exc:
            # A full disk, or another transaction; the log keeps everything durable meanwhile.
            self._least_due_bytes = 2 * self._lease.wal_bytes()
            if faults.is_invalidated(exc):
                with contextlib.suppress(NbDurableError):
                    self._lease.reattach(generation)


def _finished(ops: Sequence[_Op], results: Sequence[Stored | None]) -> list[_Op]:
    """Finish the ops that have a result; return the others."""
    rest = []
    for op, result in zip(ops, results, strict=True):
        if result is None:
            rest.append(op)
        else:
            op.result = result
            op.finish()
    return rest


def _unknown(path: str, error: BaseException, second: BaseException) -> _Failure:
    told = StoreError(
        f"outcome of a write to store {path!r} is not known ({error}; then {second}); "
        "open the store again and look before you repeat it"
    )
    return _Failure(told, is_certain=False)
