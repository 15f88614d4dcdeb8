"""An answer that is being written: formatted as it grows, what is finished not read again."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbdurable.blocks import Message, TextBlock
from nbdurable.events import Event
from nbdurable.notebook.markdown import growing
from nbdurable.notebook.markdown.growing import GrowingText
from nbdurable.notebook.markdown.nodes import Nodes, markdown_nodes
from nbdurable.notebook.tree.following import FORMAT_EVERY_S, Following

LINES = (
    "words here|# Title|- item|  more of it|1. one|2|> said|```py|```|a | b|--- | ---|x | y|---|"
    "> ```|> - said|> # Title|  - inner|- ```|\t- tab|\tx|\t```|- - -|* other|>|"
    "**bold** `code`|| |- [link](https://example.org)"
).split("|")
texts = st.lists(st.sampled_from([*LINES, "a | b", "--- | ---", "x | y"]), max_size=14).map(
    "\n".join
)


EVERYWHERE = list(range(60))


def grown(pieces: list[str]) -> tuple[Nodes, Nodes]:
    """Return what was read at last, and what the changes on the way put together."""
    text, shown = GrowingText(), []
    for piece in pieces:
        text.add(piece)
        start, kept, nodes = text.read()
        if kept:
            nodes = [[*nodes[0][:2], [*shown[start][2][:kept], *nodes[0][2]]], *nodes[1:]]
        shown[start:] = nodes
    return text.nodes, shown


def cut(text: str, places: list[int]) -> list[str]:
    """Return a text in pieces."""
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[begin:end] for begin, end in pairwise(at)]


# B29
@example("  - hangs in\n- hangs out\n- b\n  - c\nd\ne\n", EVERYWHERE, "\n")
@example("- a\n  ```\n- a fence is open\n- b\n\t- tab\nc\nd\n", EVERYWHERE, "\n")
@example("> a\n> - b\n>\n> c\n> ```\n> d\n\ne\nf\n", EVERYWHERE, "\n")
@given(texts, st.lists(st.integers(0, 400), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_a_text_that_came_in_pieces_is_formatted_as_a_whole_one(
    text: str, places: list[int], end: str
) -> None:
    text = text.replace("\n", end)

    read, shown = grown(cut(text, places))

    assert read == markdown_nodes(text)
    assert shown == read


# B29
def test_a_table_is_one_from_its_second_line_on() -> None:
    read, shown = grown(["before\na | b\n", "--- | ", "---\n", "x | y\n"])

    assert [node[0] for node in shown] == ["p", "table"]
    assert read == shown


# B29
def test_only_the_block_that_is_open_is_read_again(monkeypatch: Any) -> None:
    seen: list[int] = []
    read = growing.blocks_of
    monkeypatch.setattr(growing, "blocks_of", lambda text: (seen.append(len(text)), read(text))[1])

    grown([f"Paragraph {at}.\n\n" for at in range(500)])

    assert max(seen) < 60
    assert sum(seen) < 30_000


# B29
@pytest.mark.parametrize("line", ["- item {}\n", "> A line {}.\n>\n", "{}. *one*\n\n"])
def test_what_is_finished_of_a_list_or_a_quote_is_neither_read_nor_told_again(
    monkeypatch: Any, line: str
) -> None:
    seen: list[int] = []
    read = growing.blocks_of
    monkeypatch.setattr(growing, "blocks_of", lambda text: (seen.append(len(text)), read(text))[1])
    pieces = [line.format(at) for at in range(300)]
    text, told = GrowingText(), 0

    for piece in pieces:
        text.add(piece)
        told += len(str(text.read().nodes))

    assert text.nodes == markdown_nodes("".join(pieces))
    assert len(text.nodes) == 1
    assert sum(seen) < 20_000
    assert told < 100_000


class Told:
    """A run whose events a test says, on a clock that the test moves."""

    run_id, model, is_done, questions = "r1", "m", False, ()

    def __init__(self) -> None:
        self.now = 100.0
        self.following = Following(self, -1, 0, lambda: self.now, 0)  # type: ignore[arg-type]

    def say(self, *events: Event) -> list[dict[str, Any]]:
        """Return what the page is told of events, and of what is due then."""
        ops = list(self.following.take(events, lambda _: 7))
        if self.following.is_due():
            ops.append(self.following.formatted(self.following.format()))
        return ops


def update(text: str) -> Event:
    return Event(type="message_update", run_id="r1", text=text)


# B29
def test_characters_are_told_at_once_and_formatted_some_times_a_second() -> None:
    told = Told()

    first = [op["op"] for op in told.say(update("# Hi\n\n"))]
    soon = [op["op"] for op in told.say(update("there"))]
    told.now += FORMAT_EVERY_S + 0.01
    (_, late) = told.say(update(" **you**"))

    assert first == ["live", "text", "md"]
    assert soon == ["text"]
    assert (late["op"], late["from"]) == ("md", 0)
    assert told.following.row["blocks"][1][2] == ["there ", ["strong", {}, ["you"]]]
    assert told.following.row["tail"] == ""


# B29
def test_a_long_open_paragraph_is_formatted_less_often() -> None:
    told = Told()
    told.say(update("word " * 3_600))

    told.now += FORMAT_EVERY_S + 0.01
    soon = told.say(update("more"))
    told.now += 0.3
    late = told.say(update("still more"))

    assert [op["op"] for op in soon] == ["text"]
    assert [op["op"] for op in late] == ["text", "md"]


# B29
def test_a_text_that_is_slow_to_read_is_not_read_most_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, read = Told(), GrowingText.read

    def slowly(text: GrowingText) -> growing.Grown:
        told.now += 2.0
        return read(text)

    monkeypatch.setattr(GrowingText, "read", slowly)
    told.say(update("*a\n" * 100))

    told.now += 3.9
    soon = told.say(update("*a\n"))
    told.now += 0.2
    late = told.say(update("*a\n"))

    assert [op["op"] for op in soon] == ["text"]
    assert [op["op"] for op in late] == ["text", "md"]


# B29
def test_a_line_that_is_very_long_is_formatted_when_it_ends() -> None:
    told = Told()
    told.say(update("word " * 6_000))

    told.now += 60.0
    (only,) = told.say(update("more"))
    (_, md) = told.say(update(".\n\nNext."))

    assert only["op"] == "text"
    assert [node[2][-1][-5:] for node in md["nodes"]] == ["more.", "Next."]


# B29
def test_the_end_of_a_message_is_formatted_before_the_next_step_begins() -> None:
    told = Told()
    told.say(update("one"))
    message = Message("assistant", (TextBlock("one *two*"),))

    ops = told.say(
        update(" *two*"),
        Event(type="message_end", run_id="r1", leaf_id="e", message=message),
    )

    assert [op["op"] for op in ops] == ["text", "md", "live"]
    assert ops[1]["nodes"] == [["p", {"dir": "auto"}, ["one ", ["em", {}, ["two"]]]]]
    assert (ops[2]["text"], told.following.row["blocks"]) == ("", [])


# B29
def test_a_word_does_not_stick_to_the_one_before_it() -> None:
    told = Told()

    told.say(update("one "))
    apart = told.following.row["tail"]
    told.now += 1
    told.say(update("two\n\n```\nx = 1\n"))

    assert apart == " "
    assert told.following.row["tail"] == ""  # code keeps its blanks itself
