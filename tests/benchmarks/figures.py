"""Make a part of the docs of what `make bench` printed: ``figures.py build/bench.txt``."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parents[2] / "notebooks" / "docs" / "performance-figures.md"
_FILE = re.compile(r"bench_\w+\.py")


def page(printed: str) -> str:
    """Return the page as Markdown: a heading for each file, its tables as they were printed."""
    lines = ["## Figures", "", _machine(), ""]
    is_in_table = False
    for line in printed.splitlines():
        is_row = "|" in line
        if is_in_table != is_row and lines[-1]:
            lines.append("")
        is_in_table = is_row
        lines.append(f"### {line}" if _FILE.fullmatch(line) else line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _machine() -> str:
    return (
        f"Measured on {platform.system()} ({platform.machine()}, {os.cpu_count()} processors) "
        f"with Python {platform.python_version()} and DuckDB {version('duckdb')}."
    )


def main(path: str) -> int:
    """Write the page."""
    file = Path(path)
    if not file.exists():
        print(f"{path} is not there; run make bench first", file=sys.stderr)
        return 1
    PAGE.write_text(page(file.read_text("utf-8")), "utf-8")
    print(f"the figures are in {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
