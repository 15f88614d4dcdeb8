"""Make values fast, where ten thousand of them come at once.

The one idea: a frozen dataclass guards each of its fields also while it is made, which takes most
of the time of loading a long session. Here a plain twin of the same layout is filled, and then
becomes the value. And the garbage collector, which looks through all of a notebook's objects again
and again while many are made, is put off until they are there.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def maker(record: type[T]) -> Callable[..., T]:
    """Return a function that makes a `record` of the values of all its fields, in their order.

    Parameters
    ----------
    record : type
        A frozen dataclass without ``__post_init__``; its defaults do not count.

    Returns
    -------
    callable
        Takes one value per field, by position. What it makes differs in nothing from what
        `record` itself makes.
    """

    def become(twin: Any) -> None:
        twin.__class__ = record

    twin: Any = make_dataclass(
        record.__name__,
        [(field.name, Any) for field in fields(record)],  # type: ignore[arg-type]
        slots="__slots__" in record.__dict__,
        namespace={"__post_init__": become},
    )
    made: Callable[..., T] = twin
    return made


@contextmanager
def collected_later() -> Iterator[None]:
    """Put garbage collection off while many values are made, none of which is garbage."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
