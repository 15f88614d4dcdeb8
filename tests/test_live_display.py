"""A run in a cell: one output, updated in place, bounded in time and size, safe to look at."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nbdurable.blocks import (
    Blob,
    ImageBlock,
    Message,
    Reply,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.display import make_display
from nbdurable.entries import MessageEntry
from nbdurable.errors import ModelError
from nbdurable.events import Event
from nbdurable.notebook.live import INTERVAL_S, CellDisplay, cell_output, run_bundle
from nbdurable.notebook.markdown import TAGS
from nbdurable.notebook.page import page, stylesheet
from nbdurable.notebook.picture import LIVE_CHARS, Tail
from nbdurable.notebook.static import MAX_BYTES, MAX_NODES, session_html
from nbdurable.stored import StoredEntry

TRAPS = {
    trap["name"]: trap["text"] if "text" in trap else trap["unit"] * trap["repeat"]
    for line in (Path(__file__).parent / "data" / "text_traps.jsonl")
    .read_text(encoding="utf-8")
    .split("\n")
    if line
    for trap in [json.loads(line)]
}
FRAME_TAGS = TAGS | {"div", "style", "details", "summary", "b", "bdi"}
FRAME_ATTRIBUTES = {"class", "dir", "href", "rel", "target", "value", "title", "open"}


class Reader(HTMLParser):
    """Reads HTML as a browser would and refuses what is not on the list."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in FRAME_TAGS
        assert {name for name, _ in attrs} <= FRAME_ATTRIBUTES
        self.tags.append(tag)
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


class Cell:
    """Collects what a display publishes, on a clock that only the test moves."""

    def __init__(self, mode: str = "stream") -> None:
        self.time = 100.0
        self.bundles: list[dict[str, str]] = []
        self.display = CellDisplay(
            mode,  # type: ignore[arg-type]
            publish=self.bundles.append,
            now=lambda: self.time,
        )

    def play(self, *events: Event, every_s: float = 0.0) -> Cell:
        for event in events:
            self.display.on_event(event)
            self.time += every_s
        return self

    def end(self, result: object = None) -> str:
        self.display.close(result)
        return self.last

    @property
    def last(self) -> str:
        return Reader(self.bundles[-1]["text/html"]).text


def answer(*blocks: object, **reply: object) -> Event:
    message = Message("assistant", blocks, Reply(model="openai/m", **reply))  # type: ignore[arg-type]
    entry = MessageEntry(id="e2", n=2, message=message)
    return Event(type="message_end", step=1, message=message, entries=(entry,))


def delta(text: str = "", thinking: str = "", step: int = 1) -> Event:
    return Event(type="message_update", step=step, text=text, thinking=thinking)


END = Event(type="agent_end", usage=Usage(5, 7), cost_usd=0.0004, seconds=1.14, outcome="done")


