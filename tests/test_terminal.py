"""The terminal: a run as it streams, a session as a tree; every text goes out as data."""

from __future__ import annotations

import io
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from nbdurable.blocks import Message, Reply, TextBlock, ToolCallBlock, ToolResultBlock, Usage
from nbdurable.entries import CompactionEntry, MessageEntry
from nbdurable.errors import ModelError
from nbdurable.events import Event
from nbdurable.outline import heading, outline, position, row_of
from nbdurable.stored import Move, StoredEntry
from nbdurable.terminal import TerminalDisplay, render_tree

pytty = pytest.importorskip("pty", reason="a terminal is needed")


def entry(n: int, parent: int | None, role: str = "user", preview: str = "") -> StoredEntry:
    return StoredEntry(
        id=f"e{n}",
        session_id="s",
        parent_id=None if parent is None else f"e{parent}",
        kind="message",
        payload="{}",
        created_at=1_764_000_000_000_000,
        seq=n,
        n=n,
        role=role,
        preview=preview or f"text {n}",
    )


FORKED = [
    entry(1, None),
    entry(2, 1, "assistant"),
    entry(3, 2),
    entry(4, 3, "assistant"),
    entry(5, 2),
    entry(6, 5, "assistant"),
]


def shown(*args: object, width: int = 100, colour: bool = False, **kwargs: object) -> list[str]:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    console.print(render_tree(*args, **kwargs))  # type: ignore[arg-type]
    return out.getvalue().split("\n")[:-1]


