"""B1 B55: a recording answers a whole notebook, with no key and no model that could be loaded."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.errors import ReplayMiss
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.duckdb import DuckDBStore
from tests.replaying import held

NAME, OTHER = "nowhere/model-1", "elsewhere/model-2"  # no provider of these names is known


def lookup(order: str) -> str:
    """Look an order up."""
    return f"{order} left on Monday"


def notebook(chat: nb.Session, models: list[object]) -> list[object]:
    """Do what a notebook does, with some of every verb; return what it saw."""
    first = chat.run("Where is order 7?", show=None)
    chat.label(first, "found")
    tries = chat.sample(2, "A title?")
    chat.rate(tries[0].run, 5, by="me")
    chat.prefer(tries[1].run, tries[0].run)
    grid = chat.grid({"q": "Sum it up."}, model=models, temperature=[0, 1], name="g")
    more = tries.then("Shorter.")
    scored = grid.score(len_of_text, name="length")
    child = chat.fork("child", at="found")
    apart = child.run("In German?", show=None)
    chat.run("Go on.", show=None)
    chat.compact()
    last = chat.run("And now?", show=None)
    chat.branch("found")
    return [
        first.text,
        [message.role for message in first.messages],
        *([cell.text for cell in exp] for exp in (tries, grid, more, scored)),
        apart.text,
        last.text,
        chat.leaf_id == first.leaf_id,
        [entry.text for entry in chat.path(last) if entry.kind == "message"],
        chat.df().drop(columns="seq").to_csv(),
        grid.df().to_csv(),
    ]


def len_of_text(cell: object) -> int:
    return len(cell.text)  # type: ignore[attr-defined]


@pytest.fixture
def recording(tmp_path: Path) -> tuple[Path, list[object]]:
    """A notebook that ran over a file of DuckDB, exported, and what it saw."""

    def say(name: str) -> ScriptedModel:
        answers = iter(range(100))

        def answer(request: object) -> object:
            n = next(answers)
            is_first = n == 0 and name == NAME
            return calls(("lookup", {"order": "7"})) if is_first else f"{name} says {n}"

        return ScriptedModel(answer, name=name, cost_usd=0.25)  # type: ignore[arg-type]

    store = DuckDBStore(tmp_path / "first.duckdb")
    model, other = say(NAME), say(OTHER)
    chat = nb.open("s", store=store, model=model, tools=[lookup], replay=True)
    seen = notebook(chat, [model, other])
    chat.close()
    with nb.connect(store) as library:
        path = library.export(tmp_path / "rec.jsonl")
    store.close()
    return path, seen


# B1 B55 B58
def test_a_recording_answers_every_verb_without_key_or_model(
    recording: tuple[Path, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = recording
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NBDURABLE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    chat = nb.open("s", store=path, model=NAME, tools=[lookup], replay="only")
    before = held(chat.image.store)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = notebook(chat, [NAME, OTHER])

    report = chat.replay_report()
    assert again == seen
    assert held(chat.image.store) == before
    assert report.misses == 0
    assert [line.verb for line in report.lines] == (
        "run label sample rate prefer grid then score fork run compact run".split()
    )
    chat.close()


# B58
def test_a_miss_in_a_recording_stores_nothing_and_names_what_differs(
    recording: tuple[Path, list[object]],
) -> None:
    chat = nb.open("s", store=recording[0], model=NAME, tools=[lookup], replay="only")
    chat.run("Where is order 7?", show=None)
    before = held(chat.image.store)

    with pytest.raises(ReplayMiss, match="'g': it has no temperature 2;"):
        chat.grid({"q": "Sum it up."}, model=[NAME, OTHER], temperature=[0, 2])

    assert held(chat.image.store) == before
    chat.close()
