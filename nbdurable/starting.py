"""Start runs for a handle, follow them, and find those of before.

Owns the moment between the checks of `planning` and the loop: the claim of the foreground, the
move of the leaf, the hand-over to the background thread.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeVar

from nbdurable.background import background_loop, check_may_wait, submit
from nbdurable.compacting import CompactionLoop, compact_before, plan_at
from nbdurable.compaction import summary_messages
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import ModelError, NbDurableError, RunError, shown
from nbdurable.inputs import input_digest
from nbdurable.loaded import Leaf, load
from nbdurable.loop import Job, Loop
from nbdurable.origin import execution_count, is_alive
from nbdurable.pairing import is_failed
from nbdurable.planning import Ask, LeafMoved, job_of, plan
from nbdurable.replay import verbs as replay_verbs
from nbdurable.replay.events import model_of
from nbdurable.run import Run
from nbdurable.schemas import Schema
from nbdurable.settings import Settings, Show
from nbdurable.stored import RunEnd, RunRecord
from nbdurable.stores import open_store, release_store
from nbdurable.threads import interruptible

if TYPE_CHECKING:
    from nbdurable.asking import Asking
    from nbdurable.display import Display
    from nbdurable.handle import Handle

H = TypeVar("H", bound="Handle")

log = logging.getLogger("nbdurable")

NOT_SEEN = ""  # no entry: whatever position is found later is news
STOP_WAIT_S = 5.0  # how long close() waits for its runs to store what came


def start(
    handle: Asking,
    ask: Ask,
    settings: Settings,
    *,
    wait: bool,
    show: Show | EllipsisType,
    tells: bool,
) -> Run:
    """Start a planned run; return it live, or followed to its end.

    Raises
    ------
    LeafMoved
        The ask was from the leaf, which is elsewhere by now; nothing was started.
    """
    if wait:
        check_may_wait("this run")
    if isinstance(show, EllipsisType):
        show = "stream" if wait else None
    replay, before = handle.replay, handle.leaf.id
    if replay is not None:
        hit, ask, settings = replay_verbs.answer(handle, replay, ask, settings)
        if hit is not None:
            return _present_again(handle, hit, ask, wait=wait, show=show)
    try:
        job = plan(handle.image, settings, ask, handle.leaf if ask.moves else Leaf(ask.leaf_id))
        _warn_if_continued(handle, ask)
        if ask.moves:
            _take_foreground(handle, job, ask)
    except BaseException:
        if replay is not None:
            replay_verbs.refused(replay, ask)
        raise
    if replay is not None:
        replay_verbs.begun(replay, ask, job.run)
    if settings.compact_above is not None and ask.moves and job.repeats is None:
        job.prepare = compact_before(0, settings.compact_above)
        job.on_compacted = partial(_tell_compacted, handle)

    def go() -> Run:
        submit(made_live(handle, job, Loop(job)))
        if tells:
            handle.tell("session_branched", leaf_id=ask.leaf_id, from_id=before)
        return follow(job.run, show) if wait else _shown_live(job.run, show)

    return _go_interruptibly(job, go) if wait else go()


def _present_again(handle: Asking, run: Run, ask: Ask, *, wait: bool, show: Show) -> Run:
    """Show a run that the record answered, as when it ran."""
    run._then, run._present = partial(_then, handle), _bundle
    if ask.moves and not wait and handle.replay is not None:
        handle.replay.overlapped = run
    return follow(run, show) if wait else _shown_live(run, show)


def _go_interruptibly(job: Job, go: Callable[[], Run]) -> Run:
    """Start and follow a run so that an interrupt at any moment of it cancels the run (B17)."""
    try:
        with interruptible():
            return go()
    except KeyboardInterrupt:
        job.run.stop_for_reader()
        if not job.run.events:
            job.image.release(job.run)  # it never began
        raise


def _take_foreground(handle: Asking, job: Job, ask: Ask) -> None:
    handle.image.claim(job.run)
    try:
        if ask.from_id not in (handle.leaf.id, ...):
            raise LeafMoved
        if job.repeats is not None:  # the loop goes to the end of the stored input
            handle.go_to(ask.leaf_id)
            job.leaf = handle.leaf
        elif ask.leaf_id != handle.leaf.id:
            handle.image.move(ask.leaf_id)
            handle.go_to(ask.leaf_id)
            job.leaf = handle.leaf
        else:
            handle.settle()
            _warn_if_elsewhere(handle)
        handle.settled()
        handle.seen_position = NOT_SEEN
    except BaseException:
        handle.image.release(job.run)
        raise


def made_live(handle: Asking, job: Job, loop: Loop) -> Coroutine[Any, Any, None]:
    """Make a job's run one of the handle's, and return the work for the background loop."""
    background = background_loop()

    def cancel() -> None:
        background.call_soon_threadsafe(job.cancelled.set)

    run = job.run
    run._then, run._present, run._cancel = partial(_then, handle), _bundle, cancel
    handle.runs_started.add(run)
    handle.image.live[run.run_id] = run
    handle.image.tell_watchers()
    return loop.run()


def _tell_compacted(handle: Asking, entry: Entry) -> None:
    handle.tell("session_compacted", leaf_id=entry.id, entry_id=entry.id)


def _then(handle: Asking, run: Run, *input: object, **options: Any) -> Run:
    options.setdefault("move", not run.is_detached)
    return handle.run(*input, at=run, **options)


def _bundle(run: Run) -> Mapping[str, str]:
    from nbdurable.notebook.run.live import run_bundle

    return run_bundle(run)


def follow(run: Run, show: Show) -> Run:
    """Block until the run has ended, showing it meanwhile; return it or raise what ended it."""
    display = _display(show, run)
    if display is None:
        return run.wait()
    run.shown_in = execution_count()
    try:
        run.read(display.on_event, display.tick)
    finally:
        display.close(run)
    return run


def _display(show: Show, run: Run) -> Display | None:
    if show is None:
        return None
    from nbdurable.display import make_display

    return make_display(show, run.cancel)


def _shown_live(run: Run, show: Show) -> Run:
    """Show a live run from a thread of its own, when that was asked for."""
    display = _display(show, run)
    if display is None:
        return run
    run.shown_in = execution_count()

    def read() -> None:
        try:
            run.read(display.on_event, display.tick)
        except NbDurableError:
            log.debug("run %s failed; its display says so", run.run_id)
        finally:
            display.close(run)

    threading.Thread(target=read, name="nbdurable-display", daemon=True).start()
    return run


# -- warnings ----------------------------------------------------------------------------------


def _warn_if_elsewhere(handle: Asking) -> None:
    """Warn once when others moved the position since this handle last saw it (B11)."""
    image = handle.image
    position = image.position
    if position in (handle.leaf.id, handle.seen_position):
        return
    handle.seen_position = position
    at = "the root" if position is None else f"#{image.stored(position).n}"
    warnings.warn(
        f"session {shown(image.session_id)} was continued elsewhere, to {at}; this run grows a "
        "sibling of that; resume() goes there",
        stacklevel=5,
    )


def _warn_if_continued(handle: Asking, ask: Ask) -> None:
    """Say that a run without input would do, when the same input is given again (B22)."""
    if ask.kind != "run" or not ask.input:
        return
    waiting: list[Entry] = []
    for entry in reversed(handle.image.path(ask.leaf_id)):
        if not isinstance(entry, MessageEntry) or entry.role != "user":
            if waiting or (isinstance(entry, MessageEntry) and not is_failed(entry)):
                break
            continue
        waiting.append(entry)
        if len(waiting) == len(ask.input):
            break
    waiting.reverse()
    if waiting and input_digest(waiting) == input_digest(ask.input):
        warnings.warn(
            f"the same input is stored as #{waiting[-1].n} and has no answer yet; "
            "run() without input would continue there",
            stacklevel=4,
        )


# -- compaction --------------------------------------------------------------------------------


def compact(
    handle: Asking, keep_turns: int, prompt: str | None, settings: Settings
) -> Entry | None:
    """Run a compaction to its end; None when there is nothing to summarise."""
    check_may_wait("this compaction")
    image = handle.image
    planned = plan_at(image, handle.leaf.id, keep_turns)
    if planned is None:
        return None
    detail = (("keep_turns", keep_turns), ("prompt", prompt))
    ask = Ask(kind="compact", input=(), leaf_id=handle.leaf.id, detail=detail)
    if handle.replay is not None:
        hit, ask, settings = replay_verbs.answer(handle, handle.replay, ask, settings)
        if hit is not None:
            return hit.entries[-1]
    job = job_of(image, settings, ask, handle.leaf, summary_messages(planned, prompt))
    loop = CompactionLoop(job)
    loop.plan, loop.prompt = planned, prompt
    image.claim(job.run)
    handle.settle()
    if handle.replay is not None:
        replay_verbs.begun(handle.replay, ask, job.run)

    def go() -> Run:
        submit(made_live(handle, job, loop))
        return job.run.wait()

    _go_interruptibly(job, go)
    if loop.entry is None:
        raise job.run._failure or RunError("the compaction was cancelled; nothing was changed")
    handle.seen_position = image.position
    _tell_compacted(handle, loop.entry)
    return loop.entry


def sibling_handle(handle: H, session_id: str) -> H:
    """Return a handle of another session in the same store, with the same settings (B48)."""
    store = open_store(handle.held)
    try:
        image = load(store, session_id)
    except BaseException:
        release_store(store)
        raise
    replay = handle.replay.of_child() if handle.replay is not None else None
    return type(handle)(
        image, handle.settings, store=store, publisher=handle.publisher, replay=replay
    )


# -- ends --------------------------------------------------------------------------------------


def stop_all(runs: Iterable[Run]) -> None:
    """Cancel runs and wait until what came of them is stored."""
    live = [run for run in runs if not run.is_done]
    for run in live:
        run.cancel()
    for run in live:
        with run._changed:
            run._changed.wait_for(lambda run=run: run.is_done, STOP_WAIT_S)  # type: ignore[misc]


def past_runs(handle: Asking) -> list[Run]:
    """Return the session's runs as finished handles; one whose process is gone is interrupted."""
    return runs_of(handle, handle.image.store.load_runs(handle.image.session_id))


