"""Kill children in every place, and prove what is left of their stores (B24)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbdurable as nb
from nbdurable.blocks import Message
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import StoredEntry
from nbdurable.stores.duckdb import DuckDBStore
from nbdurable.stores.duckdb.checking import check
from nbdurable.stores.duckdb.repair import RepairNotice
from nbdurable.views import ends_in_reply

HERE = Path(__file__).parent
CUTS = (0, 4_096, 8_192, 16_384, 65_536)  # bytes that are left of the last write
TESTS = HERE.parent


@dataclass(slots=True)
class Life:
    """One child: where it lives, when it dies, and what it said until then."""

    path: Path
    seed: int
    at: int = 0
    cut: int = 0
    after_s: float | None = None
    fails: int | None = None
    does: str = "live"
    lines: list[tuple[str, Any]] = field(default_factory=list)
    code: int = 0
    died_at: float = 0.0

    def said(self, kind: str) -> list[Any]:
        """Return what it said of one kind, in order."""
        return [what for each, what in self.lines if each == kind]

    @property
    def acknowledged(self) -> set[str]:
        """The ids of all entries that it was told are stored."""
        return {entry_id for ids in self.said("ids") for entry_id in ids}

    def __str__(self) -> str:
        place = f"seed {self.seed}, killed at {self.after_s or self.at}, {self.cut} bytes left"
        return "\n".join([place, *self.said("failed")])


@dataclass(slots=True)
class Tally:
    """What many kills came to."""

    kills: int = 0
    acknowledged: int = 0
    spooled: int = 0
    repaired: int = 0  # files
    prompts: int = 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills: {self.acknowledged} entries acknowledged, 0 lost; "
            f"{self.spooled} answers in flight, 0 lost; {self.repaired} files repaired, "
            f"0 unreadable; {self.prompts} prompts, 0 invalid"
        )


class Lives:
    """A process that forks children; see `server`."""

    def __init__(self, shim: Path) -> None:
        paths = [str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "crash.server", str(shim)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._read() == "ready\n"

    def lived(self, lives: Iterable[Life]) -> Iterator[Life]:
        """Yield each life when it is over; the next, made only then, goes on meanwhile."""
        waiting = iter(lives)
        life = next(waiting, None)
        if life is not None:
            self.start(life)
        while life is not None:
            self.finish(life)
            following = next(waiting, None)
            if following is not None:
                self.start(following)
            yield life
            life = following

    def start(self, life: Life) -> None:
        """Begin a life; one after the other, so that the one before must be finished."""
        assert self._process.stdin is not None
        names = ("seed", "at", "cut", "after_s", "fails", "does")
        wanted = {name: getattr(life, name) for name in names}
        self._process.stdin.write(json.dumps({"path": str(life.path), **wanted}) + "\n")
        self._process.stdin.flush()

    def finish(self, life: Life) -> None:
        """Wait for the end of the life that was started, and note what became of it."""
        answer = json.loads(self._read())
        life.lines = [(kind, what) for kind, what in answer["lines"]]
        life.code, life.died_at = answer["code"], answer["died_at"]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def planned(folder: Path, template: Path, operations: int, count: int, seed: int) -> Iterator[Life]:
    """Yield lives that end at `count` places, each fourth at a random moment.

    Most live in a copy of `template`, each fifth makes its file itself.
    """
    chance = random.Random(seed)
    for number in range(count):
        home = folder / f"{seed}-{number}"
        home.mkdir()
        life = Life(path=home / "chats.duckdb", seed=seed * 100_000 + number)
        if number % 5:
            shutil.copy(template, life.path)
        if number % 4:
            life.at = 1 + number * operations // count
            life.cut = -number if number % 7 == 0 else chance.choice(CUTS)
        else:
            life.after_s = chance.uniform(0.0, 0.3)
        yield life


def kill(lives: Lives, grown: Life, folder: Path, count: int, seed: int) -> Tally:
    """Kill children at `count` places and prove each."""
    tally = Tally()
    (operations,) = grown.said("end")
    for life in lives.lived(planned(folder, grown.path, operations, count, seed)):
        assert life.code in (-9, 0), life
        prove(life, tally)
        shutil.rmtree(life.path.parent)
    return tally


def kill_many(shim: Path, grown: Life, folder: Path, count: int, seed: int) -> Tally:
    """Kill children of a server of its own; for a process of its own."""
    lives = Lives(shim)
    try:
        return kill(lives, grown, folder, count, seed)
    finally:
        lives.close()


def prove(life: Life, tally: Tally, *rivals: Life) -> None:
    """Open what a life left, and those beside it, and check all that is promised of it."""
    lives = (life, *rivals)
    tally.kills += sum(each.code == -9 for each in lives) if rivals else 1
    if not life.path.exists():
        assert not any(each.lines for each in lives), life
        return
    model = ScriptedModel("Going on.")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        chat = nb.open("s", store=life.path, model=model)
    texts = [str(warning.message) for warning in told]
    repaired = [warning for warning in told if issubclass(warning.category, RepairNotice)]
    assert all("without loss" in str(warning.message) for warning in repaired), (life, texts)
    with chat:
        store = chat.image.store
        rows = [row for s in store.list_sessions() for row in store.load_entries(s.session.id)]
        for each in lives:
            _prove_rows(each, rows)
        if not rivals:
            _prove_position(life, chat.leaf_id)
        _prove_prompt(life, chat, model)
    report = check(life.path)
    assert report.is_sound, (life, report.findings)
    assert not list(life.path.parent.glob("*.spool/*.jsonl")), (life, "not recovered")
    tally.acknowledged += sum(len(each.acknowledged) for each in lives)
    tally.spooled += sum(len(set(each.said("spooled"))) for each in lives)
    tally.repaired += len(list(life.path.parent.glob("*.damaged-*"))) if rivals else len(repaired)
    tally.prompts += 1


def kill_among(
    servers: Sequence[Lives], grown: Life, folder: Path, rounds: int, seed: int
) -> Tally:
    """Have children share a file and kill the first of them, each third time a second one too.

    The others go on, or wait for their turn, as do those that are killed.
    """
    tally = Tally()
    chance = random.Random(seed)
    (operations,) = grown.said("end")
    for number in range(rounds):
        home = folder / f"{seed}-{number}"
        home.mkdir()
        path = home / "chats.duckdb"
        shutil.copy(grown.path, path)
        first = seed * 1_000_000 + 10 * number
        lives = [Life(path=path, seed=first + place) for place in range(len(servers))]
        for victim in lives[: 2 if number % 3 == 2 else 1]:
            if number % 2:
                victim.at, victim.cut = chance.randint(1, operations), chance.choice(CUTS)
            else:
                victim.after_s = chance.uniform(0.0, 0.8)
        for server, life in zip(servers, lives, strict=True):
            server.start(life)
        for server, life in zip(servers, lives, strict=True):
            server.finish(life)
        victims = [life for life in lives if life.at or life.after_s is not None]
        for life in lives:
            assert life.code in ((-9, 0) if life in victims else (0,)), f"{home}: {life}"
        prove(lives[0], tally, *lives[1:])
        shutil.rmtree(home)
    return tally


def prove_appends(life: Life, before: int, tally: Tally) -> None:
    """Check what a child left that appended pairs to a store of `before` entries."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        store = DuckDBStore(life.path)
    with contextlib.closing(store):
        stored = [row.id for row in store.load_entries("s")][before:]
    acknowledged = [entry_id for ids in life.said("ids") for entry_id in ids]
    assert stored[: len(acknowledged)] == acknowledged, (life, "lost")
    assert len(stored) - len(acknowledged) in (0, 2), (life, "half there")
    assert all("without loss" in str(warning.message) for warning in told), life
    assert check(life.path).is_sound, life
    tally.kills += 1
    tally.acknowledged += len(acknowledged)
    tally.repaired += len(told)