class TestCell:
    # B15
    def test_a_finished_run_closes_with_model_tokens_cost_seconds_and_ordinal(self) -> None:
        cell = Cell().play(delta("Hi"), answer(TextBlock("Hi")), END)

        assert cell.end() == "Him · 12 tokens · $0.0004 · 1.1 s · #2"
        assert cell.bundles[-1]["text/plain"] == "Hi\nm · 12 tokens · $0.0004 · 1.1 s · #2"

    def test_an_answer_is_readable_while_it_grows(self) -> None:
        cell = Cell().play(delta("**Hel"), delta("lo** `x"), every_s=1.0)

        assert cell.last == "Hello `xrunning … · 1.0 s · 12 characters"

    def test_thinking_is_folded(self) -> None:
        cell = Cell().play(delta(thinking="hm " * 4), answer(ThinkingBlock("hm"), TextBlock("A")))

        cell.end()

        html = cell.bundles[-1]["text/html"]
        assert '<details class="nbd-think"><summary>thinking, 2 characters</summary>' in html
        assert "<details open" not in html

    def test_a_tool_call_and_its_result_are_one_unit(self) -> None:
        call = ToolCallBlock("c1", "look", '{"id": 1}')
        result = ToolResultBlock("c1", (TextBlock("shipped"),))
        cell = Cell().play(
            answer(call, stop_reason="tool_calls"),
            Event(type="tool_start", step=1, call_id="c1", name="look", arguments='{"id": 1}'),
        )
        assert "running …" in cell.last

        cell.play(
            Event(type="tool_end", step=1, call_id="c1", result=result),
            Event(type="message_end", step=1, message=Message("tool", (result,))),
        )

        assert cell.end().startswith('look({"id": 1})shipped')
        assert cell.bundles[-1]["text/html"].count('<div class="nbd-unit">') == 1

    def test_equal_call_ids_of_two_steps_are_two_units(self) -> None:
        events = [
            Event(
                type="tool_end",
                step=step,
                call_id="call_0",
                name="look",
                result=ToolResultBlock("call_0", (TextBlock(f"result {step}"),)),
            )
            for step in (1, 2)
        ]

        text = Cell().play(*events).end()

        assert "result 1" in text and "result 2" in text

    # B22
    def test_a_call_that_was_cut_is_shown_as_not_called(self) -> None:
        cut = ToolCallBlock("c1", "look", '{"pa', complete=False)

        text = Cell().play(answer(cut, stop_reason="error", error="cut")).end()

        assert 'look({"pa)not called' in text

    # B25
    def test_a_retry_is_visible_with_its_reason(self) -> None:
        retry = Event(type="retry", step=1, attempt=1, delay_s=0.5, error="busy <b>")

        assert "retry 1 in 0.5 s: busy <b>" in Cell().play(retry).last

    # B22
    def test_a_failure_shows_the_partial_text_and_the_error(self) -> None:
        cell = Cell().play(delta("Hal"))

        text = cell.end(ModelError("the <i>stream</i> was cut"))

        assert text.startswith("Halerror the <i>stream</i> was cut")

    def test_an_interrupt_is_named(self) -> None:
        assert "error KeyboardInterrupt" in Cell().end(KeyboardInterrupt())

    # B16
    def test_an_answer_without_deltas_is_shown(self) -> None:
        assert Cell().play(answer(TextBlock("whole"))).end().startswith("whole")

    # B55
    def test_a_replayed_run_says_that_no_call_was_made(self) -> None:
        replayed = Event(type="message_end", step=1, message=Message("assistant"), replayed=True)

        assert "replayed, no call made" in Cell().play(replayed).end()

    # B15
    def test_line_shows_one_line_and_no_text(self) -> None:
        cell = Cell("line").play(delta("secret"), every_s=1.0)
        assert cell.last.startswith("running … · ")

        cell.play(answer(TextBlock("secret")), END)

        assert cell.end() == "m · 12 tokens · $0.0004 · 1.1 s · #2"
        assert not any("secret" in str(bundle) for bundle in cell.bundles)

    def test_an_image_is_named_and_not_embedded(self) -> None:
        text = Cell().play(answer(ImageBlock(Blob.of(b"\x89PNG"), name="<plot>"))).end()

        assert text.startswith("[<plot>, 4 bytes]")

    def test_the_end_is_shown_once(self) -> None:
        cell = Cell()
        cell.end()

        cell.display.close(None)
        cell.display.tick()

        assert len(cell.bundles) == 2

    def test_what_waits_is_shown_by_a_tick_when_its_time_has_come(self) -> None:
        cell = Cell().play(delta("a"), delta("b"))
        assert cell.last.startswith("arunning")

        cell.time += INTERVAL_S
        cell.display.tick()

        assert cell.last.startswith("abrunning")


class TestBounds:
    def test_10000_chunks_are_shown_at_most_15_times_a_second(self) -> None:
        cell = Cell().play(*(delta("word ") for _ in range(10_000)), every_s=0.001)

        assert 100 <= len(cell.bundles) <= 10 * 15 + 2

    def test_what_is_shown_of_a_growing_answer_does_not_grow_with_it(self) -> None:
        chunk = "word " * 200

        cell = Cell().play(*(delta(chunk) for _ in range(2_000)), every_s=0.05)

        assert max(len(bundle["text/html"]) for bundle in cell.bundles) < 2 * LIVE_CHARS
        assert "characters above, shown at the end" in cell.last

    def test_the_tail_of_a_text_holds_no_more_than_it_shows(self) -> None:
        tail = Tail()

        for at in range(100_000):
            tail.add(f"{at} ")

        assert tail.text.endswith("99998 99999 ") and len(tail.text) == LIVE_CHARS
        assert sum(map(len, tail._parts)) <= 2 * LIVE_CHARS

    def test_looks_that_take_long_are_made_less_often(self) -> None:
        times: list[float] = []
        time = 0.0

        def publish(_: dict[str, str]) -> None:
            nonlocal time
            times.append(time)
            time += 0.5  # a look takes half a second of this clock

        display = CellDisplay(publish=publish, now=lambda: time)
        for _ in range(1_000):
            display.on_event(delta("x"))
            time += 0.01

        assert min(later - earlier for earlier, later in pairwise(times[1:])) >= 2.0

    # case 50
    def test_a_line_of_200000_characters_is_cut_with_a_mark(self) -> None:
        text = Cell().play(answer(TextBlock(TRAPS["long_line"]))).end()

        assert "… 100,000 more characters; the entry has all of them" in text
        assert "overflow-wrap: anywhere" in stylesheet()


