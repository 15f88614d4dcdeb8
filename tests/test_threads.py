"""Blocking code beside an event loop is in threads that nobody waits for."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading

import pytest

from nbdurable import threads
from nbdurable.threads import in_thread, in_worker


@pytest.fixture(autouse=True)
def no_idle_workers() -> None:
    threads._idle.clear()


def test_work_that_follows_work_has_the_same_thread() -> None:
    async def idents() -> list[int]:
        return [await in_worker(threading.get_ident) for _ in range(5)]

    assert len(set(asyncio.run(idents()))) == 1


def test_code_of_the_user_has_a_thread_of_its_own() -> None:
    own = threading.local()

    async def left() -> list[bool]:
        def leave() -> bool:
            found, own.mark = hasattr(own, "mark"), True
            return found

        return [await in_thread(leave) for _ in range(3)] + [await in_worker(leave)]

    assert asyncio.run(left()) == [False] * 4


# B23
def test_work_that_hangs_keeps_no_other_work_waiting() -> None:
    hung, freed = threading.Event(), threading.Event()

    def hang() -> None:
        hung.set()
        freed.wait()

    async def beside() -> list[int]:
        hanging = asyncio.create_task(in_worker(hang))
        await in_thread(hung.wait)
        others = await asyncio.gather(*(in_worker(lambda at=at: at) for at in range(20)))
        freed.set()
        await hanging
        return others

    assert asyncio.run(beside()) == list(range(20))


def test_an_error_of_work_is_the_callers_and_the_thread_goes_on() -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    async def both() -> int:
        with pytest.raises(ValueError, match="no such thing"):
            await in_worker(fail)
        return await in_worker(lambda: 7)

    assert asyncio.run(both()) == 7


def test_a_worker_without_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_IDLE_S", 0.01)

    thread = asyncio.run(in_worker(threading.current_thread))

    thread.join(60)
    assert not thread.is_alive()
    assert threads._idle == []


# B65
def test_a_fork_does_not_hand_work_to_threads_that_it_left_behind() -> None:
    asyncio.run(in_worker(threading.get_ident))

    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_work).get(60) == 7


def _work() -> int:
    return asyncio.run(in_worker(lambda: 7))
