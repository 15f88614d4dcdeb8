"""The page lays a tree out as the terminal and the static page do: both against one file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from entry_words import user

from nbdurable.outline import outline

TREES = Path(__file__).with_name("data") / "outlines.json"
COUNT = 60


def tree(seed: int) -> dict[str, Any]:
    """Return a tree by numbers, as the page gets it, and the lines it is shown in."""
    rng = random.Random(seed)
    size = rng.choice([0, 1, 2, 5, 9, 30])
    parents = [rng.choice([n - 1, n - 1, n - 1, rng.randrange(n)]) for n in range(1, size + 1)]
    leaf = rng.choice([size, size, rng.randint(0, size)])
    entries = [
        user("x", id=str(n), parent_id=str(parent) if parent else None, seq=n, n=n)
        for n, parent in enumerate(parents, 1)
    ]
    lines = [
        [line.row.n, line.indent, int(line.is_side), int(line.on_path), line.sibling, line.siblings]
        for line in outline(entries, str(leaf) if leaf else None)
    ]
    return {"parents": parents, "leaf": leaf, "lines": lines}


# B29
def test_the_page_is_tested_against_the_outline_that_everything_else_shows() -> None:
    """``tests/js/lines.test.mjs`` reads the same file."""
    assert json.loads(TREES.read_text("utf-8")) == [tree(seed) for seed in range(COUNT)]


if __name__ == "__main__":
    text = ",\n".join(json.dumps(tree(seed), separators=(",", ":")) for seed in range(COUNT))
    TREES.write_text(f"[{text}]\n", "utf-8")
