"""The display of a run in a cell: one output, updated in place while events come in.

Owns when something is shown; `picture` owns what. The one idea: an update is made at most some
times a second and never takes more than a quarter of the reader's time, so that a long answer
costs a bounded amount in all. Nothing is ever written to stdout (B15).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from nbdurable.events import Event
from nbdurable.notebook.run.picture import Picture
from nbdurable.reprs import SEPARATOR, count, duration

if TYPE_CHECKING:
    from nbdurable.notebook.run.view import RunView

Bundle = dict[str, Any]
Publish = Callable[[Bundle], None]

INTERVAL_S = 1 / 15
STOP_AFTER_S = 0.7  # a run that ends sooner needs no button
_AT_ONCE = frozenset({"tool_start", "tool_end", "message_end", "retry"})


class CellDisplay:
    """Show a run in the output of the cell that runs now.

    Parameters
    ----------
    mode : {"stream", "line"}
        The whole answer, or one line about it.
    publish : callable
        Gets each mime bundle; the first makes the output, later ones replace it.
    now : callable
        Seconds on a clock that never goes back.
    cancel : callable, optional
        Stops the run. With it, a run that takes a while shows a button that does so.
    """

    def __init__(
        self,
        mode: Literal["stream", "line"] = "stream",
        *,
        publish: Publish | None = None,
        now: Callable[[], float] = time.monotonic,
        cancel: Callable[[], None] | None = None,
    ) -> None:
        self._cancel = cancel
        self._view: RunView | None = None
        self._thread = threading.get_ident()
        self._publish = publish or cell_output()
        self._only_line = mode == "line"
        self._now = now
        self._picture = Picture()
        self._started = now()
        self._next = self._free = 0.0  # when growing text, or anything else, may show again
        self._is_dirty = False
        self._is_closed = False
        # made here, in the thread of the cell: later ones may come from another
        self._show(self._progress())

    def on_event(self, event: Event) -> None:
        """Take one event; show it now or with a later one."""
        self._picture.add(event)
        self._is_dirty = True
        if event.type in _AT_ONCE and not event.replayed:
            self._next = self._free  # what follows such an event may take long
        self.tick()

    def tick(self) -> None:
        """Show what is waiting, if it is time; to be called when no event has come for a while."""
        began = self._now()
        if self._is_closed:
            return
        if self._view is None and self._cancel and began - self._started >= STOP_AFTER_S:
            self._offer_stop(self._cancel)
        if not self._is_dirty or began < self._next:
            return
        self._show(self._progress())
        took = self._now() - began
        self._free = began + 4 * took
        self._next = max(self._free, began + INTERVAL_S)

    def close(self, result: object = None) -> None:
        """Show the end: `result` is the finished run, or what stopped it."""
        if self._is_closed:
            return
        if isinstance(result, BaseException):
            failed_run = getattr(result, "run", None)
            if not self._picture.error:
                self._picture.error = str(result) or type(result).__name__
            result = failed_run
        self._picture.take(result)
        self._show(None)
        self._is_closed = True
        if self._view is not None:  # after the HTML took its place, so that the cell never blinks
            body = self._picture.body(only_line=self._only_line)
            self._view.end(body, self._picture.footer)

    def _show(self, foot: str | None) -> None:
        self._is_dirty = False
        picture, only_line = self._picture, self._only_line
        if self._view is not None and foot is not None:
            self._view.look(picture.body(only_line=only_line), foot)
            return
        self._publish(
            {
                "text/html": picture.html(foot=foot, only_line=only_line),
                "text/plain": picture.text(foot=foot, only_line=only_line),
            }
        )

    def _offer_stop(self, cancel: Callable[[], None]) -> None:
        """Put a view with a stop button in the output's place, until the run ends."""
        self._cancel = None
        if threading.get_ident() != self._thread:
            return  # what another thread makes could land in another cell
        from nbdurable.notebook.run.view import RunView  # heavy: anywidget

        picture, only_line, foot = self._picture, self._only_line, self._progress()
        self._view = RunView(cancel)
        self._view.look(picture.body(only_line=only_line), foot)
        self._publish(
            {
                **view_bundle(self._view),
                "text/html": picture.html(foot=foot, only_line=only_line),
                "text/plain": picture.text(foot=foot, only_line=only_line),
            }
        )

    def _progress(self) -> str:
        took = duration(self._now() - self._started)
        length = self._picture.length
        return SEPARATOR.join(
            ["running …", took, *([count(length, "character")] if length else [])]
        )


def view_bundle(widget: Any) -> Bundle:
    """Return the mime bundle by which a host shows a widget, whatever form the library gives."""
    made = widget._repr_mimebundle_()
    data = made[0] if isinstance(made, tuple) else made
    return dict(data or {})


def cell_output() -> Publish:
    """Return a function that shows bundles in one output of the current cell."""
    from IPython.display import DisplayHandle, display  # heavy, and absent outside notebooks

    handle: DisplayHandle | None = None

    def publish(bundle: Bundle) -> None:
        nonlocal handle
        if handle is None:
            handle = display(bundle, raw=True, display_id=True)
        else:
            handle.update(bundle, raw=True)

    return publish


def run_bundle(run: Any) -> Mapping[str, str]:
    """Return the mime bundle of a finished run that was not shown while it ran."""
    picture = Picture()
    step = 0
    for message in run.messages:
        step += message.role == "assistant"
        picture.add_message(message, step)
    picture.take(run)
    return {"text/html": picture.html(), "text/plain": picture.text()}
