"""How much memory an import takes: not more for a larger file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from new_process import in_new_process

SCRIPT = """
import resource, sys
import nbdurable as nb
import nbdurable.formats.chatgpt, nbdurable.stores.duckdb
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = nb.load(sys.argv[1], store=sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print([report.entries, (peak - before) // (1 << 20 if sys.platform == "darwin" else 1 << 10)])
"""
TEXT_CHARS = 100_000


def write(path: Path, conversations: int) -> None:
    with path.open("w") as file:
        for number in range(conversations):
            messages = [
                {"role": ("user", "assistant")[place % 2], "content": f"{number} {place} " + text}
                for place, text in enumerate(["w\u00f6rd " * (TEXT_CHARS // 5)] * 10)
            ]
            file.write(json.dumps({"messages": messages}) + "\n")


@pytest.mark.slow
def test_an_import_takes_a_bounded_part_of_memory_whatever_the_size(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    write(path, 300)

    target = str(tmp_path / "s.duckdb")
    done = in_new_process(SCRIPT, str(path), target, timeout_s=900)
    entries, grown_mb = done  # type: ignore[misc]

    assert path.stat().st_size > 300 << 20
    assert entries == 3_000
    assert grown_mb < 350