class TestSafety:
    # case 43 case 31
    @pytest.mark.parametrize("name", TRAPS)
    def test_a_text_trap_anywhere_in_a_run_makes_no_tag(self, name: str) -> None:
        trap = TRAPS[name][:5_000]
        result = ToolResultBlock("c", (TextBlock(trap),), is_error=True)
        cell = Cell().play(
            Event(type="retry", step=1, attempt=1, error=trap),
            delta(trap, trap),
            Event(type="tool_start", step=1, call_id="c", name=trap, arguments=trap),
            Event(type="tool_update", step=1, call_id="c", name=trap, text=trap),
            every_s=1.0,
        )
        Reader(cell.bundles[-1]["text/html"])

        cell.play(
            Event(type="tool_end", step=1, call_id="c", name=trap, result=result),
            answer(ThinkingBlock(trap), TextBlock(trap), error=trap, answered_by=trap),
        )

        cell.end(ModelError(trap))
        assert not {"script", "img", "svg"} & set(Reader(cell.bundles[-1]["text/html"]).tags)

    # case 43
    def test_prices_are_kept_from_being_typeset_as_formulas(self) -> None:
        assert '<div class="nbd tex2jax_ignore mathjax_ignore">' in page("")

    # case 48
    @pytest.mark.parametrize(
        ("ink", "ground"),
        [
            ((0x21, 0x21, 0x21), (0xFF, 0xFF, 0xFF)),  # JupyterLab Light
            ((0xFF, 0xFF, 0xFF), (0x11, 0x11, 0x11)),  # JupyterLab Dark
            ((0x3B, 0x3B, 0x3B), (0xFF, 0xFF, 0xFF)),  # VS Code Light Modern
            ((0xCC, 0xCC, 0xCC), (0x1F, 0x1F, 0x1F)),  # VS Code Dark Modern
            ((0, 0, 0), (0xFF, 0xFF, 0xFF)),  # no theme
        ],
    )
    def test_dim_text_has_enough_contrast(
        self, ink: tuple[int, ...], ground: tuple[int, ...]
    ) -> None:
        share = int(stylesheet().split("--nbd-dim: color-mix(in srgb, currentColor ")[1][:2]) / 100
        wash = [g + (i - g) * 0.05 for i, g in zip(ink, ground, strict=True)]
        dim = [g + (i - g) * share for i, g in zip(ink, wash, strict=True)]

        assert contrast(dim, wash) >= 4.5

    # case 48
    def test_no_colour_is_fixed(self) -> None:
        css = stylesheet()

        assert "#" not in css and "rgb(" not in css and "white" not in css.replace("white-", "")


def contrast(one: list[float], other: list[float]) -> float:
    def light(colour: list[float]) -> float:
        parts = [c / 255 for c in colour]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# -- the saved tree ----------------------------------------------------------------------------


def stored(n: int, parent: int | None, preview: str = "") -> StoredEntry:
    return StoredEntry(
        id=f"e{n}",
        session_id="s",
        parent_id=None if parent is None else f"e{parent}",
        kind="message",
        payload="{}",
        created_at=0,
        seq=n,
        n=n,
        role="user" if n % 2 else "assistant",
        preview=preview or f"text {n}",
    )


class TestStaticTree:
    def test_branches_that_were_left_are_nested_and_the_path_is_not(self) -> None:
        entries = [stored(1, None), stored(2, 1), stored(3, 2), stored(4, 2)]

        html = session_html(entries, "e4", title="demo")

        text = Reader(html).text
        assert text.startswith("demo · 4 entries · 2 branches · leaf #4● #1 user text 1")
        assert "other branch 1/2○ #3 user text 3 1/2◆ #4 assistant text 4 2/2 · ← leaf" in text

    def test_the_newest_texts_on_the_path_are_there_in_full(self) -> None:
        long = "**bold** " * 100
        entry = MessageEntry(id="e1", seq=1, n=1, message=Message("user", (TextBlock(long),)))

        html = session_html([entry], "e1")

        assert html.count("<strong>bold</strong>") == 100
        assert "<details open>" in html

    # case 42
    def test_a_large_tree_is_capped_and_says_how_much_is_left_out(self) -> None:
        entries = [stored(n, n - 1 or None, "&" * 120) for n in range(1, 10_001)]

        html = session_html(entries, "e10000", title="x")

        assert len(html.encode()) <= MAX_BYTES
        shown_entries = html.count("<li>") + html.count('<li class="nbd-off">')
        assert f"… {10_000 - shown_entries:,} more" in html
        assert "◆" in html and shown_entries <= MAX_NODES

    def test_long_texts_do_not_push_a_tree_over_its_size(self) -> None:
        entries = [
            MessageEntry(
                id=f"e{n}",
                parent_id=f"e{n - 1}" if n > 1 else None,
                seq=n,
                n=n,
                message=Message("user", (TextBlock("<&> " * 5_000),)),
            )
            for n in range(1, 400)
        ]

        assert len(session_html(entries, "e399").encode()) <= MAX_BYTES

    # case 43
    @pytest.mark.parametrize("name", TRAPS)
    def test_a_text_trap_makes_no_tag(self, name: str) -> None:
        trap = TRAPS[name]
        entry = MessageEntry(id="e1", seq=1, n=1, message=Message("user", (TextBlock(trap),)))

        reader = Reader(session_html([entry], "e1", title=trap[:200]))

        assert not {"script", "img", "svg"} & set(reader.tags)

    def test_no_entries_give_an_empty_tree(self) -> None:
        assert Reader(session_html([], None, title="s")).text == (
            "s · 0 entries · 0 branches · leaf at the root"
        )


