"""Annotations: what people and scorers say about entries, kept beside the tree (B70).

Owns which of a session's annotations count and what they mean. Does not own how one is made
(`annotating`) or read from the store (`loaded`). The one idea: nothing is ever replaced; the latest
of a target, name and author counts, and ``null`` is how one is taken back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from sys import float_info
from typing import TypeGuard

from nbdurable.blocks import Json
from nbdurable.stored import Annotation
from nbdurable.wire import clean, dumps

LABEL, PREFER, CONFIRM = "label", "prefer", "confirm"
NOT_RATINGS = frozenset({LABEL, PREFER, CONFIRM})

Score = bool | int | float
Key = tuple[str, str, str | None]
"""Of what the latest counts: target, name, author."""

Content = tuple[str, str, str | None, str, str | None]
"""What makes two annotations equal: target, name, author, value, note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A score of an entry, the latest of its name and author."""

    name: str
    score: Score
    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One answer preferred to another by one author."""

    winner_id: str
    loser_id: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """What counts for one entry: its labels and its ratings, oldest first."""

    labels: tuple[str, ...] = ()
    ratings: tuple[Rating, ...] = ()


def content_of(annotation: Annotation) -> Content:
    """Return what makes an annotation equal to another."""
    return (
        annotation.target_id,
        annotation.name,
        annotation.by,
        annotation.value_json,
        annotation.note,
    )


class Annotations:
    """A session's annotations, growing in the order of their counters; safe from any thread."""

    def __init__(self, annotations: Iterable[Annotation] = ()) -> None:
        self._lock = threading.Lock()
        self._history: dict[Content, list[Annotation]] = {}
        self._counting: dict[Key, Annotation] = {}
        self._labelled: dict[str, dict[Key, None]] = {}
        self._last = 0
        self.add(annotations)

    @property
    def last(self) -> int:
        """The counter up to which annotations are known."""
        return self._last

    def add(self, annotations: Iterable[Annotation]) -> None:
        """Take newer annotations, in order; those known already are passed over."""
        with self._lock:
            for annotation in annotations:
                if annotation.counter > self._last:
                    self._last = annotation.counter
                    self._take(annotation)

    def _take(self, annotation: Annotation) -> None:
        key = (annotation.target_id, annotation.name, annotation.by)
        before = self._counting.pop(key, None)  # the newest goes to the end
        old, new = _label(before), _label(annotation)
        if old is not None:
            self._labelled[old].pop(key)
            if not self._labelled[old]:
                del self._labelled[old]
        if new is not None:
            self._labelled.setdefault(new, {})[key] = None
        self._counting[key] = annotation
        self._history.setdefault(content_of(annotation), []).append(annotation)

    # -- reading -------------------------------------------------------------------------------

    def history(self) -> list[Annotation]:
        """Return all, also what no longer counts, by counter."""
        with self._lock:
            found = [one for equal in self._history.values() for one in equal]
        return sorted(found, key=lambda annotation: annotation.counter)

    def equal_to(self, content: Content) -> list[Annotation]:
        """Return all of a content, by counter."""
        with self._lock:
            return list(self._history.get(content, ()))

    def counting(self) -> list[Annotation]:
        """Return those that count, by counter; what was taken back is left out."""
        with self._lock:
            return [one for one in self._counting.values() if one.value_json != "null"]

    def labelled(self, text: str, said: Iterable[Content] = ()) -> list[str]:
        """Return the ids of the entries that have a label.

        `said` is what a replay has said so far, in order. Its labels are looked at first, and what
        is stored of the same entries and authors not at all: that may come later in its notebook.
        """
        text = clean(text) or ""
        own = {content[:3]: content for content in said if content[1] == LABEL}
        keys = [key for key, content in own.items() if content[3] == dumps(text)]
        if not keys:
            with self._lock:
                keys = [key for key in self._labelled.get(text, ()) if key not in own]
        return list(dict.fromkeys(target_id for target_id, _, _ in keys))

    def labels(self) -> list[str]:
        """Return the labels that count."""
        with self._lock:
            return list(self._labelled)

    def marks(self) -> dict[str, Marks]:
        """Return labels and ratings by the id of their entry."""
        ordered = sorted(self.counting(), key=lambda annotation: annotation.target_id)
        by_target = groupby(ordered, key=lambda annotation: annotation.target_id)
        return {target: _marks(said) for target, said in by_target}

    def preferences(self) -> list[Preference]:
        """Return the pairs that count, by counter; of two contrary ones of an author the later."""
        pairs: dict[tuple[frozenset[str], str | None], Preference] = {}
        for annotation in self.counting():
            for loser_id in losers_of(annotation):
                key = (frozenset((annotation.target_id, loser_id)), annotation.by)
                pairs.pop(key, None)
                pairs[key] = Preference(
                    winner_id=annotation.target_id, loser_id=loser_id, by=annotation.by
                )
        return list(pairs.values())


def _marks(annotations: Iterable[Annotation]) -> Marks:
    labels, ratings = [], []
    for annotation in annotations:
        text, score = _label(annotation), _score(annotation)
        if text is not None:
            labels.append(text)
        if score is not None:
            ratings.append(
                Rating(name=annotation.name, score=score, by=annotation.by, note=annotation.note)
            )
    return Marks(tuple(dict.fromkeys(labels)), tuple(ratings))


# -- values: what another version, or an import, wrote may be anything ----------------------------


def losers_of(annotation: Annotation) -> tuple[str, ...]:
    """Return the ids of the entries that a preference puts below its target."""
    value = _value(annotation) if annotation.name == PREFER else None
    over = value.get("over") if isinstance(value, Mapping) else None
    if not isinstance(over, list):
        return ()
    losers = [loser for loser in over if isinstance(loser, str)]
    return tuple(loser for loser in losers if loser != annotation.target_id)


def preference_value(loser_ids: Iterable[str]) -> dict[str, Json]:
    """Return what a preference over these entries holds."""
    return {"over": list(loser_ids)}


def with_ids(annotation: Annotation, fresh: Mapping[str, str]) -> str:
    """Return an annotation's value as JSON with `fresh` ids in place of old ones; others stay."""
    value = _value(annotation) if annotation.name == PREFER else None
    over = value.get("over") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(over, list):
        return annotation.value_json
    mapped = [fresh.get(loser, loser) if isinstance(loser, str) else loser for loser in over]
    return dumps({**value, "over": mapped})


def _label(annotation: Annotation | None) -> str | None:
    if annotation is None or annotation.name != LABEL:
        return None
    value = _value(annotation)
    return value if isinstance(value, str) else None


def _score(annotation: Annotation) -> Score | None:
    if annotation.name in NOT_RATINGS:
        return None
    value = _value(annotation)
    return value if is_score(value) else None


def is_score(value: object) -> TypeGuard[Score]:
    """Whether a value can be compared with other scores: a bool, or a number that is finite."""
    if isinstance(value, bool):
        return True
    return isinstance(value, int | float) and abs(value) <= float_info.max


def _value(annotation: Annotation) -> Json:
    try:
        return annotation.value
    except (ValueError, RecursionError):
        return None
