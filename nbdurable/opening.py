"""Open a session: find or make its store, resume or create it, say what was assumed (B1-B8)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from nbdurable import lifecycle
from nbdurable.budget import Budget
from nbdurable.errors import (
    SessionExists,
    SessionNotFound,
    shown,
)
from nbdurable.hooks import HookChain
from nbdurable.hosts import warn_once
from nbdurable.ids import now_us
from nbdurable.lifecycle import Publisher, SessionEvent
from nbdurable.loaded import Loaded, load, unload
from nbdurable.models import resolve_model
from nbdurable.models.base import Model
from nbdurable.models.params import recorded_json, warn_unknown
from nbdurable.origin import checked_session_id, new_session_id
from nbdurable.replay import Replay
from nbdurable.reruns import find_runs
from nbdurable.session import Session
from nbdurable.settings import Settings, ToolValue, checked_system
from nbdurable.stored import SessionRecord
from nbdurable.stores import default_store, open_store, release_store
from nbdurable.stores.base import Store
from nbdurable.stores.jsonl import RecordingStore
from nbdurable.tools import as_tools
from nbdurable.wire import as_python

DEFAULT_MODEL = "local"
MAX_LISTED = 5  # sessions of a recording that a warning names


def open(
    session_id: str | None = None,
    *,
    store: Store | str | os.PathLike[str] | None = None,
    model: str | Model | None = None,
    system: str | None = None,
    tools: Iterable[ToolValue] = (),
    replay: bool | str = False,
    replay_model: str | Model | None = None,
    publisher: Publisher | None = None,
    hooks: object = None,
    max_steps: int = 25,
    compact_above: int | None = None,
    budget_usd: float | None = None,
    **params: object,
) -> Session:
    """Resume the session of this id, or create it.

    Parameters
    ----------
    session_id : str, optional
        Any text without NUL; without one a fresh id is made, and shown.
    store : Store or path, optional
        A store, a path, or ``":memory:"``; a ``.jsonl`` that `Session.export` wrote is loaded, and
        what is added to it is lost at close. By default ``$NBDURABLE_STORE``, else
        ``nbdurable.duckdb`` in the working folder.
    model : str or Model, optional
        A LiteLLM name, ``"local"``, or a `Model`. By default ``$NBDURABLE_MODEL``, else the model
        of the last run on the path, else ``"local"``.
    system : str, optional
        The system text of this handle's runs.
    tools : iterable of functions or tools
        What the model may call.
    replay : bool or "only"
        True starts at the root and answers each verb from an equal finished one on record, without
        a call; what has none is made for real (B55). ``"only"`` never calls a model.
    replay_model : str or Model, optional
        Answers what the record does not, in place of the requested model; goes with `replay`.
    publisher : callable, optional
        Called with each `SessionEvent` of this handle (B53).
    hooks : object or sequence, optional
        See `nbdurable.hooks.Hooks`.
    max_steps : int
        Model calls per run at most; reaching it is no error.
    compact_above : int, optional
        Compact before a run that would send more tokens than this.
    budget_usd : float, optional
        What this handle's runs may cost; by default ``$NBDURABLE_BUDGET_USD``.
    **params
        Parameters of every model call, such as ``temperature=0.2``. Keys and addresses are passed
        on and never stored (B69).

    Returns
    -------
    Session
        A handle at the session's position. `connect` gives all sessions of a store as data.

    Raises
    ------
    StoreError
        The store cannot be opened; nothing was created.
    """
    replays = _replay(replay, replay_model)
    settings = _settings(model, system, tools, hooks, max_steps, compact_above, budget_usd, params)
    chosen_id = new_session_id() if session_id is None else checked_session_id(session_id)
    opened = open_store(default_store() if store is None else store)
    try:
        _recover(opened)
        recorded = _recorded_ids(opened)
        image = _find_or_create(opened, chosen_id)
    except BaseException:
        release_store(opened)
        raise
    try:
        resolved = settings(lambda: _default_model(image))
    except BaseException:
        unload(image, opened)
        release_store(opened)
        raise
    _tell_of_loss(opened, replay)
    if not isinstance(opened, RecordingStore):
        warn_once(opened.name)
    session = Session(image, resolved, store=opened, publisher=publisher, replay=replays)
    if replays is not None:
        session.put(None)
    if recorded and chosen_id not in recorded:
        listed = ", ".join(map(shown, recorded[:MAX_LISTED]))
        warnings.warn(
            f"session {shown(chosen_id)} is new; recording {session.store} holds {listed}, "
            "so give the id of one of these to go on with it",
            stacklevel=2,
        )
    elif session_id is None:
        warnings.warn(
            f"session {chosen_id!r} was made in {session.store}; open it again by this id",
            stacklevel=2,
        )
    lifecycle.publish(
        publisher,
        SessionEvent(type="session_init", session_id=session.id, leaf_id=session.leaf_id),
        resolved.params,
    )
    return session


def _replay(replay: object, model: str | Model | None) -> Replay | None:
    if not isinstance(replay, bool) and replay != "only":
        raise ValueError(f"replay is {shown(replay)}; give True, 'only', or False")
    if model is None:
        return Replay(is_only=replay == "only") if replay else None
    if replay is not True:
        given = "calls no model" if replay else "is off"
        raise ValueError(
            f"replay_model is {shown(model)}, which answers the misses of a replay, and replay "
            f"{given}; give replay=True with it"
        )
    return Replay(model=resolve_model(model))


def _settings(
    model: str | Model | None,
    system: str | None,
    tools: Iterable[ToolValue],
    hooks: object,
    max_steps: int,
    compact_above: int | None,
    budget_usd: float | None,
    params: dict[str, object],
) -> Callable[[Callable[[], str]], Settings]:
    """Check what `open` was given; return a function that completes it with a default model."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
        raise ValueError(f"max_steps is {shown(max_steps)}; give a whole number, 1 or more")
    params = {name: as_python(value) for name, value in params.items()}
    warn_unknown(params, stacklevel=4)
    recorded_json(params)
    limit = budget_usd if budget_usd is not None else _budget_of_environment()
    given: dict[str, Any] = {
        "system": checked_system(system),
        "tools": as_tools(tools),
        "params": dict(params),
        "hooks": HookChain.of(hooks),
        "max_steps": max_steps,
        "compact_above": compact_above,
        "budgets": () if limit is None else (Budget(limit),),
    }
    named = model if model is not None else os.environ.get("NBDURABLE_MODEL") or None
    chosen = None if named is None else resolve_model(named)

    def complete(default: Callable[[], str]) -> Settings:
        return Settings(model=chosen or resolve_model(default()), **given)

    return complete


