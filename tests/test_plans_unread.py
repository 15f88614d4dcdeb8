"""An experiment whose plan cannot be read, as a newer version's, hides nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

import nbdurable as nb
from nbdurable.errors import TreeError
from nbdurable.ids import IdMaker
from nbdurable.stores.base import Store
from tests.exploring import opened

PLANS = {
    "newer": ('{"version": 9}', "KeyError"),
    "list": ("[1]", "TypeError"),
    "text": ("not json", "JSONDecodeError"),
    "cells": ('{"settings": [], "cells": 7}', "KeyError"),
    "settings": ('{"settings": 7}', "TypeError"),
}


@pytest.fixture(params=PLANS.values(), ids=PLANS)
def why(request: pytest.FixtureRequest, store: Store) -> str:
    """A store with a good experiment and a bad one; return why the bad one cannot be read."""
    plan, error = request.param
    with opened(store) as chat:
        chat.sample(2, "Q", name="wording", show=None)
    (good,) = store.load_experiments("s")
    store.save_experiment(replace(good, id=IdMaker()(), name="odd", plan_json=plan))
    return str(error)


@pytest.fixture
def chat(store: Store, why: str) -> nb.Session:
    return opened(store)


# B37
def test_the_others_are_listed_with_a_warning(chat: nb.Session, why: str) -> None:
    with pytest.warns(UserWarning, match=rf"'odd' of session 's' has a plan that .* \({why}: "):
        found = chat.experiments()

    assert [one.name for one in found] == ["wording"]


# B37
def test_it_is_refused_by_name_and_the_others_are_found(chat: nb.Session, why: str) -> None:
    with pytest.raises(TreeError, match=rf"'odd' .* cannot be read here \({why}: .*; open it with"):
        chat.experiment("odd")

    assert len(list(chat.experiment("wording"))) == 2


# B37 B43
def test_its_name_is_not_taken_anew_but_others_are(chat: nb.Session, why: str) -> None:
    with pytest.raises(TreeError, match=rf"cannot be read here \({why}: .* or give another name"):
        chat.sample(1, "R", name="odd")

    assert len(list(chat.sample(1, "R", name="even"))) == 1
