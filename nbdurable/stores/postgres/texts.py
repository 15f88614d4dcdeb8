"""Text on its way to PostgreSQL and back: NUL, which its text cannot hold, survives (B64).

The one idea: NUL travels as a code point that Unicode keeps free of characters, and that one,
should it ever be said, with a mark before it. Types that Python would make objects of come as text.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.adapt import Loader
from psycopg.types.string import StrDumperUnknown

from nbdurable.wire import clean

NUL, MARK = "\ufdd0", "\ufdd1"

_ESCAPED = re.compile(f"{MARK}(.)|{NUL}", re.DOTALL)
_AS_TEXT = ("text", "varchar", "bpchar", "name", "uuid", "json", "jsonb")


def escaped(text: str) -> str:
    """Return text that PostgreSQL can hold."""
    text = clean(text) or ""
    if "\0" in text or NUL in text or MARK in text:
        text = text.replace(MARK, MARK * 2).replace(NUL, MARK + NUL).replace("\0", NUL)
    return text


def unescaped(text: str) -> str:
    """Return the text that `escaped` was given."""
    if NUL in text or MARK in text:
        return _ESCAPED.sub(lambda found: found[1] or "\0", text)
    return text


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: Any) -> Any:
        return super().dump(escaped(obj))


class _TextLoader(Loader):
    def load(self, data: Any) -> str:
        return unescaped(str(data, "utf-8"))


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Have a connection carry texts this way."""
    connection.adapters.register_dumper(str, _TextDumper)
    for name in _AS_TEXT:
        connection.adapters.register_loader(name, _TextLoader)
