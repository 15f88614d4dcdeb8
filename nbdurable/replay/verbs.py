"""How the verbs of a handle in replay are answered from the record (B55-B58).

Owns, verb by verb, what of the record is equal to a call, and what is said when nothing is. A call
that is answered moves the handle in memory only: nothing is stored, published or asked of a model.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nbdurable.entries import Entry
from nbdurable.errors import ReplayMiss, SessionNotFound, shown
from nbdurable.loaded import Loaded
from nbdurable.models.params import recorded as recorded_params
from nbdurable.planning import (
    Ask,
    LeafMoved,
    Missed,
    digest_of_ask,
    ephemeral_digests,
    prospective_view,
)
from nbdurable.replay import Replay
from nbdurable.replay.events import replayed_run
from nbdurable.replay.record import (
    Key,
    Recorded,
    Request,
    content_key,
    difference,
    distance,
    key_of,
    param_texts,
    place,
    preview_of,
    recorded_request,
    tool_texts,
)
from nbdurable.run import Run
from nbdurable.settings import Settings
from nbdurable.stored import RunRecord

if TYPE_CHECKING:
    from nbdurable.asking import Asking
    from nbdurable.handle import Handle

UNRECORDED = "something that is not on record"


# -- runs and compactions ----------------------------------------------------------------------


def answer(
    handle: Asking, replay: Replay, ask: Ask, settings: Settings
) -> tuple[Run | None, Ask, Settings]:
    """Return the recorded run that answers, else what is to be run in its place.

    Raises
    ------
    LeafMoved
        The ask was from the leaf, which is elsewhere by now; nothing was taken.
    ReplayMiss
        Nothing answers and no model may be called; nothing was stored.
    """
    image = handle.image
    context = settings.context()
    digest = digest_of_ask(settings, ask, context)
    keys = [key_of(ask.kind, start, digest, ask.rerun_of) for start in _starts(replay, ask)]
    with replay.moving:
        if ask.moves:
            image.check_idle()
            if ask.from_id not in (handle.leaf.id, ...):
                raise LeafMoved
        found = _take(image, replay, keys)
        if found is not None:
            run = replayed_run(image, found, moves=ask.moves, schema=settings.schema)
            _say_again(image, ask, found.record, run)
            if ask.moves:
                handle.put(run.leaf_id)
            replay.note(ask.kind, is_hit=True, where=_span(image, run), saved_usd=run.cost)
            return run, ask, settings
        repeats = _reserve(image, replay, keys[0])
    missed = Missed(digest, settings.model.name, repeats)
    ask = replace(ask, missed=missed)
    try:
        if ask.kind != "compact":
            prospective_view(image, settings, ask)  # what is refused anyhow is no miss
        _say_miss(image, replay, ask, settings, keys[0])
    except BaseException:
        refused(replay, ask)
        raise
    if replay.model is not None:
        settings = replace(settings, model=replay.model)
    return None, ask, settings


def _say_again(image: Loaded, ask: Ask, record: RunRecord, run: Run) -> None:
    """Remember ephemeral input where it was said, unless this process has said it itself (B35)."""
    if json.loads(record.ephemeral_json) and not image.spoken_in(record.id):
        first = run.entries[0] if run.entries else None
        image.say_again(record, ask.input, first.parent_id if first else ask.leaf_id)


def _starts(replay: Replay, ask: Ask) -> list[str | None]:
    """Return where the asked run may have started: beside a live one, at that one's start (B18)."""
    beside = replay.overlapped
    if ask.moves or ask.from_id is ... or beside is None:
        return [ask.leaf_id]
    return [ask.leaf_id, beside.start_leaf_id]


def _take(image: Loaded, replay: Replay, keys: Sequence[Key]) -> Recorded | None:
    """Take the first free equal run, reading the record anew when what is known has none."""
    for is_fresh in (False, True):
        if is_fresh:
            if not replay.runs.refresh(image, keys):
                break
            image.refresh()  # after the runs, so that the entries of their ends are known
        equal = [run for key in keys for run in replay.runs.equal(key) if _is_whole(image, run)]
        found = replay.first_free(equal, lambda run: run.record.id)
        if found is not None:
            return found
    return None


