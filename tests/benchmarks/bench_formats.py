"""Measure imports beside a bare pass of `ijson` over the same file; print a Markdown table.

Exit code 1 when a target is missed. The floor is what DuckDB alone takes for the rows that the
import stored, whole groups of them at once: no import can be quicker than that. Each import runs
in a process of its own, so that its peak of memory is its own; figures are seconds on processors,
which a busy machine stretches less. ``bench_formats.py 20`` takes that many megabytes in place of
1,000.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
from bench_core import Row, report

from nbdurable.stores.duckdb.schema import ALIAS, NEW_FILE, ROW_GROUP_SIZE, create_tables

MESSAGES = 50  # of one conversation
MESSAGE_CHARS = 4_800
WORDS = (
    'alpha the of quick "quoted" fox jumps tree branch model answer naïve 日本 return line\n'
).split(" ")
_ARGUMENTS = [int(text) for text in sys.argv[1:] if text.isdigit()]
MEGABYTES = _ARGUMENTS[0] if _ARGUMENTS else 1_000

_IMPORT = """
import resource, sys, time
import nbdurable as nb
began = time.process_time()
done = nb.load(sys.argv[1], store=sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(time.process_time() - began, peak / (1 << 20 if sys.platform == "darwin" else 1 << 10),
      done.entries)
"""


def conversation(rnd: random.Random, number: int) -> dict[str, object]:
    """Return a conversation as ChatGPT exports it."""
    ids = [f"{rnd.getrandbits(128):032x}" for _ in range(MESSAGES)]
    mapping: dict[str, object] = {}
    for place, id in enumerate(ids):
        said = {
            "id": id,
            "author": {"role": ("user", "assistant")[place % 2], "metadata": {}},
            "create_time": 1.7e9 + number * 1_000 + place,
            "content": {"content_type": "text", "parts": [_text(rnd)]},
            "status": "finished_successfully",
            "metadata": {"model_slug": "gpt-4o"} if place % 2 else {},
        }
        parent = ids[place - 1] if place else None
        mapping[id] = {"id": id, "message": said, "parent": parent, "children": []}
    return {
        "title": f"Talk {number}",
        "create_time": 1.7e9 + number * 1_000,
        "conversation_id": f"talk-{number}",
        "current_node": ids[-1],
        "mapping": mapping,
    }


def _text(rnd: random.Random) -> str:
    words = rnd.choices(WORDS, k=60)
    return " ".join(words * (MESSAGE_CHARS // len(" ".join(words))) + [str(rnd.random())])


def write_export(path: Path, size_bytes: int) -> None:
    """Write an export of about as many bytes."""
    rnd = random.Random(1)
    with path.open("w") as file:
        file.write("[")
        for number in range(1 << 30):
            file.write(("," if number else "") + json.dumps(conversation(rnd, number)))
            if file.tell() > size_bytes:
                break
        file.write("]")


def bare_pass_s(path: Path) -> float:
    """Return how long `ijson` takes for the events of a file."""
    import ijson.backends.yajl2_c as ijson

    began = time.process_time()
    with path.open("rb") as file:
        for _ in ijson.basic_parse(file):
            pass
    return time.process_time() - began


def bare_insert_s(stored: Path, path: Path) -> float:
    """Return how long DuckDB takes for a store's entries in an empty file of the same tables."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{stored}' as stored (read_only)")
        options = f"{NEW_FILE}, row_group_size {ROW_GROUP_SIZE}"
        connection.execute(f"attach '{path}' as {ALIAS} ({options})")
        create_tables(connection, ALIAS)
        connection.execute("use memory")
        reading = connection.cursor().execute("select * from stored.nbd.entries")
        connection.execute(f"use {ALIAS}.nbd")
        taken_s = 0.0
        while rows := reading.fetchmany(4 * ROW_GROUP_SIZE):
            began = time.process_time()
            connection.execute("begin")
            appender = connection.appender("entries")
            appender.append_rows(rows)
            appender.flush()
            connection.execute("commit")
            taken_s += time.process_time() - began
        return taken_s


def bench_import(folder: Path) -> Iterator[Row]:
    """Time an import, and again when all of it is there."""
    path = folder / "conversations.json"
    write_export(path, MEGABYTES * 1_000_000)
    bare_s = bare_pass_s(path)
    what = f"of {MEGABYTES:,} MB"
    yield Row(f"ijson {what}", bare_s, "s")
    for title in ("import", "import again"):
        taken = [sys.executable, "-c", _IMPORT, str(path), str(folder / "s.duckdb")]
        seconds, peak_mb, entries = subprocess.check_output(taken, text=True).split()
        yield Row(f"{title} {what}, {entries} entries", float(seconds), "s")
        target = 2.0 if title == "import" else None
        yield Row(f"{title} {what}, times ijson", float(seconds) / bare_s, "x", target)
        yield Row(f"{title} {what}, peak memory", float(peak_mb), "MB", 500)
    floor_s = bare_insert_s(folder / "s.duckdb", folder / "bare.duckdb")
    yield Row(f"DuckDB alone, entries {what}, times ijson", floor_s / bare_s, "x")


if __name__ == "__main__":
    names = [text for text in sys.argv[1:] if not text.isdigit()]
    sys.exit(report({"import": bench_import}, names))
