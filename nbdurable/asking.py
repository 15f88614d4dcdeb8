"""The verbs that run: `run`, `rerun`, `edit`.

Owns what each verb means in terms of a start leaf, an input and settings; `planning` checks that,
`starting` starts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import Any

from nbdurable import starting
from nbdurable.blocks import Message
from nbdurable.entries import Entry, MessageEntry
from nbdurable.errors import EntryError, TreeError
from nbdurable.handle import Handle
from nbdurable.inputs import as_entries
from nbdurable.loaded import Leaf
from nbdurable.models.base import Model
from nbdurable.planning import Ask, LeafMoved, continued_leaf
from nbdurable.references import LEAF, Reference, resolve, resolve_entry, resolve_input
from nbdurable.replay import verbs as replay_verbs
from nbdurable.reruns import asked_entry, recorded_settings
from nbdurable.run import Run
from nbdurable.settings import Effects, Show, ToolValue


class Asking(Handle):
    """A handle that runs models."""

    def run(
        self,
        *input: object,
        at: Reference = LEAF,
        model: str | Model | None = None,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolValue] | EllipsisType = ...,
        schema: object = None,
        wait: bool = True,
        move: bool = True,
        show: Show | EllipsisType = ...,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        **params: object,
    ) -> Run:
        """Store the input, run the model and its tools, and store every message before it is seen.

        Parameters
        ----------
        *input : object
            Plain parts (text, a path, an image, a DataFrame, …) form one user message; `meta`,
            `ephemeral`, `user`, `assistant` and custom entries stand alone. No input continues:
            an unanswered message, tool results, or, beside it, a failed answer (B22).
        at : reference
            Branch there first.
        model, system, tools, **params
            In place of what `open` was given, for this run.
        schema : class, type or dict, optional
            What the answer's JSON must be: a pydantic class, a type such as ``list[int]``, or a
            JSON schema. The answer's data is the run's ``data``; one that does not fit is kept,
            and ``data_error`` says why.
        wait : bool
            Block until the run has ended; else return it live.
        move : bool
            False runs beside the leaf, which stays (B18).
        show : "stream", "line" or None
            What is shown meanwhile; by default a stream when waiting.
        effects : "refuse" or "run"
            Whether tools with effects may repeat a call that has a result.
        budget_usd : float, optional
            A limit for this run.

        Returns
        -------
        Run
            Finished, or live with ``wait=False``.

        Raises
        ------
        RunActive
            A foreground run of this session goes on in this process; nothing was changed.
        ModelError
            The model is not available, or failed; then with ``.run``, and what came is stored.
        BudgetExceeded, EntryNotFound, EntryError, RunError, SessionClosed, TypeError, ValueError
            Refused at the call; nothing was stored.
        """
        drafts = as_entries(*input)
        self.ready(moves=move)
        settings = self.settings.override(
            model=model,
            system=system,
            tools=tools,
            schema=schema,
            effects=effects,
            budget_usd=budget_usd,
            **params,
        )
        while True:
            from_id = self.leaf.id if at is LEAF else ...
            start = self._at(at, move)
            branches = start != self.leaf.id
            if not drafts:
                start = continued_leaf(self.image, start)
            ask = Ask(kind="run", input=drafts, leaf_id=start, moves=move, from_id=from_id)
            tells = branches and move
            try:
                return starting.start(self, ask, settings, wait=wait, show=show, tells=tells)
            except LeafMoved:
                continue

    def _at(self, at: Reference, move: bool) -> str | None:
        active = self.image.foreground
        if at is LEAF and not move and active is not None and active in self.runs_started:
            return active.start_leaf_id  # a detached run begins before it (B18)
        return resolve(self.image, at, self.leaf.id, self.replay)

    def rerun(
        self,
        ref: Reference = LEAF,
        *,
        model: str | Model | None = None,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolValue] | EllipsisType = ...,
        schema: object = None,
        wait: bool = True,
        move: bool = True,
        show: Show | EllipsisType = ...,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        **params: object,
    ) -> Run:
        """Answer again: a sibling answer under the same user entry (B42).

        Settings not given are those recorded with the answer. Other parameters as for `run`.

        Raises
        ------
        TreeError
            The reference is a compaction, custom or opaque entry, or has no user message above it.
        RunError
            A recorded tool is not among this handle's.
        """
        self.ready(moves=move)
        entry_id = resolve_entry(self.image, ref, self.leaf.id, self.replay)
        start, answer_id = asked_entry(self.image, entry_id, self.leaf.id, self.has_seen)
        settings = recorded_settings(
            self.image, self.settings, answer_id, with_tools=isinstance(tools, EllipsisType)
        ).override(
            model=model,
            system=system,
            tools=tools,
            schema=schema,
            effects=effects,
            budget_usd=budget_usd,
            **params,
        )
        ask = Ask(kind="rerun", input=(), leaf_id=start, moves=move, rerun_of=answer_id)
        return starting.start(self, ask, settings, wait=wait, show=show, tells=False)

    def edit(self, ref: Reference, *input: object, **options: Any) -> Run | Entry:
        """Say it otherwise: a sibling of the entry; the original stays (B42).

        Parameters
        ----------
        ref : reference
            A user entry, or a run (its input): the sibling is run. An assistant entry: the sibling
            is stored as a person's words, and nothing is run.
        *input : object
            As for `run`; for an assistant entry, text.
        **options
            As for `run`, when it runs.

        Returns
        -------
        Run or Entry
            The run under the new user entry, or the new assistant entry.
        """
        self.ready(moves=options.get("move", True))
        entry_id = resolve_input(self.image, ref, self.leaf.id, self.replay)
        entry = self.image.entry(entry_id)
        if not isinstance(entry, MessageEntry) or entry.role == "tool":
            what = entry.role if isinstance(entry, MessageEntry) else type(entry).__name__
            raise TreeError(
                f"entry #{entry.n} ({what}) cannot be edited; give a user or an assistant message"
            )
        if not input:
            raise EntryError(f"edit of entry #{entry.n} was given no input; give the new words")
        if entry.role == "user":
            return self._edit_user(entry, as_entries(*input), **options)
        return self._edit_assistant(entry, as_entries(*input), options)

    def _edit_user(
        self,
        entry: MessageEntry,
        drafts: tuple[Entry, ...],
        *,
        wait: bool = True,
        move: bool = True,
        show: Show | EllipsisType = ...,
        **overrides: Any,
    ) -> Run:
        settings = self.settings.override(**overrides)
        ask = Ask(kind="edit", input=drafts, leaf_id=entry.parent_id, moves=move)
        return starting.start(self, ask, settings, wait=wait, show=show, tells=False)

    def _edit_assistant(
        self, entry: MessageEntry, drafts: tuple[Entry, ...], options: dict[str, Any]
    ) -> Entry:
        if options:
            raise TypeError(
                f"edit of an assistant entry runs nothing, so {sorted(options)[0]!r} has no use"
            )
        words = [draft for draft in drafts if isinstance(draft, MessageEntry)]
        if len(words) != 1 or len(drafts) != 1:
            raise EntryError("edit of an assistant entry takes one message; give its new words")
        message = Message("assistant", words[0].blocks)
        draft = MessageEntry(message=message, author="human")
        if self.replay is not None:
            found = replay_verbs.take_appended(self, self.replay, "edit", (draft,), entry.parent_id)
            if found is not None:
                return found[0]
        leaf = Leaf(entry.parent_id)
        (made,) = self.image.append((draft,), leaf)
        self.go_to(made.id)
        self.wrote((made,))
        return made
