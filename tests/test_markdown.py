"""Markdown from models: only known tags come out, and no word is lost on the way."""

from __future__ import annotations

import sys
from html.parser import HTMLParser

import pytest
from html_reader import TRAPS
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.notebook.markdown import TAGS, to_html
from nbdurable.notebook.markdown.inline import link_html
from nbdurable.reprs import visible

ATTRIBUTES = {
    "a": {"href", "rel", "target"},
    "li": {"dir", "value"},
    "span": {"class", "title"},
}


class Reader(HTMLParser):
    """Reads HTML as a browser would and keeps what it would show."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.comments = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("br", "hr"):
            self.open.append(tag)
        self.text += dict(attrs).get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    handle_decl = handle_pi = unknown_decl = handle_comment


def words(text: str) -> str:
    """Return the letters and digits of a text; Markdown's own marks are neither."""
    return "".join(char for char in visible(text) if char.isalnum())


def check(source: str) -> Reader:
    reader = Reader(to_html(source))
    assert not reader.open
    assert not reader.comments
    for tag, attributes in reader.tags:
        assert tag in TAGS
        assert attributes.keys() <= ATTRIBUTES.get(tag, {"dir"})
        if "href" in attributes:
            assert str(attributes["href"]).lower().startswith(("http://", "https://", "mailto:"))
            assert "noopener" in str(attributes["rel"])
    assert words(reader.text) == words(source)
    return reader


MARKS = [
    *"*_`~[]()<>#|-+!\\ \n\t:&\"'$=.1a/",
    "![",
    "](",
    "**",
    "```",
    "\n> ",
    "\n- ",
    "\n1. ",
    "\n|-|\n",
    "    ",
    "https://e.com/",
    "javascript:",
    "<b>",
    "</p>",
    "<!--",
    "&lt;",
    "\x00",
    "\x1b[31m",
    "م",
    "\ud800",
    "word",
]


# case 43
@given(st.lists(st.sampled_from(MARKS), max_size=60).map("".join) | st.text(max_size=200))
def test_any_text_gives_known_tags_and_keeps_every_word(source: str) -> None:
    check(source)


# case 43 case 31 case 50
@pytest.mark.parametrize("name", TRAPS)
def test_a_text_trap_gives_known_tags_and_keeps_every_word(name: str) -> None:
    check(TRAPS[name])


# case 43
@pytest.mark.parametrize("name", ["script", "img_onerror", "attr_break"])
def test_html_in_a_text_is_shown_as_text(name: str) -> None:
    assert check(TRAPS[name]).text == TRAPS[name]


# case 43
def test_a_link_that_runs_script_is_text_with_its_address() -> None:
    reader = check(TRAPS["js_link"])

    links = [attributes["href"] for tag, attributes in reader.tags if tag == "a"]
    assert links == ["https://example.com/?a=1&b=2"]
    assert "click (javascript:window.__hit=1)" in reader.text


@pytest.mark.parametrize(
    "url",
    ["JaVaScript:x", "data:text/html,x", "//e.com", "/a", "vbscript:x", "http", " http://a b"],
)
def test_an_address_of_another_kind_makes_no_link(url: str) -> None:
    assert link_html(url, "label") == "label"


def test_an_image_is_named_and_never_fetched() -> None:
    reader = check("![a cat](https://e.com/cat.png)")

    assert not [tag for tag, _ in reader.tags if tag in ("img", "a")]
    assert reader.text == "🖼 a cat (https://e.com/cat.png)"


def test_a_bare_address_becomes_a_link_without_the_full_stop() -> None:
    reader = check("See https://e.com/a_(b).")

    assert [a["href"] for tag, a in reader.tags if tag == "a"] == ["https://e.com/a_(b)"]