def _budget_of_environment() -> float | None:
    text = os.environ.get("NBDURABLE_BUDGET_USD")
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"NBDURABLE_BUDGET_USD is {shown(text)}; set it to a number of USD, or unset it"
        ) from None


def _find_or_create(store: Store, session_id: str) -> Loaded:
    try:
        return load(store, session_id)
    except SessionNotFound:
        pass
    try:
        store.create_session(SessionRecord(id=session_id, created_at=now_us()))
    except SessionExists:
        pass  # another opener was faster: it is the same session (B5)
    return load(store, session_id)


def _recover(store: Store) -> None:
    for entry in store.recover():
        warnings.warn(
            f"an answer in session {shown(entry.session_id)} was cut when its process ended; "
            f"what came of it is #{entry.n}, and run() asks again",
            stacklevel=3,
        )


def _recorded_ids(store: Store) -> list[str]:
    """Return the ids of a recording, beside which a new session is most likely a slip (B1)."""
    if not isinstance(store, RecordingStore):
        return []
    return [summary.session.id for summary in store.list_sessions()]


def _tell_of_loss(store: Store, replay: bool | str) -> None:
    """Say that a recording is never written, but where nothing will be (B1)."""
    if isinstance(store, RecordingStore) and replay != "only":
        warnings.warn(
            f"recording {store.name!r} is never written, so what is added here is lost at close; "
            "export() it to a file, or import this one to a store by nb.load()",
            stacklevel=3,
        )


def _default_model(image: Loaded) -> str:
    """Return the model of the last run on the path, and say so (B2)."""
    name = recorded_model(image)
    if name is None:
        return DEFAULT_MODEL
    warnings.warn(
        f"session {shown(image.session_id)} goes on with model {name!r}, "
        "that of its last run; give model= for another",
        stacklevel=5,
    )
    return name


def recorded_model(image: Loaded) -> str | None:
    """Return the model of the last run on the path to the position; a summary's does not count."""
    path = image.tree.path(image.position) if image.position else []
    for run_id in dict.fromkeys(entry.run_id for entry in reversed(path)):
        for record, _ in find_runs(image, run_id):
            if record.model and record.kind != "compact":
                return record.model
    return None
