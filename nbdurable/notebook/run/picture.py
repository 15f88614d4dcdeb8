"""What a run looks like at one moment: its steps, tools, retries and errors, gathered from events.

Owns the gathering and the HTML of it; `live` owns when it is shown. The one idea: while an answer
grows, only its last part is kept for showing, so that each look costs the same however long the
answer is; a finished message replaces what was gathered for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nbdurable.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from nbdurable.events import Event
from nbdurable.notebook.markdown import to_html
from nbdurable.notebook.page import page, plain
from nbdurable.reprs import count, duration, footer, one_line, visible

LIVE_CHARS = 12_000  # of a growing answer: a look at this much takes about 10 ms
DONE_CHARS = 100_000  # of a finished one: what a saved notebook should have to carry
TOOL_CHARS = 2_000


class Tail:
    """The end of a growing text; adding costs the same however long the text became."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._held = 0
        self.length = 0

    def add(self, text: str) -> None:
        """Add to the end."""
        self._parts.append(text)
        self._held += len(text)
        self.length += len(text)
        if self._held > 2 * LIVE_CHARS:
            self._parts = [self.text]
            self._held = len(self._parts[0])

    @property
    def text(self) -> str:
        """The last `LIVE_CHARS` characters, or all when there are fewer."""
        self._parts = ["".join(self._parts)]
        return self._parts[0][-LIVE_CHARS:]


@dataclass(slots=True)
class Unit:
    """A tool call with its result."""

    name: str
    arguments: str
    update: str = ""
    result: str | None = None
    is_error: bool = False

    def html(self) -> str:
        """Return call and result in one frame."""
        call = f"<b>{plain(one_line(self.name))}</b>({plain(_cut(self.arguments, TOOL_CHARS))})"
        if self.result is not None:
            mark = "error: " if self.is_error else ""
            answer = plain(mark + _cut(self.result, TOOL_CHARS)) or "(no text)"
        else:
            answer = plain(_cut(self.update, TOOL_CHARS)) or "running …"
        rows = (f'<div dir="auto">{row}</div>' for row in (call, answer))
        return f'<div class="nbd-unit">{"".join(rows)}</div>'


@dataclass(slots=True)
class Step:
    """One model call: the answer as it grows, then the message it became."""

    text: Tail = field(default_factory=Tail)
    thinking: Tail = field(default_factory=Tail)
    notes: list[str] = field(default_factory=list)
    message: Message | None = None
    units: dict[str, Unit] = field(default_factory=dict)

    def html(self) -> str:
        """Return notes, thinking, text and tools."""
        notes = "".join(f'<div class="nbd-note" dir="auto">{plain(n)}</div>' for n in self.notes)
        if self.message is None:
            body = _thinking_html(self.thinking.text, self.thinking.length)
            hidden = self.text.length - len(self.text.text)
            mark = f"… {count(hidden, 'character')} above, shown at the end" if hidden else ""
            body += f'<div class="nbd-dim">{mark}</div>' if mark else ""
            body += to_html(self.text.text)
        else:
            body = "".join(self._block_html(block) for block in self.message.blocks)
        return notes + body + "".join(unit.html() for unit in self.units.values())

    def _block_html(self, block: Block) -> str:
        if isinstance(block, TextBlock):
            hidden = len(block.text) - DONE_CHARS
            mark = f"… {count(hidden, 'more character')}; the entry has all of them"
            more = f'<div class="nbd-dim">{mark}</div>' if hidden > 0 else ""
            return to_html(block.text[:DONE_CHARS]) + more
        if isinstance(block, ThinkingBlock):
            return _thinking_html(block.text[:LIVE_CHARS], len(block.text))
        if isinstance(block, ImageBlock | FileBlock):
            name = block.name or block.media_type
            return f'<p dir="auto">[{plain(name)}, {block.blob.size_bytes:,} bytes]</p>'
        if isinstance(block, ToolCallBlock) and block.id not in self.units:
            return Unit(block.name, block.raw, result="not called").html()
        return ""


def _cut(text: str, limit: int) -> str:
    hidden = len(text) - limit
    return f"{text[:limit]} … {count(hidden, 'more character')}" if hidden > 0 else text


def _thinking_html(text: str, length: int) -> str:
    if not text:
        return ""
    label = f"thinking, {count(length, 'character')}"
    return (
        f'<details class="nbd-think"><summary>{label}</summary>'
        f'<div dir="auto">{to_html(text)}</div></details>'
    )


