"""Promises to many threads, and to a forked child."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import TypeVar

import pytest

from nbdurable.errors import NbDurableError, SessionExists, StoreError
from nbdurable.stored import StoredEntry
from nbdurable.stores.base import Store
from nbdurable.stores.conformance._base import (
    ContractBase,
    annotation_of,
    chain,
    end_of,
    ids_in,
    run_of,
    session_of,
    stored,
)

T = TypeVar("T")

WRITERS = 4
BATCHES = 15
SESSIONS = ("s", "other", "third")


class ThreadPromises(ContractBase):
    """Races."""

    # B5
    def test_of_two_threads_creating_one_session_exactly_one_does(self, store: Store) -> None:
        for i in range(10):
            session_id = f"raced {i}"

            def create(who: int, session_id: str = session_id) -> str:
                entries = [stored(session_id, text=f"by {who}")]
                try:
                    store.create_session(session_of(session_id), entries)
                except SessionExists:
                    return ""
                return entries[0].id

            made = [entry_id for entry_id in together(2, create) if entry_id]

            assert len(made) == 1
            assert ids_in(store, session_id) == made

    # B65
    def test_nothing_is_lost_when_many_threads_append(self, store: Store) -> None:
        written = [entry.id for batch in written_by_many(store) for entry in batch]

        kept = [entry_id for session_id in SESSIONS for entry_id in ids_in(store, session_id)]

        assert sorted(kept) == sorted(written)

    # B65
    def test_ordinals_have_no_holes_when_many_threads_append(self, store: Store) -> None:
        written_by_many(store)

        for session_id in SESSIONS:
            ordinals = [entry.n for entry in store.load_entries(session_id)]
            assert ordinals == list(range(1, len(ordinals) + 1))

    # B4 B65
    def test_seq_is_unique_and_ordered_when_many_threads_append(self, store: Store) -> None:
        written_by_many(store)

        per_session = [[e.seq for e in store.load_entries(sid)] for sid in SESSIONS]
        every = [seq for seqs in per_session for seq in seqs]
        assert all(seqs == sorted(seqs) for seqs in per_session)
        assert len(set(every)) == len(every)

    # B4 B65
    def test_an_append_is_never_split_by_another_thread(self, store: Store) -> None:
        for batch in written_by_many(store):
            assert [entry.n for entry in batch] == [batch[0].n, batch[0].n + 1, batch[0].n + 2]

    # B65
    def test_a_reader_never_sees_half_an_append(self, store: Store) -> None:
        done = Event()

        def read() -> list[int]:
            lengths = []
            while not done.is_set():
                lengths.append(len(store.load_entries("s")))
            return lengths

        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(read)
            try:
                for _ in range(30):
                    store.append("s", chain(3))
            finally:
                done.set()
            lengths = reader.result()

        assert all(length % 3 == 0 for length in lengths)
        assert lengths == sorted(lengths)

    # B3 B65
    def test_of_many_threads_at_one_position_exactly_one_moves_it(self, store: Store) -> None:
        [root] = store.append("s", [stored()])

        def note(who: int) -> bool | None:
            [entry] = store.append("s", [stored(parent_id=root.id, moves_leaf=None)])
            return entry.moves_leaf

        assert sorted(map(bool, together(WRITERS, note))) == [False] * (WRITERS - 1) + [True]

    # B60 B65
    def test_of_many_threads_appending_one_entry_exactly_one_does(self, store: Store) -> None:
        entry = stored()

        def append(who: int) -> bool:
            try:
                store.append("s", [entry])
            except NbDurableError:
                return False
            return True

        assert sorted(together(WRITERS, append)) == [False] * (WRITERS - 1) + [True]
        assert ids_in(store) == [entry.id]

    # B24 B65
    def test_of_many_threads_ending_one_run_exactly_one_does(self, store: Store) -> None:
        run = run_of()
        store.start_run(run)

        together(WRITERS, lambda who: store.end_run(end_of(run, steps=who)))

        [(_, end)] = store.load_runs("s")
        assert end is not None
        store.end_run(end_of(run, steps=99))
        assert store.load_runs("s") == [(run, end)]

    # B65 B70
    def test_annotations_of_many_threads_get_counters_of_their_own(self, store: Store) -> None:
        together(WRITERS, lambda who: [store.annotate([annotation_of()]) for _ in range(10)])

        counters = [annotation.counter for annotation in store.load_annotations("s")]
        assert len(counters) == 10 * WRITERS
        assert counters == sorted(set(counters))

    # B65
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_forked_child_is_refused_and_the_parent_goes_on(self, store: Store) -> None:
        store.append("s", [stored()])

        told = in_a_fork(lambda: store.append("s", [stored(text="from the child")]))

        assert told.startswith("StoreError"), told
        assert "process" in told
        assert store.append("s", [stored()])[0].n == 2


def together(count: int, work: Callable[[int], T]) -> list[T]:
    """Run `work` in `count` threads that start at once; return what each returned."""
    start = Barrier(count)

    def one(who: int) -> T:
        start.wait(timeout=30)
        return work(who)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def written_by_many(store: Store) -> list[tuple[StoredEntry, ...]]:
    """Append batches of three to several sessions from several threads; return each as stored."""
    store.create_session(session_of("third"))

    def write(who: int) -> list[tuple[StoredEntry, ...]]:
        batches = []
        for i in range(BATCHES):
            session_id = SESSIONS[(who + i) % len(SESSIONS)]
            batches.append(store.append(session_id, chain(3, session_id)))
        return batches

    return [batch for batches in together(WRITERS, write) for batch in batches]


def in_a_fork(work: Callable[[], object]) -> str:
    """Run `work` in a forked child; return the name and text of what it raised, or ``nothing``."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # a child that hangs ends itself
        told = "nothing"
        try:
            work()
        except StoreError as exc:
            told = f"StoreError: {exc}"
        except BaseException as exc:
            told = repr(exc)
        os.write(writer, told.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(pid, 0)
    return told