def _is_whole(image: Loaded, run: Recorded) -> bool:
    return run.is_finished and run.end is not None and run.end.leaf_id in image.tree


def _reserve(image: Loaded, replay: Replay, key: Key) -> RunRecord | None:
    """Return an unfinished equal run to make again, which no other call makes again meanwhile."""
    equal = replay.runs.equal(key)
    answered = {run.record.input_ids for run in equal if run.is_finished or run.is_running}
    for run in equal:
        ids = run.record.input_ids
        if ids and ids not in answered and all(id in image.tree for id in ids):
            if replay.reserve(ids):
                return run.record
    return None


def begun(replay: Replay, ask: Ask, run: Run) -> None:
    """Count the run that a miss has started."""
    replay.mark(run.run_id)
    if ask.missed is None:
        return
    key = key_of(ask.kind, ask.leaf_id, ask.missed.digest, ask.rerun_of)
    replay.runs.began(run.run_id, key)
    if ask.missed.repeats is not None:
        replay.repeating[ask.missed.repeats.input_ids] = run


def refused(replay: Replay, ask: Ask) -> None:
    """Forget a miss that was refused at the call."""
    if ask.missed is not None and ask.missed.repeats is not None:
        replay.repeating.pop(ask.missed.repeats.input_ids, None)


def _span(image: Loaded, run: Run) -> str:
    numbers = [entry.n for entry in run.entries if entry.n is not None]
    if not numbers:
        return place(image, run.leaf_id)
    return f"#{numbers[0]}" + (f"-#{numbers[-1]}" if len(numbers) > 1 else "")


# -- misses ------------------------------------------------------------------------------------


def _say_miss(
    image: Loaded,
    replay: Replay,
    ask: Ask,
    settings: Settings,
    key: Key,
) -> None:
    repeats = ask.missed.repeats if ask.missed else None
    at = place(image, ask.leaf_id)
    differs = _unanswered(image, replay, key, repeats) or _differs(image, replay, ask, settings)
    replay.note(ask.kind, is_hit=False, where=f"at {at}", differs=differs)
    if replay.is_only:
        why = differs or f"session {shown(image.session_id)} has no other recorded run of that kind"
        raise ReplayMiss(
            f"no recorded run answers this {ask.kind} at {at}: {why}; open with replay=True, or "
            "with replay_model=, to have it answered"
        )
    if differs:
        warnings.warn(f"this {ask.kind} at {at} is made for real: {differs}", stacklevel=5)


def _unanswered(image: Loaded, replay: Replay, key: Key, repeats: RunRecord | None) -> str:
    """Say what became of an equal run that cannot answer."""
    for run in replay.runs.equal(key):
        if run.record == repeats:
            how = run.end.outcome if run.end else "interrupted"
            return f"the equal run of {place(image, run.record.input_ids[-1])} ended {how!r}"
        if run.is_running and not replay.is_taken(run.record.id):
            return f"the equal run {run.record.id} still goes on elsewhere"
    return ""


def _differs(image: Loaded, replay: Replay, ask: Ask, settings: Settings) -> str:
    """Name the nearest recorded run that no call has taken, and what it has in another way.

    Unless a model may never be called, only runs that share the start or the input are named:
    beside any other, a call is simply new.
    """
    left = [
        run
        for run in replay.runs.of_kind(ask.kind)
        if _is_whole(image, run) and not replay.is_taken(run.record.id)
    ]
    asked = _asked_request(image, ask, settings)
    requests = [(run, _request(image, replay, run)) for run in left]
    near = [
        (run, request)
        for run, request in requests
        if request.start == asked.start or request.input == asked.input
    ]
    if not near and replay.is_only:
        near = requests
    if not near:
        return ""
    run, request = min(near, key=lambda pair: distance(asked, pair[1]))
    found = difference(asked, request) or UNRECORDED
    ended = place(image, run.end.leaf_id if run.end else None)
    return f"the nearest recorded run, which ended at {ended}, differs in {found}"


