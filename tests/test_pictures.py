"""What was spent, as a picture."""

from __future__ import annotations

import sys

import pytest

import nbdurable as nb
from nbdurable.blocks import Usage
from nbdurable.models.base import Finish, TextDelta
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


def priced(cost_usd: float | None) -> ScriptedModel:
    usage = Usage(input_tokens=10, output_tokens=5)
    return ScriptedModel(
        (TextDelta("ok"), Finish(stop_reason="stop", usage=usage, cost_usd=cost_usd))
    )


def spent(store: Store, *costs: float | None) -> nb.library.Library:
    for at, cost in enumerate(costs):
        with nb.open(f"${at}$ <b>", store=store, model=priced(cost)) as chat:
            chat.run("q", show=None)
    return nb.connect(store)


@pytest.mark.parametrize("by", ["day", "model", "session"])
def test_spending_is_drawn_as_bars_of_its_sums(store: Store, by: str) -> None:
    library = spent(store, 0.25, 0.5)

    panel = library.plot_spend(by).axes[0]

    bars = [bar.get_height() if by == "day" else bar.get_width() for bar in panel.patches]
    assert (sum(bars), panel.get_title()) == (pytest.approx(0.75), f"cost (USD) by {by}")


def test_tokens_are_drawn_where_no_cost_is_known(store: Store) -> None:
    panel = spent(store, None).plot_spend("model").axes[0]

    assert ([bar.get_width() for bar in panel.patches], panel.get_title()) == (
        [15.0],
        "tokens by model",
    )


# case 43
def test_a_name_is_drawn_as_it_is(store: Store) -> None:
    figure = spent(store, 0.25).plot_spend("session")

    figure.canvas.draw()

    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [r"\$0\$ <b>"]


def test_without_matplotlib_it_says_what_to_install(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = spent(store, 0.25)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(nb.errors.RunError, match=r"pip install 'nbdurable\[plot\]'"):
        library.plot_spend()
