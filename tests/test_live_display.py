"""A run in a cell: one output, updated in place, bounded in time and size, safe to look at."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from html_reader import TRAPS, Reader

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
from nbdurable.entries import MessageEntry
from nbdurable.errors import ModelError
from nbdurable.events import Event
from nbdurable.notebook.page import page, stylesheet
from nbdurable.notebook.run.live import INTERVAL_S, CellDisplay, run_bundle
from nbdurable.notebook.run.picture import LIVE_CHARS, Tail


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
    def test_a_replayed_run_looks_as_it_did_when_it_was_made(self) -> None:
        replayed = Event(type="message_end", step=1, message=Message("assistant"), replayed=True)

        made = Event(type="message_end", step=1, message=Message("assistant"))
        assert Cell().play(replayed).end() == Cell().play(made).end()

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
