"""A run on its way, as a row that a tree shows below the entry it has come to.

Owns what of a run's events is seen while it goes on. The one idea: the run's log is read, never
waited for, so that neither the run nor a cell that waits for it is held up (B17). Its answer is
told as characters, at once, and some times a second as the formatted text that these came to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nbdurable.errors import told
from nbdurable.events import Event
from nbdurable.loaded import Loaded
from nbdurable.notebook.markdown.growing import GrowingText, Grown
from nbdurable.questions import Question
from nbdurable.reprs import duration, one_line
from nbdurable.run import Run

Op = dict[str, Any]
NOTE_CHARS = 300
FORMAT_EVERY_S = 0.1
FORMAT_CHARS_PER_S = 60_000  # read again: a long paragraph is formatted less often,
FORMAT_MOST_CHARS = 20_000  # and one that is longer when its line ends


class Following:
    """One run of this process and its row; read it, then take what was read.

    Parameters
    ----------
    exp : int
        The place of its experiment among those shown, or -1.
    now : callable
        Seconds on a clock that never goes back.
    """

    def __init__(self, run: Run, exp: int, parent: int, now: Callable[[], float], at_ms: int):
        self.run = run
        self.is_over = False
        self.row: dict[str, Any] = {
            "run": run.run_id,
            "parent": parent,
            "model": run.model,
            "exp": exp,
            "state": "waiting",
            "text": "",
            "blocks": [],  # the text as nodes, and what of it came after they were made
            "tail": "",
            "thinking": False,
            "ttft": None,
            "started": at_ms,
            "tokens": None,
            "cost_usd": None,
            "note": "",
        }
        self.questions: dict[str, Op] = {}  # those that are open
        self._now = now
        self._asked_at = now()
        self._read = 0
        self._growing = GrowingText()
        self._format_at = 0.0
        self._tools: dict[str, str] = {}
        self._asked: tuple[Question, ...] = ()

    def first(self) -> Op:
        """Return what tells of the run."""
        return {"op": "live", **self.row}

    def read(self) -> tuple[list[Event], bool]:
        """Return the events that came since the last time, and whether there will be no more."""
        # in this order: a question is never of a call whose start is not among the events
        is_done, self._asked = self.run.is_done, self.run.questions
        events = self.run.events_since(self._read)
        self._read += len(events)
        return events, is_done

    def take(self, events: Iterable[Event], n_of: Callable[[str | None], int]) -> Iterator[Op]:
        """Yield what events change in the row; the entries they tell of have been added before."""
        text = ""
        for event in events:
            if event.type == "message_update" and event.text:
                yield from self._change(state="streaming", thinking=False, ttft=self._ttft())
                text += event.text
                continue
            yield from self._say(text)
            text = ""
            yield from self._other(event, n_of)
        yield from self._say(text)

    def _say(self, text: str) -> Iterator[Op]:
        if text:
            self.row["text"] += text
            self.row["tail"] += text
            self._growing.add(text)
            yield {"op": "text", "run": self.run.run_id, "text": text}

    def is_due(self) -> bool:
        """Whether what came should be formatted now."""
        tail = self.row["tail"]
        is_long = self._growing.open_chars > FORMAT_MOST_CHARS and "\n" not in tail
        return bool(tail.strip()) and not is_long and self._now() >= self._format_at

    def format(self) -> Grown:
        """Read what came, without changing the row; it is put there by `formatted`."""
        chars, began = self._growing.open_chars, self._now()
        made = self._growing.read()
        ended = self._now()
        # text of nothing but marks reads slower than any other: it never takes half the time
        rest = max(FORMAT_EVERY_S, chars / FORMAT_CHARS_PER_S, 2 * (ended - began))
        self._format_at = ended + rest
        return made

    def formatted(self, grown: Grown) -> Op:
        """Put formatted text in the place of what stood there."""
        blocks = self._growing.nodes
        # blanks at the end are no part of a block; the next word is not to stick to the last
        is_apart = self.row["text"][-1:].isspace() and bool(blocks) and blocks[-1][0] != "pre"
        self.row.update(blocks=blocks, tail=" " if is_apart else "")
        told: Op = {"from": grown.start, "nodes": grown.nodes, "tail": self.row["tail"]}
        if grown.kept:
            told["keep"] = grown.kept
        return {"op": "md", "run": self.run.run_id, **told}

    def _other(self, event: Event, n_of: Callable[[str | None], int]) -> Iterator[Op]:
        match event.type:
            case "agent_start":
                yield from self._change(parent=n_of(event.leaf_id))
            case "message_start":
                self._asked_at = self._now()
                yield from self._change(state="waiting", thinking=False, ttft=None, note="")
            case "message_update":
                yield from self._change(state="streaming", thinking=True, ttft=self._ttft())
            case "message_end":
                yield from self._ended(event, n_of)
            case "tool_start":
                self._tools[event.call_id or ""] = event.name or ""
                yield from self._change(state="tool", note=event.name or "")
            case "tool_update":
                note = one_line(f"{event.name}: {event.text}", NOTE_CHARS)
                yield from self._change(state="tool", note=note)
            case "tool_end":
                yield from self._change(state="waiting", note="")
            case "retry":
                note = f"attempt {event.attempt} failed, again in {duration(event.delay_s)}"
                note = one_line(f"{note}: {event.error}" if event.error else note, NOTE_CHARS)
                yield from self._change(state="retry", note=note)

    def _ended(self, event: Event, n_of: Callable[[str | None], int]) -> Iterator[Op]:
        if self.row["tail"]:
            yield self.formatted(self.format())
        self._growing, self._format_at = GrowingText(), 0.0
        self.row.update(blocks=[], tail="")  # as the page takes it from a text that begins anew
        fields: Op = {"parent": n_of(event.leaf_id), "text": "", "thinking": False, "note": ""}
        if event.usage is not None:
            fields["tokens"] = (self.row["tokens"] or 0) + event.usage.total_tokens
        if event.cost_usd is not None:
            fields["cost_usd"] = (self.row["cost_usd"] or 0.0) + event.cost_usd
        yield from self._change(state="waiting", **fields)

    def _ttft(self) -> float:
        known = self.row["ttft"]
        return known if known is not None else round(self._now() - self._asked_at, 3)

    def _change(self, **fields: Any) -> Iterator[Op]:
        fresh = {name: value for name, value in fields.items() if self.row[name] != value}
        if fresh:
            self.row.update(fresh)
            yield {"op": "live", "run": self.run.run_id, **fresh}

    # -- questions and the end -----------------------------------------------------------------

    def ask(self) -> Iterator[Op]:
        """Yield the questions that opened since the last time, and those that were answered."""
        for at, question in enumerate(self._asked):
            name = f"{self.run.run_id}:{at}"
            if question.is_open and name not in self.questions:
                tool = self._tools.get(question.call_id, "")
                asked = {"id": name, "run": self.run.run_id, "tool": tool, "text": question.text}
                self.questions[name] = asked
                yield {"op": "question", **asked}
            elif not question.is_open and name in self.questions:
                del self.questions[name]
                yield {"op": "answered", "id": name}

    def failure(self) -> tuple[str | None, str]:
        """Return the entry at which the run failed and the text of what ended it, or ``""``."""
        failure = self.run._failure
        return self.run.leaf_id, "" if failure is None else told(failure)


def runs_of(image: Loaded) -> list[Run]:
    """Return the runs that this process knows of."""
    return [run for ref in image.live.valuerefs() if (run := ref()) is not None]
