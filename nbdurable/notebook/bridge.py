"""The line between a widget and its views: states in order, actions with an answer.

Any thread may change a widget's state and `put` what changed; one sender thread of the process
batches it, at most 30 times a second, as messages with a counter, since a server drops what comes
faster than about 1,000 messages a second. A view that misses one asks for the whole state again.
What a view asks for may arrive on any thread, so it is only taken here and done on a thread of the
widget's own, the whole state too: a slow answer never stalls another widget, and a store is never
touched in a callback.
"""

from __future__ import annotations

import contextvars
import inspect
import json
import logging
import math
import queue
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from logging import DEBUG, WARNING
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import anywidget
import traitlets

from nbdurable.errors import NbDurableError, shown, told
from nbdurable.reprs import one_line, whole_text

log = logging.getLogger("nbdurable")

HZ = 30
PIECE_CHARS = 240_000  # under 1 MB even at four bytes each; servers cut the line at 10 MB
REMEMBERED_COMMANDS = 1_000
MAX_SAFE_INT = 2**53 - 1  # what a browser's numbers can tell apart

Op = dict[str, Any]
Deed = Callable[..., Any]


class Refused(Exception):
    """An action that cannot be done; its text is shown where it was asked for."""


class Parcel:
    """A place in the line to the views; those behind it wait until its message is made."""

    def __init__(self, message: dict[str, Any] | None = None) -> None:
        self.message = message
        self.parts: list[dict[str, Any]] | None = None  # the message as it is sent


