"""The engine of the local model: loading, decoding threads, forks and the end of the process.

Owns what is C++ (xllamacpp, a build of llama.cpp). Does not own requests or answers (`local`). The
one idea: Python cannot interrupt the engine, so each answer decodes in a thread of its own, hands
its chunks to the event loop, and asks at every token whether to go on.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import importlib.util
import os
import secrets
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbdurable.blocks import Json
from nbdurable.errors import ModelError, shown
from nbdurable.models.weights import check_weights

Chunk = Mapping[str, Any]  # a chunk of a chat completion, as llama.cpp writes it
Post = Callable[[Chunk | Exception | None], None]

_BATCH_TOKENS = 256  # between two of them a prompt can be cancelled: 0.6 s on a quiet machine
_JOIN_S = 15.0
_SLOT_POLL_S = 0.05


@dataclass(eq=False)
class Engine:
    """A loaded model; answers queue for its one slot."""

    server: Any
    answered_by: str
    slot: threading.Lock = field(default_factory=threading.Lock)
    pid: int = field(default_factory=os.getpid)

    @property
    def is_ours(self) -> bool:
        """Whether it was loaded in this process and not before a fork."""
        return self.pid == os.getpid()


# -- loading -----------------------------------------------------------------------------------

_loading = threading.Lock()
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def loading() -> threading.Lock:
    """Return the lock under which engines are loaded, one at a time."""
    return _loading


def load_engine(path: Path, n_ctx: int) -> Engine:
    """Load the model at `path`.

    Raises
    ------
    ModelError
        Engine or weights are missing or cannot be loaded; the text says what to run.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelError(
            "package 'xllamacpp', which runs model 'local', is not installed; "
            'run: pip install "nbdurable[local]"',
            reason="unavailable",
        )
    check_weights(path)
    import xllamacpp  # 34 MB of native code

    try:
        server = xllamacpp.Server(_engine_params(xllamacpp, path, n_ctx))
    except RuntimeError as exc:
        raise ModelError(
            f"weights {str(path)!r} cannot be loaded: {shown(str(exc))}; "
            "fetch them anew, or name another file in NBDURABLE_GGUF",
            reason="unavailable",
        ) from exc
    engine = Engine(server, path.stem)
    _engines.add(engine)
    if _is_forked:
        _never_free(engine)
    return engine


def _engine_params(xllamacpp: Any, path: Path, n_ctx: int) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), n_ctx, 1
    params.n_batch = _BATCH_TOKENS
    # Decoding threads meet at a spinning barrier: two of them on two shared cores ran at anything
    # from 4 to 168 tokens a second, one at a steady 130.
    params.cpuparams.n_threads = 1
    # Reading a short prompt with two, on two busy cores, took 0.2 to 3 s; with one, 0.3 to 0.5 s.
    params.cpuparams_batch.n_threads = 2 if (os.cpu_count() or 1) > 2 else 1
    # Threads that wait do not spin: other work of the notebook shares the cores.
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.cache_prompt = False  # what was asked before would change the text at temperature 0
    params.warmup, params.verbosity, params.ui, params.endpoint_slots = False, 0, False, False
    # It always listens on loopback, and by default lets in any page of the user's browser. Nobody
    # is told its key: `local_http` serves instead.
    params.api_keys = [secrets.token_urlsafe(16)]
    params.cors_origins, params.cors_origins_explicit = "", True
    params.model_alias = {"local"}
    return params


# -- decoding ----------------------------------------------------------------------------------


async def decoded(engine: Engine, body: dict[str, Json]) -> AsyncGenerator[Chunk, None]:
    """Decode in a thread; yield its chunks here. Closing this stops it."""
    loop, stop = asyncio.get_running_loop(), threading.Event()
    arrived: asyncio.Queue[Chunk | Exception | None] = asyncio.Queue()

    def post(item: Chunk | Exception | None) -> None:
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, item)
        except RuntimeError:  # the loop is closed, so no one reads
            stop.set()

    thread = threading.Thread(
        target=_decode, args=(engine, body, stop, post), name="nbdurable-local", daemon=True
    )
    _decoding[thread] = stop
    thread.start()
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, Exception):
                raise ModelError(f"model 'local' failed: {shown(str(item), 200)}") from item
            yield item
    finally:
        stop.set()


def _decode(engine: Engine, body: dict[str, Json], stop: threading.Event, post: Post) -> None:
    """Wait for the slot and decode; the thread's body."""

    def on_chunk(chunk: Chunk | list[Chunk]) -> bool:
        for one in chunk if isinstance(chunk, list) else [chunk]:
            post(one)
        return stop.is_set()  # True ends the generation

    try:
        if _acquired(engine.slot, stop):
            try:
                engine.server.handle_chat_completions(body, on_chunk)
            finally:
                engine.slot.release()
    except Exception as exc:
        post(exc)
    finally:
        post(None)
        _decoding.pop(threading.current_thread(), None)


def _acquired(slot: threading.Lock, stop: threading.Event) -> bool:
    while not stop.is_set():
        if slot.acquire(timeout=_SLOT_POLL_S):
            return True
    return False


# -- the end of the process --------------------------------------------------------------------

_decoding: dict[threading.Thread, threading.Event] = {}


@atexit.register
def _stop_decoding() -> None:
    """Stop and join the decoders: one still in C++ at the interpreter's end aborts the process."""
    cut = list(_decoding.items())
    for _, stop in cut:
        stop.set()
    for thread, _ in cut:
        thread.join(_JOIN_S)
    if cut:  # the engine may still be at what was cut, which one exit in twenty did not survive
        _skip_destructors_at_exit()


# -- forks -------------------------------------------------------------------------------------

_is_forked = False


def _never_free(engine: Engine) -> None:
    """Keep the engine to the end of a forked process, where freeing it never returns."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine.server))


def _skip_destructors_at_exit() -> None:
    """Let this process exit without the engine's C++ destructors, which meet its threads.

    In a fork they wait for those of the parent; after a cut answer they may run beneath them. glibc
    hands the exit status to the handler; elsewhere a child has to end by ``os._exit``.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)


def _in_forked_child() -> None:
    """Forget what belongs to threads of the parent; each model loads anew when it is asked."""
    global _is_forked, _loading
    _loading = threading.Lock()
    _decoding.clear()
    for engine in list(_engines):
        _never_free(engine)
    if _engines:
        _is_forked = True
        _skip_destructors_at_exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
