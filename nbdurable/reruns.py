"""Which run to make again, and with what: the settings recorded beside an answer (B42)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace

from nbdurable.entries import Entry, MessageEntry, kind_of
from nbdurable.errors import RunError, SessionNotFound, StoreError, TreeError, shown
from nbdurable.loaded import Loaded
from nbdurable.models import resolve_model
from nbdurable.models.base import Model
from nbdurable.models.params import RECORDED
from nbdurable.settings import Settings
from nbdurable.stored import Context, RunEnd, RunRecord, StoredEntry
from nbdurable.tools import Tool


def asked_entry(
    image: Loaded,
    entry_id: str,
    leaf_id: str | None,
    is_seen: Callable[[StoredEntry], bool] = lambda node: True,
) -> tuple[str | None, str | None]:
    """Return where to answer again, and the answer that is made again, if any.

    Of a user entry that is its answer on the path to `leaf_id`, else its newest, those first that
    `is_seen` knows: to a replay what was added later is not there yet.

    Raises
    ------
    TreeError
        The entry is neither a message nor below a user's message.
    """
    entry = image.entry(entry_id)
    if not isinstance(entry, MessageEntry):
        raise TreeError(
            f"entry #{entry.n} is of kind {kind_of(entry)!r}, which cannot be rerun; "
            "give a user, assistant or tool message"
        )
    if entry.role == "user":
        start = last_input(image, entry_id)
        return start, _answer_below(image, start, leaf_id, is_seen)
    answer: str | None = None
    first: Entry = entry
    for above in reversed(image.path(entry_id)):
        if isinstance(above, MessageEntry):
            if above.role == "user":
                return first.parent_id, answer
            first = above
            if above.role == "assistant":
                answer = answer or above.id
    raise TreeError(
        f"entry {shown(entry_id)} has no user message above it to answer again; give another entry"
    )


def _answer_below(
    image: Loaded, entry_id: str, leaf_id: str | None, is_seen: Callable[[StoredEntry], bool]
) -> str | None:
    """Return an answer to what ends in `entry_id`; custom entries may stand between."""
    on_path = {node.id for node in image.tree.path(leaf_id)} if leaf_id in image.tree else set()
    found, below = [], [entry_id]
    while below:
        for node in image.tree.children(below.pop()):
            if node.role == "assistant":
                found.append(node)
            elif node.role is None:
                below.append(node.id)
    ranked = [((node.id in on_path, is_seen(node), node.seq), node) for node in found]
    best = max(ranked, key=lambda pair: pair[0])[1] if ranked else None
    return best.id if best else None


def last_input(image: Loaded, entry_id: str) -> str:
    """Return the last input entry of the run that `entry_id` was input to, or itself."""
    run_id = image.stored(entry_id).run_id
    for record, _ in find_runs(image, run_id):
        if entry_id in record.input_ids:
            below = [i for i in record.input_ids if i in image.tree]
            return below[-1]
    return entry_id


def find_runs(image: Loaded, run_id: str | None) -> list[tuple[RunRecord, RunEnd | None]]:
    """Return the record of a run, from this session or one it was forked from; or nothing."""
    session_id: str | None = image.session_id
    while run_id is not None and session_id is not None:
        try:
            found = [pair for pair in image.store.load_runs(session_id) if pair[0].id == run_id]
            if found:
                return found
            session_id = image.store.load_session(session_id).parent_session_id
        except SessionNotFound:
            break  # a fork may be copied or imported without the session it was forked from
    return []


def recorded_settings(
    image: Loaded, settings: Settings, answer_id: str | None, *, with_tools: bool
) -> Settings:
    """Return the handle's settings with what the answer's run recorded in their place.

    Without `with_tools` the recorded tools are not looked for: the caller gives others.

    Raises
    ------
    RunError
        A recorded tool is not among the handle's; the text names it.
    """
    if answer_id is None:
        return settings
    found = find_runs(image, image.stored(answer_id).run_id)
    if not found:
        return settings
    record = found[0][0]
    if json.loads(record.ephemeral_json):
        warnings.warn(
            f"run {record.id} had ephemeral input, which is not stored and cannot be sent again",
            stacklevel=3,
        )
    system, tools = _recorded_context(image, settings, record, with_tools)
    return as_recorded(
        settings, model=record.model, system=system, tools=tools, params_json=record.params_json
    )


def _recorded_model(settings: Settings, name: str | None) -> Model:
    if name is None or name == settings.model.name:
        return settings.model
    return resolve_model(name)


def _recorded_context(
    image: Loaded, settings: Settings, record: RunRecord, with_tools: bool
) -> tuple[str | None, tuple[Tool, ...]]:
    if record.context_digest is None:
        return settings.system, settings.tools
    try:
        context = image.store.load_context(record.context_digest)
    except StoreError:
        return settings.system, settings.tools
    if not with_tools:
        return context.system, ()
    what = f"run {record.id}"
    return context.system, own_tools(settings, context, what, "the session with it, or give tools=")


def own_tools(settings: Settings, context: Context, what: str, remedy: str) -> tuple[Tool, ...]:
    """Return a handle's tools of the names that a context records.

    Raises
    ------
    RunError
        One is not among them; the text names it, `what` recorded it, and what to open.
    """
    names = [spec["name"] for spec in json.loads(context.tools_json)]
    mine = {tool.name: tool for tool in settings.tools}
    missing = [name for name in names if name not in mine]
    if missing:
        raise RunError(
            f"tool {missing[0]!r} of {what} is not among this handle's tools "
            f"({', '.join(mine) or 'none'}); open {remedy}"
        )
    return tuple(mine[name] for name in names)


def as_recorded(
    settings: Settings,
    *,
    model: str | None,
    system: str | None,
    tools: tuple[Tool, ...],
    params_json: str,
) -> Settings:
    """Return settings with what is recorded in their place; unrecorded parameters stay (B42)."""
    unrecorded = {name: value for name, value in settings.params.items() if name not in RECORDED}
    return replace(
        settings,
        model=_recorded_model(settings, model),
        system=system,
        tools=tools,
        params={**unrecorded, **json.loads(params_json)},
    )