class Bridge(anywidget.AnyWidget):
    """A widget whose state lives in Python; subclasses give `state`, and what views may ask.

    ``acts`` and ``asks`` map a name to a method of the subclass, called with the view's arguments
    as keywords: acts do something, once, one after another; asks only read, beside the acts. Acts
    named in ``at_once`` are done beside both, as what stops something must not wait for it. What a
    method returns (JSON values) goes to the view; what it raises is shown there.

    A change is made and put under ``guard``, so that a whole state never misses or repeats one::

        with self.guard:
            self.rows.append(row)
            self.put({"op": "add", "row": row})
    """

    uid = traitlets.Unicode().tag(sync=True)
    error = traitlets.Unicode().tag(sync=True)

    acts: ClassVar[Mapping[str, str]] = {}
    asks: ClassVar[Mapping[str, str]] = {}
    at_once: ClassVar[frozenset[str]] = frozenset()  # acts that wait for no other act

    def __init__(self, **traits: Any) -> None:
        self.guard = threading.RLock()
        self._context = contextvars.copy_context()
        self._line = threading.Lock()  # over what waits to be sent; taken inside the guard
        self._ops: list[Op] = []
        self._parcels: deque[Parcel] = deque()
        self._asking: set[object] = set()  # views that wait for the whole state
        self._seq = 0
        self._taken: OrderedDict[str, None] = OrderedDict()
        self._work: dict[str, queue.SimpleQueue[Callable[[], None] | None]] = {}
        self.is_closed = False
        self._views: set[str] | None = None  # None before the first
        self.seen = threading.Event()  # set by the first
        self._is_heard_meanwhile = False
        super().__init__(uid=uuid.uuid4().hex[:12], **traits)
        _answer_on_own_thread(self.comm)
        self.on_msg(self._received)

    def state(self) -> dict[str, Any]:
        """Return the whole state as JSON values; called under ``guard``."""
        raise NotImplementedError

    # -- to the views --------------------------------------------------------------------------

    def put(self, op: Op) -> None:
        """Send a change to all views with the next batch; ``text`` ops of one run are joined."""
        with self._line:
            last = self._ops[-1] if self._ops else None
            if op["op"] == "text" and last and last["op"] == "text" and last["run"] == op["run"]:
                last["text"] += op["text"]
            else:
                self._ops.append(dict(op))
        SENDER.wake(self)

    def answer(self, message: dict[str, Any]) -> None:
        """Send one message about something a view asked for."""
        with self._line:
            self._close_batch()
            self._parcels.append(Parcel(message))
        SENDER.wake(self)

    def _close_batch(self) -> None:
        """Put the changes that wait into the line; called with it held."""
        if self._ops:
            self._seq += 1
            self._parcels.append(Parcel({"type": "ops", "seq": self._seq, "ops": self._ops}))
            self._ops = []

    def _ask_whole(self, view: object) -> None:
        """Have the whole state made, on a thread of its own; a view may ask again meanwhile."""
        with self._line:
            if view in self._asking:
                return
            self._asking.add(view)
        threading.Thread(
            target=self._tell_whole, args=(view,), name="nbdurable-widget-whole", daemon=True
        ).start()

    def _tell_whole(self, view: object) -> None:
        parcel = Parcel()
        with self.guard:
            with self._line:  # what was put is before it, what will be is behind it
                self._close_batch()
                self._parcels.append(parcel)
                seq = self._seq
            try:
                message = {"type": "snapshot", "view": view, "seq": seq, "body": self.state()}
            except Exception as error:  # told to the view that asked
                message = {"type": "trouble", "view": view, "text": self.failed(error)}
        parcel.parts = self._packed(message)
        with self._line:
            self._asking.discard(view)
        SENDER.wake(self)

    def flush(self) -> None:
        """Send what is waiting; only the sender thread calls this."""
        with self._line:
            self._close_batch()
            ready: list[Parcel] = []
            while self._parcels and (self._parcels[0].parts or self._parcels[0].message):
                ready.append(self._parcels.popleft())
        for parcel in ready:
            for part in parcel.parts or self._packed(parcel.message or {}):
                if not self.is_closed:
                    self.send(part)

    def _packed(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            return list(pieces(browser_safe(message)))
        except (TypeError, ValueError, RecursionError) as error:
            # who asked must not wait for what cannot be told
            text = self.failed(error)
            if "cid" in message:
                return [{"type": "fail", "cid": message["cid"], "error": text}]
            return [{"type": "trouble", "view": message.get("view"), "text": text}]

    def _send(self, msg: Any, buffers: Any = None) -> None:
        in_context(self._context, super()._send, msg, buffers)

    # -- from the views ------------------------------------------------------------------------

    @property
    def was_left(self) -> bool:
        """Whether there were views and the last one has said that it goes."""
        return self._views is not None and not self._views

    @property
    def can_be_asked(self) -> bool:
        """Whether a view is there whose clicks arrive also while a cell runs."""
        return bool(self._views) and self._is_heard_meanwhile

    def _received(self, _widget: object, message: Any, _buffers: object = None) -> None:
        if not isinstance(message, dict):
            return
        kind, cid, name = message.get("type"), message.get("cid"), message.get("name")
        self._note_view(kind, message.get("view"))
        if kind == "resync":
            view = message.get("view")
            self._ask_whole(view if isinstance(view, str) else None)
        elif kind in ("cmd", "ask") and isinstance(cid, str) and isinstance(name, str):
            args = message.get("args")
            self._take(kind, cid, name, args if isinstance(args, dict) else {})

    def _note_view(self, kind: object, view: object) -> None:
        if not isinstance(view, str):
            return
        views = set() if self._views is None else self._views
        self._views = views - {view} if kind == "bye" else views | {view}
        self.seen.set()
        # threads of the kernel's subshells serve messages beside the running cell
        self._is_heard_meanwhile = threading.current_thread() is not threading.main_thread()

    def _take(self, kind: str, cid: str, name: str, args: dict[str, Any]) -> None:
        with self._line:  # the guard may be held while a state is made
            if cid in self._taken:
                return
            self._taken[cid] = None
            while len(self._taken) > REMEMBERED_COMMANDS:
                self._taken.popitem(last=False)
        self.answer({"type": "ack", "cid": cid})
        line = "now" if kind == "cmd" and name in self.at_once else kind
        self._queue(line).put(lambda: self._do(kind, cid, name, args))

    def _do(self, kind: str, cid: str, name: str, args: dict[str, Any]) -> None:
        try:
            body = self.perform(kind, name, args)
        except Exception as error:  # told to the view: in a callback it would vanish
            self.answer({"type": "fail", "cid": cid, "error": self.failed(error)})
        else:
            if kind == "cmd" and self.error:
                self.error = ""
            self.answer({"type": "done", "cid": cid, "body": body})

    def failed(self, error: Exception) -> str:
        """Keep an error's text where a notebook can read it, and return it."""
        text = one_line(told(error), 2_000)
        is_known = isinstance(error, NbDurableError | Refused)
        log.log(DEBUG if is_known else WARNING, "%s: %s", self, text, exc_info=error)
        if not self.is_closed:
            self.error = text
        return text

    def perform(self, kind: str, name: str, args: dict[str, Any]) -> Any:
        """Do (``cmd``) or look up (``ask``) what a view asked for; what it raises is told there."""
        method = (self.acts if kind == "cmd" else self.asks).get(name)
        if method is None:
            raise Refused(f"action {shown(name)} is not known here; reload the page")
        return called(name, getattr(self, method), args)

    def _queue(self, kind: str) -> queue.SimpleQueue[Callable[[], None] | None]:
        with self._line:
            work = self._work.get(kind)
            if work is None:
                work = self._work[kind] = queue.SimpleQueue()
                name = f"nbdurable-widget-{kind}"
                threading.Thread(target=_serve, args=(work,), name=name, daemon=True).start()
            return work

    def close(self) -> None:
        """Let go of the views and end the widget's threads; idempotent."""
        with self.guard:
            if self.is_closed:
                return
            self.is_closed = True
            queues = list(self._work.values())
        for work in queues:
            work.put(None)
        layout = self.layout
        super().close()
        layout.close()  # a model of its own, which the library leaves behind


def _serve(work: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (deed := work.get()) is not None:
        deed()
        del deed  # nobody is held while it waits


def called(name: str, method: Deed, args: Mapping[str, Any]) -> Any:
    """Call what an action stands for; arguments it does not take are refused in words.

    What its annotations say is what a view may send, as of all that comes from there.
    """
    try:
        inspect.signature(method).bind(**args)
    except TypeError as error:
        raise Refused(f"{name} was not asked for rightly: {error}; reload the page") from None
    hints = get_type_hints(method)
    for arg, value in args.items():
        if not _fits(value, hints.get(arg, object)):
            raise Refused(f"{arg} of {name} cannot be {shown(value)}; reload the page")
    return method(**args)


def _fits(value: object, hint: Any) -> bool:
    """Tell whether a JSON value is of an annotated type; true and false are no numbers."""
    if hint is Any:
        return True
    if inner := get_args(hint):
        if get_origin(hint) is list:
            return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
        return any(_fits(value, one) for one in inner)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _answer_on_own_thread(comm: Any) -> None:
    """Keep messages from views off the main thread while a cell runs, where the kernel can.

    ipykernel 7.4 sends them to the shell that published last, so that a cell could await a reply
    from the page; nothing here does. A private name, so it is looked for first.
    """
    if getattr(comm, "_reply_subshell_for", None) is not None:
        comm._reply_subshell_for = None


def in_context(context: contextvars.Context, send: Callable[..., None], *args: Any) -> None:
    """Send to the page, from a thread that serves no request too.

    ipykernel 7.0 knows what a message answers to only in the context of a request, which a thread
    that was started does not have (ipython/ipykernel#1450).
    """
    try:
        send(*args)
    except LookupError:
        context.copy().run(send, *args)


# -- messages ----------------------------------------------------------------------------------


def browser_safe(value: Any) -> Any:
    """Return JSON values as every browser reads them (B33).

    Integers that it would round become text, numbers that are none null, and half a character,
    which no message can carry, the sign for one.
    """
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -MAX_SAFE_INT <= value <= MAX_SAFE_INT else str(value)
    if isinstance(value, Mapping):
        return {whole_text(str(key)): browser_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [browser_safe(item) for item in value]
    return value


def pieces(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message, in pieces when it is too long for one."""
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(text) <= PIECE_CHARS:
        yield message
        return
    name, parts = uuid.uuid4().hex, -(-len(text) // PIECE_CHARS)
    for part in range(parts):
        cut = text[part * PIECE_CHARS : (part + 1) * PIECE_CHARS]
        yield {"type": "piece", "of": name, "part": part, "parts": parts, "text": cut}


# -- the sender --------------------------------------------------------------------------------


class Sender:
    """The one thread of the process that sends for widgets; it starts with the first."""

    def __init__(self) -> None:
        self._woken = threading.Condition()
        self._dirty: dict[int, Bridge] = {}
        self._thread: threading.Thread | None = None

    def wake(self, widget: Bridge) -> None:
        """Send what a widget has waiting: at once after a pause, else with the next batch."""
        with self._woken:
            self._dirty[id(widget)] = widget
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="nbdurable-widgets", daemon=True
                )
                self._thread.start()
            self._woken.notify()

    def _serve(self) -> None:
        while True:
            with self._woken:
                self._woken.wait_for(lambda: bool(self._dirty))
                widgets, self._dirty = list(self._dirty.values()), {}
            began = time.monotonic()
            for widget in widgets:
                try:
                    widget.flush()
                except Exception as error:  # of one widget; the others are served on
                    widget.failed(error)
            widgets.clear()
            widget = None  # type: ignore[assignment]  # nobody is held while it waits
            time.sleep(max(0.0, 1 / HZ - (time.monotonic() - began)))


SENDER = Sender()
