"""A store to forget a session of: forks, blobs, a log, damage set aside, backups, exports."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.conformance import contents

QUESTION = "A question about the violet submarine in the harbour."
ANSWER = "The answer tells of the violet submarine and its captain."
SYSTEM = "Only here: speak as a captain of a violet submarine."
OWN_BYTES = random.Random(7).randbytes(50_000)  # which nothing can compress
SHARED_BYTES = random.Random(8).randbytes(40_000)
SECRETS = (b"violet submarine", *(OWN_BYTES[at : at + 64] for at in range(0, 50_000, 5_000)))


def fill(store: Store | Path) -> None:
    """Make session ``secret``, others before, between and after it, and one with its bytes."""
    model = ScriptedModel(*(["Nothing special."] * 3), ANSWER, *(["Nothing special."] * 9))
    with (
        nb.open("before", store=store, model=model, system="Be brief.") as before,
        nb.open("secret", store=store, model=model, system=SYSTEM) as secret,
        nb.open("after", store=store, model=model, system="Be brief.") as after,
    ):
        before.run("What is this?", show=None)
        before.append(nb.user("Look.", nb.file(SHARED_BYTES, name="all.bin")))
        secret.append(nb.user("See this.", nb.file(SHARED_BYTES, name="all.bin")))
        secret.append(nb.user("And this.", nb.file(OWN_BYTES, name="own.bin")))
        after.run("And that?", show=None)
        secret.run("Hello.", show=None)
        run = secret.run(QUESTION, show=None)
        secret.label(run, "violet submarine")
        secret.branch(1)
        after.label(after.run("More?", show=None), "good")
        secret.sample(2, "Which one is the violet submarine?", name="violet").wait()
        before.sample(2, "Anything?", name="any").wait()


@functools.cache
def _filled() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chats.duckdb")
        fill(path)
        return path.read_bytes()


def new_store(folder: Path) -> Path:
    """Make a folder with nothing but such a store in it; return the store's path."""
    folder.mkdir()
    path = folder / "chats.duckdb"
    path.write_bytes(_filled())
    return path


def holding(files: Iterable[Path]) -> list[str]:
    """Return the names of files whose bytes hold what was secret."""
    return sorted(
        file.name
        for file in files
        if file.is_file() and any(secret in file.read_bytes() for secret in SECRETS)
    )


def all_but(store: Store, session_id: str) -> dict[str, object]:
    """Return every row of every other session."""
    found = contents(store)
    del found[session_id]
    return found