def runs_of(handle: Asking, records: Iterable[tuple[RunRecord, RunEnd | None]]) -> list[Run]:
    """Return the runs of these records; only what they made is decoded."""
    image, kept = handle.image, list(records)
    made: dict[str | None, list[Entry]] = {record.id: [] for record, _ in kept}
    for node in image.tree.nodes:
        if node.run_id in made:
            made[node.run_id].append(image.entry(node.id))
    started = {run.run_id: run for run in image.live.values() if not run.is_done}
    started |= {run.run_id: run for run in handle.runs_started}
    return [
        started.get(record.id) or _past_run(handle, record, end, made[record.id])
        for record, end in kept
    ]


def _past_run(handle: Asking, record: RunRecord, end: RunEnd | None, made: list[Entry]) -> Run:
    image = handle.image
    known = {entry.id for entry in made}
    again = [image.entry(i) for i in record.input_ids if i not in known and i in image.tree]
    made = [*again, *made]  # a repeated run has the input of the run it repeats
    leaf_id = made[-1].id if made else record.start_leaf_id
    run = Run(
        record.id,
        model=model_of(record, made),
        moves=record.moves,
        leaf_id=record.start_leaf_id,
        schema=Schema.recorded(record.params_json),
    )
    run._entries, run._leaf_id, run._input_ids = made, leaf_id, record.input_ids
    run._then, run._present = partial(_then, handle), _bundle
    if end is not None:
        failure = ModelError(end.error) if end.error else None
        run._finish(end.outcome, failure, end.seconds)
    elif not is_alive(record.owner):
        run._finish("interrupted", None, None)
    return run
