"""Forms that people and tables read: Markdown, a page of HTML, Parquet."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest
from html_reader import TRAPS
from importing import DATA, talks

import nbdurable as nb
from nbdurable.blocks import Blob, ImageBlock
from nbdurable.errors import ImportFormatError
from nbdurable.formats.markdown import safe
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.memory import MemoryStore

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def chat(*texts: str) -> nb.Session:
    made = nb.open("s", store=MemoryStore(), model=ScriptedModel("ok"))
    for text in texts:
        made.append(nb.user(text))
    return made


def herbs() -> nb.Session:
    store = MemoryStore()
    nb.load(DATA / "chatgpt_export.json", store=store)
    return max(talks(store).values(), key=lambda talk: len(talk.keys)).open()


def written(made: nb.Session, name: str, **kwargs: object) -> str:
    return made.export(name, **kwargs).read_text("utf-8")  # type: ignore[arg-type]


# -- Markdown ------------------------------------------------------------------------------------


# B37
def test_a_tree_as_markdown_has_each_entry_with_an_anchor_and_links() -> None:
    text = written(herbs(), "a.md")

    assert text.count("\n## ") == 14
    anchors = set(re.findall(r'<a id="(e\d+)"></a>', text))
    links = set(re.findall(r"\]\(#(e\d+)\)", text))
    assert len(anchors) == 14 and links <= anchors
    assert "then [#5](#e5), [#13](#e13)" in text
    assert "# Herbs 🌿 \\<script\\>" in text


# B37
def test_one_path_as_markdown_reads_straight_down() -> None:
    made = herbs()

    text = written(made, "a.md", at=made.entries()[-1])

    assert re.findall(r"\n## (\\#\d+ \w+)", text) == [
        *["\\#1 user", "\\#2 user", "\\#3 user", "\\#4 assistant", "\\#5 user", "\\#6 assistant"]
    ]
    assert "<a id" not in text


# case 43
@pytest.mark.parametrize("name", TRAPS)
def test_no_text_reaches_beyond_its_entry_in_markdown(name: str) -> None:
    text = written(chat(TRAPS[name], "after"), "a.md")

    assert text.count("\n## \\#") == 2
    outside = re.sub(r"(?ms)^(`{3,}|~{3,}).*?^\1`*$", "", text.partition("\n")[2])
    assert not re.search(r"<[a-zA-Z/!?]", outside)
    assert not re.search(r"(?<!\\)\[[^\]]*\]\(\s*javascript:", outside)
    assert "\nafter\n" in outside


# case 50
def test_open_fences_are_closed_and_headings_are_text() -> None:
    assert safe("# top\n~~~~py\n# code\n~~~") == ["\\# top", "~~~~py", "# code", "~~~", "~~~~"]
    assert safe("use `<b>` or <b>") == ["use `<b>` or &lt;b>"]


# -- HTML ----------------------------------------------------------------------------------------

TAGS = frozenset(
    "html head meta title style body div h1 h2 h3 h4 h5 h6 p bdi section details summary pre code "
    "a ul ol li blockquote span strong em del table tr th td hr br img b".split()
)
ATTRIBUTES = frozenset(
    "lang charset http-equiv content name class id href dir alt src open rel target title "
    "value".split()
)


class Page(HTMLParser):
    """Reads a page as a browser would and refuses what could run or be fetched."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS and {name for name, _ in attrs} <= ATTRIBUTES
        found = dict(attrs)
        if "src" in found:
            assert str(found["src"]).startswith("data:image/")
        if "href" in found:
            assert re.match(r"#|https?:|mailto:", str(found["href"]))
            self.links.append(str(found["href"]))
        if "id" in found:
            self.ids.append(str(found["id"]))
        if tag not in ("meta", "br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


# case 42
def test_a_tree_as_a_page_has_all_entries_whole_and_its_branches_folded() -> None:
    html = written(herbs(), "a.html")

    page = Page(html)
    assert sorted(page.ids, key=lambda id: int(id[1:])) == [f"e{n}" for n in range(1, 15)]
    assert {link for link in page.links if link.startswith("#")} <= {f"#{id}" for id in page.ids}
    assert html.count('<details class="side">') == 2
    assert "Content-Security-Policy" in html and "default-src 'none'" in html


# case 43
@pytest.mark.parametrize("name", TRAPS)
def test_hostile_texts_are_text_on_a_page(name: str) -> None:
    made = chat(TRAPS[name])
    made.label(1, TRAPS[name][:200].strip() or "x")

    page = Page(written(made, "a.html"))

    assert "window.__hit" not in TRAPS[name] or "window.__hit" in page.text


# case 42
def test_five_hundred_entries_are_on_one_page_whole() -> None:
    texts = [f"text {n} " + "word " * 400 + f"end {n}." for n in range(500)]

    page = Page(written(chat(*texts), "a.html"))

    assert all(f"end {n}." in page.text for n in range(500))
    assert len(page.ids) == 500


# case 40
def test_pictures_are_inside_the_page() -> None:
    made = chat()
    made.append(nb.user(ImageBlock(Blob.of(PNG), "image/png", "pot.png")))

    html = written(made, "a.html")

    assert Page(html).ids == ["e1"] and html.count('src="data:image/png;base64,iVBORw0KGgo') == 1


# -- Parquet -------------------------------------------------------------------------------------


# case 38
def test_entries_as_parquet_have_their_types_and_values() -> None:
    made = herbs()
    made.export("a.parquet")

    found = duckdb.sql("select * from 'a.parquet' order by n")

    types = dict(zip(found.columns, map(str, found.types), strict=True))
    assert types["created_at"] == "TIMESTAMP WITH TIME ZONE" and types["id"] == "UUID"
    rows = found.project("n, role, text, model").fetchall()
    assert rows[3] == (4, "assistant", made.path(4)[-1].text, "gpt-4o")
    (on_path,) = duckdb.sql("select count(*) from 'a.parquet' where on_path").fetchall()[0]
    assert (len(rows), on_path) == (14, 11)


# B37
def test_a_path_and_a_whole_store_go_to_parquet_redacted() -> None:
    store = MemoryStore()
    nb.load(DATA / "pi_session.jsonl", store=store)
    nb.load(DATA / "sharegpt.json", store=store)
    (talk,) = [found for id, found in talks(store).items() if id.startswith("pi")]

    talk.open().export("a.parquet", at=talk.stored("a0000006").id)
    nb.connect(store).export("b.parquet", redact=lambda text: text.replace("README", "***"))

    count = "select count(*) from"
    assert duckdb.sql(f"{count} 'a.parquet'").fetchall() == [(6,)]
    assert duckdb.sql(f"{count} 'b.parquet'").fetchall() == [(44,)]
    assert duckdb.sql(f"{count} 'b.parquet' where payload like '%README%'").fetchall() == [(0,)]


# B6
def test_a_form_of_one_session_is_refused_for_a_store() -> None:
    with pytest.raises(ImportFormatError, match="format 'html' holds one session to a file; use"):
        nb.connect(MemoryStore()).export("a.html", format="html")

    assert not Path("a.html").exists()
