"""What no page of ours sends, a page may send: one clear refusal, and nothing is half changed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest
from answering import answers, says
from widget_page import Page

import nbdurable as nb
from nbdurable.notebook import bridge
from nbdurable.notebook.bridge import Bridge
from nbdurable.notebook.sessions import SessionsWidget
from nbdurable.notebook.tree import SessionTree
from nbdurable.notebook.tree.calls import ACTS
from nbdurable.notebook.tree.following import runs_of
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore

DEEP: Any = []
for _ in range(900):  # as deep as a message may be
    DEEP = [DEEP]
ODD: list[Any] = [
    None, True, -1, 0.5, 2**70, float("nan"), "x", "\ud800", "x" * 100_000, [None], [1, 1], {},
    {"temperature": "hot"}, DEEP,
]  # fmt: skip

Made = tuple[Bridge, Callable[[], object]]
Asked = tuple[str, str, dict[str, Any], str]


def tree(store: Store) -> Made:
    chat = answers(store).chat

    def look() -> list[int]:
        for going in (*chat.experiments()[-1:], *runs_of(chat.image)):
            with contextlib.suppress(nb.errors.RunError):
                going.wait()  # what an act before began is not this one's change
        return [node.n for node in chat.tree().nodes]

    return SessionTree(chat), look


def comparison(store: Store) -> Made:
    made = nb.compare(4, 5, 6, session=answers(store).chat)
    return made.widget(), lambda: [made.html(), made.df()["preferred"].to_list()]


def matrix(store: Store) -> Made:
    chat = nb.open("s", store=store, model=says("An answer."))
    made = chat.sample(2, "Q", show=None).compare()
    return made.widget(), made.html


def sessions(store: Store) -> Made:
    answers(store).chat.close()
    library = nb.connect(store)
    widget = SessionsWidget(library)
    return widget, lambda: [widget.html(), widget.session]


COMPARED = {"id": "", "base": 1, "blind": False, "prefer": 1}
ASKED: dict[Callable[[Store], Made], list[tuple[str, str, dict[str, Any]]]] = {
    tree: [
        *(("cmd", act, dict.fromkeys((*needed, *more), 1)) for act, (needed, more) in ACTS.items()),
        ("ask", "detail", {"n": 1, "whole": False}), ("ask", "previews", {"ns": [1]}),
        ("ask", "search", {"text": "x"}), ("ask", "request", {"n": 1}),
        ("ask", "estimate", {"n": 1, "count": 1, "model": "m", "system": "s", "params": {}}),
        ("ask", "code", {"name": "rerun", "args": {"n": 2}}),
        ("ask", "compare", {"ns": [4, 5], "base": 1, "blind": True}), ("cmd", "compared", COMPARED),
    ],
    comparison: [("cmd", "compared", COMPARED)],
    matrix: [("ask", "compare_cells", {"cells": [0, 1]}), ("cmd", "compared", COMPARED)],
    sessions: [
        ("ask", "rows", {"query": "a", "sort": "at", "down": True, "first": 0, "size": 5}),
        ("cmd", "open", {"id": "none"}),
    ],
}  # fmt: skip
# alone, an argument that is odd may be the only one that is wrong
ALONE = {"n", "ns", "id", "run", "text", "count", "cells", "winner", "name", "score"}


# case 47
@pytest.mark.parametrize("make", ASKED, ids=lambda make: make.__name__)
def test_an_odd_argument_is_refused_in_one_line_and_changes_nothing(
    make: Callable[[Store], Made],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge, "HZ", 10_000)  # no page is drawn
    widget, look = make(MemoryStore())
    page = Page(widget)

    for kind, name, args in ASKED[make]:
        for arg in args:
            given = {one: value for one, value in args.items() if one in ALONE or one == arg}
            for odd in ODD:
                before = look()
                try:
                    page._request(kind, name, {**given, arg: odd})
                except AssertionError as refused:
                    said = str(refused)
                    assert "\n" not in said and len(said) < 700, (name, arg, said)
                    assert look() == before, (name, arg, odd)

    warned = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert warned == []
    assert page.state()
    widget.close()


# B70
def test_a_preference_beside_a_base_that_is_not_there_is_not_stored() -> None:
    made = nb.compare(4, 5, session=answers(MemoryStore()).chat)

    with pytest.raises(AssertionError, match="column 9 is not in this comparison"):
        Page(made.widget()).act("compared", id="", prefer=1, base=9)

    assert not made.df()["preferred"].any()
