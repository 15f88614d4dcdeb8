"""A session handle: the verbs of a conversation that is not lost.

Owns a leaf and the settings it was opened with. Everything else is delegated: `loaded` knows the
session, `planning` checks, `loop` runs, `views` project. Handles of one session in one process
share its image and its activity; each has its own leaf.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from nbdurable import forking, starting
from nbdurable.annotating import Annotating
from nbdurable.blocks import Json, Message
from nbdurable.entries import CustomEntry, Entry, MessageEntry
from nbdurable.errors import EntryError, RunError, shown
from nbdurable.exploring import Exploring
from nbdurable.handle import Handle
from nbdurable.inputs import as_entries
from nbdurable.loaded import Leaf
from nbdurable.models.base import Model
from nbdurable.origin import checked_session_id, new_session_id
from nbdurable.planning import Ask, ContextUse, context_use, continued_leaf, prospective_view
from nbdurable.references import LEAF, Reference, resolve, resolve_entry
from nbdurable.replay import ReplayReport
from nbdurable.replay import verbs as replay_verbs
from nbdurable.run import Run
from nbdurable.settings import ToolValue
from nbdurable.stored import StoredEntry
from nbdurable.tree import Tree
from nbdurable.views import transcript_view

if TYPE_CHECKING:
    from pandas import DataFrame

    from nbdurable.notebook.tree import SessionTree

E = TypeVar("E", bound=Entry)
Show = Literal["stream", "line"] | None


class Session(Exploring, Annotating):
    """One handle of a session; make it with `open`.

    Verbs may be called from any thread. What they return is immutable or a copy.
    """

    def __dir__(self) -> list[str]:
        """Return what is of use in a notebook: without what modules of the toolkit share."""
        shared = {*vars(self), *vars(Handle)} - {"close"}
        return [name for name in super().__dir__() if name[0] == "_" or name not in shared]

    # -- what it is ----------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id."""
        return self.image.session_id

    @property
    def parent_session_id(self) -> str | None:
        """The session this one was forked from, or None."""
        return self.image.record.parent_session_id

    @property
    def leaf_id(self) -> str | None:
        """The entry the next append attaches to; None is the root."""
        if not self._is_closed:
            self.begin_cell()
        return self.leaf.id

    @property
    def model(self) -> str:
        """The name of the model that runs use unless told otherwise."""
        return self.settings.model.name

    @property
    def store(self) -> str:
        """The name of the store, such as the path of its file."""
        return self.image.store.name

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{self.image.count} entries"
        at = "the root" if (leaf := self.leaf.id) is None else f"#{self.image.stored(leaf).n}"
        return f"<Session {shown(self.id)} in {self.store}, {state}, leaf {at}, model {self.model}>"

    def _repr_html_(self) -> str:
        from nbdurable.notebook.tree import fresh_html

        return fresh_html(self)

    def widget(self) -> SessionTree:
        """Return a live view of the tree; in a notebook, showing the session does the same."""
        from nbdurable.notebook.tree import SessionTree

        return SessionTree(self)

    def _display_(self) -> SessionTree | str:  # what marimo shows
        return repr(self) if self._is_closed else self.widget()

    def _ipython_display_(self) -> None:
        from nbdurable.notebook.tree import show_session

        show_session(self)

    def __getitem__(self, ref: Reference) -> Entry:
        """Return the entry that a reference means, such as ``chat[12]``."""
        self.fresh()
        return self.image.entry(resolve_entry(self.image, ref, self.leaf.id, self.replay))

    # -- moving --------------------------------------------------------------------------------

    def branch(self, ref: Reference) -> None:
        """Move the leaf to an entry, or to the root (None); writes no entry (B39).

        Raises
        ------
        EntryNotFound
            Nothing was moved or told.
        """
        self.ready()
        target = resolve(self.image, ref, self.leaf.id, self.replay)
        if self.replay is not None:
            self.put(target)
            return
        if target == self.leaf.id and target == self.image.position:
            return
        self._branch_to(target, tells=True)

    def _branch_to(self, target: str | None, *, tells: bool) -> None:
        before = self.leaf.id
        self.image.move(target)
        self.go_to(target)
        if tells:
            self.tell("session_branched", leaf_id=target, from_id=before)

    def _go_to(self, target: str | None) -> None:
        self.leaf = Leaf(target)
        self.seen_position = self.image.position

    def resume(self) -> str | None:
        """Move the leaf to the stored position, which others may have moved; return it."""
        self.ready()
        self.put(self.image.position)
        return self.leaf.id

    def fork(self, session_id: str | None = None, at: Reference = LEAF) -> Session:
        """Copy the path to `at` to a new session and return its handle (B48).

        Raises
        ------
        SessionExists
            The id is taken; nothing was written.
        """
        self.ready()
        leaf_id = resolve(self.image, at, self.leaf.id, self.replay)
        if session_id is not None:
            checked_session_id(session_id)
        replay = self.replay
        known = replay_verbs.take_fork(self, replay, session_id, leaf_id) if replay else None
        child_id = known or session_id or new_session_id()
        if known is None:
            forking.fork(self.image, child_id, leaf_id)
        child = starting.sibling_handle(self, child_id)
        if replay is not None:
            replay.mark(child_id)
            replay_verbs.begin_child(self, child, leaf_id)
        if known is None:
            self.tell(
                "session_forked",
                session_id=child_id,
                parent_session_id=self.id,
                leaf_id=child.leaf_id,
            )
        child.tell("session_init", leaf_id=child.leaf_id)
        return child

    def compact(
        self, keep_turns: int = 0, prompt: str | None = None, model: str | Model | None = None
    ) -> Entry | None:
        """Append a summary that stands for the older turns in later prompts; remove nothing.

        Returns
        -------
        CompactionEntry or None
            None when there is nothing to summarise: then nothing was called, stored or told.

        Raises
        ------
        ModelError, RunError
            The summary failed or is empty; the tree is as it was.
        """
        self.ready()
        return starting.compact(self, keep_turns, prompt, self.settings.override(model=model))

    # -- appending -----------------------------------------------------------------------------

    def append(self, *entries: object) -> tuple[Entry, ...]:
        """Store entries under the leaf in one transaction, without running anything.

        Returns
        -------
        tuple of Entry
            As stored.
        """
        drafts = as_entries(*entries)
        for draft in drafts:
            if isinstance(draft, MessageEntry) and draft.ephemeral:
                raise EntryError(
                    "an ephemeral entry is never stored, so append() has no use for it; "
                    "give it to run()"
                )
        self.ready(moves=not all(isinstance(draft, CustomEntry) for draft in drafts))
        if not drafts:
            return ()
        if self.replay is not None:
            found = replay_verbs.take_appended(self, self.replay, "append", drafts, self.leaf.id)
            if found is not None:
                return found
            if self.image.foreground is None:
                self.settle()
        stored = tuple(self.image.append(drafts, self.leaf))
        self.wrote(stored)
        if self.image.position == self.leaf.id:
            self.seen_position = self.leaf.id
        return stored

    # -- reading -------------------------------------------------------------------------------

    @overload
    def entries(self) -> list[Entry]: ...
    @overload
    def entries(self, kind: type[E]) -> list[E]: ...
    def entries(self, kind: type[Entry] = Entry) -> list[Any]:
        """Return all entries of the session, or those of a class, in order (B38)."""
        self.fresh()
        return [entry for entry in self.image.all_entries() if isinstance(entry, kind)]

    def path(self, ref: Reference = LEAF) -> list[Entry]:
        """Return the entries from the root to `ref`, oldest first."""
        self.fresh()
        return self.image.path(resolve(self.image, ref, self.leaf.id, self.replay))

    def leaves(self) -> list[Entry]:
        """Return the entries that have nothing below them, oldest first."""
        self.fresh()
        return [self.image.entry(node.id) for node in self.image.tree.leaves()]

    def tree(self) -> Tree[StoredEntry]:
        """Return a copy of the session's tree, of entries as columns."""
        self.fresh()
        return Tree(self.image.tree.nodes)

    def runs(self) -> list[Run]:
        """Return the session's runs in the order they started, each readable as when it ran."""
        self.fresh()
        return starting.past_runs(self)

    def messages(self) -> tuple[Message, ...]:
        """Return what the model reads of the path to the leaf: the model view."""
        self.fresh()
        path = self.image.path(self.leaf.id)
        return self.settings.view(path, self.image.views).messages

    def transcript(self) -> list[Entry]:
        """Return what people read of the path to the leaf: all but meta and ephemeral entries."""
        self.fresh()
        return transcript_view(self.image.path(self.leaf.id))

    def preview(
        self,
        *input: object,
        at: Reference = LEAF,
        model: str | Model | None = None,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolValue] | EllipsisType = ...,
        **params: Any,
    ) -> dict[str, Json]:
        """Return the exact request that `run` would send first, secrets as ``***`` (B47)."""
        drafts = as_entries(*input)
        self.fresh()
        settings = self.settings.override(model=model, system=system, tools=tools, **params)
        start = resolve(self.image, at, self.leaf.id, self.replay)
        if not drafts:
            start = continued_leaf(self.image, start)
        ask = Ask(kind="run", input=drafts, leaf_id=start)
        view = prospective_view(self.image, settings, ask)
        return settings.model.describe(settings.request(view.messages))

    def replay_report(self) -> ReplayReport:
        """Return which calls of this handle the record has answered, and what was made anew.

        Raises
        ------
        RunError
            The session was opened without ``replay=``.
        """
        if self.replay is None:
            raise RunError(
                f"session {shown(self.id)} was opened without replay, so there is nothing to "
                "report; open it with replay=True"
            )
        return self.replay.report()

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        at: Reference = None,
        redact: Callable[[str], str] | None = None,
    ) -> Path:
        """Write the session to a file, which is replaced as a whole; return its path.

        Parameters
        ----------
        path : path
            The file. One that is there must be empty or of the same format.
        format : str, optional
            By default the suffix says it. ``"jsonl"`` is without loss: `nb.load` imports it,
            `nb.open` takes it for a store. To read: ``"markdown" "html"``; as rows: ``"parquet"``;
            for others: ``"openai" "pi"``; to tune on: ``"finetune"``, and pairs: ``"dpo"``.
        at : reference, optional
            Write only the path to this entry, with what belongs to it; by default all.
        redact : callable, optional
            Takes each text that somebody said and returns what stands in its place.

        Raises
        ------
        ImportFormatError
            No such format.
        StoreError
            The file is there and is something else, or cannot be written; it is as it was.
        """
        from nbdurable import formats

        self.fresh()
        leaf_id = resolve(self.image, at, self.leaf.id, self.replay)
        return formats.export(self.image, path, format, leaf_id=leaf_id, redact=redact)

    def context(self) -> ContextUse:
        """Return the tokens of what the model reads at the leaf, by entry, against its limit."""
        self.fresh()
        return context_use(self.image, self.settings, self.leaf.id)

    # -- as data -------------------------------------------------------------------------------

    def df(self, *, texts: bool = True) -> DataFrame:
        """Return one row per stored entry of the session, by ``seq``.

        Parameters
        ----------
        texts : bool
            Whether to read what was said. Without, the frame lacks ``preview``, ``text`` and
            ``data``, and takes a quarter of the time.

        Returns
        -------
        DataFrame
            Scalars of fixed dtypes, missing ones ``pd.NA``, times aware UTC; the same columns for
            zero rows. ``on_path`` tells of the path to this handle's leaf; ``branch`` is the
            ordinal of the newest leaf below the entry. ``turn`` and ``step`` count along the
            entry's path, from 1, steps from the start of each turn; they are missing before the
            first.
        """
        from nbdurable.frames import entries_frame

        self.fresh()
        return entries_frame(self.image.store, self.id, self.leaf.id, texts=texts)

    def runs_df(self) -> DataFrame:
        """Return one row per run, in the order they started; dtypes as in `df`.

        ``input`` and ``answer`` are previews, ``status`` is the outcome of a run that ended, else
        ``running`` or ``interrupted``.
        """
        from nbdurable.frames import runs_frame

        self.fresh()
        return runs_frame(self.image.store, self.id)

    def branches_df(self) -> DataFrame:
        """Return one row per branch, by ``seq`` of its leaf, with sums over its path.

        ``parted_n`` is the last entry it shares with another branch, missing where it shares none.
        """
        from nbdurable.frames import branches_frame

        self.fresh()
        return branches_frame(self.image.store, self.id, self.leaf.id)

    def tools_df(self) -> DataFrame:
        """Return one row per tool call with its result; a result without its call is an orphan."""
        from nbdurable.frames import tools_frame

        self.fresh()
        return tools_frame(self.image.store, self.id)
