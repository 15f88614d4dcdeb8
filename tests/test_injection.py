"""Words that look like SQL, paths or commands are only text, in every place of a store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.cli import main
from nbdurable.errors import StoreError
from nbdurable.formats.copying import copy
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore

HOSTILE = {
    "drop": "'; drop table nbd.entries; --",
    "union": "x') union select * from nbd.meta where ('1' = '1",
    "dollars": "$$ $1 $name ? %s %(x)s {0} {x!r}",
    "quotes": "say \"hi\" to 'them' and `it` \\' \\\\",
    "comment": "a -- b /* c */ ;",
    "wildcards": "%_\\%*?[a-z]",
    "up": "../../../up",
    "absolute": "/tmp/absolute",
    "windows": "C:\\..\\x",
    "lines": "one\ntwo\r\nthree\ttab",
    "escape": "\x1b[2J\x1b]0;title\x07",
    "marks": "\u202ereversed\u2066 \ufeffmark \u200d",
    "composed": "e\u0301 is not \u00e9, \ufb01 is not fi",
    "command": "$(touch pwned) `touch pwned` | touch pwned & ~",
    "markup": "<script>alert(1)</script> &amp; {{x}} $x^2$",
    "option": "--help",
    "long": "x'\";-- " * 1_250,
}


@pytest.fixture
def chat(store: Store) -> Iterator[nb.Session]:
    with nb.open("s", store=store, model=ScriptedModel("Well.", repeat=True)) as opened:
        opened.run("Hello.", show=None)
        yield opened


class Note(nb.CustomEntry):
    kind = "hostile-note"
    text: str = ""


def label(chat: nb.Session, word: str) -> str:
    chat.label(2, word)
    return str(chat.annotations()[-1].value) if chat[word].n == 2 else ""


def author(chat: nb.Session, word: str) -> str | None:
    chat.rate(2, 1, by=word)
    return chat.annotations()[-1].by


def rating(chat: nb.Session, word: str) -> str:
    chat.rate(2, 1, name=word)
    assert chat.df().columns.is_unique
    return chat.annotations()[-1].name


def experiment(chat: nb.Session, word: str) -> str | None:
    made = chat.sample(1, "Q", name=word, show=None)
    made.wait()
    return chat.experiment(word).name


def custom(chat: nb.Session, word: str) -> str:
    chat.append(Note(text=word))
    return chat.entries(Note)[-1].text


def said(chat: nb.Session, word: str) -> str:
    chat.append(nb.user(word))
    with nb.connect(chat.image.store) as library:
        assert len(library.search(word, role="user")) == 1
        assert list(library.sql("select ? as word", [word])["word"]) == [word]
    return str(chat.entries()[-1].text)


def session(chat: nb.Session, word: str) -> str:
    word = word[:1_000]
    with chat.fork(word) as child:
        assert len(child.df()) == 2
    with nb.open(word, store=chat.image.store, model=ScriptedModel("x")) as again:
        assert [entry.text for entry in again.entries()][:2] == ["Hello.", "Well."]
        return again.id + HOSTILE["long"][1_000:] * (len(word) == 1_000)


PLACES: dict[str, Callable[[nb.Session, str], str | None]] = {
    "label": label,
    "author": author,
    "rating": rating,
    "experiment": experiment,
    "custom entry": custom,
    "search": said,
    "session": session,
}


# B9 B33 B64 B70
@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_word_comes_back_as_it_is_and_touches_nothing_else(
    chat: nb.Session, place: str, tmp_path: Path
) -> None:
    around = sorted(tmp_path.rglob("*"))

    back = {name: PLACES[place](chat, word) for name, word in HOSTILE.items()}

    assert back == HOSTILE
    assert [entry.text for entry in chat.entries()][:2] == ["Hello.", "Well."]
    with nb.open("s", store=chat.image.store, model=ScriptedModel("x")) as again:
        assert [entry.id for entry in again.entries()] == [entry.id for entry in chat.entries()]
        assert again.annotations() == chat.annotations()
    grown = {path.name for path in tmp_path.rglob("*")} - {path.name for path in around}
    assert all(name.startswith("store.duckdb") for name in grown)


# -- files -----------------------------------------------------------------------------------------

# What means something to SQL, a shell, a terminal or a page.
# Neither a backslash nor a question mark may be in a store's path.
NAME = 'it\'s "x"; -- %_*[a] $1 {0} $(touch x) `id` | & ~ <b> \u202e \x1b[2J\ttab\nline'


# B1 B63
@pytest.mark.parametrize("word", [NAME, "--help", "..."], ids=["hostile", "option", "dots"])
def test_a_file_of_a_hostile_name_is_that_file_and_no_other(tmp_path: Path, word: str) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    path = folder / f"{word}.duckdb"
    with nb.open("s", store=path, model=ScriptedModel("Well.")) as chat:
        chat.run("Hello.", nb.file(b"x" * 40_000, "text/plain"), show=None)
        chat.image.store.backup(folder / f"{word} copy.duckdb")  # type: ignore[attr-defined]
        for format in ("jsonl", "markdown", "parquet"):
            chat.export(folder / f"{word}.{format}", format)
    nb.load(folder / f"{word}.jsonl", store=folder / f"{word} again.duckdb")
    copy(path, folder / f"{word} copied.jsonl")

    made = {entry.name.removeprefix(word) for entry in folder.iterdir()}
    known = {".duckdb", " copy.duckdb", " again.duckdb", " copied.jsonl"}
    known |= {".jsonl", ".markdown", ".parquet"}
    assert {re.sub(r"(\.duckdb)[.-].*", r"\1", name) for name in made} == known
    for kept in (f"{word} again.duckdb", f"{word} copy.duckdb"):
        store = DuckDBStore(folder / kept)
        assert [entry.role for entry in store.load_entries("s")] == ["user", "assistant"]
        store.close()


# B63
@pytest.mark.parametrize("name", ["a\0b", "x" * 10_000], ids=["nul", "long"])
def test_a_file_name_that_no_disk_takes_is_refused_on_one_line(name: str) -> None:
    with nb.open("s", store="s.duckdb", model=ScriptedModel("Well.")) as chat:
        chat.run("Hello.", show=None)
        store = chat.image.store

        for format in ("jsonl", "markdown", "html", "parquet", "openai", "pi"):
            with pytest.raises(StoreError, match=r"^file '[^\n]{1,300}; give another path"):
                chat.export(name, format)
        with pytest.raises(StoreError, match=r"^backup '[^\n]+; choose another "):
            store.backup(name)  # type: ignore[attr-defined]

    assert [found for found in os.listdir() if "s.duckdb" not in found] == []


# B31 B61
@pytest.mark.parametrize("format", ["jsonl", "markdown", "html"])
def test_the_name_of_a_file_in_a_message_leads_to_no_file(tmp_path: Path, format: str) -> None:
    """A name comes from whoever sent the file: it is shown and kept, and never opened."""
    names = ["../../up.txt", str(tmp_path / "absolute.txt"), "a\0b", NAME, "x" * 300]
    blocks = [nb.file(b"y" * 40_000, "text/plain", name=name) for name in names]
    with nb.open("s", store=":memory:", model=ScriptedModel("Well.")) as chat:
        chat.run(*blocks, show=None)
        chat.export("out", format)

    assert os.listdir() == ["out"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == []


# -- commands --------------------------------------------------------------------------------------


# B9
def test_a_command_takes_a_hostile_session_id_as_an_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ids = [word for name, word in HOSTILE.items() if name not in ("option", "long")]
    for word in ids:
        with nb.open(word, store="s.duckdb", model=ScriptedModel("Well.")) as chat:
            chat.append(nb.user("Hello."))
    capsys.readouterr()

    for word in ids:
        assert main(["show", "s.duckdb", word]) == 0
        assert main(["show", "s.duckdb", f"{word}?"]) == 1
        told = capsys.readouterr()
        shown = told.out + told.err
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", shown)
        assert told.err.count("\n") == 1 and "Hello." in told.out
    assert main(["export", ids[0], "out.jsonl", "--store", "s.duckdb"]) == 0
    assert {"out.jsonl", "s.duckdb"} == {n for n in os.listdir() if "duckdb." not in n}
