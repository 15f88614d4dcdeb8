"""What the fast maker makes differs in nothing from what the class itself makes."""

from __future__ import annotations

import copy
import gc
import pickle
from contextlib import suppress
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from nbdurable.blocks import Message, TextBlock
from nbdurable.entries import MessageEntry
from nbdurable.frozen import collected_later, maker
from nbdurable.stored import Move

MESSAGE = Message("user", (TextBlock("Hello"),))
VALUES: list[Any] = [
    Move(session_id="s", entry_id=None, seq=3, created_at=1),
    MESSAGE,
    MessageEntry(id="e", seq=1, n=1, message=MESSAGE, author="human"),
]
OF_EACH_KIND = pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)


def made(value: Any) -> Any:
    """Return the value made again, fast."""
    return maker(type(value))(*(getattr(value, field.name) for field in fields(value)))


@OF_EACH_KIND
def test_what_is_made_is_equal_and_of_the_class(value: Any) -> None:
    again = made(value)

    assert type(again) is type(value)
    assert (again, hash(again), repr(again)) == (value, hash(value), repr(value))


@OF_EACH_KIND
def test_what_is_made_cannot_be_changed(value: Any) -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field"):
        setattr(made(value), fields(value)[0].name, "other")


@OF_EACH_KIND
def test_what_is_made_can_be_copied_replaced_and_pickled(value: Any) -> None:
    again = made(value)

    assert copy.deepcopy(again) == replace(again) == pickle.loads(pickle.dumps(again)) == value


def test_a_value_is_made_of_all_fields_or_not_at_all() -> None:
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        maker(Move)("s", None)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_put_off_and_then_as_it_was(is_on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if is_on else gc.disable)()

    with suppress(LookupError), collected_later():
        meanwhile = gc.isenabled()
        raise LookupError
    after = gc.isenabled()
    (gc.enable if before else gc.disable)()

    assert (meanwhile, after) == (False, is_on)
