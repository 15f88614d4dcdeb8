"""The verbs that say something about entries: `label`, `rate`, `prefer` (B70).

Owns what each takes and refuses. Entries are never touched, so all of these may be called at any
time, also while a run goes on.
"""

from __future__ import annotations

from nbdurable.annotations import (
    LABEL,
    NOT_RATINGS,
    PREFER,
    Score,
    content_of,
    is_score,
    preference_value,
)
from nbdurable.blocks import Json
from nbdurable.errors import BadPayload, EntryError, shown
from nbdurable.handle import Handle
from nbdurable.references import Reference, resolve_entry
from nbdurable.replay import ANNOTATE
from nbdurable.replay.record import place
from nbdurable.stored import Annotation
from nbdurable.wire import clean, dumps


class Annotating(Handle):
    """A handle that labels, rates and compares entries."""

    def label(self, ref: Reference, text: str | None, *, by: str | None = None) -> Annotation:
        """Give an entry a name, which is a reference from then on; None takes it back.

        Parameters
        ----------
        ref : reference
            The entry; a run means its last one.
        text : str or None
            Any text that is not blank. An entry has one label per author, the latest.
        by : str, optional
            Who says so.

        Returns
        -------
        Annotation
            As stored.

        Raises
        ------
        EntryNotFound, EntryError
            Nothing was stored.
        """
        target_id = self._target(ref)
        value = None if text is None else _text(text, "label")
        return self._annotate(target_id, LABEL, value, by)

    def rate(
        self,
        ref: Reference,
        score: Score | None,
        *,
        name: str = "rating",
        by: str | None = None,
        note: str | None = None,
    ) -> Annotation:
        """Score an entry, most often an answer; None takes the score back.

        Parameters
        ----------
        ref : reference
            The entry; a run means its last one.
        score : float, int, bool or None
            Finite. The latest of an entry, name and author counts.
        name : str
            What is scored, such as ``"tone"``.
        by : str, optional
            Who says so, a person or a scorer.
        note : str, optional
            Why.

        Returns
        -------
        Annotation
            As stored.

        Raises
        ------
        EntryNotFound, EntryError
            Nothing was stored; `BadPayload` for NaN or infinity.
        """
        target_id = self._target(ref)
        if _text(name, "name of a rating") in NOT_RATINGS:
            raise EntryError(
                f"name {shown(name)} of a rating means something else here; choose another, "
                f"none of {sorted(NOT_RATINGS)}"
            )
        note = None if note is None else _checked(note, "note of a rating")
        return self._annotate(target_id, name, _score(score), by, note)

    def prefer(self, winner: Reference, *losers: Reference, by: str | None = None) -> Annotation:
        """Say that one answer is better than others to the same question.

        Parameters
        ----------
        winner : reference
            The better entry; a run means its last one.
        *losers : reference
            The others, one or more: the latest call for a winner and an author counts, whole.
            A single None takes it back.
        by : str, optional
            Who says so.

        Returns
        -------
        Annotation
            As stored, on the winner.

        Raises
        ------
        EntryNotFound, EntryError
            Nothing was stored.
        """
        winner_id = self._target(winner)
        if losers == (None,):
            return self._annotate(winner_id, PREFER, None, by)
        loser_ids = list(
            dict.fromkeys(
                resolve_entry(self.image, loser, self.leaf.id, self.replay) for loser in losers
            )
        )
        n = self.image.stored(winner_id).n
        if not loser_ids:
            raise EntryError(
                f"prefer of entry #{n} was given nothing that it is better than; "
                "give one entry or more, or None to take it back"
            )
        if winner_id in loser_ids:
            raise EntryError(f"entry #{n} cannot be better than itself; give other entries")
        return self._annotate(winner_id, PREFER, preference_value(loser_ids), by)

    def annotations(self) -> list[Annotation]:
        """Return what counts: the latest of each entry, name and author, oldest first."""
        self.fresh()
        return self.image.annotations().counting()

    def _target(self, ref: Reference) -> str:
        self.fresh()
        return resolve_entry(self.image, ref, self.leaf.id, self.replay)

    def _annotate(
        self, target_id: str, name: str, value: Json, by: str | None, note: str | None = None
    ) -> Annotation:
        image = self.image
        draft = Annotation(
            id=image.new_id(),
            session_id=image.session_id,
            target_id=target_id,
            name=clean(name) or "",
            value_json=dumps(value),
            created_at=image.clock(),
            by=None if by is None else clean(_text(by, "author")),
            note=clean(note),
        )
        return self._repeated(draft) or image.annotate(draft)

    def _repeated(self, draft: Annotation) -> Annotation | None:
        """Return what an equal call stored before, when this handle replays (B56)."""
        if self.replay is None:
            return None
        content = content_of(draft)
        before = self.replay.take((ANNOTATE, content))
        equal = self.image.annotations().equal_to(content)
        is_hit = before < len(equal)
        verb = draft.name if draft.name in (LABEL, PREFER) else "rate"
        self.replay.note(verb, is_hit=is_hit, where=place(self.image, draft.target_id))
        return equal[before] if is_hit else None


def _checked(text: object, what: str) -> str:
    if isinstance(text, str):
        return text
    raise EntryError(f"{what} is {shown(text)} of type {type(text).__name__}; give text or None")


def _text(text: object, what: str) -> str:
    if not _checked(text, what).strip():
        raise EntryError(f"{what} is {shown(text)}, which is blank; give text that can be seen")
    return str(text)


def _score(score: object) -> Score | None:
    """Return a score as a plain number: those of numpy are unpacked."""
    plain = score.item() if getattr(score, "ndim", None) == 0 else score  # type: ignore[attr-defined]
    if plain is None or is_score(plain):
        return plain
    if not isinstance(plain, int | float):
        raise EntryError(
            f"score {shown(score)} is of type {type(score).__name__}; "
            "give a number, a bool, or None to take it back"
        )
    raise BadPayload(
        f"score {shown(plain)} of a rating is no finite number, so it cannot be compared; "
        "give one, or None to take it back",
        path="score",
    )