# B15
def test_a_run_that_was_not_shown_can_be_shown_afterwards() -> None:
    question = Message("user", (TextBlock("Q"),))
    reply = Message("assistant", (TextBlock("A"),), Reply(model="m"))
    run = SimpleNamespace(
        messages=(question, reply),
        entries=(MessageEntry(n=1, message=question), MessageEntry(n=2, message=reply)),
        usage=Usage(1, 2),
        cost=0.0,
        seconds=2.0,
        model="m",
        outcome="done",
        error=None,
    )

    assert run_bundle(run)["text/plain"] == "A\nm · 3 tokens · $0 · 2.0 s · #2"


# -- the choice --------------------------------------------------------------------------------

SHOWN = """
import sys
from nbdurable.display import make_display
display = make_display("stream")
heavy = sorted({"IPython", "rich", "pandas"} & set(sys.modules))
print(type(display).__name__, heavy)
"""


class TestChoice:
    # B15
    def test_nothing_is_shown_when_that_is_asked_for(self) -> None:
        assert make_display(None) is None

    def test_an_unknown_word_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"show 'loud' is not known; give 'stream', 'line'"):
            make_display("loud")  # type: ignore[arg-type]

    # B15
    def test_nothing_is_written_into_a_pipe(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True
        )

        assert done.stdout == "NoneType []\n"

    # B15
    def test_a_terminal_gets_the_terminal_display(self) -> None:
        master, slave = pty.openpty()

        subprocess.run([sys.executable, "-c", SHOWN], stdout=slave, check=True)
        os.close(slave)

        assert os.read(master, 4096) == b"TerminalDisplay []\r\n"
        os.close(master)


KERNEL_CODE = """
from nbdurable.blocks import *
from nbdurable.display import make_display
from nbdurable.events import Event
display = make_display("stream")
for word in ("one ", "two ", "three"):
    display.on_event(Event(type="message_update", step=1, text=word))
message = Message("assistant", (TextBlock("one two three"),), Reply(model="m"))
display.on_event(Event(type="message_end", step=1, message=message))
display.close()
"""


@pytest.fixture(scope="module")
def messages() -> Iterator[list[dict[str, Any]]]:
    """What a real kernel sends while a run is shown in one of its cells."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        heard: list[dict[str, Any]] = []
        client.execute_interactive(KERNEL_CODE, output_hook=heard.append, timeout=60)
        yield heard
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.kernel
class TestKernel:
    # B15
    def test_a_run_has_one_output_and_never_writes_to_stdout(
        self, messages: list[dict[str, Any]]
    ) -> None:
        kinds = [message["header"]["msg_type"] for message in messages]

        assert not {"stream", "error"} & set(kinds)
        assert kinds.count("display_data") == 1
        assert "update_display_data" in kinds

    # B15
    def test_updates_go_to_the_same_output(self, messages: list[dict[str, Any]]) -> None:
        contents = [m["content"] for m in messages if "display" in m["header"]["msg_type"]]

        assert len({content["transient"]["display_id"] for content in contents}) == 1
        last = contents[-1]["data"]
        assert Reader(last["text/html"]).text == "one two threem"
        assert last["text/plain"] == "one two three\nm"


def test_an_output_is_made_once_and_then_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    InteractiveShell.initialized()
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    before, InteractiveShell._instance = InteractiveShell._instance, shell
    try:
        publish = cell_output()
        publish({"text/plain": "one"})
        publish({"text/plain": "two"})
    finally:
        InteractiveShell._instance = before

    first, second = shell.display_pub.outputs
    assert (first["update"], second["update"]) == (False, True)
    assert first["transient"] == second["transient"]
    assert capsys.readouterr().out == ""
