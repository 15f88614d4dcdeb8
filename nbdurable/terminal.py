"""What a terminal shows: a run as it streams, and a session as a tree.

Owns the look in plain text and ANSI. The one idea: every state has a sign of its own, colour only
repeats it; and every text goes out as data, with its control characters made visible.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TextIO

from nbdurable.annotations import Marks
from nbdurable.entries import Entry
from nbdurable.events import Event
from nbdurable.ids import as_datetime
from nbdurable.outline import Line, heading, outline
from nbdurable.reprs import (
    SEPARATOR,
    count,
    duration,
    footer,
    joined,
    model_name,
    money,
    one_line,
    visible,
)
from nbdurable.stored import StoredEntry

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

_DIM, _BOLD, _RED, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[0m"
_PROGRESS_S = 0.1
MIN_PREVIEW = 16  # cells


def has_colour(out: TextIO) -> bool:
    """Tell whether `out` takes ANSI codes: a terminal, and neither NO_COLOR nor a dumb one."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class TerminalDisplay:
    """Stream a run to a terminal as plain text, with a dim closing line.

    Parameters
    ----------
    mode : {"stream", "line"}
        The whole answer, or one line about it.
    out : text file
        Where to write; stdout when None.
    now : callable
        Seconds on a clock that never goes back.
    """

    def __init__(
        self,
        mode: Literal["stream", "line"] = "stream",
        *,
        out: TextIO | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out or sys.stdout
        self._colour = has_colour(self._out)
        self._only_line = mode == "line"
        self._now = now
        self._started = now()
        self._next = 0.0
        self._length = 0
        self._column_is_0 = True
        self._has_text = False  # the message under way has shown text
        self._has_thinking = False
        self._has_progress = False
        self._failure: str | None = None
        self._model: str | None = None
        self._n: int | None = None
        self._end: Event | None = None
        self._is_replayed = False
        self._is_closed = False

    # -- events ------------------------------------------------------------------------------

    def on_event(self, event: Event) -> None:
        """Write what the event adds."""
        self._is_replayed = self._is_replayed or event.replayed
        for entry in event.entries:
            self._n = entry.n if entry.n is not None else self._n
        match event.type:
            case "message_start":
                self._has_text = self._has_thinking = False
            case "message_update":
                self._update(event)
            case "message_end" if event.message is not None and event.message.role == "assistant":
                self._message_end(event)
            case "tool_start":
                call = f"{event.name}({event.arguments or ''})"
                self._note(f"→ {one_line(call, 200)}")
            case "tool_end" if event.result is not None:
                mark = "error: " if event.result.is_error else ""
                self._note(f"← {mark}{one_line(event.result.text, 200)}")
            case "retry":
                wait = duration(event.delay_s)
                self._note(f"retry {event.attempt} in {wait}: {one_line(event.error or '', 300)}")
            case "agent_end" | "agent_error":
                self._end = event
                self._failure = event.error or self._failure
        self.tick()

    def _update(self, event: Event) -> None:
        self._length += len(event.text) + len(event.thinking)
        if event.thinking and not self._has_thinking:
            self._has_thinking = True
            self._note("thinking …")
        if event.text:
            self._has_text = True
            self._write(visible(event.text))

    def _message_end(self, event: Event) -> None:
        message = event.message
        if message is None:
            return
        if not self._has_text and message.text:  # a reply without deltas (B16)
            self._write(visible(message.text))
        self._has_text = self._has_thinking = False
        if message.reply is not None:
            self._model = message.reply.model or message.reply.answered_by
            self._failure = message.reply.error or self._failure
        self._line_end()

    def tick(self) -> None:
        """Renew the progress line of ``show="line"``; a stream has nothing waiting."""
        if not self._only_line or not self._colour or self._is_closed or self._now() < self._next:
            return
        self._next = self._now() + _PROGRESS_S
        took = duration(self._now() - self._started)
        self._has_progress = True
        self._raw(f"\r\x1b[K{_DIM}running … {took}{SEPARATOR}{count(self._length, 'character')}")
        self._raw(_PLAIN)

    def close(self, result: object = None) -> None:
        """Write the error, if any, and the closing line."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._has_progress:
            self._raw("\r\x1b[K")
        self._line_end()
        if isinstance(result, BaseException):
            self._failure = self._failure or str(result) or type(result).__name__
            result = getattr(result, "run", None)
        self._failure = self._failure or getattr(result, "error", None)
        if self._failure:
            self._styled(f"error: {one_line(self._failure, 1_000)}", _RED)
        line = self._footer(result)
        if line:
            self._styled(f"— {line}", _DIM)

    def _footer(self, run: object) -> str:
        end = self._end
        usage = (end.usage if end else None) or getattr(run, "usage", None)
        cost = end.cost_usd if end else getattr(run, "cost", None)
        seconds = end.seconds if end else getattr(run, "seconds", None)
        outcome = (end.outcome if end else None) or getattr(run, "outcome", None)
        bad = None if outcome in (None, "done") else str(outcome).replace("_", " ")
        return footer(
            model=self._model or getattr(run, "model", None),
            tokens=(usage.total_tokens or None) if usage else None,
            cost_usd=cost,
            seconds=seconds,
            n=self._n,
            note="replayed, no call made" if self._is_replayed else bad,
        )

    # -- writing -----------------------------------------------------------------------------

    def _raw(self, text: str) -> None:
        encoding = self._out.encoding or "utf-8"
        self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()

    def _write(self, text: str) -> None:
        if text and not self._only_line:
            self._column_is_0 = text.endswith("\n")
            self._raw(text)

    def _line_end(self) -> None:
        if not self._column_is_0:
            self._write("\n")

    def _note(self, text: str) -> None:
        self._line_end()
        if not self._only_line:
            self._styled(text, _DIM)

    def _styled(self, text: str, style: str) -> None:
        self._raw(f"{style}{text}{_PLAIN}\n" if self._colour else f"{text}\n")


# -- the tree ----------------------------------------------------------------------------------


class TreeView:
    """A session's tree for a rich console, as wide as the console is."""

    def __init__(self, lines: list[Line], title: str, *, show_ids: bool) -> None:
        self._lines = lines
        self._title = title
        self._show_ids = show_ids
        self._digits = max((len(str(line.row.n or "")) for line in lines), default=1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        if self._title:
            yield Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")
        for line in self._lines:
            yield self._text(line, options.max_width)

    def _text(self, line: Line, width: int) -> Text:
        from rich.cells import cell_len
        from rich.text import Text

        number = f"#{line.row.n}" if line.row.n is not None else "#?"
        rail = "│ " * line.indent
        head = f"{number:>{self._digits + 1}} {rail}{_sign(line)} {_role(line):<9} "
        preview = Text(line.row.preview or "(no text)", no_wrap=True)
        free = width - cell_len(head) - 2
        # on a narrow screen the text is worth more than the figures, then more than the tags
        tails = _tails(line, show_id=self._show_ids)
        tail = next((tail for tail in tails if free - cell_len(tail) >= MIN_PREVIEW), tails[-1])
        room = max(free - cell_len(tail), MIN_PREVIEW // 2)
        preview.truncate(room, overflow="ellipsis")
        gap = " " * max(width - cell_len(head) - preview.cell_len - cell_len(tail), 2)
        text = Text(no_wrap=True, overflow="crop", end="\n")
        text.append(head, style="bold" if line.on_path else "dim")
        text.append_text(preview)
        text.append((gap + tail).rstrip(), style="dim")
        text.stylize("bold" if line.on_path and line.row.role == "user" else "", len(head))
        if not line.on_path:
            text.stylize("dim")
        return text


def _sign(line: Line) -> str:
    if line.is_leaf:
        return "◆"
    return "●" if line.on_path else "○"


def _role(line: Line) -> str:
    return one_line(line.row.role, 9)


def _marks(line: Line) -> list[str]:
    """Return what must be seen at any width."""
    row = line.row
    marks = [f"{line.sibling}/{line.siblings}"] if line.siblings > 1 else []
    marks += ["meta"] if row.is_meta else []
    marks += ["orphan"] if line.is_orphan else []
    marks += [row.stop_reason] if row.stop_reason in ("error", "aborted", "length") else []
    return marks + (["← leaf"] if line.is_leaf else [])


def _tails(line: Line, *, show_id: bool) -> list[str]:
    """Return what may follow the text, the fullest first."""
    tags = [f"[{tag}]" for tag in line.tags]
    shown_id = [line.row.id] if show_id else []
    short = [*_marks(line), *shown_id]
    full = "  ".join([*tags, *_marks(line), _figures(line, show_id=show_id)])
    return [full, " ".join([*tags, *short]), " ".join(short)]


def _figures(line: Line, *, show_id: bool) -> str:
    row = line.row
    when = f"{as_datetime(row.created_at):%Y-%m-%d %H:%M}" if row.created_at is not None else None
    return joined(
        (
            model_name(row.model) if row.model else None,
            None if row.tokens is None else count(row.tokens, "token"),
            None if row.cost_usd is None else money(row.cost_usd),
            None if row.seconds is None else duration(row.seconds),
            when,
            row.id if show_id else None,
        )
    )


def render_tree(
    entries: Iterable[Entry | StoredEntry],
    leaf_id: str | None,
    *,
    title: str = "",
    show_ids: bool = False,
    marks: Mapping[str, Marks] | None = None,
) -> TreeView:
    """Return a session's tree for ``rich.print``: one line per entry, only forks indent.

    ``●`` stands on the path to the leaf ``◆``, ``○`` beside it; ``2/3`` counts siblings. Texts
    are never read as markup.

    Parameters
    ----------
    entries : iterable of Entry or StoredEntry
        In any order.
    leaf_id : str or None
        The active leaf.
    title : str
        The session's name; its counts are added.
    show_ids : bool
        Add each entry's id.
    marks : mapping, optional
        Labels and ratings by entry id, shown in brackets.
    """
    lines = outline(entries, leaf_id, marks)
    return TreeView(lines, heading(title, lines) if title else "", show_ids=show_ids)