def test_dollars_are_left_alone() -> None:
    assert check(TRAPS["math_dollars"]).text == TRAPS["math_dollars"]


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("a **b _c_** `x<y`", "a <strong>b <em>c</em></strong> <code>x&lt;y</code>"),
        ("***both***", "<strong><em>both</em></strong>"),
        ("2 * 3 * 4, snake_case_name", "2 * 3 * 4, snake_case_name"),
        (r"\*not\* ``a`b``", "*not* <code>a`b</code>"),
        ("~~gone~~ **open", "<del>gone</del> **open"),
        ("one\ntwo", "one<br>two"),
        ("*a [b* c](u)", "<em>a [b</em> c](u)"),
        ("[a [b](http://c) d](http://e)", None),
    ],
)
def test_marks_inside_a_line(source: str, html: str | None) -> None:
    reader = check(source)

    if html is None:
        assert sum(tag == "a" for tag, _ in reader.tags) == 2  # the inner link and a bare address
    else:
        assert to_html(source) == f'<p dir="auto">{html}</p>'


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("# Big #", '<h3 dir="auto">Big</h3>'),
        ("#no", '<p dir="auto">#no</p>'),
        ("a\n***\nb", '<p dir="auto">a</p><hr><p dir="auto">b</p>'),
        ("> a\n> > b", None),
        ("- a\n- b", '<ul><li dir="auto">a</li><li dir="auto">b</li></ul>'),
        ("3. a\n4. b", '<ol><li dir="auto" value="3">a</li><li dir="auto" value="4">b</li></ol>'),
        (
            "- a\n  - b\n\ttab",
            '<ul><li dir="auto">a<ul><li dir="auto">b<br>tab</li></ul></li></ul>',
        ),
        (
            "|a|b|\n|-|-|\n|1|",
            '<table><tr><th dir="auto">a</th><th dir="auto">b</th></tr>'
            '<tr><td dir="auto">1</td></tr></table>',
        ),
        ("~~~\n*a*\n~~~\nb", '<pre dir="ltr"><code>*a*</code></pre><p dir="auto">b</p>'),
    ],
)
def test_blocks(source: str, html: str | None) -> None:
    check(source)

    assert to_html(source) == (
        html
        or '<blockquote><p dir="auto">a</p>'
        '<blockquote><p dir="auto">b</p></blockquote></blockquote>'
    )


def test_a_fence_in_a_list_keeps_its_lines_as_they_are() -> None:
    assert "<code>all:\n\techo\n  two</code>" in to_html("1. do\n\n```\nall:\n\techo\n  two\n```")
    assert "<code>x = 1\n    y</code>" in to_html("1. do\n   ```py\n   x = 1\n       y\n   ```")


def test_an_unclosed_fence_reaches_to_the_end() -> None:
    assert to_html(TRAPS["fence"]).endswith(
        "<code>print('unclosed fence')\n</code></pre>".replace("'", "&#x27;")
    )


# case 31
def test_control_characters_are_shown_as_pictures() -> None:
    assert check("before\x00after\x1b[31m\x9b\u202e").text == "before␀after␛[31m\ufffd\ufffd"


# case 50
def test_arabic_sets_its_own_direction() -> None:
    assert to_html(TRAPS["arabic"]) == f'<p dir="auto">{TRAPS["arabic"]}</p>'


HOSTILE = {
    "quotes": ">",
    "stars": "*",
    "brackets": "[",
    "images": "![",
    "links": "[a](",
    "closers": "](",
    "emphasis": "a**b",
    "ticks": "`a``",
    "quoted items": "> - ",
    "items": "- a\n",
    "fences": "```\n",
    "tables": "a|b\n|-|\n",
    "titles": '](x "',
    "cells": "|a\n",
}


def steps(source: str) -> int:
    """Count the lines of ours that run: a measure of work that no other load can change."""
    done = 0

    def trace(frame: object, event: str, _: object) -> object:
        nonlocal done
        done += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        to_html(source)
    finally:
        sys.settrace(before)
    return done


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_no_faster_than_the_text(name: str) -> None:
    unit = HOSTILE[name]

    small, large = steps(unit * 200), steps(unit * 1600)

    assert large <= small * 8 + 500


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_of_100000_marks_is_rendered(name: str) -> None:
    unit = HOSTILE[name]

    html = to_html(unit * (100_000 // len(unit)))

    assert len(html) < 2_000_000


def test_a_text_cut_anywhere_is_rendered() -> None:
    source = "# T\n\n1. **a** [b](http://c.d) `e`\n\n```py\nx\n```\n| a |\n|---|\n> q"

    for end in range(len(source)):
        check(source[:end])