class TestTree:
    def test_a_straight_run_stays_on_one_level(self) -> None:
        lines = outline([entry(n, n - 1 or None) for n in range(1, 50)], "e49")

        assert {line.indent for line in lines} == {0}

    def test_only_a_branch_that_was_left_is_indented(self) -> None:
        lines = outline(FORKED, "e6")

        assert [(line.row.n, line.indent) for line in lines] == [
            (1, 0),
            (2, 0),
            (3, 1),
            (4, 1),
            (5, 0),
            (6, 0),
        ]

    def test_the_path_goes_on_last_when_an_older_branch_is_active(self) -> None:
        lines = outline(FORKED, "e4")

        assert [line.row.n for line in lines] == [1, 2, 5, 6, 3, 4]
        assert [line.row.n for line in lines if line.on_path] == [1, 2, 3, 4]

    @given(st.permutations(FORKED))
    def test_the_order_of_the_entries_does_not_matter(self, entries: list[StoredEntry]) -> None:
        assert outline(entries, "e6") == outline(FORKED, "e6")

    def test_state_is_readable_without_colour(self) -> None:
        lines = shown(FORKED, "e6")

        assert lines[2].startswith("#3 │ ○ user      text 3")
        assert lines[4].startswith("#5 ● user      text 5")
        assert lines[5].startswith("#6 ◆ assistant text 6")
        assert "1/2" in lines[2] and "2/2" in lines[4] and "← leaf" in lines[5]

    def test_the_active_path_is_bold_and_the_rest_dim(self) -> None:
        lines = shown(FORKED, "e6", colour=True)

        assert "\x1b[1m" in lines[4] and "\x1b[2m" in lines[2]
        assert "\x1b[1m" not in lines[2]

    def test_figures_stand_at_the_end(self) -> None:
        paid = entry(1, None, "assistant")._replace(
            model="openai/gpt-5-mini",
            input_tokens=200,
            output_tokens=12,
            cost_usd=0.0004,
            seconds=1.1,
        )

        (line,) = shown([paid], "e1", width=120)

        assert line.endswith("gpt-5-mini · 212 tokens · $0.0004 · 1.1 s · 2025-11-24 16:00")

    @pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
    def test_no_line_is_wider_than_the_console(self, width: int) -> None:
        wide = [e._replace(preview="漢字 " * 40, model="m" * 40) for e in FORKED]

        lines = shown(wide, "e6", width=width, title="s" * 500)

        assert len(lines) == 7
        assert max(map(cell_len, lines)) <= width

    # case 43 case 31
    def test_codes_and_markup_in_texts_are_shown_and_not_obeyed(self) -> None:
        evil = entry(1, None, preview="[red]a[/red] [/bold] \x1b[31mb\x9b0m\x00\r\u202e")

        (line,) = shown([evil._replace(model="\x1b[1m[i]")], "e1", width=200)

        assert "[red]a[/red] [/bold] ␛[31mb\ufffd0m␀ \ufffd" in line
        assert not {"\x1b", "\x9b", "\x00", "\r", "\u202e"} & set(line)

    # B41
    def test_an_orphan_is_marked_and_has_no_siblings(self) -> None:
        lines = shown([entry(1, None), entry(2, 99)], "e1")

        assert "orphan" in lines[0] and "#2" in lines[0]
        assert not any("1/2" in line or "2/2" in line for line in lines)

    # B41
    def test_a_ring_of_parents_is_shown_once(self) -> None:
        lines = outline([entry(1, None), entry(2, 3), entry(3, 2)], "e1")

        assert sorted(line.row.id for line in lines) == ["e1", "e2", "e3"]

    # B41
    def test_10000_entries_in_a_row_are_shown(self) -> None:
        lines = shown([entry(n, n - 1 or None) for n in range(1, 10_001)], "e10000")

        assert len(lines) == 10_000
        assert lines[-1].startswith("#10000 ◆")

    # B41
    def test_a_thousand_forks_inside_each_other_do_not_run_off_the_screen(self) -> None:
        entries = [entry(1, None)]
        for n in range(2, 2_000, 2):
            entries += [entry(n, n - 1 if n == 2 else n - 2), entry(n + 1, n - 1 if n == 2 else n)]

        assert max(line.indent for line in outline(entries, "e1")) <= 24

    def test_every_entry_of_a_random_tree_has_one_line_below_its_parent(self) -> None:
        rng = random.Random(7)
        entries = [entry(1, None)] + [entry(n, rng.randint(1, n - 1)) for n in range(2, 300)]

        lines = outline(entries, "e250")

        place = {line.row.id: at for at, line in enumerate(lines)}
        assert len(place) == len(lines) == 299
        for line in lines[1:]:
            assert place[line.row.parent_id or ""] < place[line.row.id]

    def test_the_heading_counts_entries_and_branches(self) -> None:
        assert heading("a\nb", outline(FORKED, "e6")) == "a b · 6 entries · 2 branches · leaf #6"
        assert heading("s", []) == "s · 0 entries · 0 branches · leaf at the root"

    def test_a_decoded_entry_gives_the_row_of_its_stored_form(self) -> None:
        reply = Reply(model="m", usage=Usage(5, 7), cost_usd=0.5, seconds=2.0)
        decoded = MessageEntry(
            id="e1",
            seq=1,
            n=1,
            created_at=datetime(2025, 11, 24, 16, tzinfo=UTC),
            message=Message("assistant", (TextBlock("text\n1"),), reply),
        )
        stored = entry(1, None, "assistant", "text 1")._replace(
            model="m",
            stop_reason="stop",
            input_tokens=5,
            output_tokens=7,
            cost_usd=0.5,
            seconds=2.0,
        )

        assert row_of(decoded) == row_of(stored)

    def test_an_entry_without_text_says_what_it_holds(self) -> None:
        call = Message("assistant", (ToolCallBlock("c1", "look", '{"id": 1}'),))

        assert row_of(MessageEntry(message=call)).preview == "look(id=1)"
        assert row_of(CompactionEntry(summary="sum")).preview == "sum"

    # B35
    def test_an_ephemeral_entry_has_no_line(self) -> None:
        ephemeral = MessageEntry(id="x", message=Message("user"), ephemeral=True)

        assert [line.row.id for line in outline([entry(1, None), ephemeral], "e1")] == ["e1"]


# B3
def test_the_position_is_the_later_of_move_and_entry() -> None:
    entries = [entry(1, None), entry(2, 1), entry(5, 1)._replace(moves_leaf=False)]
    move = Move(session_id="s", entry_id="e1", seq=3, created_at=0)

    assert position(entries, []) == "e2"
    assert position(entries, [move]) == "e1"
    assert position([*entries, entry(6, 1)], [move]) == "e6"
    assert position(entries, [replace(move, entry_id=None)]) is None


# -- a run as it streams -----------------------------------------------------------------------

ANSWER = Message(
    "assistant",
    (TextBlock("Hi there"),),
    Reply(model="openai/gpt-5-mini", usage=Usage(5, 7)),
)
ENTRY = MessageEntry(id="e2", n=2, message=ANSWER)
RUN = [
    Event(type="agent_start", step=0),
    Event(type="step_start", step=1),
    Event(type="message_start", step=1),
    Event(type="message_update", step=1, thinking="hm"),
    Event(type="message_update", step=1, text="Hi "),
    Event(type="message_update", step=1, text="there"),
    Event(type="message_end", step=1, message=ANSWER, entries=(ENTRY,)),
    Event(type="agent_end", usage=Usage(5, 7), cost_usd=0.0004, seconds=1.14, outcome="done"),
]


