"""Formatted text on its way to a page: as data, with nothing in it that a page could obey."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from html_reader import TRAPS
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.notebook.markdown.nodes import (
    ALLOWED_ATTRIBUTES,
    ALLOWED_TAGS,
    Nodes,
    markdown_nodes,
    nodes_of,
)


def elements(nodes: Nodes) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the tag and the attributes of every element."""
    for node in nodes:
        if not isinstance(node, str):
            tag, attributes, children = node
            yield tag, attributes
            yield from elements(children)


def text_of(nodes: Nodes) -> str:
    """Return all text, in order."""
    return "".join(node if isinstance(node, str) else text_of(node[2]) for node in nodes)


def test_markdown_becomes_nested_lists() -> None:
    nodes = markdown_nodes("A *word*, and [here](https://example.org).")

    assert nodes == [
        [
            "p",
            {"dir": "auto"},
            [
                "A ",
                ["em", {}, ["word"]],
                ", and ",
                ["a", {"href": "https://example.org"}, ["here"]],
                ["span", {}, [" (https://example.org)"]],
                ".",
            ],
        ]
    ]


# case 43
@pytest.mark.parametrize("trap", TRAPS)
def test_hostile_text_becomes_no_element_and_no_link_of_its_own(trap: str) -> None:
    nodes = markdown_nodes(trap)

    for tag, attributes in elements(nodes):
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= ALLOWED_ATTRIBUTES | {"rel", "target"}
        assert attributes.get("href", "https://").startswith(("http://", "https://", "mailto:"))


@given(st.text(alphabet="<>&\"'`*_~[]()#- \nabc/:=!", max_size=200))
def test_any_text_gives_nodes_of_known_tags_that_json_carries(text: str) -> None:
    nodes = markdown_nodes(text)

    assert {tag for tag, _ in elements(nodes)} <= ALLOWED_TAGS
    assert json.loads(json.dumps(nodes)) == nodes


def test_what_may_not_pass_is_left_out_but_its_text_stays() -> None:
    nodes = nodes_of('<p onclick="x()">a<script>b</script><img src="c"><a href="data:d">e</a></p>')

    assert nodes == [["p", {}, ["a", "b", ["a", {}, ["e"]]]]]


def test_a_style_of_a_page_is_left_out_whole() -> None:
    assert nodes_of("<div><style>p { color: red }</style>seen</div>") == [["div", {}, ["seen"]]]


def test_words_keep_their_order_and_nothing_is_lost() -> None:
    assert text_of(markdown_nodes("one **two** `three` four")) == "one two three four"