class Picture:
    """A run as its events have told it so far."""

    def __init__(self) -> None:
        self._steps: dict[int, Step] = {}
        self.model: str | None = None
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.seconds: float | None = None
        self.n: int | None = None
        self.error: str | None = None
        self.outcome: str | None = None

    def add(self, event: Event) -> None:
        """Take one event."""
        step = self._step(event.step)
        for entry in event.entries:
            self.n = entry.n if entry.n is not None else self.n
        match event.type:
            case "message_update":
                if event.text:
                    step.text.add(event.text)
                if event.thinking:
                    step.thinking.add(event.thinking)
            case "message_end" if event.message is not None:
                self.add_message(event.message, event.step)
            case "tool_start":
                self._unit(step, event).arguments = event.arguments or "{}"
            case "tool_update":
                self._unit(step, event).update = event.text
            case "tool_end" if event.result is not None:
                self._put_result(step, event.result, event.name)
            case "retry":
                step.notes.append(
                    f"retry {event.attempt} in {duration(event.delay_s)}: "
                    + one_line(event.error or "the call failed", 300)
                )
            case "agent_end" | "agent_error":
                self.usage, self.cost_usd = event.usage, event.cost_usd
                self.seconds, self.outcome = event.seconds, event.outcome
                self.error = event.error or self.error

    def _step(self, number: int) -> Step:
        # events outside a step (number 0) belong to the last one
        number = number or max(self._steps, default=1)
        return self._steps.setdefault(number, Step())

    def add_message(self, message: Message, step_number: int = 0) -> None:
        """Take a finished message; results go to their calls."""
        step = self._step(step_number)
        if message.role == "assistant":
            step.message = message
            reply = message.reply
            if reply is not None:
                self.model = reply.model or reply.answered_by or self.model
                self.error = reply.error or self.error
        for result in message.tool_results:
            self._put_result(step, result, result.name)

    def _unit(self, step: Step, event: Event) -> Unit:
        return step.units.setdefault(event.call_id or "", Unit(event.name or "tool", "{}"))

    def _put_result(self, step: Step, result: ToolResultBlock, name: str | None) -> None:
        unit = step.units.get(result.call_id)
        if unit is None:
            calls = step.message.tool_calls if step.message else ()
            known = next((call for call in calls if call.id == result.call_id), None)
            unit = Unit(known.name if known else name or "tool", known.raw if known else "…")
            step.units[result.call_id] = unit
        unit.result, unit.is_error = result.text, result.is_error

    def take(self, run: object) -> None:
        """Fill in what no event told from a finished run; what is not a run tells nothing."""
        self.model = self.model or getattr(run, "model", None)
        self.usage = self.usage or getattr(run, "usage", None)
        if self.cost_usd is None:
            self.cost_usd = getattr(run, "cost", None)
        if self.seconds is None:
            self.seconds = getattr(run, "seconds", None)
        self.outcome = self.outcome or getattr(run, "outcome", None)
        error = getattr(run, "error", None)
        self.error = self.error or (str(error) if error else None)
        for entry in getattr(run, "entries", ()):
            self.n = entry.n if entry.n is not None else self.n

    # -- showing -----------------------------------------------------------------------------

    @property
    def footer(self) -> str:
        """The closing line: model, tokens, cost, seconds, ordinal."""
        return footer(
            model=self.model,
            tokens=(self.usage.total_tokens or None) if self.usage else None,
            cost_usd=self.cost_usd,
            seconds=self.seconds,
            n=self.n,
            note=self._note(),
        )

    def _note(self) -> str | None:
        return None if self.outcome in (None, "done") else (self.outcome or "").replace("_", " ")

    @property
    def length(self) -> int:
        """How many characters have come in."""
        return sum(step.text.length + step.thinking.length for step in self._steps.values())

    def html(self, *, foot: str | None = None, only_line: bool = False) -> str:
        """Return the whole picture, or its one line; `foot` stands for the closing line."""
        body = self.body(only_line=only_line)
        line = self.footer if foot is None else foot
        full = " nbd-full" if body else ""
        return page(f'{body}<div class="nbd-foot{full}">{plain(line)}</div>')

    def body(self, *, only_line: bool = False) -> str:
        """Return what stands above the closing line, as HTML without a frame."""
        body = "" if only_line else "".join(step.html() for step in self._steps.values())
        if self.error:
            body += f'<div class="nbd-err" dir="auto"><b>error</b> {plain(self._error())}</div>'
        return body

    def text(self, *, foot: str | None = None, only_line: bool = False) -> str:
        """Return the picture as plain text."""
        parts = [] if only_line else [self._step_text(step) for step in self._steps.values()]
        if self.error:
            parts.append(f"error: {self._error()}")
        parts.append(self.footer if foot is None else foot)
        return "\n".join(part for part in parts if part)

    def _error(self) -> str:
        return one_line(self.error or "", 1_000)

    def _step_text(self, step: Step) -> str:
        answer = step.message.text[:DONE_CHARS] if step.message else step.text.text
        tools = [f"{u.name}({u.arguments}) → {u.result}" for u in step.units.values()]
        return visible(
            "\n".join([*step.notes, answer, *(one_line(tool) for tool in tools)])
        ).strip()