class Screen:
    """A real pseudo-terminal; `text` is what was written to it."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        self.out = open(slave, "w", encoding="utf-8")
        self.written = ""

    @property
    def text(self) -> str:
        self.out.flush()
        os.set_blocking(self._master, False)
        try:
            while chunk := os.read(self._master, 65_536):
                self.written += chunk.decode()
        except BlockingIOError:
            pass
        return self.written.replace("\r\n", "\n")

    def close(self) -> None:
        self.out.close()
        os.close(self._master)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    yield screen
    screen.close()


def play(display: TerminalDisplay, events: list[Event], result: object = None) -> None:
    for event in events:
        display.on_event(event)
    display.close(result)


class TestStream:
    # B15
    def test_a_run_is_written_as_it_comes_with_a_dim_closing_line(self, screen: Screen) -> None:
        play(TerminalDisplay(out=screen.out), RUN)

        assert screen.text == (
            "\x1b[2mthinking …\x1b[0m\nHi there\n"
            "\x1b[2m— gpt-5-mini · 12 tokens · $0.0004 · 1.1 s · #2\x1b[0m\n"
        )

    # B15
    def test_no_color_is_honoured(self, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_COLOR", "1")

        play(TerminalDisplay(out=screen.out), RUN)

        assert "\x1b" not in screen.text
        assert screen.text.endswith("— gpt-5-mini · 12 tokens · $0.0004 · 1.1 s · #2\n")

    # B15
    def test_line_shows_progress_in_place_and_one_line_in_the_end(self, screen: Screen) -> None:
        clock = iter(range(1_000))

        play(TerminalDisplay("line", out=screen.out, now=lambda: float(next(clock))), RUN)

        *progress, last = screen.text.split("\r\x1b[K")
        assert "Hi there" not in screen.text
        assert "running … " in progress[-1] and "10 characters" in progress[-1]
        assert last == "\x1b[2m— gpt-5-mini · 12 tokens · $0.0004 · 1.1 s · #2\x1b[0m\n"

    # B16
    def test_an_answer_without_deltas_is_written_whole(self, screen: Screen) -> None:
        play(TerminalDisplay(out=screen.out), [e for e in RUN if e.type != "message_update"])

        assert screen.text.startswith("Hi there\n")

    def test_tools_and_retries_are_written_as_notes(self, screen: Screen) -> None:
        events = [
            Event(type="retry", step=1, attempt=1, delay_s=0.5, error="busy"),
            Event(type="tool_start", step=1, call_id="c", name="look", arguments='{"id": 1}'),
            Event(
                type="tool_end",
                step=1,
                call_id="c",
                result=ToolResultBlock("c", (TextBlock("no such\nid"),), is_error=True),
            ),
        ]

        play(TerminalDisplay(out=screen.out), events)

        assert screen.text == (
            "\x1b[2mretry 1 in 0.5 s: busy\x1b[0m\n"
            '\x1b[2m→ look({"id": 1})\x1b[0m\n'
            "\x1b[2m← error: no such id\x1b[0m\n"
        )

    # B22
    def test_a_failure_is_written_after_the_partial_text(self, screen: Screen) -> None:
        play(TerminalDisplay(out=screen.out), RUN[:6], ModelError("the stream was cut"))

        assert "Hi there\n\x1b[31merror: the stream was cut\x1b[0m\n" in screen.text

    # case 43
    def test_codes_in_an_answer_are_shown_and_not_obeyed(self, screen: Screen) -> None:
        evil = Event(type="message_update", step=1, text="a\x1b[2J\x9b\x07b")

        play(TerminalDisplay(out=screen.out), [evil])

        assert "a␛[2J\ufffd␇b\n" in screen.text

    def test_a_terminal_without_unicode_gets_question_marks(self) -> None:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii")

        play(TerminalDisplay(out=out), [Event(type="message_update", text="naïve")])
        out.flush()

        assert raw.getvalue() == b"na?ve\n"

    # B55
    def test_a_replayed_run_says_that_no_call_was_made(self, screen: Screen) -> None:
        play(TerminalDisplay(out=screen.out), [replace(event, replayed=True) for event in RUN])

        assert "replayed, no call made" in screen.text


def test_stdout_is_where_a_run_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    play(TerminalDisplay(), RUN)

    assert "Hi there\n— gpt-5-mini" in capsys.readouterr().out
    assert sys.stdout is not None
