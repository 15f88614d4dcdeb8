"""Importing foreign files: from bytes to sessions in a store, and a report of all of it.

Owns the choice of a reader and what is told. Does not own formats (a module each), trees
(`planting`) or the store (`adding`). The one idea: whatever is wrong with a file, a record or an
entry is told where it is, and the next one is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import IO, Any

from nbdurable.display import in_kernel
from nbdurable.errors import ImportFormatError, NbDurableError, shown
from nbdurable.formats.adding import Added, Adder
from nbdurable.formats.companions import told_of
from nbdurable.formats.drafts import Conversation, Reader
from nbdurable.formats.planting import Hidden
from nbdurable.formats.report import ImportedSession, Oddity
from nbdurable.formats.source import READ_ERRORS, Assets, SourceFile
from nbdurable.formats.values import Damage, Found, read_values
from nbdurable.frozen import collected_later
from nbdurable.stores.base import Store

# The order decides where a value could be of two formats.
READERS = {
    "chatgpt": "nbdurable.formats.chatgpt",
    "claude": "nbdurable.formats.claude",
    "open_webui": "nbdurable.formats.open_webui",
    "librechat": "nbdurable.formats.librechat",
    "pi": "nbdurable.formats.pi",
    "langsmith": "nbdurable.formats.langsmith",
    "openai": "nbdurable.formats.openai",
    "sharegpt": "nbdurable.formats.sharegpt",
}
_SNIFFED = 20  # records that are looked at to find the format
_BAR_FROM_BYTES = 8 << 20
# What is stored at once: several of DuckDB's groups of rows, which go straight to the file, so that
# few rows go through its log and are written twice; and as many bytes as fit, with what is made of
# them, into little memory.
_PART_ENTRIES = 8_200
_PART_BYTES = 10 << 20
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")

_Some = list[Conversation | Damage]
Target = Callable[[], Store]  # made when something is to be added, and not before


class _Unreadable(Exception):
    """A file that was opened cannot be read on."""


class _Stream:
    """The bytes of a file, counted as they are read."""

    def __init__(self, file: IO[bytes], bar: Any) -> None:
        self._file = file
        self._bar = bar
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        try:
            data = self._file.read(size)
        except READ_ERRORS as exc:
            raise _Unreadable(str(exc) or type(exc).__name__) from exc
        self.count += len(data)
        if self._bar is not None:
            self._bar.update(len(data))
        return data


class Importer:
    """Imports files to one store and keeps what is to be told."""

    def __init__(self, target: Target, format: str | None, hidden: Hidden, now: int) -> None:
        self._target = target
        self._format = format
        self._hidden = hidden
        self._now = now
        self._adders: dict[str, Adder] = {}
        self._file: str | None = None  # named where there are several
        self.sessions: list[ImportedSession] = []
        self.oddities: list[Oddity] = []
        self.formats: dict[str, str] = {}  # those that were met, with their rules for times

    def take(self, files: Sequence[SourceFile], assets: Assets) -> None:
        """Import files, one after the other; what is wrong with one does not stop the next.

        Raises
        ------
        ImportFormatError
            No file is of a format that is known.
        StoreError
            The store failed; what was told before is stored.
        """
        with _bar(sum(file.size_bytes for file in files)) as bar:
            for file in files:
                if file.name in assets.used:  # with the conversations it is about
                    continue
                self._file = file.name if len(files) > 1 else None
                try:
                    with file.open() as opened:
                        self._read(_Stream(opened, bar), assets)
                except _Unreadable as exc:
                    self._tell(f"the file cannot be read on: {exc}")
                except READ_ERRORS as exc:
                    if isinstance(exc, NbDurableError):  # of the store
                        raise
                    self._tell(f"the file cannot be opened: {exc}")
        if not self.formats and not self.sessions:
            names = ", ".join(shown(file.name) for file in files[:3]) or "nothing"
            known = ", ".join(sorted((*READERS, "jsonl")))
            raise ImportFormatError(
                f"{names} is of no format that is known ({known}); "
                "give an export of one of these, or say which with format="
            )

    def _read(self, stream: _Stream, assets: Assets) -> None:
        names = [self._format] if self._format else list(READERS)
        readers = {name: _reader(name) for name in names}

        def is_record(value: Any) -> bool:
            return any(reader.is_record(value) for reader in readers.values())

        values = _unwrapped(read_values(stream, is_record), is_record)  # type: ignore[arg-type]
        head: list[Found | Damage] = []
        name = self._format
        while name is None and len(head) < _SNIFFED and (item := next(values, None)):
            head.append(item)
            if isinstance(item, Found):
                name = next((n for n, r in readers.items() if r.is_record(item.value)), None)
        if name is None:
            self._tell(told_of(item.value for item in head if isinstance(item, Found)))
            return
        reader = readers[name]
        readers.clear()  # what is damaged is followed by what this one knows
        readers[name] = reader
        self.formats[name] = reader.TIMES
        made = reader.read(chain(head, values), assets)
        self._add_all(made, self._adder(name, reader), stream)

    def _add_all(
        self, made: Iterable[Conversation | Damage], adder: Adder, stream: _Stream
    ) -> None:
        """Add conversations in their order, as many at once as one transaction takes.

        To read the next ones meanwhile in a thread takes longer: most of both is Python.
        """
        with collected_later():
            for some in _in_parts(made, stream):
                self._take(some, adder)

    def _adder(self, name: str, reader: Reader) -> Adder:
        if name not in self._adders:
            self._adders[name] = Adder(
                self._target(), name, has_ids=reader.HAS_IDS, now=self._now, hidden=self._hidden
            )
        return self._adders[name]

    def _take(self, some: _Some, adder: Adder) -> None:
        added = iter(adder.add_all([one for one in some if isinstance(one, Conversation)]))
        for one in some:
            if isinstance(one, Damage):
                self._tell(one.text, line=one.line)
            else:
                self._keep(next(added), one)

    def _keep(self, added: Added, made: Conversation) -> None:
        planted = added.planted
        self.sessions.append(
            ImportedSession(
                id=added.session_id,
                outcome=added.outcome,
                entries=added.entries,
                leaves=planted.leaves,
                hidden=planted.hidden,
                repaired=planted.repaired,
            )
        )
        self._tell_of(added, made)

    def _tell_of(self, added: Added, made: Conversation) -> None:
        lines = {draft.key: draft.line for draft in made.drafts if draft.line is not None}
        told = [(None, added.told)] if added.told else []
        for key, text in chain(told, added.planted.odd):
            line = lines.get(key, made.line) if key is not None else made.line
            self._tell(text, line=line, session_id=added.session_id, source_id=key)

    def _tell(
        self,
        text: str,
        *,
        line: int | None = None,
        session_id: str | None = None,
        source_id: str | None = None,
    ) -> None:
        self.oddities.append(
            Oddity(
                text=text, line=line, session_id=session_id, source_id=source_id, file=self._file
            )
        )


def _in_parts(made: Iterable[Conversation | Damage], stream: _Stream) -> Iterator[_Some]:
    """Yield conversations in lists of as many as are stored in one transaction."""
    some: _Some = []
    count, began = 0, stream.count
    for one in made:
        some.append(one)
        count += len(one.drafts) if isinstance(one, Conversation) else 1
        if count >= _PART_ENTRIES or stream.count - began >= _PART_BYTES:
            yield some
            some = []
            count, began = 0, stream.count
    if some:
        yield some


def _reader(name: str) -> Reader:
    module: Any = import_module(READERS[name])
    reader: Reader = module
    return reader


def _unwrapped(values: Iterable[Found | Damage], is_record: Any) -> Iterator[Found | Damage]:
    """Yield values; of one that is no record but holds a list of records, these.

    Chat messages that stand alone, one after the other, are one record.
    """
    said: list[Found] = []
    for item in values:
        if _is_message(item, is_record):
            said.append(item)  # type: ignore[arg-type]
            continue
        yield from _joined(said)
        said.clear()
        inside = _records_in(item, is_record)
        if inside is None:
            yield item
        else:
            yield from (Found(value, at, in_line=False) for at, value in enumerate(inside, 1))
    yield from _joined(said)


def _is_message(item: Found | Damage, is_record: Any) -> bool:
    if isinstance(item, Damage) or not isinstance(item.value, dict):
        return False
    value = item.value
    is_said = value.get("role") in _ROLES and ("content" in value or "tool_calls" in value)
    return is_said and not is_record(value) and is_record({"messages": [value]})


def _joined(said: list[Found]) -> Iterator[Found]:
    if said:
        yield replace(said[0], value={"messages": [one.value for one in said]})


def _records_in(item: Found | Damage, is_record: Any) -> list[Any] | None:
    if isinstance(item, Damage) or is_record(item.value):
        return None
    value = item.value
    if (
        isinstance(value, list)
        and value
        and all(_is_message(Found(one, 0, False), is_record) for one in value)
    ):
        return [{"messages": value}]
    for part in value.values() if isinstance(value, dict) else [value]:
        if isinstance(part, list) and any(map(is_record, part[:_SNIFFED])):
            return part
    return None


@contextmanager
def _bar(size_bytes: int) -> Iterator[Any]:
    """Show how many bytes are read of what takes a while, where someone looks."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if size_bytes < _BAR_FROM_BYTES or not (in_kernel() or is_terminal):
        yield None
        return
    options = {"total": size_bytes, "unit": "B", "unit_scale": True, "desc": "import"}
    if not in_kernel():
        from tqdm.std import tqdm

        with tqdm(**options, leave=False, file=sys.stderr) as bar:
            yield bar
        return
    from tqdm.notebook import tqdm as widget

    from nbdurable.notebook.run.live import cell_output

    # A bar that tqdm displays itself would leave a dead widget in the saved notebook.
    publish = cell_output()
    bar = widget(**options, leave=False, display=False)
    publish(bar.container._repr_mimebundle_())
    try:
        yield bar
    finally:
        bar.close()
        bar.container.close()
        publish({"text/plain": f"import · {bar.n:,} of {size_bytes:,} bytes read"})
