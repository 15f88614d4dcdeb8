"""What was spent, as a picture."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.text import Text

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


GROUNDS = ("#ffffff", "#212121", "#111111")  # of a light page, and of dark ones


def contrast(colour: Any, ground: str) -> float:
    def light(shade: Any) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(shade)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    darker, lighter = sorted((light(colour), light(ground)))
    return (lighter + 0.05) / (darker + 0.05)


# B29
@pytest.mark.parametrize("kind", ["spending", "experiment"])
def test_a_picture_is_legible_on_a_light_and_on_a_dark_page(store: Store, kind: str) -> None:
    if kind == "spending":
        figure = spent(store, 0.25, 0.5).plot_spend("session")
    else:
        with nb.open("s", store=store, model=priced(0.25)) as chat:
            figure = chat.sample(3, "q", show=None).plot()
    figure.canvas.draw()

    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    marks = [line for panel in figure.axes for line in panel.lines]
    marks += [bar for panel in figure.axes for bar in panel.patches]

    for ground in GROUNDS:
        assert min(contrast(text.get_color(), ground) for text in texts) >= 4
        for mark in marks:
            shade = mark.get_color() if isinstance(mark, Line2D) else mark.get_facecolor()[:3]
            assert contrast(shade, ground) >= 3
    assert figure.get_facecolor()[3] == 0
    assert all(panel.get_facecolor()[3] == 0 for panel in figure.axes)


def test_without_matplotlib_it_says_what_to_install(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = spent(store, 0.25)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(nb.errors.RunError, match=r"pip install 'nbdurable\[plot\]'"):
        library.plot_spend()