def _prove_rows(life: Life, rows: list[StoredEntry]) -> None:
    stored = {row.id for row in rows}
    assert life.acknowledged <= stored, (life, "lost", life.acknowledged - stored)
    in_flight = set(life.said("spooled"))
    assert in_flight <= stored, (life, "lost in flight", in_flight - stored)
    assert len(stored) == len(rows), (life, "stored twice")
    threes = [row.role for row in rows if row.session_id == "s" and "three" in row.preview]
    parts = [threes.count(role) for role in (None, "user", "assistant")]
    assert len(set(parts)) == 1, (life, "an append is half there", parts)


def _prove_position(life: Life, position: str | None) -> None:
    """Check that the session resumes where it was told to be, or where it was led since."""
    places = [at for at, (kind, _) in enumerate(life.lines) if kind == "position"]
    if not places:
        return
    before, since = life.lines[: places[-1] + 1], life.lines[places[-1] :]
    known = {entry_id for kind, what in before if kind == "ids" for entry_id in what}
    allowed = {what for kind, what in since if kind in ("position", "toward")}
    assert position in allowed or position not in known, (life, "position", position)


def _prove_prompt(life: Life, chat: nb.Session, model: ScriptedModel) -> None:
    path = chat.path()
    run = chat.run(*(["Go on."] if ends_in_reply(path) or not path else []), show=None)
    assert run.text == "Going on.", life
    check_prompt(model.requests[-1].messages, life)


def check_prompt(messages: Sequence[Message], life: object) -> None:
    """Check that a prompt is one that providers take."""
    assert messages[-1].role in ("user", "tool"), life
    assert all(message.blocks for message in messages), (life, "an empty message")
    waiting: list[str] = []
    for message in messages:
        answers = [result.call_id for result in message.tool_results]
        assert answers == waiting[: len(answers)] and bool(answers) == (message.role == "tool"), (
            life
        )
        waiting = waiting[len(answers) :]
        assert not waiting or message.role == "tool", (life, "an open call")
        waiting += [call.id for call in message.tool_calls]
    assert not waiting, life