def _request(image: Loaded, replay: Replay, run: Recorded) -> Request:
    known = replay.requests.get(run.record.id)
    if known is None:
        known = replay.requests[run.record.id] = recorded_request(image, run.record)
    return known


def _asked_request(image: Loaded, ask: Ask, settings: Settings) -> Request:
    context = settings.context()
    spoken = ephemeral_digests(ask.input)
    durable = [entry for entry in ask.input if not getattr(entry, "ephemeral", False)]
    return Request(
        kind=ask.kind,
        start=place(image, ask.leaf_id),
        input=content_key(durable),
        preview=preview_of(durable),
        ephemeral=tuple(spoken),
        model=settings.model.name,
        system=context.system,
        tools=tool_texts(context.tools_json),
        params=param_texts(recorded_params(settings.params)),
        rerun_of=ask.rerun_of,
    )


# -- appends, edits and forks ------------------------------------------------------------------


def take_appended(
    handle: Handle, replay: Replay, verb: str, drafts: Sequence[Entry], parent_id: str | None
) -> tuple[Entry, ...] | None:
    """Go to the first free equal entries that were appended under `parent_id`, and return them."""
    image = handle.image
    wanted = content_key(drafts)
    with replay.moving:
        for ids in _chains(image, parent_id, wanted):
            if not any(replay.is_taken(entry_id) for entry_id in ids):
                replay.mark(*ids)
                handle.put(ids[-1])
                replay.note(verb, is_hit=True, where=place(image, ids[-1]))
                return tuple(image.entry(entry_id) for entry_id in ids)
    replay.note(verb, is_hit=False, where=f"at {place(image, parent_id)}")
    return None


def _chains(
    image: Loaded, parent_id: str | None, wanted: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield the chains under an entry that say `wanted` and that no run has made, oldest first."""
    open_chains: list[tuple[str, ...]] = [()]
    while open_chains:
        chain = open_chains.pop()
        if len(chain) == len(wanted):
            yield chain
            continue
        for node in reversed(image.tree.children(chain[-1] if chain else parent_id)):
            if node.run_id is None and content_key([image.entry(node.id)]) == (wanted[len(chain)],):
                open_chains.append((*chain, node.id))


def take_fork(
    handle: Handle, replay: Replay, session_id: str | None, leaf_id: str | None
) -> str | None:
    """Return the id of the first free session that was forked here, if there is one (B56)."""
    image = handle.image
    wanted = (image.session_id, leaf_id)
    if session_id is not None:
        try:
            made = image.store.load_session(session_id)
        except SessionNotFound:
            made = None
        is_equal = made is not None and (made.parent_session_id, made.parent_entry_id) == wanted
        found = [session_id] if is_equal else []
    else:
        found = _forks(image, wanted)
    child_id = replay.first_free(found, lambda child_id: child_id)
    replay.note("fork", is_hit=child_id is not None, where=f"at {place(image, leaf_id)}")
    return child_id


def _forks(image: Loaded, wanted: tuple[str, str | None]) -> list[str]:
    """Return the sessions forked at an entry, in stored order: that of their first entries."""
    order = []
    for summary in image.store.list_sessions():
        made = summary.session
        if (made.parent_session_id, made.parent_entry_id) == wanted:
            entries = image.store.load_entries(made.id)
            order.append((entries[0].seq if entries else 0, made.created_at, made.id))
    return [child_id for _, _, child_id in sorted(order)]


def begin_child(handle: Handle, child: Handle, leaf_id: str | None) -> None:
    """Put the handle of a fork at its last copied entry, whatever was added below since."""
    depth = len(handle.image.tree.path(leaf_id))
    child.put(child.image.id_of(depth))
