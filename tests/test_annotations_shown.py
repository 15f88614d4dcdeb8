"""Labels and ratings in the trees that people look at: few, short, quiet, and only data."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from html_reader import TRAPS, Reader
from rich.cells import cell_len
from rich.console import Console

import nbdurable as nb
from nbdurable.annotations import Marks, Rating
from nbdurable.cli import main
from nbdurable.models.scripted import ScriptedModel
from nbdurable.notebook.static import MAX_BYTES, session_html
from nbdurable.outline import outline
from nbdurable.stored import StoredEntry
from nbdurable.stores import Store
from nbdurable.terminal import render_tree

EVIL = '<img src=x onerror=alert(1)>[red]\x1b[31m\u202e"&'


def entries(count: int = 1) -> list[StoredEntry]:
    return [
        StoredEntry(
            id=f"e{n}",
            session_id="s",
            parent_id=f"e{n - 1}" if n > 1 else None,
            kind="message",
            payload="{}",
            created_at=0,
            seq=n,
            n=n,
            role="user",
            preview=f"text {n} " + "x" * 100,
        )
        for n in range(1, count + 1)
    ]


def tags(marks: Marks) -> tuple[str, ...]:
    (line,) = outline(entries(), "e1", {"e1": marks})
    return line.tags


def on_terminal(marks: Marks, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(render_tree(entries(), "e1", marks={"e1": marks}))
    return out.getvalue().rstrip("\n")


# B70
def test_a_session_in_a_cell_shows_its_labels_and_ratings(
    store: Store, model: ScriptedModel
) -> None:
    chat = nb.open("s", store=store, model=model)
    chat.run("q", show=None)
    chat.label(1, "before refund")
    chat.rate(2, 4, by="ana")
    chat.rate(2, True, name="safe")
    chat.label(2, "gone")
    chat.label(2, None)

    text = Reader(chat._repr_html_()).text

    assert "#1 user q [before refund]" in text
    assert "A scripted answer. [rating 4 by ana] [safe yes]" in text
    assert "gone" not in text


# B70
def test_the_command_line_shows_labels(
    tmp_path: Path, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.duckdb"
    with nb.open("s", store=path, model=model) as chat:
        chat.run("q", show=None)
        chat.label(2, "before refund")

    assert main(["show", str(path), "s"]) == 0

    assert "A scripted answer." in (out := capsys.readouterr().out)
    assert "[before refund] ← leaf" in " ".join(out.split())


# B70
@pytest.mark.parametrize(
    ("rating", "text"),
    [
        (Rating(name="tone", score=0.8333333333), "tone 0.833333"),
        (Rating(name="rating", score=12_000), "rating 12000"),
        (Rating(name="safe", score=False), "safe no"),
        (Rating(name="r", score=-1e300, by="j"), "r -1e+300 by j"),
    ],
)
def test_a_rating_is_told_in_a_few_words(rating: Rating, text: str) -> None:
    assert tags(Marks((), (rating,))) == (text,)


# B70
def test_many_annotations_are_counted_and_long_ones_cut() -> None:
    ratings = tuple(Rating(name=f"r{i}", score=i) for i in range(5))

    shown = tags(Marks(("long " * 50, "b"), ratings))

    assert [len(tag) for tag in shown] == [40, 1, 4, 4, 2]
    assert shown[-1] == "+3"


# B70
@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_on_a_narrow_terminal_the_text_comes_before_the_tags(width: int) -> None:
    line = on_terminal(Marks(("a label", "another", "third of them")), width)

    assert cell_len(line) <= width
    assert "text 1" in line and "← leaf" in line
    assert ("[a label]  [another]" in line) == (width >= 100)


# case 43
def test_a_hostile_annotation_is_shown_and_not_obeyed() -> None:
    marks = Marks((EVIL,), (Rating(name=EVIL, score=1, by=EVIL),))

    html = session_html(entries(), "e1", marks={"e1": marks})
    line = on_terminal(marks, 300)

    assert not {"img", "script"} & set(Reader(html).tags)
    assert "[<img src=x" in Reader(html).text
    for shown in (html, line):
        assert "\x1b" not in shown and "\u202e" not in shown
    assert "[red]␛[31m" in line


# case 43
@pytest.mark.parametrize("name", TRAPS)
def test_a_text_trap_as_a_label_makes_no_tag(name: str) -> None:
    marks = {"e1": Marks((TRAPS[name],), (Rating(name=TRAPS[name], score=1),))}

    reader = Reader(session_html(entries(), "e1", marks=marks))

    assert not {"script", "img", "svg"} & set(reader.tags)


# case 42
def test_labels_do_not_push_a_tree_over_its_size() -> None:
    marks = {f"e{n}": Marks(("&" * 100,) * 4) for n in range(1, 2_001)}

    assert len(session_html(entries(2_000), "e2000", marks=marks).encode()) <= MAX_BYTES
