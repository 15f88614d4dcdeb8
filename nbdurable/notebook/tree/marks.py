"""Labels, ratings and preferences as a tree shows them, by ordinal."""

from __future__ import annotations

from typing import Any

from nbdurable.loaded import Loaded


def marks_of(image: Loaded) -> dict[str, dict[str, Any]]:
    """Return what is said of each entry that anything counts for."""
    annotations = image.annotations()
    preferred = {one.winner_id for one in annotations.preferences()}
    said = annotations.marks()
    found: dict[str, dict[str, Any]] = {}
    for entry_id in [*said, *(preferred - said.keys())]:
        node, marks = image.tree.get(entry_id), said.get(entry_id)
        labels = list(marks.labels) if marks else []
        ratings = [
            {"name": rating.name, "score": rating.score, "by": rating.by}
            for rating in (marks.ratings if marks else ())
        ]
        if node is not None and (labels or ratings or entry_id in preferred):
            found[str(node.n)] = {
                "labels": labels,
                "ratings": ratings,
                "preferred": entry_id in preferred,
            }
    return found
