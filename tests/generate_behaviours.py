"""Write the page of the numbered behaviours: ``python tests/generate_behaviours.py``."""

from __future__ import annotations

from pathlib import Path

from behaviour_titles import TITLES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "notebooks" / "docs" / "behaviours.md"

INTRODUCTION = """# Behaviours

What the toolkit does is numbered, and tests name the numbers that they pin. This lists each number
with its tests, and fails when one has none:

```sh
python tests/behaviours.py
```
"""

SECTIONS = {
    1: "Open, resume, identity",
    13: "Runs and receipts",
    27: "Tools and hooks",
    34: "What is seen by whom",
    39: "Tree, branch, rerun, edit",
    44: "The model view",
    48: "Fork and compact",
    53: "Events and the end of a session",
    55: "Replay",
    59: "Stores",
}


def page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION]
    for number, title in TITLES.items():
        if number in SECTIONS:
            parts.append(f"## {SECTIONS[number]}\n")
        parts.append(f"### B{number}\n\n{title}.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
